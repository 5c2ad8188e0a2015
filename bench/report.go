package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cell is one line of the table.
type cell struct {
	engine, op, protocol string
	callers              int
}

// report gathers what a run finds.
type report struct {
	plan    *plan
	facts   []string
	samples map[cell][]sample
	history map[string]history // by engine
	starts  map[string]starts
	beside  map[string]beside
	commit  string // of the sources, as measuredCommit reads it
	date    time.Time
	took    time.Duration
}

func newReport(p *plan, temporary string) *report {
	return &report{plan: p, facts: machine(temporary), samples: map[cell][]sample{}, history: map[string]history{},
		starts: map[string]starts{}, beside: map[string]beside{}, commit: currentCommit(), date: time.Now()}
}

func (r *report) add(c cell, s sample) { r.samples[c] = append(r.samples[c], s) }

// machine says what matters about where the run happens.
func machine(temporary string) []string {
	processor := "unknown processor"
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "unknown"
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(raw), " ")
	}
	return []string{
		fmt.Sprintf("%d cores (%s) for server, database and load generator together; load average before the run %s",
			runtime.NumCPU(), processor, load),
		fmt.Sprintf("%s, %s/%s, server built with CGO_ENABLED=0", runtime.Version(), runtime.GOOS, runtime.GOARCH),
		fmt.Sprintf("SQLite files on %s, WAL, synchronous=FULL", fileSystem(temporary)),
	}
}

// disturbance says how much of the machine was not the run's.
func (r *report) disturbance() string {
	var shares []float64
	for _, all := range r.samples {
		for _, s := range all {
			shares = append(shares, s.others)
		}
	}
	const calm = 0.05
	text := fmt.Sprintf("other processes used %.0f %% of the cores while it was measured (median)", 100*median(shares))
	if median(shares) > calm {
		text += ": too much for figures to be compared with those of other runs"
	}
	return text
}

// settled is what several rounds agree on.
type settled struct {
	sample
	toFloor float64 // the median of the rounds' ratios, each to the floor around it
}

func (r *report) settle(c cell) (settled, bool) {
	all := r.samples[c]
	if len(all) == 0 {
		return settled{}, false
	}
	of := func(value func(s sample) float64) float64 {
		var values []float64
		for _, s := range all {
			values = append(values, value(s))
		}
		return median(values)
	}
	var s settled
	s.perSecond = of(func(s sample) float64 { return s.perSecond })
	s.p50 = time.Duration(of(func(s sample) float64 { return float64(s.p50) }))
	s.p99 = time.Duration(of(func(s sample) float64 { return float64(s.p99) }))
	s.server = of(func(s sample) float64 { return s.server })
	s.database = of(func(s sample) float64 { return s.database })
	s.client = of(func(s sample) float64 { return s.client })
	s.toFloor = of(sample.ratio)
	for _, one := range all {
		s.rss = max(s.rss, one.rss)
	}
	return s, true
}

// cells in the order of the table.
func (r *report) cells() []cell {
	ops := append([]string{string(writeFloor), string(hashFloor), string(readFloor)}, operationNames(operations)...)
	protocols := []string{"raw", "rest", "grpc"}
	engines := []string{"sqlite", "postgres"}
	var all []cell
	for c := range r.samples {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b cell) int {
		for _, d := range []int{
			slices.Index(engines, a.engine) - slices.Index(engines, b.engine),
			slices.Index(ops, a.op) - slices.Index(ops, b.op),
			slices.Index(protocols, a.protocol) - slices.Index(protocols, b.protocol),
		} {
			if d != 0 {
				return d
			}
		}
		return a.callers - b.callers
	})
	return all
}

// check is one promise and whether it is kept.
type check struct {
	verdict string // PASS, FAIL, or SKIP where the run has not measured it
	what    string
	found   string
}

func verdict(ok bool) string {
	if ok {
		return "PASS"
	}
	return "FAIL"
}

// What is promised.
const (
	floorShare    = 0.5
	hashShare     = 0.9
	grpcCost      = 2.0
	historyCost   = 1.2
	listCost      = 1.5
	oneWordCost   = 1.2
	twoWordsCost  = 3.0
	twoWordsTime  = 20 * time.Millisecond
	groupCost     = 1.2
	roleCost      = 1.5
	tokenShare    = 0.5
	readBeside    = 100 * time.Millisecond
	readyWithin   = 100 * time.Millisecond
	idleMemory    = 20 << 20
	manyCallers   = 64
	profile       = "UpdateMyProfile"
	passwordSet   = "SetUserPassword"
	signIn        = "CreateSession"
	myself        = "GetMyUser"
	skipped       = "SKIP"
	skippedReason = "not measured in this run"
)

// writeShares are of the floor of a write. On SQLite the server cannot come near it: that floor does 38,000 writes a
// second on two cores, which leaves 52 µs of them for each, and HTTP on both ends takes more. So the share there is what
// shows a loss.
var writeShares = map[string]float64{"sqlite": 0.15, "postgres": 0.5}

// busyMemory is what the Go runtime is given (cmd/signet/memory.go), and as much for SQLite and the pages of the program
// as they were seen to need.
func busyMemory(cores int) int64 { return int64(112+24*cores+64) << 20 }

func (r *report) checks() (all []check) {
	for _, engine := range r.plan.engines {
		add := func(what string, measured, ok bool, format string, args ...any) {
			c := check{verdict: skipped, what: engine + ": " + what, found: skippedReason}
			if measured {
				c.verdict, c.found = verdict(ok), fmt.Sprintf(format, args...)
			}
			all = append(all, c)
		}
		rest, haveREST := r.settle(cell{engine, profile, "rest", manyCallers})
		grpc, haveGRPC := r.settle(cell{engine, profile, "grpc", manyCallers})
		set, haveSet := r.settle(cell{engine, passwordSet, "rest", manyCallers})
		add(fmt.Sprintf("64 REST callers of Update My Profile reach %.2f of the floor", writeShares[engine]), haveREST,
			rest.toFloor >= writeShares[engine], "%.2f of it (%.0f/s)", rest.toFloor, rest.perSecond)
		add("64 REST callers of Set User Password reach nine tenths of raw argon2id", haveSet, set.toFloor >= hashShare,
			"%.2f of it (%.1f/s)", set.toFloor, set.perSecond)
		add("a gRPC call costs the server no more CPU than two REST calls", haveREST && haveGRPC,
			grpc.server <= grpcCost*rest.server,
			"%.2f REST calls (%.0f and %.0f µs)", grpc.server/rest.server, grpc.server, rest.server)
		in, haveIn := r.settle(cell{engine, signIn, "rest", manyCallers})
		add("64 REST callers of "+signIn+" reach nine tenths of raw argon2id", haveIn, in.toFloor >= hashShare,
			"%.2f of it (%.1f/s)", in.toFloor, in.perSecond)
		b, haveBeside := r.beside[engine]
		add("one other caller of "+myself+" waits less than 100 ms (p99) while 64 sign in", haveBeside,
			b.p99 < readBeside,
			"%s ms (median %s ms of %d reads, beside %.1f sign-ins/s)", milliseconds(b.p99), milliseconds(b.p50),
			b.reads, b.signIns)
		for _, op := range []string{myself, "GetUser"} {
			read, have := r.settle(cell{engine, op, "rest", manyCallers})
			add("64 REST callers of "+op+" reach half of a bare read", have, read.toFloor >= floorShare,
				"%.2f of it (%.0f/s)", read.toFloor, read.perSecond)
		}
		me, haveMe := r.settle(cell{engine, myself, "rest", manyCallers})
		for _, op := range []string{"Introspect", "UserInfo"} {
			token, have := r.settle(cell{engine, op, "rest", manyCallers})
			add("64 callers of "+op+" reach half of "+myself, have && haveMe,
				token.perSecond >= tokenShare*me.perSecond,
				"%.2f of it (%.0f/s and %.0f/s)", token.perSecond/me.perSecond, token.perSecond, me.perSecond)
		}
		one, two := searches[0].name, searches[1].name
		for _, list := range []struct {
			few, many string
			most      float64
		}{
			{listFew, listMany, listCost},
			{namedFew, namedMany, listCost},
			{searching(one, "1k"), searching(one, "200k"), oneWordCost},
			{searching(two, "1k"), searching(two, "24k"), twoWordsCost},
		} {
			few, haveFew := r.settle(cell{engine, list.few, "rest", manyCallers})
			many, haveMany := r.settle(cell{engine, list.many, "rest", manyCallers})
			add(fmt.Sprintf("%s costs at most %.1f times %s", list.many, list.most, list.few), haveFew && haveMany,
				few.perSecond <= list.most*many.perSecond, "%.2f times (%.0f/s and %.0f/s)",
				few.perSecond/many.perSecond, few.perSecond, many.perSecond)
		}
		met, haveMet := r.settle(cell{engine, searching(two, "200k"), "rest", 1})
		add("one caller of "+searching(two, "200k")+" waits at most 20 ms (median)", haveMet, met.p50 <= twoWordsTime,
			"%s ms", milliseconds(met.p50))
		for _, op := range grouped {
			none, haveNone := r.settle(cell{engine, inCrowd(op.name, crowds[0]), "rest", manyCallers})
			for i, most := range []float64{groupCost, roleCost} {
				c := crowds[i+1]
				in, have := r.settle(cell{engine, inCrowd(op.name, c), "rest", manyCallers})
				add(fmt.Sprintf("%s of a user in %s costs at most %.1f times one in none", op.name, c.name, most),
					haveNone && have, none.perSecond <= most*in.perSecond,
					"%.2f times (%.0f/s and %.0f/s)", none.perSecond/in.perSecond, none.perSecond, in.perSecond)
			}
		}
		small, haveSmall := r.settle(cell{engine, addToSmall, "rest", manyCallers})
		large, haveLarge := r.settle(cell{engine, addToLarge, "rest", manyCallers})
		add("adding a member costs the same in a group of 10 and of 100,000", haveSmall && haveLarge,
			small.perSecond <= groupCost*large.perSecond,
			"%.2f times (%.0f/s and %.0f/s)", small.perSecond/large.perSecond, small.perSecond, large.perSecond)
		h, haveHistory := r.history[engine]
		latency, throughput := float64(h.old)/float64(h.young), h.youngPerSec/h.oldPerSec
		add(fmt.Sprintf("changing an object with %d events costs at most 1.2 times one with ten to thirty",
			h.events), haveHistory,
			latency <= historyCost && throughput <= historyCost,
			"median %s to %s, %.2f times; %.2f times by throughput", milliseconds(h.old), milliseconds(h.young),
			latency, throughput)
		s, haveStarts := r.starts[engine]
		add("ready within 100 ms on existing data", haveStarts, s.ready <= readyWithin, "%s ms", milliseconds(s.ready))
		add("at most 20 MiB of private memory when idle", haveStarts, s.idle <= idleMemory, "%.1f MiB",
			mebibytes(s.idle))
		var most int64
		var worst cell
		for c := range r.samples {
			if got, ok := r.settle(c); ok && c.engine == engine && c.callers == manyCallers && got.rss > most {
				most, worst = got.rss, c
			}
		}
		limit := busyMemory(runtime.NumCPU())
		add(fmt.Sprintf("under %.0f MiB with 64 callers of any operation", mebibytes(limit)), most > 0, most < limit,
			"%.1f MiB at most, in %s over %s", mebibytes(most), worst.op, worst.protocol)
	}
	return all
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64)
}

// text is the whole report, and whether no check failed.
func (r *report) text() (string, bool) {
	var b strings.Builder
	passed := true
	fmt.Fprintf(&b, "# Measured\n\n%s, in %s. Made by `make bench`; the next run replaces it.\n\n",
		r.date.UTC().Format("2006-01-02 15:04 UTC"), r.took.Round(time.Second))
	for _, f := range r.facts {
		fmt.Fprintf(&b, "- %s\n", f)
	}
	fmt.Fprintf(&b, "- commit %s\n", r.commit)
	fmt.Fprintf(&b, "- each line measured for %s, spread over %d round(s); medians of the rounds, memory the maximum\n",
		r.plan.measured, r.plan.rounds)
	fmt.Fprintf(&b, "- %s\n", r.disturbance())
	b.WriteString(explanation)
	b.WriteString("\n## Checks\n\n")
	for _, c := range r.checks() {
		passed = passed && c.verdict != "FAIL"
		fmt.Fprintf(&b, "- %s %s: %s\n", c.verdict, c.what, c.found)
	}
	b.WriteString("\n## Table\n\n")
	b.WriteString(r.table())
	return b.String(), passed
}

const explanation = `
The floor is the least that has to happen, done with nothing around it, on the same engine. It is fixed: it has tables of its
own, with rows of 640 bytes, so that it does not grow with the program and ratios of different commits compare. "event + row"
reads one state row, inserts one event and updates the row, with another name in its one index. On SQLite one writer takes whatever has queued up, at most 128 at a time, and all of it
is one transaction (WAL, synchronous=FULL). On PostgreSQL each caller has its own connection and transaction of five
prepared statements, with positions from a sequence, so that nobody waits for anybody else. "argon2id" is the password
hash alone (19 MiB, two passes), on all cores. "row by key" is an HTTP server that does nothing but read such a row by the
primary key and send it, with as many connections to the database as the server has; on PostgreSQL, dead rows that the
writes before have left are vacuumed away on both sides first. A floor runs before and after every
operation, and "of floor" is the throughput divided by the mean of the two: 0.50 means that authentication, checks,
rules, encryption, hash chain, both ends of the protocol and this load generator together cost as much again as the bare
work. It can exceed 1.00 on PostgreSQL, where the server puts many commands into one transaction and the floor does not.
ClientCredentials makes an access token for a service user; Introspect and UserInfo are about an access token that a person let
an application have. All three are forms over HTTP and have no gRPC. ThroughJWT signs somebody in on the pages through a JWT
provider whose keys are known already: two requests, there and back, with a token and a state of their own each time. It is
compared with one event, and is one event and three commands: the state, the token and the session. Lists have no floor: 50 users out of 1,000 and out of
200,000 are compared with each other, and so are searches for one word that everybody has, for two that half of all have each
and five have both (these among 1,000 and 24,000: they read all that there is of one of the words), and callers in 0 and in 200 groups, and in 20 groups that give roles of the API
("Credential" reads the own organization, which comes with the credential). AddGroupMember adds a user to a group of 10 or of
100,000 members, and takes it out again. SetGroupRoles gives the members of a group of 10 another role: eleven events. It is compared with
one event. Callers wait for each answer before they call again. Compare ratios between machines,
and absolute figures only within one run.

The CPU columns are microseconds per operation: of the server, of all PostgreSQL processes, and of the load generator,
which shares the cores with them. Memory is the most the server held (resident set, looked at every 50 ms);
private memory is what of it belongs to the server alone (RssAnon), without the pages of the program itself.
`

func (r *report) table() string {
	rows := [][]string{{"engine", "operation", "protocol", "callers", "per second", "p50 ms", "p99 ms", "server µs",
		"postgres µs", "client µs", "memory MiB", "of floor"}}
	for _, c := range r.cells() {
		s, _ := r.settle(c)
		rate := "%.0f"
		if s.perSecond < 1000 {
			rate = "%.1f"
		}
		row := []string{c.engine, c.op, c.protocol, strconv.Itoa(c.callers), fmt.Sprintf(rate, s.perSecond),
			milliseconds(s.p50), milliseconds(s.p99),
			known(s.server, 0), known(s.database, 0), known(s.client, 0), "", known(s.toFloor, 2)}
		if s.rss > 0 {
			row[10] = fmt.Sprintf("%.1f", mebibytes(s.rss))
		}
		rows = append(rows, row)
	}
	return table(rows, 3)
}

// known writes a number, or nothing where it is none.
func known(v float64, digits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// table writes rows as Markdown that can be read as it is; the first are headings. Columns from the right-th on hold
// numbers.
func table(rows [][]string, right int) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, text := range row {
			gap := strings.Repeat(" ", widths[i]-len([]rune(text)))
			if i >= right {
				text = gap + text
			} else {
				text += gap
			}
			b.WriteString("| " + text + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, width := range widths {
				if i >= right {
					b.WriteString("|" + strings.Repeat("-", width+1) + ":")
				} else {
					b.WriteString("|" + strings.Repeat("-", width+2))
				}
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
