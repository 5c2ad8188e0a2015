package store

import (
	"context"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// A command can get into the queue just after the writer has looked into it for the last time.
func TestACommandQueuedBehindTheWritersBackIsAnswered(t *testing.T) {
	s := &Store{queue: make(chan *pending, 1), stopping: make(chan struct{}), stopped: make(chan struct{})}
	close(s.stopped)
	err := s.Do(context.Background(), event.Command{Decide: func(*event.Tx) error { return nil }})
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v", err)
	}
}
