package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// beside is how somebody fares who reads while very many sign in.
type beside struct {
	p50, p99 time.Duration // of the reads
	reads    int
	signIns  float64 // per second
}

// besides tells whether a plan has what measureBeside needs.
func (p *plan) besides() bool {
	return p.largest() >= manyCallers && slices.Contains(p.ops, operationNamed(signIn)) &&
		slices.Contains(p.ops, operationNamed(myself))
}

// measureBeside lets 64 callers sign in and times the reads of one other meanwhile, once the queue in front of the
// password hash is as long as it gets.
func (s *subject) measureBeside(ctx context.Context, p *plan) (beside, error) {
	const warm = 2 * time.Second
	measured := max(p.measured, time.Second)
	deadline := time.Now().Add(warm + measured + patience)
	var signIns []func() error
	for i := range manyCallers {
		again, end, err := restCaller(s.server.address, operationNamed(signIn).call(s.world, i), deadline)
		if err != nil {
			return beside{}, err
		}
		defer end()
		signIns = append(signIns, again)
	}
	read, end, err := restCaller(s.server.address, operationNamed(myself).call(s.world, 0), deadline)
	if err != nil {
		return beside{}, err
	}
	defer end()

	var crowd sample
	done := make(chan error, 1)
	go func() {
		var err error
		crowd, err = drive(ctx, signIns, warm, measured, &meter{server: s.server.pid(), database: s.postmaster})
		done <- err
	}()
	if err := pause(ctx, nil, warm); err != nil {
		return beside{}, errors.Join(err, <-done)
	}
	var took []time.Duration
	for until := time.Now().Add(measured); time.Now().Before(until); {
		begin := time.Now()
		if err := read(); err != nil {
			return beside{}, errors.Join(err, <-done)
		}
		took = append(took, time.Since(begin))
	}
	if err := <-done; err != nil {
		return beside{}, err
	}
	slices.Sort(took)
	b := beside{p50: percentile(took, 0.50), p99: percentile(took, 0.99), reads: len(took), signIns: crowd.perSecond}
	say("%-9s one reads while %d sign in: %d reads, p50 %s, p99 %s", s.engine, manyCallers, b.reads, b.p50, b.p99)
	return b, nil
}
