package failure

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// SignIns is the state of a provider's companion object: failed sign-ins. They are not facts of the provider itself,
// whose sequence its administrators go by.
type SignIns struct {
	Failed int64            `json:"failed"`
	Last   map[string]int64 `json:"last,omitempty"` // when a check last had an event, in microseconds
}

// Kind of the companion objects.
var Kind = event.Define(event.Schema[SignIns]{
	Name: "idp_sign_in", Table: "idp_sign_ins", Prefix: "ips", Shape: 1,
	Facts: []event.Fact[SignIns]{Failed{}},
})

// IDFor is the id of a provider's companion object.
func IDFor(provider string) string {
	_, id, _ := strings.Cut(provider, "_")
	return "ips_" + id
}

// Failed records sign-ins that checks refused.
type Failed struct {
	Check  string     `json:"check"` // of the last one
	Count  int64      `json:"count"` // those that this node has counted since its last event
	At     int64      `json:"at"`
	By     []FailedAs `json:"by,omitempty"`     // older events have none
	Others int64      `json:"others,omitempty"` // of Count, those that By does not tell apart
}

// FailedAs counts the failures of an application and a check.
type FailedAs struct {
	Application string `json:"application,omitempty"` // that people were on the way to; empty: none
	Check       string `json:"check"`
	Count       int64  `json:"count"`
}

// EventType implements event.Fact.
func (Failed) EventType() event.Type { return "idp_sign_in.failed.v1" }

// Apply implements event.Fact.
func (e Failed) Apply(s *SignIns) {
	last := make(map[string]int64, len(s.Last)+1)
	for check, at := range s.Last {
		last[check] = at
	}
	last[e.Check] = e.At
	s.Last, s.Failed = last, s.Failed+e.Count
}

const (
	pause      = time.Minute // between two events of a provider: everybody can make their own sign-in fail
	maxCounted = 2000        // providers that are counted in memory
	mostCauses = 8           // application and check together that one event tells apart
)

// Recorder writes failures down: those of sign-ins, and apart from them those of logout tokens, which anybody can send
// and which must not crowd out the others. It is safe for concurrent use.
type Recorder struct {
	store event.Store
	clock func() time.Time

	mu      sync.Mutex
	counted map[counter]*count
}

type counter struct {
	provider string
	logout   bool
}

func counterOf(provider, check string) counter { return counter{provider, isLogout(check)} }

func isLogout(check string) bool { return strings.HasPrefix(check, LogoutPrefix) }

type count struct {
	by     []FailedAs // the failures that are in no event yet
	others int64
	last   Refusal
	next   time.Time // when there may be an event
}

func (c *count) add(f FailedAs) {
	i := slices.IndexFunc(c.by, func(has FailedAs) bool {
		return has.Application == f.Application && has.Check == f.Check
	})
	switch {
	case i >= 0:
		c.by[i].Count += f.Count
	case len(c.by) == mostCauses:
		c.others += f.Count
	default:
		c.by = append(c.by, f)
	}
}

// take takes all that was counted.
func (c *count) take() *Failed {
	f := &Failed{Check: c.last.Check, Count: c.others, By: c.by, Others: c.others}
	for _, by := range c.by {
		f.Count += by.Count
	}
	c.by, c.others = nil, 0
	return f
}

// NewRecorder makes a recorder.
func NewRecorder(store event.Store, clock func() time.Time) *Recorder {
	return &Recorder{store: store, clock: clock, counted: map[counter]*count{}}
}

// Refusal is a failure at a provider of an organization.
type Refusal struct {
	Provider, Org string
	Application   string // that somebody was on the way to; empty: none
	Check         string
	RequestID     string
}

// Record counts a failure, and writes an event where the provider's last one is a minute old. Errors: those of
// event.Store.
func (r *Recorder) Record(ctx context.Context, f Refusal) error {
	fact := r.due(f)
	if fact == nil {
		return nil
	}
	return r.write(ctx, f, fact)
}

// Say writes the events of providers whose minute is over, so that failures do not wait for the next one. Errors: those
// of event.Store.
func (r *Recorder) Say(ctx context.Context) (failed error) {
	for f, fact := range r.unsaid() {
		failed = errors.Join(failed, r.write(ctx, f, fact))
	}
	return failed
}

// unsaid takes what may be written now.
func (r *Recorder) unsaid() map[Refusal]*Failed {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, due := r.clock(), map[Refusal]*Failed{}
	for _, c := range r.counted {
		if len(c.by) > 0 && !now.Before(c.next) {
			c.next = now.Add(pause)
			f := c.last
			f.RequestID = "" // it is about several
			due[f] = c.take()
		}
	}
	return due
}

// write writes an event, unless another node has written one within the minute.
func (r *Recorder) write(ctx context.Context, f Refusal, fact *Failed) error {
	written := false
	ref := Kind.Ref(IDFor(f.Provider))
	err := r.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: f.RequestID},
		Write:  []event.Ref{ref},
		Decide: func(tx *event.Tx) error {
			written = false
			o, err := Kind.Get(tx, ref.ID)
			if err != nil {
				return err
			}
			if o != nil && tx.Now() < o.Data.lastOf(f.Check)+pause.Microseconds() { // another node has written one
				return nil
			}
			written = true
			fact.At = tx.Now()
			if o == nil {
				_, err = Kind.Create(tx, ref.ID, f.Org, *fact)
				return err
			}
			return o.Append(*fact)
		},
	})
	if err != nil || !written {
		r.giveBack(counterOf(f.Provider, f.Check), fact)
	}
	return err
}

// lastOf is when there last was an event of the same sort as this check, about sign-ins or about logout tokens.
func (s *SignIns) lastOf(check string) (at int64) {
	for other, then := range s.Last {
		if isLogout(other) == isLogout(check) {
			at = max(at, then)
		}
	}
	return at
}

// due counts one more, and takes what is to be written now; nil: nothing is.
func (r *Recorder) due(f Refusal) *Failed {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, key := r.clock(), counterOf(f.Provider, f.Check)
	one := FailedAs{Application: f.Application, Check: f.Check, Count: 1}
	c := r.counted[key]
	if c == nil {
		if len(r.counted) >= maxCounted {
			for other, old := range r.counted {
				if !now.Before(old.next) {
					delete(r.counted, other)
				}
			}
			if len(r.counted) >= maxCounted {
				return (&count{by: []FailedAs{one}, last: f}).take()
			}
		}
		c = &count{}
		r.counted[key] = c
	}
	c.add(one)
	c.last = f
	if now.Before(c.next) {
		return nil
	}
	c.next = now.Add(pause)
	return c.take()
}

func (r *Recorder) giveBack(key counter, f *Failed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.counted[key]; c != nil {
		for _, by := range f.By {
			c.add(by)
		}
		c.others += f.Others
	}
}
