package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// The guard against a loss of speed that nobody sees: two revisions of the program, each on a database of its own,
// filled the same way, measured in turns.
//
// Both are built with a password hash that costs next to nothing. It is the same in both anyway, and forty milliseconds
// of it would hide whatever happened to the rest of an operation.

const (
	againstRounds = 8
	againstSlice  = time.Second
	againstTime   = againstRounds * againstSlice
	least         = 0.97  // a loss: the whole interval lies below it
	importedUsers = 1_000 // by each import that is measured, and for the lists; for those with -large:
	largeUsers    = 24_000
)

// againstOperations are what the guard looks at. Importing comes on top: it has no callers.
var againstOperations = []*operation{
	operationNamed("UpdateMyProfile"),
	{name: "UpdateMyProfile nick", call: func(w *world, i int) call { return updateMyNick(&w.people[i]) }},
	operationNamed("UpdateJWTIDP"),
	operationNamed("UpdateIDP"),
	operationNamed("SetupOrganization"),
	operationNamed("SetUserPassword"),
	operationNamed(signIn),
	operationNamed(myself),
	operationNamed("GetUser"),
	operationNamed("Introspect"),
	operationNamed("UserInfo"),
	{name: "ListUsers", call: func(w *world, _ int) call { return listUsers(&w.few, "") }},
	{name: "SearchUsers", call: func(w *world, _ int) call { return searchUsers(&w.few, "0005") }},
	{name: importing},
}

const importing = "import"

// againstQuick are those of a short run.
var againstQuick = []string{"UpdateMyProfile", myself, "Introspect", "ListUsers"}

// updateMyNick changes the nickname alone: people are found by it, but not listed.
func updateMyNick(p *person) call {
	nick := "nick " + changing
	return call{
		token:     p.token,
		verb:      "PUT",
		path:      "/v1/users/me/profile",
		procedure: "signet.v1.UserService/UpdateMyProfile",
		message: &signetv1.UpdateMyProfileRequest{FirstName: "Johanna", LastName: "Beispiel", NickName: &nick,
			DisplayName: "Johanna Beispiel", PreferredLanguage: "de-CH", Gender: signetv1.Gender_GENDER_FEMALE},
	}
}

func searchUsers(p *person, query string) call {
	return call{token: p.token, verb: "GET", path: "/v1/users/_search?pageSize=50&query=" + url.QueryEscape(query),
		procedure: "signet.v1.UserService/SearchUsers",
		message:   &signetv1.SearchUsersRequest{PageSize: 50, Query: query}}
}

// program is one revision on one engine.
type program struct {
	*subject
	revision string
	missing  map[string]bool // operations that it does not have
	imports  int
}

const workingTree = "the working tree"

// pair is a program and the one it is compared with.
type pair struct{ now, before *program }

// measureAgainst compares this working tree with a revision, and says whether nothing was lost.
func measureAgainst(ctx context.Context, p *plan, dir string) (passed bool, err error) {
	before, now := filepath.Join(dir, "before"), filepath.Join(dir, "now")
	say("building %s and the working tree", p.against)
	if err := buildRevision(ctx, p.against, filepath.Join(dir, "source"), before); err != nil {
		return false, err
	}
	if err := buildCheapHash(ctx, ".", dir, now); err != nil {
		return false, err
	}
	began := time.Now()
	var pairs []pair
	defer func() {
		for _, two := range pairs {
			for _, one := range []*program{two.now, two.before} {
				if one != nil {
					err = errors.Join(err, one.close())
				}
			}
		}
	}()
	for _, engine := range p.engines {
		pairs = append(pairs, pair{})
		two := &pairs[len(pairs)-1]
		if two.before, err = openProgram(ctx, p, engine, p.against, before,
			filepath.Join(dir, engine+"-before")); err != nil {
			return false, fmt.Errorf("%s on %s: %w", p.against, engine, err)
		}
		if two.now, err = openProgram(ctx, p, engine, workingTree, now, filepath.Join(dir, engine+"-now")); err != nil {
			return false, fmt.Errorf("the working tree on %s: %w", engine, err)
		}
	}
	found := map[cell][]turn{}
	for round := range p.rounds {
		say("turn %d of %d", round+1, p.rounds)
		for _, two := range pairs {
			if err := two.measure(ctx, p, round, found); err != nil {
				return false, err
			}
		}
	}
	text, passed := againstText(p, pairs, found)
	fmt.Printf("\n%s against %s, %d alternations of %s each, %s in all\n\n", workingTree, p.against, p.rounds,
		p.slice(), time.Since(began).Round(time.Second))
	fmt.Print(text)
	return passed, nil
}

// buildRevision builds another revision of the program out of the repository.
func buildRevision(ctx context.Context, revision, source, binary string) error {
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", revision)
	var problem bytes.Buffer
	archive.Stderr = &problem
	out, err := archive.Output()
	if err != nil {
		return fmt.Errorf("git archive %s: %w\n%s", revision, err, problem.Bytes())
	}
	if err := os.MkdirAll(source, 0o700); err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(out)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking %s: %w\n%s", revision, err, out)
	}
	return buildCheapHash(ctx, source, source, binary)
}

// The cost of a password hash is named in one of these files: the second is that of revisions up to 2026-11-18.
var (
	argonFiles  = []string{"internal/base/secret/argon/argon.go", "internal/secret/argon/argon.go"}
	argonPasses = regexp.MustCompile(`(?m)^(\s+Passes\s+=).*$`)
	argonMemory = regexp.MustCompile(`(?m)^(\s+MemoryKiB\s+=).*$`)
)

// buildCheapHash builds a source tree with the least cost that argon2id knows. The tree stays as it is.
func buildCheapHash(ctx context.Context, source, scratch, binary string) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	var path string
	var text []byte
	for _, file := range argonFiles {
		path = filepath.Join(source, file)
		if text, err = os.ReadFile(path); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if !argonPasses.Match(text) || !argonMemory.Match(text) {
		return fmt.Errorf("%s does not name the cost of a hash as it is expected to", path)
	}
	cheap := filepath.Join(scratch, "argon_cheap.go.txt")
	text = argonMemory.ReplaceAll(argonPasses.ReplaceAll(text, []byte("${1} 1")), []byte("${1} 8"))
	if err := os.WriteFile(cheap, text, 0o600); err != nil {
		return err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, path, cheap), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-overlay", overlay, "-o", binary,
		"./cmd/signet")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return nil
}

// openProgram starts a program on an empty database and fills that by the program's own API and commands. What it
// returns is to be closed, also after an error.
func openProgram(ctx context.Context, p *plan, engine, revision, binary, dir string) (*program, error) {
	one := &program{subject: &subject{engine: engine, binary: binary, dir: filepath.Join(dir, "data")},
		revision: revision, missing: map[string]bool{}}
	if engine == "postgres" {
		pg, err := openPostgres(ctx)
		if err != nil {
			return one, err
		}
		one.cleanups = append(one.cleanups, pg.close)
		one.postmaster = pg.postmaster
		if one.database, err = pg.create(ctx); err != nil {
			return one, err
		}
	}
	say("starting and filling %s on %s", revision, engine)
	var err error
	if one.server, err = start(ctx, binary, one.dir, one.database); err != nil {
		return one, err
	}
	admin, err := firstToken(one.dir)
	if err != nil {
		return one, err
	}
	if one.world, err = fill(ctx, one.server.address, admin, p.largest(), false); err != nil {
		return one, one.explain(err)
	}
	users := importedUsers
	if p.large {
		users = largeUsers
	}
	if _, err := one.importUsers(ctx, one.world.few.org, "user", users); err != nil {
		return one, one.explain(err)
	}
	return one, one.probe(revision == p.against)
}

// probe finds out which operations a program does not have, if it may miss some.
func (one *program) probe(mayMiss bool) error {
	conn, err := dialREST(one.server.address, time.Now().Add(patience))
	if err != nil {
		return err
	}
	defer conn.close()
	for _, op := range againstOperations {
		if op.call == nil {
			continue
		}
		request, err := op.call(one.world, 0).rest()
		if err != nil {
			return err
		}
		status, body, err := conn.do(request.next())
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", op.name, err)
		case status != 200 && !mayMiss:
			return fmt.Errorf("%s: status %d: %s", op.name, status, clip(body))
		case status != 200:
			say("%s is not there in %s: status %d", op.name, one.revision, status)
			one.missing[op.name] = true
		}
	}
	return nil
}

// importUsers runs the program's own command, with users whose names begin with a text, and says how many a second
// there were.
func (one *program) importUsers(ctx context.Context, org, prefix string, users int) (perSecond float64, err error) {
	const hash = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW"
	var lines bytes.Buffer
	for i := range users {
		name := fmt.Sprintf("%s%06d", prefix, i)
		fmt.Fprintf(&lines, `{"userName":%q,"profile":{"firstName":"Johanna","lastName":"Beispiel","displayName":"Johanna Beispiel %06d"},`+
			`"email":{"address":"%s@example.org","verified":true},"passwordHash":%q}`+"\n", name, i, name, hash)
	}
	file := filepath.Join(filepath.Dir(one.dir), prefix+".ndjson")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		return 0, err
	}
	token := filepath.Join(filepath.Dir(one.dir), "token")
	if err := os.WriteFile(token, []byte(one.world.admin), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, one.binary, "import", "users", file, "--server", "http://"+one.server.address,
		"--token-file", token, "--org", org)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("importing users: %w\n%s", err, out)
	}
	return float64(users) / time.Since(began).Seconds(), nil
}

// turn is both programs measured right after each other.
type turn struct{ now, before sample }

// measure takes one turn of everything on one engine. Who comes first changes from turn to turn, so that neither is
// always the one that finds the other's unfinished work.
func (two pair) measure(ctx context.Context, p *plan, round int, found map[cell][]turn) error {
	order := []*program{two.before, two.now}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	one := func(c cell, op *operation) error {
		var got turn
		for _, program := range order {
			if program.missing[op.name] {
				continue
			}
			s, err := program.take(ctx, p, op, c.callers)
			if errors.Is(err, errNoAnswer) {
				say("%s on %s: %s with %d callers: %v; this turn is left out", program.revision, c.engine, c.op,
					c.callers, err)
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s on %s: %s with %d callers: %w", program.revision, c.engine, c.op, c.callers,
					program.explain(err))
			}
			if program == two.now {
				got.now = s
			} else {
				got.before = s
			}
		}
		found[c] = append(found[c], got)
		if got.before.perSecond > 0 {
			say("%-9s %-22s %3d callers %9.0f/s %9.0f/s %6.3f", c.engine, c.op, c.callers, got.before.perSecond,
				got.now.perSecond, got.now.perSecond/got.before.perSecond)
		}
		return nil
	}
	for _, op := range p.ops {
		for _, callers := range p.levels(op) {
			if err := one(cell{two.now.engine, op.name, "rest", callers}, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// levels are how many callers an operation is measured with: an import is one command.
func (p *plan) levels(op *operation) []int {
	if op.name == importing {
		return []int{1}
	}
	return p.callers
}

func (one *program) take(ctx context.Context, p *plan, op *operation, callers int) (sample, error) {
	if op.name == importing {
		one.imports++
		rate, err := one.importUsers(ctx, one.world.many.org, fmt.Sprintf("import%03dx", one.imports), importedUsers)
		return sample{perSecond: rate, server: math.NaN(), database: math.NaN()}, err
	}
	return one.drive(ctx, op, "rest", callers, p.slice()/6, p.slice())
}

// interval is a ratio of throughputs with the bounds that it lies within with 95 % certainty.
type interval struct{ low, ratio, high float64 }

// intervalOf estimates the ratio from those of the turns, each of two programs measured right after each other (Hodges
// and Lehmann), with the interval that belongs to the signed-rank test. Both go by ranks: a turn in which the disk
// stood still counts as one turn and no more. Fewer than six turns bound nothing.
func intervalOf(ratios []float64) interval {
	var averages []float64 // of every two turns, and of each with itself
	for i := range ratios {
		for j := range i + 1 {
			averages = append(averages, math.Sqrt(ratios[i]*ratios[j]))
		}
	}
	slices.Sort(averages)
	found := interval{0, median(averages), math.Inf(1)}
	if outside := outside(len(ratios)); outside > 0 {
		found.low, found.high = averages[outside-1], averages[len(averages)-outside]
	}
	return found
}

// outside is how many of the averages, counted from either end, lead to the bounds of a 95 % interval.
func outside(turns int) (n int) {
	ways := make([]float64, turns*(turns+1)/2+1) // to reach each sum of ranks, each rank being counted or not
	ways[0] = 1
	for rank := 1; rank <= turns; rank++ {
		for sum := len(ways) - 1; sum >= rank; sum-- {
			ways[sum] += ways[sum-rank]
		}
	}
	tail := 0.0
	for n < len(ways) {
		if tail += ways[n] / math.Pow(2, float64(turns)); tail > 0.025 {
			return n
		}
		n++
	}
	return 0
}

// againstText is the table, and whether no operation has lost.
func againstText(p *plan, pairs []pair, found map[cell][]turn) (string, bool) {
	rows := [][]string{{"engine", "operation", "callers", "before /s", "now /s", "ratio", "95 % interval",
		"server µs before", "now", "postgres µs before", "now", ""}}
	passed := true
	for _, two := range pairs {
		for _, op := range p.ops {
			for _, callers := range p.levels(op) {
				c := cell{two.now.engine, op.name, "rest", callers}
				turns := found[c]
				column := func(of func(turn) float64, digits int) string {
					var all []float64
					for _, t := range turns {
						all = append(all, of(t))
					}
					return known(median(all), digits)
				}
				row := []string{c.engine, c.op, strconv.Itoa(c.callers),
					column(func(t turn) float64 { return t.before.perSecond }, 0),
					column(func(t turn) float64 { return t.now.perSecond }, 0), "", "",
					column(func(t turn) float64 { return t.before.server }, 0),
					column(func(t turn) float64 { return t.now.server }, 0),
					column(func(t turn) float64 { return t.before.database }, 0),
					column(func(t turn) float64 { return t.now.database }, 0), ""}
				if two.before.missing[op.name] {
					row[3], row[7], row[9], row[11] = "", "", "", "not there before"
				} else {
					ratios := make([]float64, len(turns))
					for i, t := range turns {
						ratios[i] = t.now.perSecond / t.before.perSecond
					}
					at := intervalOf(ratios)
					row[5], row[6] = known(at.ratio, 3), fmt.Sprintf("%.3f to %.3f", at.low, at.high)
					switch {
					case len(turns) <= p.rounds/2:
						row[11], passed = "too few turns", false
					case at.high < least:
						row[11], passed = "LOST", false
					}
				}
				rows = append(rows, row)
			}
		}
	}
	return table(rows, 2), passed
}

// measuredCommit is the commit that the last whole run names in the report; empty: it names none.
func measuredCommit(report []byte) string {
	found := regexp.MustCompile(`(?m)^- commit ([0-9a-f]{7,40})`).FindSubmatch(report)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// currentCommit is what a report says of the sources it measured.
func currentCommit() string {
	out, err := exec.Command("git", "describe", "--always", "--abbrev=12", "--exclude=*",
		"--dirty= with changes").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
