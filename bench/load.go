package main

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one measurement found.
type sample struct {
	perSecond float64
	p50, p99  time.Duration
	server    float64 // CPU of the server per operation, µs; NaN where unknown
	database  float64 // CPU of PostgreSQL per operation, µs; NaN where unknown
	client    float64 // CPU of this process per operation, µs
	rss       int64   // most memory the server held, bytes
	others    float64 // share of the machine that other processes used meanwhile
	floor     float64 // per second, around the same time; 0 without one
}

// ratio to the floor; NaN without one.
func (s sample) ratio() float64 {
	if s.floor == 0 {
		return math.NaN()
	}
	return s.perSecond / s.floor
}

const (
	warming int32 = iota
	measuring
	stopping
)

// drive lets every caller call as fast as it is answered: first unmeasured, then measured. What is answered within the
// measured time counts. The first error of any caller, at any time, is the result.
//
// A call that does not return keeps drive from returning: whoever makes the calls gives them a deadline.
func drive(ctx context.Context, calls []func() error, warm, measured time.Duration, m *meter) (sample, error) {
	var (
		phase  atomic.Int32
		group  sync.WaitGroup
		failed = make(chan error, len(calls))
		took   = make([][]time.Duration, len(calls))
	)
	for i, call := range calls {
		group.Go(func() {
			mine := make([]time.Duration, 0, 4096)
			begin := time.Now()
			for phase.Load() != stopping {
				err := call()
				end := time.Now()
				if err != nil {
					failed <- err
					break
				}
				if phase.Load() == measuring {
					mine = append(mine, end.Sub(begin))
				}
				begin = end
			}
			took[i] = mine
		})
	}
	stop := func(err error) (sample, error) {
		phase.Store(stopping)
		group.Wait()
		select {
		case first := <-failed:
			err = first
		default:
		}
		return sample{}, errors.Join(ctx.Err(), err)
	}
	if err := pause(ctx, failed, warm); err != nil {
		return stop(err)
	}
	if err := m.begin(); err != nil {
		return stop(err)
	}
	begin := time.Now()
	phase.Store(measuring)
	err := pause(ctx, failed, measured)
	phase.Store(stopping)
	length := time.Since(begin)
	usage, usageErr := m.end()
	if err := errors.Join(err, usageErr); err != nil {
		return stop(err)
	}
	group.Wait()
	select {
	case err := <-failed:
		return sample{}, err
	default:
	}
	return summarize(slices.Concat(took...), length, usage)
}

// pause waits, unless the run is over or a caller fails.
func pause(ctx context.Context, failed <-chan error, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-failed:
		return err
	case <-timer.C:
		return nil
	}
}

var errNoAnswer = errors.New("nothing was answered in the measured time: use a longer one")

func summarize(took []time.Duration, length time.Duration, u usage) (sample, error) {
	if len(took) == 0 {
		return sample{}, errNoAnswer
	}
	slices.Sort(took)
	n := float64(len(took))
	return sample{
		perSecond: n / length.Seconds(),
		p50:       percentile(took, 0.50),
		p99:       percentile(took, 0.99),
		server:    u.server / n,
		database:  u.database / n,
		client:    u.client / n,
		rss:       u.rss,
		others:    u.others() / float64(length.Microseconds()) / float64(runtime.NumCPU()),
	}, nil
}

// percentile of sorted values: the smallest of them that at least the share q of all does not exceed.
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median of any values; the middle two are averaged. NaN counts as none.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	middle := len(known) / 2
	if len(known)%2 == 1 {
		return known[middle]
	}
	return (known[middle-1] + known[middle]) / 2
}
