package program

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// writers keep writing through a fault. What is refused with a status that a fault may have is counted, anything else
// fails the test.
type writers struct {
	load
	token   string
	cancel  context.CancelFunc
	all     sync.WaitGroup
	refused atomic.Int64
	lost    atomic.Int64 // ended connections
	killed  atomic.Bool  // the server may be gone

	mu      sync.Mutex
	last    time.Time
	longest time.Duration // between two that were acknowledged
}

// writeThrough starts so many writers, on two objects.
func writeThrough(t *testing.T, c *client, count int) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{token: c.token, cancel: cancel, last: time.Now()}
	t.Cleanup(func() { cancel(); w.all.Wait() })
	for i := range 2 {
		created := c.want(t, 200, "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("Load ", i)))
		path := "/v1/idps/" + at[string](t, created, "idpId")
		w.add(&register{token: c.token, write: path, read: path,
			body: func(value string) object { return object{"name": value} }, object: "idp", value: []string{"name"}})
	}
	for i := range count {
		r := w.registers[i%2]
		w.all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.write(ctx, t, c, r, fmt.Sprintf("writer %d value %d", i, n))
			}
		})
	}
	return w
}

func (w *writers) write(ctx context.Context, t *testing.T, c *client, r *register, value string) {
	r.mu.Lock()
	r.open[value] = true
	r.mu.Unlock()
	switch status, answer, err := c.do(ctx, "PUT", r.write, r.body(value)); {
	case ctx.Err() != nil:
	case err == nil && status == 200:
		r.acknowledge(t, value, answer)
		w.acknowledged.Add(1)
		w.mu.Lock()
		w.longest, w.last = max(w.longest, time.Since(w.last)), time.Now()
		w.mu.Unlock()
	case err == nil && (status == 503 || status == 504 || status == 409):
		w.refused.Add(1)
	case err != nil && w.killed.Load():
		w.lost.Add(1)
		w.cancel()
	default:
		t.Errorf("status %d, %v %v", status, answer, err)
	}
}

// more waits until more is acknowledged.
func (w *writers) more(t *testing.T) {
	t.Helper()
	awaitCount(t, &w.acknowledged, w.acknowledged.Load()+20)
}

// end stops the writers, and reads back what was acknowledged.
func (w *writers) end(t *testing.T, p *process) {
	t.Helper()
	w.cancel()
	w.all.Wait()
	w.check(t, p, w.token)
}

func (w *writers) String() string {
	return fmt.Sprintf("%d acknowledged, %d refused", w.acknowledged.Load(), w.refused.Load())
}
