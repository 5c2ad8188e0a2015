package session

import "sync"

// Renewals lets sessions live on beside the requests that use them. The zero value is ready for use.
type Renewals struct {
	mu      sync.Mutex
	stopped bool
	running map[string]bool // by session
	done    sync.WaitGroup
}

// Run renews a session, unless that is under way already.
func (r *Renewals) Run(id string, renew func()) {
	if r == nil {
		renew()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.running[id] {
		return
	}
	if r.running == nil {
		r.running = map[string]bool{}
	}
	r.running[id] = true
	r.done.Go(func() {
		renew()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, id)
	})
}

// Stop waits for what is under way. Nothing is renewed afterwards.
func (r *Renewals) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.done.Wait()
}
