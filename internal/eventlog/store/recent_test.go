package store

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testkit"
)

// eventReads counts the queries that read events.
type eventReads struct {
	engine.Engine
	queries atomic.Int64
}

func (e *eventReads) Query(ctx context.Context, text string, args []any, each func(engine.Scanner) error) error {
	if strings.Contains(text, "FROM events WHERE position >") {
		e.queries.Add(1)
	}
	return e.Engine.Query(ctx, text, args, each)
}

// Whoever reads events right after they were written to the embedded database gets them from memory, and they are what
// is in the database: the sealer seals them as well.
func TestRecentEventsAreThoseOfTheLog(t *testing.T) {
	var reads eventReads
	s, _, err := Open(t.Context(), Options{
		Database:     filepath.Join(t.TempDir(), "signet.db"),
		Kinds:        []event.Definition{oldThings},
		Master:       secret.NewMasterKey(),
		SealInterval: time.Millisecond,
		wrap:         func(e engine.Engine) engine.Engine { reads.Engine = e; return &reads },
	})
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close() })
	const total = 50
	for i := range total {
		testkit.Must(t, s.Do(t.Context(), oldName(fmt.Sprint("x_", i), fmt.Sprint("name ", i))))
	}
	recent, err := s.Events(t.Context(), 0, 2*total)
	testkit.Must(t, err)
	if n := reads.queries.Load(); n != 0 || len(recent) != total {
		t.Errorf("%d events by %d queries", len(recent), n)
	}
	stored, err := s.readEvents(t.Context(), eventsWhere+"position > ? ORDER BY position", 0)
	testkit.Must(t, err)
	// Their hash covers all that is stored of them but the position.
	same := func(m, d event.Event) bool { return m.Position == d.Position && bytes.Equal(m.Hash(), d.Hash()) }
	if !slices.EqualFunc(recent, stored, same) {
		t.Errorf("in memory %+v, stored %+v", recent, stored)
	}
	for i := range recent {
		if !bytes.Equal(recent[i].WrittenHash(), stored[i].Hash()) {
			t.Errorf("the hash of event %d is not that of what is stored", recent[i].Position)
		}
	}
	testkit.Await(t, "the log is sealed", func() bool { _, sealed, _ := s.sealer.Seen(); return sealed == total })
	report, err := s.Verify(t.Context(), proof.Options{})
	testkit.Must(t, err)
	if report.Finding != nil {
		t.Errorf("what was sealed is not what is stored: %v", report.Finding)
	}
}
