package failure

import (
	"context"
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

// Failed records sign-ins that a check refused.
type Failed struct {
	Check string `json:"check"`
	Count int64  `json:"count"` // those that this node has counted since the last event of this check
	At    int64  `json:"at"`
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
	pause      = time.Minute // between two events of one provider and check: anybody can make a sign-in fail
	maxCounted = 2000        // providers and checks that are counted in memory
)

// Recorder writes failures down. It is safe for concurrent use.
type Recorder struct {
	store event.Store
	clock func() time.Time

	mu      sync.Mutex
	counted map[counter]*count
}

type counter struct{ provider, check string }

type count struct {
	failures int64     // that are in no event yet
	next     time.Time // when there may be one
}

// NewRecorder makes a recorder.
func NewRecorder(store event.Store, clock func() time.Time) *Recorder {
	return &Recorder{store: store, clock: clock, counted: map[counter]*count{}}
}

// Record counts a failure, and writes an event where the last one of that check is a minute old. Errors: those of
// event.Store.
func (r *Recorder) Record(ctx context.Context, provider, org, check, requestID string) error {
	key := counter{provider, check}
	n := r.due(key)
	if n == 0 {
		return nil
	}
	written := false
	ref := Kind.Ref(IDFor(provider))
	err := r.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: requestID},
		Write:  []event.Ref{ref},
		Decide: func(tx *event.Tx) error {
			written = false
			o, err := Kind.Get(tx, ref.ID)
			if err != nil {
				return err
			}
			if o != nil && tx.Now() < o.Data.Last[check]+pause.Microseconds() { // another node has written one
				return nil
			}
			written = true
			fact := Failed{Check: check, Count: n, At: tx.Now()}
			if o == nil {
				_, err = Kind.Create(tx, ref.ID, org, fact)
				return err
			}
			return o.Append(fact)
		},
	})
	if err != nil || !written {
		r.giveBack(key, n)
	}
	return err
}

// due counts one more, and takes what is to be written now.
func (r *Recorder) due(key counter) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	c := r.counted[key]
	if c == nil {
		if len(r.counted) >= maxCounted {
			for other, old := range r.counted {
				if !now.Before(old.next) {
					delete(r.counted, other)
				}
			}
			if len(r.counted) >= maxCounted {
				return 1
			}
		}
		c = &count{}
		r.counted[key] = c
	}
	c.failures++
	if now.Before(c.next) {
		return 0
	}
	n := c.failures
	c.failures, c.next = 0, now.Add(pause)
	return n
}

func (r *Recorder) giveBack(key counter, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.counted[key]; c != nil {
		c.failures += n
	}
}
