// Package folding computes the states of objects from their events: for a rebuild and its check, and after an upgrade
// for objects whose stored state has an older shape than the program's.
package folding

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Folder folds the objects of one database.
type Folder struct {
	Engine engine.Engine
	Kinds  []event.Definition
	ByName map[event.Kind]event.Definition
	Root   secret.MasterKey
	Log    *slog.Logger

	// FactVersion is that which every node knows: objects are folded into the shape that all of them read. Raise makes
	// it this program's, unless an older node runs.
	FactVersion int
	Raise       func(ctx context.Context) (raised bool, err error)
}

// Counts say what has been read.
type Counts struct {
	Events  int
	Objects int

	Read func(events int64) // told of events as they are read; nil: nobody wants to know
}

// Folded is handed the state of each object.
type Folded func(k event.Definition, f event.Folded) error

// Unfolded is told of a history that cannot be folded, and why; k is nil where the kind is unknown.
type Unfolded func(k event.Definition, id string, why error) error

// Broken says that the history of an object cannot be folded.
type Broken struct {
	ID  string
	Why error
}

func (b *Broken) Error() string { return b.ID + ": " + b.Why.Error() }
func (b *Broken) Unwrap() error { return b.Why }

// page is how many events are read at once.
const page = 1000

// All walks the histories of all objects and hands over each folded record. The first history that cannot be folded is
// an error (Broken), unless broken takes it: then the walk goes on behind it.
func (f *Folder) All(ctx context.Context, x engine.Executor, counts *Counts, broken Unfolded, each Folded) error {
	return f.walk(ctx, x, "SELECT "+engine.EventColumns+
		" FROM events WHERE (object_id, sequence) > (?, ?) ORDER BY object_id, sequence LIMIT ?", "",
		counts, broken, each)
}

// One is All for one object.
func (f *Folder) One(ctx context.Context, x engine.Executor, id string, each Folded) error {
	return f.walk(ctx, x, "SELECT "+engine.EventColumns+
		" FROM events WHERE object_id = ? AND sequence > ? ORDER BY sequence LIMIT ?", id, &Counts{}, nil, each)
}

func (f *Folder) walk(ctx context.Context, x engine.Executor, text, id string, counts *Counts, broken Unfolded,
	each Folded) error {
	h := histories{folder: f, keys: f.keyOpener(ctx, x), counts: counts, broken: broken, each: each, id: id}
	for {
		var events []event.Event
		err := x.Query(ctx, text, []any{h.id, h.sequence, int64(page)}, func(scan engine.Scanner) error {
			events = append(events, event.Event{})
			return scan(engine.ScanEvent(&events[len(events)-1])...)
		})
		if err != nil {
			return err
		}
		if err := h.add(events); err != nil {
			return err
		}
		if counts.Read != nil {
			counts.Read(int64(len(events)))
		}
		if len(events) < page {
			return h.finish()
		}
	}
}

// histories folds events that come in the order of their objects and sequences.
type histories struct {
	folder *Folder
	keys   event.KeyOpener
	counts *Counts
	broken Unfolded // nil: the first is an error
	each   Folded

	begun    bool
	fold     event.Fold // nil before the first object, and behind the place where a history broke
	kind     event.Definition
	id       string
	sequence int64
	prev     []byte
}

func (h *histories) add(events []event.Event) error {
	for i := range events {
		e := &events[i]
		h.counts.Events++
		if !h.begun || e.ObjectID != h.id {
			if err := h.next(e); err != nil {
				return err
			}
		}
		if h.fold != nil {
			if why := h.follow(e); why != nil {
				if err := h.breaks(why); err != nil {
					return err
				}
			}
		}
		h.sequence, h.prev = int64(e.Sequence), e.Hash()
	}
	return nil
}

// next begins with the object of an event.
func (h *histories) next(e *event.Event) error {
	if err := h.finish(); err != nil {
		return err
	}
	h.counts.Objects++
	h.begun, h.fold, h.id, h.sequence, h.prev = true, nil, e.ObjectID, 0, nil
	if h.kind = h.folder.ByName[e.Type.Kind()]; h.kind == nil {
		return h.breaks(fmt.Errorf("event %d has the unknown type %s: use a newer program", e.Position, e.Type))
	}
	h.fold = h.kind.NewFold(h.keys, h.folder.FactVersion)
	return nil
}

func (h *histories) follow(e *event.Event) error {
	if int64(e.Sequence) != h.sequence+1 || !bytes.Equal(e.PrevHash, h.prev) {
		return fmt.Errorf("event %d does not follow the previous one", e.Position)
	}
	return h.fold.Add(e)
}

func (h *histories) breaks(why error) error {
	h.fold = nil
	if h.broken == nil {
		return &Broken{ID: h.id, Why: why}
	}
	return h.broken(h.kind, h.id, why)
}

// finish hands over the last object.
func (h *histories) finish() error {
	if h.fold == nil {
		return nil
	}
	f, err := h.fold.Folded()
	if err != nil {
		return h.breaks(err)
	}
	h.fold = nil
	return h.each(h.kind, f)
}

// keyOpener reads keys as a fold asks for them. An object's events share one, so the last is kept.
func (f *Folder) keyOpener(ctx context.Context, x engine.Executor) event.KeyOpener {
	var lastID string
	var last secret.DataKey
	return func(id string) (secret.DataKey, bool, error) {
		if id == lastID {
			return last, true, nil
		}
		var wrapped []byte
		err := x.Query(ctx, "SELECT value FROM keys WHERE key = ?", []any{id},
			func(scan engine.Scanner) error { return scan(&wrapped) })
		if err != nil || wrapped == nil {
			return secret.DataKey{}, false, err
		}
		key, err := f.Root.UnwrapDataKey(wrapped, id)
		if err != nil {
			return key, false, err
		}
		lastID, last = id, key
		return key, true, nil
	}
}
