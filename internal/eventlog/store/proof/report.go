package proof

import (
	"context"
	"fmt"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Options of Verify.
type Options struct {
	Expect   *Mark                                        // that the log must still contain; nil: nothing
	Progress func(what string, total int64) *progress.Bar // makes a bar for each part of the work; nil: nobody looks
	// is called after every thousand events and states, to rest for a while; nil: in one go
	Pace   func(ctx context.Context) error
	Chains int // how many are remembered, see maxEnds; 0: that many
}

// Report says what Verify has seen, up to the finding if there is one.
type Report struct {
	Events      int64
	Objects     int64
	Checkpoints int64
	Unsealed    int64 // events that no checkpoint covers yet
	Since       int64 // the earliest of the times they were written, in microseconds
	Head        Mark  // the end of the log
	Finding     *Finding
}

// Finding is the first thing that does not fit.
type Finding struct {
	Position int64      // 0: not known
	ObjectID string     // empty: there is no such event
	Sequence uint64     //
	Type     event.Type //
	What     string     // in plain words
}

func (f *Finding) String() string {
	switch {
	case f.Position == 0 && f.ObjectID == "":
		return f.What
	case f.ObjectID == "":
		return fmt.Sprintf("position %d: %s", f.Position, f.What)
	case f.Position == 0:
		return fmt.Sprintf("event %d of %s: %s", f.Sequence, f.ObjectID, f.What)
	}
	return fmt.Sprintf("position %d, event %d of %s (%s): %s", f.Position, f.Sequence, f.ObjectID, f.Type, f.What)
}

// about makes a finding about an event.
func about(e *event.Event, format string, args ...any) *Finding {
	return &Finding{Position: e.Position, ObjectID: e.ObjectID, Sequence: e.Sequence, Type: e.Type,
		What: fmt.Sprintf(format, args...)}
}

// at makes a finding about a position.
func at(position int64, format string, args ...any) *Finding {
	return &Finding{Position: position, What: fmt.Sprintf(format, args...)}
}
