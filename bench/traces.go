package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// What traces may cost: of the throughput of UpdateMyProfile, as a ratio to the same program without them.
const (
	tracesOff    = 0.99 // of another build, which has no traces or older ones
	tracesSample = 0.97 // of the same build with traces off
)

// variant is one way to run the server that is compared with others.
type variant struct {
	name    string
	subject *subject
	samples []sample
}

// measureTraces compares UpdateMyProfile with traces off, at 1 % and for every request, on the embedded database: by
// turns, in short slices, in one run. base is another build of the program to compare with; empty: none.
func measureTraces(ctx context.Context, p *plan, binary, base, temporary string) (passed bool, err error) {
	var received atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, err
	}
	collector := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			received.Add(n)
		}),
	}
	go func() { _ = collector.Serve(listener) }()
	defer collector.Close()
	to := []string{"--trace-endpoint", "http://" + listener.Addr().String(), "--trace-sample"}
	var all []*variant
	defer func() {
		for _, v := range all {
			err = errors.Join(err, v.subject.close())
		}
	}()
	open := func(name, binary string, flags ...string) error {
		s := &subject{engine: "sqlite", binary: binary,
			dir: filepath.Join(temporary, strings.ReplaceAll(name, " ", "-"), "data"), floors: map[floorKind]floor{}}
		all = append(all, &variant{name: name, subject: s})
		if s.server, err = start(ctx, binary, s.dir, "", flags...); err != nil {
			return err
		}
		admin, err := firstToken(s.dir)
		if err != nil {
			return err
		}
		s.world, err = fill(ctx, s.server.address, admin, p.largest(), true)
		return s.explain(err)
	}
	if base != "" {
		if err := open("base", base); err != nil {
			return false, err
		}
	}
	for name, flags := range map[string][]string{"off": nil, "sample 0.01": append(slices.Clone(to), "0.01"),
		"sample 1": append(slices.Clone(to), "1")} {
		if err := open(name, binary, flags...); err != nil {
			return false, err
		}
	}
	op := operationNamed("UpdateMyProfile")
	for round := range p.rounds {
		for i := range all {
			v := all[(i+round)%len(all)] // so that none always comes after the same one
			got, err := v.subject.drive(ctx, op, "rest", p.largest(), p.warmUp(), p.slice())
			if err != nil {
				return false, v.subject.explain(err)
			}
			v.samples = append(v.samples, got)
		}
		say("round %d of %d", round+1, p.rounds)
	}
	of := func(name string) *variant {
		if at := slices.IndexFunc(all, func(v *variant) bool { return v.name == name }); at >= 0 {
			return all[at]
		}
		return nil
	}
	passed = true
	fmt.Printf("\n| traces | UpdateMyProfile/s | CPU of the server, µs | ratio | at least |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name, to string
		bound    float64
	}{{"base", "", 0}, {"off", "base", tracesOff}, {"sample 0.01", "off", tracesSample}, {"sample 1", "off", 0}} {
		v, other := of(row.name), of(row.to)
		if v == nil {
			continue
		}
		compared := "- | -"
		if other != nil {
			ratio := ratioOf(v.samples, other.samples)
			passed = passed && ratio >= row.bound
			compared = fmt.Sprintf("%.3f of %s | %.2f", ratio, row.to, row.bound)
		}
		fmt.Printf("| %s | %.0f | %.1f | %s |\n", v.name,
			middleOf(v.samples, func(s sample) float64 { return s.perSecond }),
			middleOf(v.samples, func(s sample) float64 { return s.server }), compared)
	}
	fmt.Printf("\n%d rounds of %v each by turns, %d callers over REST, SQLite; the collector received %.1f MiB.\n",
		p.rounds, p.slice(), p.largest(), mebibytes(received.Load()))
	return passed, nil
}

// ratioOf is the median of the ratios within each round: what slows the machine down for a while slows both down.
func ratioOf(a, b []sample) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i].perSecond / b[i].perSecond
	}
	return median(ratios)
}

func middleOf(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return median(values)
}
