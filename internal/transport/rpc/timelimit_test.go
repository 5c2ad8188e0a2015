package rpc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type valueKey struct{}

// TestATimeLimitIsAContextWithADeadline compares it with what the standard library makes, whether or not somebody has
// waited for it before.
func TestATimeLimitIsAContextWithADeadline(t *testing.T) {
	const limit = time.Minute
	for name, happens := range map[string]func(end, cancelParent context.CancelFunc){
		"nothing":               func(_, _ context.CancelFunc) {},
		"its time is over":      func(_, _ context.CancelFunc) { <-time.After(2 * limit) },
		"the operation is over": func(end, _ context.CancelFunc) { end() },
		"the caller leaves":     func(_, cancelParent context.CancelFunc) { cancelParent() },
		"the caller leaves and then its time is over": func(_, cancelParent context.CancelFunc) {
			cancelParent()
			<-time.After(2 * limit)
		},
	} {
		for _, waited := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent, cancelParent := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "value"))
				defer cancelParent()
				ours := withTimeLimit(parent, limit)
				theirs, cancelTheirs := context.WithTimeout(parent, limit)
				defer cancelTheirs()
				if waited {
					_ = ours.Done()
				}
				happens(func() { ours.end(); cancelTheirs() }, cancelParent)
				synctest.Wait()
				if got, want := ours.Err(), theirs.Err(); !errors.Is(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				if got, want := context.Cause(ours), context.Cause(theirs); !errors.Is(got, want) {
					t.Errorf("%s: the cause is %v, want %v", name, got, want)
				}
				select {
				case <-ours.Done():
					if theirs.Err() == nil {
						t.Errorf("%s: it is done", name)
					}
				default:
					if theirs.Err() != nil {
						t.Errorf("%s: it is not done", name)
					}
				}
				if until, set := ours.Deadline(); !set || time.Until(until) > limit {
					t.Errorf("%s: the deadline is %v", name, until)
				}
				child, cancelChild := context.WithCancel(ours)
				defer cancelChild()
				if child.Value(valueKey{}) != "value" || ours.Value(valueKey{}) != "value" {
					t.Errorf("%s: values of the parent are lost", name)
				}
				ours.end()
				<-child.Done()
			})
		}
	}
}

// TestATimeLimitThatEndsWhileSomebodyBeginsToWait is for the race detector, too.
func TestATimeLimitThatEndsWhileSomebodyBeginsToWait(t *testing.T) {
	for range 1000 {
		c := withTimeLimit(context.Background(), time.Hour)
		var all sync.WaitGroup
		all.Go(func() { <-c.Done() })
		all.Go(c.end)
		all.Wait()
		if !errors.Is(c.Err(), context.Canceled) {
			t.Fatal(c.Err())
		}
	}
}

func TestATimeLimitKeepsAnEarlierDeadline(t *testing.T) {
	parent, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	want, _ := parent.Deadline()
	if got, _ := withTimeLimit(parent, time.Hour).Deadline(); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
