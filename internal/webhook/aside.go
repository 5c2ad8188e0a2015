package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/journal"
)

const (
	maxAside = 1000 // objects put aside for a webhook; with more, it waits
	maxKept  = 50   // attempts that are remembered: so many that failed, and so many others
	page     = 200  // rows or events read at once
	maxLook  = 2000 // events looked at for one page of a list
)

// aside is an object that was put aside: its row on the shelf Deliveries. As long as it has not failed, only the node that serves the
// webhook writes it; after that, only who replays or skips.
type aside struct {
	Sequence uint64     `json:"sequence"` // of the event that comes next
	Type     event.Type `json:"type,omitempty"`
	Tries    int        `json:"tries,omitempty"`
	Since    int64      `json:"since,omitempty"` // when it failed first
	Last     int64      `json:"last,omitempty"`  // when it failed last
	Next     int64      `json:"next,omitempty"`  // when it is tried again
	Status   int        `json:"status,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Failed   bool       `json:"failed,omitempty"` // it is not tried again by itself

	busy  bool          // on its way
	ahead []event.Event // what comes next, as far as it was read
}

func asidePrefix(id string) string { return id + "/o/" }

func asideRow(id, objectID string) event.RowKey {
	return event.RowKey{Shelf: event.Deliveries, Key: asidePrefix(id) + objectID}
}

func (a *aside) row(id, objectID string) (event.Row, error) {
	value, err := json.Marshal(a)
	return event.Row{RowKey: asideRow(id, objectID), Value: value}, err
}

// asides reads a page of what a webhook has put aside, by object.
func asides(ctx context.Context, r event.Reader, id, after string, limit int) (objects []string, found []*aside, err error) {
	behind := ""
	if after != "" {
		behind = asidePrefix(id) + after
	}
	rows, err := r.RowsOf(ctx, event.Deliveries, asidePrefix(id), behind, limit)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		a := &aside{}
		if err := json.Unmarshal(row.Value, a); err != nil {
			return nil, nil, err
		}
		objects, found = append(objects, strings.TrimPrefix(row.Key, asidePrefix(id))), append(found, a)
	}
	return objects, found, nil
}

// Failure is an event that has failed.
type Failure struct {
	EventID     string
	Type        event.Type
	Tries       int
	First, Last time.Time
	Next        time.Time // when it is tried again; zero: not by itself
	Status      int
	Problem     string
}

// Failures reads a page of the events that have exhausted their tries; with retrying also of those that will be tried again.
// Errors: ErrNotFound.
func (w *Webhooks) Failures(ctx context.Context, permit access.Permit, id string, retrying bool, after event.Cursor, limit int) ([]Failure, *event.Cursor, error) {
	if _, err := w.get(ctx, permit, id, access.WebhookRead); err != nil {
		return nil, nil, err
	}
	var found []Failure
	for behind := after.ID; ; {
		objects, list, err := asides(ctx, w.Store, id, behind, page)
		if err != nil {
			return nil, nil, err
		}
		for i, a := range list {
			if a.Tries == 0 || !a.Failed && !retrying {
				continue // it is about to be sent
			}
			if len(found) == limit {
				return found, &event.Cursor{ID: behind}, nil
			}
			f := Failure{EventID: journal.IDOf(objects[i], a.Sequence), Type: a.Type, Tries: a.Tries, First: event.Time(a.Since), Last: event.Time(a.Last), Status: a.Status, Problem: a.Problem}
			if !a.Failed {
				f.Next = event.Time(a.Next)
			}
			found, behind = append(found, f), objects[i]
		}
		if len(list) < page {
			return found, nil, nil
		}
		behind = objects[len(objects)-1]
	}
}

// Held is an event that waits behind one that has failed.
type Held struct {
	EventID string
	Type    event.Type
	Time    time.Time
	Behind  string // id of the one that has failed
}

// HeldEvents reads a page of the events that wait. It may hold fewer than asked for, and still be followed by another. Errors: ErrNotFound.
func (w *Webhooks) HeldEvents(ctx context.Context, permit access.Permit, id string, after event.Cursor, limit int) ([]Held, *event.Cursor, error) {
	o, err := w.get(ctx, permit, id, access.WebhookRead)
	if err != nil {
		return nil, nil, err
	}
	var found []Held
	looked := 0
	// behind goes through the events of one failed object, from a sequence on; the cursor says where it stopped.
	behind := func(objectID string, a *aside, from uint64) (*event.Cursor, error) {
		for {
			events, err := w.Store.EventsOf(ctx, objectID, from, page)
			if err != nil {
				return nil, err
			}
			for i := range events {
				e := &events[i]
				if looked++; len(found) == limit || looked > maxLook {
					return &event.Cursor{Value: objectID, ID: strconv.FormatUint(e.Sequence, 10)}, nil
				}
				if o.State.wants(o.Org, e) {
					found = append(found, Held{EventID: journal.IDOf(objectID, e.Sequence), Type: e.Type, Time: event.Time(e.Time), Behind: journal.IDOf(objectID, a.Sequence)})
				}
				from = e.Sequence + 1
			}
			if len(events) < page {
				return nil, nil
			}
		}
	}
	if after.Value != "" { // where the page before stopped
		row, err := w.Store.Row(ctx, asideRow(id, after.Value))
		if err != nil {
			return nil, nil, err
		}
		from, _ := strconv.ParseUint(after.ID, 10, 63)
		if a := (&aside{}); row != nil && json.Unmarshal(row.Value, a) == nil && a.Failed {
			if next, err := behind(after.Value, a, max(from, a.Sequence+1)); err != nil || next != nil {
				return found, next, err
			}
		}
	}
	for last := after.Value; ; {
		objects, list, err := asides(ctx, w.Store, id, last, page)
		if err != nil {
			return nil, nil, err
		}
		for i, a := range list {
			if !a.Failed {
				continue
			}
			if next, err := behind(objects[i], a, a.Sequence+1); err != nil || next != nil {
				return found, next, err
			}
		}
		if len(list) < page {
			return found, nil, nil
		}
		last = objects[len(objects)-1]
	}
}

// Replay lets an event that has failed be tried again; without an event, all of them. It tells how many. Errors: ErrNotFound; ErrEventNotFailed; Aborted
// when match does not hold.
func (w *Webhooks) Replay(ctx context.Context, permit access.Permit, id, eventID string, match event.IfMatch) (event.Details, int, error) {
	if eventID != "" {
		details, err := w.resume(ctx, permit, id, eventID, match, Replayed{EventID: eventID}, func(a *aside) {})
		return details, 1, err
	}
	o, err := w.get(ctx, permit, id, access.WebhookWrite)
	if err != nil {
		return event.Details{}, 0, err
	}
	objects, list, err := asides(ctx, w.Store, o.ID, "", 2*maxAside)
	if err != nil {
		return event.Details{}, 0, err
	}
	c := change{permit: permit, id: id, match: match}
	for i, a := range list {
		if a.Failed {
			c.rows = append(c.rows, asideRow(id, objects[i]))
		}
	}
	replayed := 0
	details, err := w.change(ctx, c, func(tx *event.Tx, _ *Webhook) (event.Fact[Webhook], error) {
		replayed = 0
		for _, key := range c.rows {
			again, err := resumed(tx, key, func(*aside) bool { return true })
			if err != nil {
				return nil, err
			}
			if again {
				replayed++
			}
		}
		if replayed == 0 {
			return nil, nil
		}
		return Replayed{}, nil
	})
	if err != nil {
		return event.Details{}, 0, err
	}
	return details, replayed, nil
}

// Skip lets the events behind one that has failed be sent without it. Errors: ErrNotFound; ErrEventNotFailed; Aborted when match does not hold.
func (w *Webhooks) Skip(ctx context.Context, permit access.Permit, id, eventID string, match event.IfMatch) (event.Details, error) {
	return w.resume(ctx, permit, id, eventID, match, Skipped{EventID: eventID}, func(a *aside) { a.Sequence, a.Type = a.Sequence+1, "" })
}

func (w *Webhooks) resume(ctx context.Context, permit access.Permit, id, eventID string, match event.IfMatch, fact event.Fact[Webhook], alter func(*aside)) (event.Details, error) {
	objectID, sequence, ok := journal.ParseID(eventID)
	key := asideRow(id, objectID)
	c := change{permit: permit, id: id, match: match, rows: []event.RowKey{key}}
	return w.change(ctx, c, func(tx *event.Tx, _ *Webhook) (event.Fact[Webhook], error) {
		again := false
		if ok {
			var err error
			again, err = resumed(tx, key, func(a *aside) bool {
				if a.Sequence != sequence {
					return false
				}
				alter(a)
				return true
			})
			if err != nil {
				return nil, err
			}
		}
		if !again {
			return nil, ErrEventNotFailed
		}
		return fact, nil
	})
}

// resumed lets an object that has failed go on at once, where alter agrees.
func resumed(tx *event.Tx, key event.RowKey, alter func(*aside) bool) (bool, error) {
	row, err := tx.Row(key)
	if err != nil || row == nil {
		return false, err
	}
	var a aside
	if err := json.Unmarshal(row.Value, &a); err != nil {
		return false, err
	}
	if !a.Failed || !alter(&a) {
		return false, nil
	}
	a = aside{Sequence: a.Sequence, Type: a.Type, Next: tx.Now()}
	value, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	tx.PutRow(event.Row{RowKey: key, Value: value})
	return true, nil
}

// Attempt is one try to send an event. It holds nothing of the message and nothing of the answer but its status.
type Attempt struct {
	EventID string     `json:"event"`
	Type    event.Type `json:"type"`
	Time    int64      `json:"time"` // when it ended
	Took    int64      `json:"took"` // microseconds
	Try     int        `json:"try"`
	Status  int        `json:"status,omitempty"`
	Problem string     `json:"problem,omitempty"`
}

// history is the last attempts. Those that failed are kept apart, or the others would soon have displaced them.
type history struct {
	Sent   []Attempt `json:"sent,omitempty"`
	Failed []Attempt `json:"failed,omitempty"`
}

func historyRow(id string) event.RowKey {
	return event.RowKey{Shelf: event.Deliveries, Key: id + "/history"}
}

func (h *history) add(a Attempt) {
	list := &h.Sent
	if a.Problem != "" {
		list = &h.Failed
	}
	if *list = append(*list, a); len(*list) > maxKept {
		*list = slices.Clone((*list)[len(*list)-maxKept:])
	}
}

func readHistory(ctx context.Context, r event.Reader, id string) (h history, err error) {
	row, err := r.Row(ctx, historyRow(id))
	if err != nil || row == nil {
		return h, err
	}
	return h, json.Unmarshal(row.Value, &h)
}

// Attempts gives the last attempts, the newest first: up to 50 that failed and up to 50 others. Errors: ErrNotFound.
func (w *Webhooks) Attempts(ctx context.Context, permit access.Permit, id string) ([]Attempt, error) {
	if _, err := w.get(ctx, permit, id, access.WebhookRead); err != nil {
		return nil, err
	}
	h, err := readHistory(ctx, w.Store, id)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(h.Sent, h.Failed)
	slices.Reverse(all) // of the same time, the last first
	slices.SortStableFunc(all, func(a, b Attempt) int { return cmp.Compare(b.Time, a.Time) })
	return all, nil
}
