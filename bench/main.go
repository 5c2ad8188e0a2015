// Command bench measures the built server: how many operations per second it does on each engine, how long they take,
// what they cost in CPU and memory, and how that compares with what the engine and the password hash allow at best on
// the same machine in the same minutes.
//
//	make bench                          # everything; writes bench/RESULTS.md
//	go run ./bench -engines sqlite -quick
//	make bench-traces                   # what traces cost
//	go run ./bench -shares              # what one organization costs another
//	make bench-against REV=ad1134a      # the working tree and a revision in turns; fails if something became slower
//
// It builds the program, starts it on a fresh database per engine, fills that through the API, drives it over REST and
// gRPC in a closed loop, and measures a floor between the operations. It talks to the loopback interface only, ends by
// itself, and leaves nothing behind, also when interrupted. The exit status is 1 when something fails or a check does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// plan is what a run does.
type plan struct {
	engines   []string
	ops       []*operation
	protocols []string
	callers   []int
	measured  time.Duration // per cell, over all rounds
	rounds    int
	quick     bool
	out       string // where the report goes; empty: nowhere
	dir       string // where temporary files go; empty: found
	traces    bool   // only what traces cost is measured
	shares    bool   // only what one organization costs another is measured
	base      string // another build of the program to compare that with; empty: none
	against   string // revision to compare the working tree with; empty: none
	large     bool   // with more users in the lists
	profiles  string // directory for CPU profiles of the server, one per operation and level; empty: none
}

// slice is how long one cell is measured in one round.
func (p *plan) slice() time.Duration { return p.measured / time.Duration(p.rounds) }

func (p *plan) warmUp() time.Duration { return min(400*time.Millisecond, p.slice()/3) }

// floorSlice is how long a floor of a kind is measured each time; a hash takes long, so counting them takes longer.
func (p *plan) floorSlice(k floorKind) time.Duration {
	if k == hashFloor {
		return p.slice()
	}
	return min(p.slice(), 800*time.Millisecond)
}

// lists tells whether users are listed, which takes very many of them.
func (p *plan) lists() bool {
	return slices.ContainsFunc(p.ops, func(op *operation) bool { return op.floor == noFloor })
}

// at tells whether an operation is measured with so many callers.
func (p *plan) at(op *operation, callers int) bool {
	return !op.ends || callers == slices.Min(p.callers) || callers == p.largest()
}

// largest is how many callers there are at most.
func (p *plan) largest() int { return slices.Max(p.callers) }

const (
	defaultTime    = 3 * time.Second
	defaultRounds  = 2
	defaultCallers = "1,16,64"
	resultsFile    = "bench/RESULTS.md"
	wholeRun       = 30 * time.Minute // whatever happens, it ends
)

func parse(args []string, output io.Writer) (*plan, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	engines := flags.String("engines", "sqlite,postgres", "engines to measure; postgres needs SIGNET_TEST_POSTGRES")
	ops := flags.String("ops", "",
		"operations to measure ("+strings.Join(operationNames(operations), ",")+"); all when empty")
	protocols := flags.String("protocols", "rest,grpc", "protocols to measure")
	callers := flags.String("callers", defaultCallers, "how many call at the same time, a number per level")
	measured := flags.Duration("time", defaultTime, "how long each combination is measured, spread over the rounds")
	rounds := flags.Int("rounds", defaultRounds, "how often everything is repeated; the median counts")
	out := flags.String("out", "",
		"file for the report; "+resultsFile+" when everything is measured with the default settings")
	dir := flags.String("dir", "", "directory for temporary files, on a real disk")
	traces := flags.Bool("traces", false, "measure only what traces cost, on the embedded database")
	shares := flags.Bool("shares", false,
		"measure only how one organization fares beside another one that changes the roles of 1,000 members")
	base := flags.String("base", "",
		"another build of the program, to compare it with this one; with -traces or -shares")
	against := flags.String("against", "",
		"compare with this revision, or with the commit that "+resultsFile+" names (\"last\")")
	profiles := flags.String("profiles", "", "directory for profiles of the server: CPU and allocations, per operation")
	large := flags.Bool("large", false, "with -against: lists of 24,000 users instead of 1,000")
	quick := flags.Bool("quick", false,
		"a short run, to see that it works: 1 and 64 callers, one round, 0.8 s; with -against four operations and 64 callers")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	known := operations
	if *against != "" {
		if err := againstDefaults(flags, set, *quick); err != nil {
			return nil, err
		}
		known = againstOperations
	} else if *quick {
		if !set["time"] {
			*measured = 800 * time.Millisecond
		}
		if !set["rounds"] {
			*rounds = 1
		}
		if !set["callers"] {
			*callers = "1,64"
		}
	}
	p := &plan{measured: *measured, rounds: *rounds, quick: *quick, out: *out, dir: *dir, traces: *traces,
		shares: *shares, base: *base, against: *against, large: *large, profiles: *profiles}
	var err error
	if p.engines, err = choose(*engines, []string{"sqlite", "postgres"}); err != nil {
		return nil, err
	}
	if p.protocols, err = choose(*protocols, []string{"rest", "grpc"}); err != nil {
		return nil, err
	}
	if p.against == "last" {
		report, err := os.ReadFile(resultsFile)
		if err != nil {
			return nil, err
		}
		if p.against = measuredCommit(report); p.against == "" {
			return nil, errors.New("-against: " + resultsFile + " names no commit: name a revision")
		}
	}
	names := operationNames(known)
	if *ops != "" {
		if names, err = choose(*ops, names); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		p.ops = append(p.ops, known[slices.IndexFunc(known, func(op *operation) bool { return op.name == name })])
	}
	for text := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 256 {
			return nil, fmt.Errorf("-callers: %q is not a number from 1 to 256", text)
		}
		p.callers = append(p.callers, n)
	}
	if p.rounds < 1 || p.rounds > 20 || p.slice() < 100*time.Millisecond || p.measured > time.Minute {
		return nil, errors.New("-rounds must be 1 to 20, -time at most 1m and at least 100ms for each round")
	}
	everything := p.against == "" && len(p.engines) == 2 && len(p.ops) == len(operations) && len(p.protocols) == 2 &&
		*callers == defaultCallers && p.measured == defaultTime && p.rounds == defaultRounds
	if p.out == "" && everything {
		p.out = resultsFile
	}
	return p, nil
}

// againstDefaults sets what a comparison does otherwise than a usual run, where nobody asked for something.
func againstDefaults(flags *flag.FlagSet, set map[string]bool, quick bool) error {
	defaults := map[string]string{"callers": "1,64", "rounds": strconv.Itoa(againstRounds),
		"time": againstTime.String()}
	if quick {
		defaults["callers"], defaults["ops"] = "64", strings.Join(againstQuick, ",")
	}
	if set["rounds"] && !set["time"] {
		rounds, err := strconv.Atoi(flags.Lookup("rounds").Value.String())
		if err != nil {
			return err
		}
		defaults["time"] = (time.Duration(rounds) * againstSlice).String()
	}
	for name, value := range defaults {
		if !set[name] {
			if err := flags.Set(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose reads a list of names out of a closed set, and gives them in the set's order.
func choose(list string, known []string) ([]string, error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is not one of %s", name, strings.Join(known, ", "))
		}
		wanted[name] = true
	}
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !wanted[name] }), nil
}

func main() {
	p, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithTimeout(ctx, wholeRun)
	passed, err := run(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("cut off: %w", ctx.Err())
	case err == nil && !passed:
		err = errors.New("a check failed")
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run carries a plan out and says whether every check passed.
func run(ctx context.Context, p *plan) (passed bool, err error) {
	began := time.Now()
	temporary, err := temporaryDirectory(p.dir)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary)
	if p.against != "" {
		return measureAgainst(ctx, p, temporary)
	}
	if p.profiles != "" {
		if err := os.MkdirAll(p.profiles, 0o700); err != nil {
			return false, err
		}
	}
	report := newReport(p, temporary)

	say("building")
	binary := filepath.Join(temporary, "signet")
	if err := build(ctx, binary); err != nil {
		return false, err
	}
	if p.traces {
		return measureTraces(ctx, p, binary, p.base, temporary)
	}
	if p.shares {
		return measureShares(ctx, p, binary, p.base, temporary)
	}
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.close())
		}
	}()
	for _, engine := range p.engines {
		s, err := openSubject(ctx, p, engine, binary, filepath.Join(temporary, engine))
		if s != nil {
			subjects = append(subjects, s) // it may be half open, and is closed all the same
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", engine, err)
		}
		report.facts = append(report.facts, s.facts...)
		history, err := s.measureHistory(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: an object with a long history: %w", engine, err)
		}
		report.history[engine] = history
	}
	for round := 1; round <= p.rounds; round++ {
		for _, s := range subjects {
			say("round %d of %d on %s", round, p.rounds, s.engine)
			if err := s.measure(ctx, p, report); err != nil {
				return false, fmt.Errorf("%s: %w", s.engine, s.explain(err))
			}
		}
	}
	for _, s := range subjects {
		if p.besides() {
			b, err := s.measureBeside(ctx, p)
			if err != nil {
				return false, fmt.Errorf("%s: reading while others sign in: %w", s.engine, s.explain(err))
			}
			report.beside[s.engine] = b
		}
		starts, err := s.measureStarts(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: starting again: %w", s.engine, s.explain(err))
		}
		report.starts[s.engine] = starts
	}
	report.took = time.Since(began)
	text, passed := report.text()
	fmt.Print("\n" + text)
	if p.out != "" {
		if err := os.WriteFile(p.out, []byte(text), 0o644); err != nil {
			return false, err
		}
		say("wrote %s", p.out)
	}
	return passed, nil
}

// measure goes once through all combinations: at each level the operations of one kind with their floor before, between
// and after them, so that each operation has one measured right before and one right after it.
func (s *subject) measure(ctx context.Context, p *plan, r *report) error {
	for _, callers := range p.callers {
		for _, kind := range []floorKind{writeFloor, hashFloor, readFloor, noFloor} {
			ops := slices.DeleteFunc(slices.Clone(p.ops),
				func(op *operation) bool { return op.floor != kind || !p.at(op, callers) })
			if len(ops) == 0 {
				continue
			}
			if kind == readFloor && s.vacuum != nil {
				if err := s.vacuum(ctx); err != nil {
					return fmt.Errorf("vacuum: %w", err)
				}
			}
			before, err := s.measureFloor(ctx, p, r, kind, callers)
			if err != nil {
				return fmt.Errorf("floor: %w", err)
			}
			for _, op := range ops {
				var samples []sample
				protocols := slices.DeleteFunc(slices.Clone(p.protocols),
					func(protocol string) bool { return !op.speaks(protocol) })
				for _, protocol := range protocols {
					c := cell{s.engine, op.name, protocol, callers}
					warm := p.warmUp()
					if kind == hashFloor { // until the queue in front of the hash is as long as it gets
						warm += min(time.Duration(float64(callers)/before*float64(time.Second)), 10*time.Second)
					}
					profile := s.server.profile(ctx, p, c, warm)
					got, err := s.drive(ctx, op, protocol, callers, warm, p.slice())
					err = errors.Join(err, profile())
					if err != nil {
						return fmt.Errorf("%s over %s with %d callers: %w", op.name, protocol, callers, err)
					}
					say("%-9s %-18s %-4s %3d callers %9.0f/s", c.engine, c.op, c.protocol, c.callers, got.perSecond)
					samples = append(samples, got)
				}
				after, err := s.measureFloor(ctx, p, r, kind, callers)
				if err != nil {
					return fmt.Errorf("floor: %w", err)
				}
				for i, protocol := range protocols {
					samples[i].floor = (before + after) / 2
					r.add(cell{s.engine, op.name, protocol, callers}, samples[i])
				}
				before = after
			}
		}
	}
	return nil
}

// measureFloor measures what is there at best, and gives it per second.
func (s *subject) measureFloor(ctx context.Context, p *plan, r *report, kind floorKind, callers int) (float64, error) {
	if kind == noFloor {
		return 0, nil
	}
	raw := s.floors[kind]
	got, err := raw.run(ctx, callers, p.warmUp()/2, p.floorSlice(kind))
	if err != nil {
		return 0, err
	}
	say("%-9s %-18s %-4s %3d callers %9.0f/s", s.engine, kind, "raw", callers, got.perSecond)
	r.add(cell{s.engine, string(kind), "raw", callers}, got)
	return got.perSecond, nil
}

func build(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary,
		"github.com/signet-idm/signet/cmd/signet")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	return nil
}

// say tells whoever watches how far it is.
func say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
