package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
)

const (
	maxKept = 50          // attempts that are remembered: so many that failed, and so many others
	page    = notify.Page // rows or events read at once
	maxLook = 2000        // events looked at for one page of a list
)

// parked is an object of which an event failed: its row on the side table Deliveries. As long as it has not failed for
// good, only the node that serves the webhook writes it; after that, only who replays or skips.
type parked struct {
	objectID string
	notify.Parked
}

func parkedPrefix(id string) string { return id + "/o/" }

func parkedRow(id, objectID string) event.RowKey {
	return event.RowKey{Table: event.Deliveries, Key: parkedPrefix(id) + objectID}
}

// paged goes through pages until one is not full. read is given the last of the page before.
func paged[T any](read func(last *T) ([]T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for last := (*T)(nil); ; {
			found, err := read(last)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range found {
				if !yield(&found[i], nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			last = &found[len(found)-1]
		}
	}
}

// parkedOf reads what is parked for a webhook, by object, behind one of them.
func parkedOf(ctx context.Context, r event.Reader, id, after string) iter.Seq2[*parked, error] {
	return paged(func(last *parked) (found []parked, err error) {
		if last != nil {
			after = last.objectID
		}
		behind := ""
		if after != "" {
			behind = parkedPrefix(id) + after
		}
		rows, err := r.RowsOf(ctx, event.Deliveries, parkedPrefix(id), behind, page)
		found = make([]parked, len(rows))
		for i, row := range rows {
			found[i].objectID = strings.TrimPrefix(row.Key, parkedPrefix(id))
			err = cmp.Or(err, json.Unmarshal(row.Value, &found[i].Parked))
		}
		return found, err
	})
}

// eventsOf reads the events of an object from a sequence on.
func eventsOf(ctx context.Context, r event.Reader, objectID string, from uint64) iter.Seq2[*event.Event, error] {
	return paged(func(last *event.Event) ([]event.Event, error) {
		if last != nil {
			from = last.Sequence + 1
		}
		return r.EventsOf(ctx, objectID, from, page)
	})
}

func allParked(ctx context.Context, r event.Reader, id string) (map[string]*notify.Parked, error) {
	all := map[string]*notify.Parked{}
	for p, err := range parkedOf(ctx, r, id, "") {
		if err != nil {
			return nil, err
		}
		all[p.objectID] = &p.Parked
	}
	return all, nil
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

// Failures reads a page of the events that have exhausted their tries; with retrying also of those that will be tried
// again. Errors: ErrNotFound.
func (w *Webhooks) Failures(ctx context.Context, permit access.Permit, id string, retrying bool, after event.Cursor,
	limit int) ([]Failure, *event.Cursor, error) {
	if _, err := w.get(ctx, permit, id, access.WebhookRead); err != nil {
		return nil, nil, err
	}
	var found []Failure
	for p, err := range parkedOf(ctx, w.Store, id, after.ID) {
		if err != nil {
			return nil, nil, err
		}
		if p.Tries == 0 || !p.Failed && !retrying {
			continue // it is about to be sent
		}
		if len(found) == limit {
			return found, &after, nil
		}
		f := Failure{EventID: journal.IDOf(p.objectID, p.Sequence), Type: p.Type, Tries: p.Tries,
			First: event.Time(p.Since), Last: event.Time(p.Last), Status: p.Status, Problem: p.Problem}
		if !p.Failed {
			f.Next = event.Time(p.Next)
		}
		found, after = append(found, f), event.Cursor{ID: p.objectID}
	}
	return found, nil, nil
}

// HeldEvent is an event that waits behind one that has failed.
type HeldEvent struct {
	EventID string
	Type    event.Type
	Time    time.Time
	Behind  string // id of the one that has failed
}

// HeldEvents reads a page of the events that wait. It may hold fewer than asked for, and still be followed by another.
// Errors: ErrNotFound.
func (w *Webhooks) HeldEvents(ctx context.Context, permit access.Permit, id string, after event.Cursor,
	limit int) ([]HeldEvent, *event.Cursor, error) {
	o, err := w.get(ctx, permit, id, access.WebhookRead)
	if err != nil {
		return nil, nil, err
	}
	var found []HeldEvent
	looked := 0
	// with the one where the page before stopped
	for p, err := range parkedOf(ctx, w.Store, id, after.Value[:max(len(after.Value)-1, 0)]) {
		if err != nil {
			return nil, nil, err
		}
		if !p.Failed || p.objectID < after.Value {
			continue
		}
		from := p.Sequence + 1
		if p.objectID == after.Value {
			stopped, _ := strconv.ParseUint(after.ID, 10, 63)
			from = max(from, stopped)
		}
		for e, err := range eventsOf(ctx, w.Store, p.objectID, from) {
			if err != nil {
				return nil, nil, err
			}
			if looked++; len(found) == limit || looked > maxLook {
				return found, &event.Cursor{Value: p.objectID, ID: strconv.FormatUint(e.Sequence, 10)}, nil
			}
			if o.Data.wants(o.Org, e) {
				found = append(found, HeldEvent{
					EventID: journal.IDOf(p.objectID, e.Sequence),
					Type:    e.Type,
					Time:    event.Time(e.Time),
					Behind:  journal.IDOf(p.objectID, p.Sequence),
				})
			}
		}
	}
	return found, nil, nil
}

// Replay lets an event that has failed be tried again; without an event, all of them. It tells how many. Errors:
// ErrNotFound; ErrEventNotFailed; Aborted when match does not hold.
func (w *Webhooks) Replay(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	eventID string) (event.Details, int, error) {
	if eventID != "" {
		return w.resumeOne(ctx, permit, id, match, Replayed{EventID: eventID}, eventID, 0)
	}
	if _, err := w.get(ctx, permit, id, access.WebhookWrite); err != nil {
		return event.Details{}, 0, err
	}
	all, err := allParked(ctx, w.Store, id)
	if err != nil {
		return event.Details{}, 0, err
	}
	r := resumption{fact: Replayed{}}
	for objectID, p := range all {
		if p.Failed {
			r.rows = append(r.rows, parkedRow(id, objectID))
		}
	}
	return w.resume(ctx, permit, id, match, r)
}

// Skip lets the events behind one that has failed be sent without it. Errors: ErrNotFound; ErrEventNotFailed; Aborted
// when match does not hold.
func (w *Webhooks) Skip(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	eventID string) (event.Details, error) {
	details, _, err := w.resumeOne(ctx, permit, id, match, Skipped{EventID: eventID}, eventID, 1)
	return details, err
}

// resumption lets parked objects go on.
type resumption struct {
	fact     event.Fact[Webhook]
	rows     []event.RowKey // of the objects
	sequence uint64         // of the event that must have failed; 0: any
	later    uint64         // so many events behind the failed one
}

// resumeOne lets the object of a failed event go on.
func (w *Webhooks) resumeOne(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	fact event.Fact[Webhook], eventID string, later uint64) (event.Details, int, error) {
	objectID, sequence, ok := journal.ParseID(eventID)
	if !ok {
		sequence = math.MaxUint64 // which no event has
	}
	return w.resume(ctx, permit, id, match,
		resumption{fact: fact, rows: []event.RowKey{parkedRow(id, objectID)}, sequence: sequence, later: later})
}

// resume lets objects with a failed event go on at once, and tells how many. It refuses if the event that must have
// failed has not.
func (w *Webhooks) resume(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	r resumption) (event.Details, int, error) {
	resumed := 0
	details, err := changeable(permit, id).Needs(event.Command{Rows: r.rows}).Change(ctx, w.Store, match,
		func(tx *event.Tx, o *event.Object[Webhook]) error {
			resumed = 0
			for _, key := range r.rows {
				row, err := tx.Row(key)
				if err != nil {
					return err
				}
				var p notify.Parked
				if row != nil {
					err = json.Unmarshal(row.Value, &p)
				}
				if err == nil && p.Failed && (r.sequence == 0 || r.sequence == p.Sequence) {
					resumed++
					row = &event.Row{RowKey: key}
					row.Value, err = json.Marshal(notify.Parked{Sequence: p.Sequence + r.later,
						Retry: notify.Retry{Next: tx.Now()}})
					tx.PutRow(*row)
				}
				if err != nil {
					return err
				}
			}
			switch {
			case resumed > 0:
				return o.Append(r.fact)
			case r.sequence != 0:
				return ErrEventNotFailed
			}
			return nil
		})
	if err != nil { // it may still be decided at this moment
		return event.Details{}, 0, err
	}
	return details, resumed, nil
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
	return event.RowKey{Table: event.Deliveries, Key: id + "/history"}
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
