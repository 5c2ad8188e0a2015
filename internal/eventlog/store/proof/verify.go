package proof

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Verify walks the log up to where it ends now and tells whether it is as it was written: positions and sequences
// without gaps, every object's chain, the checkpoints, and that every object's state is that of the end of its chain.
// It stops at the first thing that does not fit. The log is only ever added to, so Verify reads it page by page while
// others write.
func Verify(ctx context.Context, e engine.Engine, root secret.MasterKey, kinds []event.Definition,
	o Options) (*Report, error) {
	v := &verifier{engine: e, root: root, kinds: kinds, options: o, report: &Report{}, ends: map[uint64]uint64{},
		seed: maphash.MakeSeed(), tags: newTagger(root), objects: map[event.Kind]int64{}}
	for _, k := range kinds {
		v.objects[k.Name()] = 0
	}
	v.options.Chains = cmp.Or(o.Chains, maxEnds)
	err := v.run(ctx)
	return v.report, err
}

type verifier struct {
	engine  engine.Engine
	root    secret.MasterKey
	kinds   []event.Definition
	options Options
	report  *Report

	end    int64       // of the log when it began
	lowest int64       // position that any event has
	last   int64       // position that any event has
	head   *checkpoint // nil: there is none
	full   int64       // number of the last full checkpoint

	tags    tagger
	seed    maphash.Seed
	ends    map[uint64]uint64    // where chains have come to: see link
	objects map[event.Kind]int64 // of each kind that has states to compare with
	digest  []byte
	latest  int64    // of the times of events that are not sealed
	pending *Finding // about the checkpoints, from its position on
}

// maxEnds is how many chains are remembered, with about 40 bytes each. The ends of others are looked up.
var maxEnds = 1 << 20

func (v *verifier) run(ctx context.Context) error {
	err := v.look(ctx)
	if err != nil && v.engine.IsMissingTable(err) {
		v.report.Finding = at(0,
			"the log has no checkpoints yet: start this version of the server once, and try again when it is ready")
		return nil
	}
	if errors.Is(err, errForgedEnd) {
		v.report.Finding = at(0, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	v.digest = noEvents
	if v.report.Finding, err = v.walk(ctx); err != nil || v.report.Finding != nil {
		return err
	}
	if v.report.Finding = v.judgeEnd(); v.report.Finding != nil {
		return nil
	}
	v.report.Checkpoints, v.report.Head = v.full+1, Mark{Position: v.end, Digest: [32]byte(v.digest)}
	v.report.Finding, err = v.states(ctx)
	return err
}

// look sees in one moment how far the log goes and how far it is sealed.
func (v *verifier) look(ctx context.Context) error {
	return v.engine.Snapshot(ctx, func(x engine.Executor) (err error) {
		if v.end, err = logEnd(ctx, x); err != nil {
			return err
		}
		if v.head, err = readCheckpoint(ctx, x, 0, ""); err != nil {
			return err
		}
		err = x.Query(ctx, "SELECT coalesce(min(position), 1), coalesce(max(position), 0) FROM events", nil,
			func(scan engine.Scanner) error {
				return scan(&v.lowest, &v.last)
			})
		if err != nil {
			return err
		}
		err = x.Query(ctx, "SELECT coalesce(max(number), 0) FROM checkpoints", nil,
			func(scan engine.Scanner) error { return scan(&v.full) })
		v.full = min(v.full, math.MaxInt64/span)
		return err
	})
}

// judgeHead says from where on the log is not covered as it should be. What the tags say about events before that
// counts first.
func (v *verifier) judgeHead() {
	sealed := v.full * span
	switch {
	case v.head == nil:
		v.pending = at(sealed+1, "the head of the checkpoints was removed, and the log may have been changed since")
	case !v.head.genuine(v.root):
		v.pending = at(v.head.first(),
			"the head of the checkpoints was changed: its seal is not from this installation")
		if v.head.first() != sealed+1 {
			v.head = nil // it covers nothing that can be told
		}
	case v.head.position < sealed:
		v.pending = at(sealed+1,
			"the head of the checkpoints ends at position %d, before the last checkpoint: it was replaced by an older one", v.head.position)
		v.head = nil
	default:
		v.full = v.head.position / span // all of them must be there
	}
}

// sheet is a range of positions with its events.
type sheet struct {
	events     []event.Event
	unreadable error       // the event behind them
	sealed     *checkpoint // that covers it; nil: none does
	missing    bool        // one should
}

func (v *verifier) bar(what string, total int64) *progress.Bar {
	if v.options.Progress == nil {
		return nil
	}
	return v.options.Progress(what, total)
}

func (v *verifier) rest(ctx context.Context) error {
	if v.options.Pace == nil {
		return nil
	}
	return v.options.Pace(ctx)
}

// walk goes through the log in order. One goroutine reads ahead while the other one computes.
func (v *verifier) walk(ctx context.Context) (*Finding, error) {
	if v.lowest < 1 {
		return at(v.lowest, "there is an event before the beginning of the log"), nil
	}
	v.judgeHead()
	bar := v.bar("events", v.end)
	defer bar.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sheets, failed := make(chan *sheet, 2), make(chan error, 1)
	go func() {
		defer close(sheets)
		for number := int64(1); (number-1)*span < v.end; number++ {
			s, err := v.read(ctx, number)
			if err != nil {
				failed <- err
				return
			}
			select {
			case sheets <- s:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	position := int64(0)
	for s := range sheets {
		finding, err := v.check(ctx, s, position)
		if err != nil || finding != nil {
			return finding, err
		}
		position = v.report.Events
		bar.Add(int64(len(s.events)))
		if err := v.rest(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case err := <-failed:
		return nil, err
	default:
		return nil, nil
	}
}

// read gives the events of a range and the checkpoint that covers it.
func (v *verifier) read(ctx context.Context, number int64) (*sheet, error) {
	s := &sheet{events: make([]event.Event, 0, span)}
	first, last := (number-1)*span+1, min(number*span, v.end)
	err := v.engine.Query(ctx, selectEvents+" WHERE position >= ? AND position <= ? ORDER BY position",
		[]any{first, last}, func(scan engine.Scanner) error {
			s.events = append(s.events, event.Event{})
			err := scan(scanEvent(&s.events[len(s.events)-1])...)
			if err != nil {
				s.events = s.events[:len(s.events)-1]
			}
			return err
		})
	if errors.Is(err, engine.ErrOtherType) {
		s.unreadable, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case number <= v.full:
		s.sealed, err = readCheckpoint(ctx, v.engine, number, "")
		s.missing = s.sealed == nil
		return s, err
	case v.head != nil && v.head.first() == first:
		s.sealed = v.head
	}
	return s, nil
}

// check judges a range whose events follow a position.
func (v *verifier) check(ctx context.Context, s *sheet, position int64) (*Finding, error) {
	first, last := position+1, min(position+span, v.end)
	genuine := s.sealed != nil && s.sealed.genuine(v.root)
	switch {
	case s.missing:
		return at(first, "the checkpoint of positions %d to %d is missing: it was removed, and its events may have been changed since", first, position+span), nil
	case genuine && s.sealed.number > 0:
		genuine = s.sealed.position == position+span
	}
	for i := range s.events {
		e := &s.events[i]
		if e.Position != position+1 {
			break
		}
		position++
		v.report.Events++
		if f, err := v.fits(ctx, e, s.sealed, genuine); err != nil || f != nil {
			return f, err
		}
	}
	switch {
	case position < last:
		return v.absent(position+1, s.unreadable), nil
	case s.sealed == nil || genuine:
		return nil, nil
	case s.sealed.number == 0:
		return v.pending, nil
	}
	return at(first, "the checkpoint of positions %d to %d was changed: its seal is not from this installation, although its events are unchanged", first, position), nil
}

// absent is the finding at a position without an event that could be read.
func (v *verifier) absent(position int64, unreadable error) *Finding {
	if unreadable != nil {
		return at(position, "the event cannot be read, so it was changed: %v", unreadable)
	}
	return at(position, "there is no event: it was removed, or moved to another position")
}

// fits judges one event.
func (v *verifier) fits(ctx context.Context, e *event.Event, sealed *checkpoint, genuine bool) (*Finding, error) {
	hash := e.Hash()
	var tag []byte
	if sealed != nil {
		tag = sealed.tag(e.Position)
	}
	switch {
	case tag == nil && v.pending != nil && e.Position >= v.pending.Position:
		f := *v.pending
		f.Position, f.ObjectID, f.Sequence, f.Type = e.Position, e.ObjectID, e.Sequence, e.Type
		return &f, nil
	case tag != nil && !bytes.Equal(tag, v.tags.tag(e.Position, hash)):
		if genuine {
			return about(e, "this is not the event that was sealed at this position"), nil
		}
		return about(e, "this is not the event that was sealed at this position, and the checkpoint was changed too"), nil
	case len(e.PrevHash) == 0 && e.PrevHash != nil, len(e.Sealed) == 0 && e.Sealed != nil:
		return about(e, "a column that must have a value is empty"), nil
	}
	if f, err := v.follows(ctx, e, hash); err != nil || f != nil {
		return f, err
	}
	v.digest = chained(v.digest, e.Position, hash)
	switch {
	case genuine && sealed.position == e.Position && !bytes.Equal(sealed.digest, v.digest):
		return about(e, "the log up to here is not the sealed one"), nil
	case tag == nil:
		if v.report.Unsealed++; v.report.Unsealed == 1 {
			v.report.Since, v.latest = e.Time, e.Time
		}
		v.report.Since, v.latest = min(v.report.Since, e.Time), max(v.latest, e.Time)
	}
	if x := v.options.Expect; x != nil && x.Position == e.Position && !bytes.Equal(x.Digest[:], v.digest) {
		return about(e, "the log up to here is not the expected one: it was changed and sealed again, or belongs to another installation"), nil
	}
	return nil, nil
}

// link tells where a chain has come to, in a number that nobody can foresee: the seed is another one each time. If two
// chains should share one, the log itself is asked.
func (v *verifier) link(sequence uint64, hash []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	h.Write(number(int64(sequence)))
	h.Write(hash)
	return h.Sum64()
}

// follows tells whether an event goes on where its object's chain has come to.
func (v *verifier) follows(ctx context.Context, e *event.Event, hash []byte) (*Finding, error) {
	id := maphash.String(v.seed, e.ObjectID)
	end, known := v.ends[id]
	if known && end != v.link(e.Sequence-1, e.PrevHash) || !known && (e.Sequence != 1 || e.PrevHash != nil) {
		if f, err := v.followsInLog(ctx, e); err != nil || f != nil {
			return f, err
		}
	}
	if e.Sequence == 1 {
		v.report.Objects++
		if _, known := v.objects[e.Type.Kind()]; known {
			v.objects[e.Type.Kind()]++
		}
	}
	if !known && len(v.ends) >= v.options.Chains {
		for other := range v.ends { // any of them
			delete(v.ends, other)
			break
		}
	}
	v.ends[id] = v.link(e.Sequence, hash)
	return nil, nil
}

// followsInLog asks the log for the event before this one.
func (v *verifier) followsInLog(ctx context.Context, e *event.Event) (*Finding, error) {
	var before, twice *event.Event
	query := selectEvents + " WHERE object_id = ? AND sequence >= ? AND sequence <= ? AND position < ?"
	err := v.engine.Query(ctx, query, []any{e.ObjectID, int64(e.Sequence) - 1, int64(e.Sequence), e.Position},
		func(scan engine.Scanner) error {
			var other event.Event
			err := scan(scanEvent(&other)...)
			if other.Sequence == e.Sequence {
				twice = &other
			} else {
				before = &other
			}
			return err
		})
	switch {
	case err != nil:
		return nil, err
	case twice != nil:
		return about(e, "the event at position %d has the same number: one of them was inserted", twice.Position), nil
	case e.Sequence == 1 && e.PrevHash != nil:
		return about(e, "it is the first event of its object, but was written after another one"), nil
	case e.Sequence == 1:
		return nil, nil
	case before == nil:
		return about(e, "the previous event is missing: it was removed, or moved behind this one"), nil
	case !bytes.Equal(before.Hash(), e.PrevHash):
		return about(e, "it does not follow event %d of its object, at position %d: one of the two was changed",
			before.Sequence, before.Position), nil
	}
	return nil, nil
}

// judgeEnd is about what is behind the last event.
func (v *verifier) judgeEnd() *Finding {
	switch {
	case v.full*span > v.end:
		return at(v.end+1, "the log ends before this position, but is sealed up to position %d: the last events were removed", v.full*span)
	case v.pending != nil:
		return v.pending
	case v.head.position > v.end:
		return at(v.end+1, "the log ends before this position, but is sealed up to position %d: the last events were removed", v.head.position)
	case v.last > v.end:
		return at(v.end+1, "the log should end before this position, but there is an event at position %d", v.last)
	case v.latest > v.report.Since+patience.Microseconds():
		return at(v.head.position+1,
			"from here on %d events are not sealed, although they were written over more than a minute: the head of the checkpoints was replaced by an older one, "+
				"or no server of this version has run since. If you have just started it for the first time, try again when it has sealed the log", v.report.Unsealed)
	}
	if x := v.options.Expect; x != nil && x.Position > v.end {
		return at(v.end+1, "the log ends before this position, but was expected to go on to position %d: this is an older copy, or the last events were removed", x.Position)
	}
	return nil
}

// states compares the state of every object with the end of its chain.
func (v *verifier) states(ctx context.Context) (*Finding, error) {
	total := int64(0)
	for _, n := range v.objects {
		total += n
	}
	bar := v.bar("objects", total)
	defer bar.End()
	for _, k := range v.kinds {
		seen := int64(0)
		for after, more := "", true; more; {
			var f *Finding
			err := v.engine.Snapshot(ctx, func(x engine.Executor) (err error) {
				var rows []state
				if rows, f, err = readStates(ctx, x, k, after); err != nil || f != nil {
					return err
				}
				if more = len(rows) == span; len(rows) > 0 {
					after = rows[len(rows)-1].id
				}
				var counted int64
				counted, f, err = v.compare(ctx, x, rows)
				seen += counted
				bar.Add(counted)
				return err
			})
			if err != nil || f != nil {
				return f, err
			}
			if err := v.rest(ctx); err != nil {
				return nil, err
			}
		}
		switch have := v.objects[k.Name()]; {
		case seen < have:
			return at(0, "%d objects of the table %s have events but no state: signet rebuild --check names them",
				have-seen, k.Table()), nil
		case seen > have:
			return at(0, "%d states in the table %s belong to objects of another kind: signet rebuild --check says more", seen-have, k.Table()), nil
		}
	}
	return nil, nil
}

// readStates gives the next states of a kind.
func readStates(ctx context.Context, x engine.Executor, k event.Definition,
	after string) (rows []state, f *Finding, err error) {
	err = x.Query(ctx, "SELECT id, sequence, hash FROM "+k.Table()+" WHERE id > ? ORDER BY id LIMIT ?",
		[]any{after, int64(span)}, func(scan engine.Scanner) error {
			rows = append(rows, state{})
			s := &rows[len(rows)-1]
			return scan(engine.Exactly([]any{&s.id, &s.sequence, &s.hash})...)
		})
	if errors.Is(err, engine.ErrOtherType) {
		return nil, at(0, "the state of %q in the table %s cannot be read, so it was changed: %v", rows[len(rows)-1].id,
			k.Table(), err), nil
	}
	return rows, nil, err
}

// compare holds states against the ends of their chains, and counts those of objects that were there when the walk
// began.
func (v *verifier) compare(ctx context.Context, x engine.Executor,
	rows []state) (counted int64, f *Finding, err error) {
	for _, s := range rows {
		older := true
		if v.ends[maphash.String(v.seed, s.id)] != v.link(uint64(s.sequence), s.hash) {
			if older, f, err = v.stateInLog(ctx, x, s); err != nil || f != nil {
				return counted, f, err
			}
		}
		if older {
			counted++
		}
	}
	return counted, nil, nil
}

// state is what the row of an object says about its chain.
type state struct {
	id       string
	sequence int64
	hash     []byte
}

// stateInLog compares a state with the log as it is at the same moment: something may have been written since. older
// tells that the object was there when the walk began.
func (v *verifier) stateInLog(ctx context.Context, x engine.Executor, s state) (older bool, f *Finding, err error) {
	var last event.Event
	err = x.Query(ctx, selectEvents+" WHERE object_id = ? ORDER BY sequence DESC LIMIT 1", []any{s.id},
		func(scan engine.Scanner) error {
			return scan(scanEvent(&last)...)
		})
	if err != nil {
		return false, nil, err
	}
	var first int64
	err = x.Query(ctx, "SELECT position FROM events WHERE object_id = ? AND sequence = 1", []any{s.id},
		func(scan engine.Scanner) error { return scan(&first) })
	if err != nil {
		return false, nil, err
	}
	missing := &Finding{ObjectID: s.id, Sequence: last.Sequence + 1,
		What: fmt.Sprintf("it is missing: the object's state was computed from %d events, but the log has only %d of them", s.sequence, last.Sequence)}
	switch c := cmp.Compare(uint64(s.sequence), last.Sequence); {
	case c > 0:
		return false, missing, nil
	case c < 0:
		return false, about(&last,
			"the state of its object was computed from %d events, without this one: it was inserted", s.sequence), nil
	case !bytes.Equal(s.hash, last.Hash()):
		return false, about(&last,
			"the state of its object was computed from another event: this event or the state was changed"), nil
	}
	return first <= v.end, nil, nil
}
