// Package tally counts sign-ins by organization, day and way: successes, failures, and throttled attempts. The counts
// contain nothing about a person.
//
// Each node counts in memory, and adds its counts to the stored ones about once a second. So no sign-in waits for a
// count, and rows that several nodes share are written once a second, not once for each sign-in. A node that is killed
// loses what it has not added yet.
package tally

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	// MostDays is how many days are kept.
	MostDays = 90

	interval = time.Second
	most     = 10_000           // counts in memory: with more, what is new counts for the installation only
	atOnce   = 100              // rows that one command writes
	stopTime = 10 * time.Second // for the last time before the node stops
	day      = 24 * time.Hour
)

// Way is how somebody signs in, as it is stored.
type Way string

// The ways.
const (
	Password Way = "pwd"
	Passkey  Way = "hwk"
	Provider Way = "fed"
)

// Counts are the numbers of one way.
type Counts struct {
	Successes int64 `json:"s,omitempty"`
	Failures  int64 `json:"f,omitempty"`
	Throttled int64 `json:"t,omitempty"`
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Successes + o.Successes, c.Failures + o.Failures, c.Throttled + o.Throttled}
}

// Day are the numbers of one day.
type Day map[Way]Counts

// dayKey is what something counts for: an organization or access.Installation, and a day.
type dayKey struct {
	scope string
	day   int64 // number of the day since 1970-01-01
}

// Tally counts on one node. Nil counts nothing.
type Tally struct {
	store     event.Store
	clock     func() time.Time
	throttled errs.Reason

	mu      sync.Mutex
	pending map[dayKey]Day
	totals  Day // since the node was started

	flushing sync.Mutex // when Flush ends, counts that another Flush has taken are stored, too
}

// New makes a Tally. throttled is the reason of attempts that are refused unheard.
func New(store event.Store, clock func() time.Time, throttled errs.Reason) *Tally {
	return &Tally{store: store, clock: clock, throttled: throttled, pending: map[dayKey]Day{}, totals: Day{}}
}

// Outcome counts an attempt to sign in by how it ended. org is the organization that it was at; empty where none is
// known: then it counts for the installation alone. What came to no verdict does not count.
func (t *Tally) Outcome(org string, way Way, err error) {
	if t == nil {
		return
	}
	e, _ := errors.AsType[*errs.Error](err)
	switch {
	case err == nil:
		t.add(org, way, Counts{Successes: 1})
	case e == nil:
	case e.Reason == t.throttled:
		t.add(org, way, Counts{Throttled: 1})
	case e.Kind == errs.Unauthenticated, e.Kind == errs.PermissionDenied:
		t.add(org, way, Counts{Failures: 1})
	}
}

// Failed counts a failure.
func (t *Tally) Failed(org string, way Way) {
	if t != nil {
		t.add(org, way, Counts{Failures: 1})
	}
}

func (t *Tally) add(org string, way Way, c Counts) {
	today := t.clock().Unix() / int64(day/time.Second)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.totals[way] = t.totals[way].plus(c)
	t.addTo(dayKey{access.Installation, today}, way, c)
	if org != "" {
		t.addTo(dayKey{org, today}, way, c)
	}
}

// Total gives what this node has counted of a way since it was started.
func (t *Tally) Total(way Way) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.totals[way]
}

// addTo counts in memory. The caller holds the lock.
func (t *Tally) addTo(at dayKey, way Way, c Counts) {
	d := t.pending[at]
	if d == nil {
		if len(t.pending) >= most && at.scope != access.Installation {
			return
		}
		d = Day{}
		t.pending[at] = d
	}
	d[way] = d[way].plus(c)
}

// Run adds what was counted to the stored counts until ctx ends, and then once more.
func (t *Tally) Run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for more := true; more; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			more = false
		}
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		if err := t.Flush(within); err != nil {
			log.Warn("storing the counts of sign-ins failed: the server retries in a second", "error", err)
		}
		cancel()
	}
}

// Flush adds what was counted so far to the stored counts. What could not be added is counted again later. Errors:
// those of event.Store.
func (t *Tally) Flush(ctx context.Context) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.mu.Lock()
	counted := t.pending
	t.pending = map[dayKey]Day{}
	t.mu.Unlock()
	rows := map[event.RowKey]map[dayKey]Day{}
	for at, d := range counted {
		key := at.row()
		if rows[key] == nil {
			rows[key] = map[dayKey]Day{}
		}
		rows[key][at] = d
	}
	var failed []error
	// In one order on every node: they do not wait for each other in a circle.
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b event.RowKey) int { return strings.Compare(a.Key, b.Key) })
	for part := range slices.Chunk(keys, atOnce) {
		if err := t.store.Do(ctx, addition(part, rows)); err != nil {
			failed = append(failed, err)
			t.giveBack(part, rows)
		}
	}
	return errors.Join(failed...)
}

func (t *Tally) giveBack(keys []event.RowKey, rows map[event.RowKey]map[dayKey]Day) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		for at, d := range rows[key] {
			for way, c := range d {
				t.addTo(at, way, c)
			}
		}
	}
}

// addition adds counts to stored ones.
func addition(keys []event.RowKey, rows map[event.RowKey]map[dayKey]Day) event.Command {
	return event.Command{Origin: event.Origin{Actor: event.System}, Rows: keys, Decide: func(tx *event.Tx) error {
		for _, key := range keys {
			row, err := tx.Row(key)
			if err != nil {
				return err
			}
			month, err := monthIn(row)
			if err != nil {
				return err
			}
			var expires int64
			for at, d := range rows[key] {
				stored := month[at.inMonth()]
				if stored == nil {
					stored = Day{}
					month[at.inMonth()] = stored
				}
				for way, c := range d {
					stored[way] = stored[way].plus(c)
				}
				expires = at.expires()
			}
			value, err := json.Marshal(month)
			if err != nil {
				return err
			}
			tx.PutRow(event.Row{RowKey: key, Value: value, Expires: expires})
		}
		return nil
	}}
}

// month are the days of a row, by their number in the month. A row has a month, so that few are read for many days and
// each stays small.
type month map[string]Day

func monthIn(row *event.Row) (month, error) {
	m := month{}
	if row == nil {
		return m, nil
	}
	if err := json.Unmarshal(row.Value, &m); err != nil {
		return nil, fmt.Errorf("the counts %s: %w", row.Key, err)
	}
	return m, nil
}

func (p dayKey) time() time.Time { return time.Unix(p.day*int64(day/time.Second), 0).UTC() }

func (p dayKey) inMonth() string { return strconv.Itoa(p.time().Day()) }

func (p dayKey) row() event.RowKey {
	return event.RowKey{Table: event.Throttle, Key: "sign_ins/" + p.scope + "/" + p.time().Format("2006-01")}
}

// expires is when nobody asks for the last day of its month any more. The store deletes the row then.
func (p dayKey) expires() int64 {
	t := p.time()
	return event.Micros(time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add((MostDays + 1) * day))
}

// Counted are the numbers of one day.
type Counted struct {
	Date time.Time
	Day  Day
}

// Read gives the numbers of the last days, the oldest first, in an organization or, with access.Installation,
// everywhere. What this node has counted is among them. Errors: those of event.Store.
func (t *Tally) Read(ctx context.Context, scope string, days int) ([]Counted, error) {
	if err := t.Flush(ctx); err != nil {
		return nil, err
	}
	today := t.clock().Unix() / int64(day/time.Second)
	months := map[event.RowKey]month{}
	var all []Counted
	for d := today - int64(min(days, MostDays)) + 1; d <= today; d++ {
		at := dayKey{scope, d}
		if months[at.row()] == nil {
			row, err := t.store.Row(ctx, at.row())
			if err != nil {
				return nil, err
			}
			if months[at.row()], err = monthIn(row); err != nil {
				return nil, err
			}
		}
		all = append(all, Counted{Date: at.time(), Day: months[at.row()][at.inMonth()]})
	}
	return all, nil
}
