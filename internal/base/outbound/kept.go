package outbound

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
)

// Bounds of what others publish and is kept.
const (
	maxSets = 500 // answers in memory

	minSetAge    = 5 * time.Minute  // an answer is asked for no more often, whatever its server says
	maxSetAge    = 6 * time.Hour    // and counts no longer, so that a key that was taken out is gone
	defSetAge    = time.Hour        // where its server says nothing
	staleFor     = time.Hour        // an answer that is due counts at least that long while its server is away
	refetchAfter = 30 * time.Second // how soon an unknown key, or a failure, makes us ask again
)

// Kept is what others publish, fetched where they do and kept for a while. It is safe for concurrent use.
type Kept[T any] struct {
	ask   func(ctx context.Context, address string) (T, time.Duration, error)
	clock func() time.Time
	calls *fairqueue.Slots

	mu   sync.Mutex
	sets map[published]*answered[T]
}

// published is where an organization says that there is something. Two that name the same URL do not share it: one's
// calls may stall.
type published struct{ org, address string }

// answered is what is known of one URL. Kept.mu guards it.
type answered[T any] struct {
	value   T
	fetched time.Time // zero: never
	fresh   time.Time // until then it is good without asking
	tried   time.Time // the last attempt
	problem error     // of the last attempt; nil: it worked
	used    time.Time
	running chan struct{} // closed when the attempt that is under way ends; nil: none is
}

// NewKept makes an empty collection. calls are what organizations share of those that are fetched at once. ask fetches
// what is at an address, and tells how long it is good, see AgeOf.
func NewKept[T any](clock func() time.Time, calls *fairqueue.Slots,
	ask func(ctx context.Context, address string) (T, time.Duration, error)) *Kept[T] {
	return &Kept[T]{ask: ask, clock: clock, calls: calls, sets: map[published]*answered[T]{}}
}

// Get gives what is published at an address of an organization. What is not enough for the caller is fetched again, but
// not all the time; the caller may get something that is not enough. Errors: those of ask and of fairqueue.Slots;
// ErrFailed.
func (k *Kept[T]) Get(ctx context.Context, org, address string, enough func(T) bool) (value T, err error) {
	var none T
	for attempt := 0; ; attempt++ {
		k.mu.Lock()
		now := k.clock()
		set := k.set(published{org, address}, now)
		usable := !set.fetched.IsZero() && now.Before(set.fetched.Add(maxSetAge))
		due := !usable || !now.Before(set.fresh) || !enough(set.value)
		mayAsk := set.tried.IsZero() || now.Sub(set.tried) >= refetchAfter
		if attempt > 0 || !due || set.running == nil && !mayAsk {
			value, problem := set.value, set.problem
			k.mu.Unlock()
			switch {
			case usable:
				return value, nil
			case problem == nil: // it had to make room for others in the meantime
				return none, ErrFailed
			}
			return none, problem
		}
		if set.running == nil {
			set.running, set.tried = make(chan struct{}), now
			// It runs for everybody who waits, so nobody's leaving ends it. The client has a time limit of its own.
			go k.fetch(context.WithoutCancel(ctx), published{org, address}, set)
		}
		running := set.running
		k.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return none, ErrFailed.Because(ctx.Err())
		}
	}
}

// set gives the entry of an address, making room for it where it is new. What is being fetched stays.
func (k *Kept[T]) set(at published, now time.Time) *answered[T] {
	set := k.sets[at]
	if set == nil {
		for len(k.sets) >= maxSets && k.forgetOldest() {
		}
		set = &answered[T]{}
		k.sets[at] = set
	}
	set.used = now
	return set
}

// forgetOldest drops, of the organization that has the most, the set that nobody has asked for the longest; false where
// all are being fetched.
func (k *Kept[T]) forgetOldest() bool {
	of := map[string]int{}
	for at, set := range k.sets {
		if set.running == nil {
			of[at.org]++
		}
	}
	var oldest published
	found := false
	for at, set := range k.sets {
		if set.running != nil {
			continue
		}
		if !found || of[at.org] > of[oldest.org] ||
			of[at.org] == of[oldest.org] && set.used.Before(k.sets[oldest].used) {
			oldest, found = at, true
		}
	}
	delete(k.sets, oldest)
	return found
}

func (k *Kept[T]) fetch(ctx context.Context, at published, set *answered[T]) {
	var value T
	var age time.Duration
	asked := false
	err := k.calls.Do(ctx, fairqueue.Claim{Org: at.org}, func() (err error) {
		asked = true
		value, age, err = k.ask(ctx, at.address)
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	if set.problem = err; err == nil {
		set.value, set.fetched, set.fresh = value, now, now.Add(age)
	}
	if !asked {
		set.tried = time.Time{}
	}
	close(set.running)
	set.running = nil
}

// AgeOf tells how long an answer may be kept, inside our own bounds.
func AgeOf(header http.Header) time.Duration {
	age := defSetAge
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			age = 0
		case "max-age":
			if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
				age = time.Duration(seconds) * time.Second
			}
		}
	}
	return min(max(age, minSetAge), maxSetAge-staleFor)
}
