package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	signet "github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// counts are what one call costs.
type counts struct {
	rows, entries     int64 // written: rows, and entries of indexes besides
	statements, trips int64 // and round trips to PostgreSQL
	inside            int64 // statements in transactions, on PostgreSQL
	syncs             int64 // how often the answer waits for the disk

	// not held: of the log of the database; of the server's memory, pieces and bytes
	bytes, allocations, allocated int64

	what []string // in words, for whoever looks for a difference
}

// column is one of the table.
type column struct {
	name string
	of   func(c *counts) int64
	held bool
}

// columns are those of an engine. On PostgreSQL, whether one read more is needed depends on what this node has seen of
// a row before and somebody has changed since, and on what comes together in one round trip; the writer's statements do
// not.
func columns(engine string) []column {
	rows := column{"rows", func(c *counts) int64 { return c.rows }, true}
	syncs := column{"syncs", func(c *counts) int64 { return c.syncs }, true}
	statements := column{"statements", func(c *counts) int64 { return c.statements }, true}
	all := []column{rows, {"index entries", func(c *counts) int64 { return c.entries }, true}, statements, syncs}
	if engine == testdb.Postgres {
		statements.held = false
		all = []column{rows, {"in the transaction", func(c *counts) int64 { return c.inside }, true}, statements,
			{"round trips", func(c *counts) int64 { return c.trips }, false}, syncs}
	}
	return append(all, column{"bytes of the log", func(c *counts) int64 { return rounded(c.bytes) }, false},
		column{"allocations", func(c *counts) int64 { return rounded(c.allocations) }, false},
		column{"bytes allocated", func(c *counts) int64 { return rounded(c.allocated) }, false})
}

// rounded leaves two digits: the rest changes from run to run.
func rounded(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}

const (
	costsFile  = "../docs/operations/sizing.md"
	costsTimes = 16  // each call is made; the one counts beside which nothing else happened
	imported   = 100 // users in one command
)

// counted are the calls whose costs are held.
func counted() []*operation {
	one := func(name string, of func(w *world) call) *operation {
		return &operation{name: name, call: func(w *world, _ int) call { return of(w) }}
	}
	var all []*operation
	for _, name := range []string{"UpdateMyProfile", "UpdateJWTIDP", "UpdateIDP", "SetupOrganization",
		"SetUserPassword", signIn, myself, "GetUser", "Introspect"} {
		all = append(all, operationNamed(name))
	}
	return append(all,
		one("ListUsers", func(w *world) call { return listUsers(&w.few, "") }),
		one("SearchUsers one word", func(w *world) call { return searchUsers(&w.few, searches[0].query) }),
		one("SearchUsers two words", func(w *world) call { return searchUsers(&w.few, searches[1].query) }),
		one(fmt.Sprintf("ImportUsers %d", imported),
			func(w *world) call { return importSome(&w.many, "import"+changing, imported) }))
}

// importSome imports users in one request, whose names begin with a text.
func importSome(p *person, prefix string, count int) call {
	r := &signetv1.ImportUsersRequest{}
	for i := range count {
		name := fmt.Sprintf("%sx%03d", prefix, i)
		r.Users = append(r.Users, &signetv1.ImportUsersRequest_User{
			UserName:     name,
			PasswordHash: "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
			Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Johanna", LastName: "Beispiel",
				DisplayName: displayName(i, count)},
			Email: &signetv1.ImportUsersRequest_User_Email{Address: name + "@example.org", Verified: true},
		})
	}
	return call{token: p.token, verb: "POST", path: "/v1/users/_import", message: r}
}

// What each call costs stands in docs/operations/sizing.md. Rows, index entries, statements, round trips and syncs are
// held: nobody adds one unseen. If you change one on purpose, write the tables again, and say why in the commit:
//
//	SIGNET_UPDATE_DOCS=1 scripts/with-postgres.sh go test -count=1 -run TestWhatACallCosts ./bench
func TestWhatACallCosts(t *testing.T) {
	if os.Getenv("SIGNET_TEST_COSTS") == "" && os.Getenv("SIGNET_UPDATE_DOCS") == "" {
		t.Log("beside other work, what the server does by itself is counted, too: run it alone, with SIGNET_TEST_COSTS=1")
		return // and is no skip, which says that something is missing here
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		config := signet.Config{Data: signet.Data{DataDir: t.TempDir()}, MetricsListen: "127.0.0.1:0"}
		var begun func() int64
		var take func() counts
		var written func(*testing.T) int64
		empty := func() {}
		var inPostgres *postgresCounter
		file := filepath.Join(config.DataDir, "signet.db")
		var inSQLite *sqliteCounter
		if db.Engine == testdb.Postgres {
			inPostgres = countPostgres(t, db.URL)
			config.Database = inPostgres.address
			begun, take, written = inPostgres.begun, inPostgres.take, inPostgres.written
		} else {
			inSQLite = countSQLite(t, file)
		}
		s := servertest.Start(t, config, io.Discard)
		if inSQLite != nil {
			schema := readIndexes(t, file)
			before := syncs(t, s)
			take = func() counts {
				got := inSQLite.take(t, schema)
				now := syncs(t, s)
				got.syncs, before = now-before, now
				return got
			}
			begun, written = inSQLite.begun, inSQLite.written
			empty = func() { schema.empty(t) }
		}
		admin, err := firstToken(config.DataDir)
		testkit.Must(t, err)
		w, err := fill(t.Context(), s.Addr().String(), admin, 1, false)
		testkit.Must(t, err)
		conn, err := dialREST(s.Addr().String(), time.Now().Add(5*time.Minute))
		testkit.Must(t, err)
		defer conn.close()
		for range 10 {
			request, err := importSome(&w.few, "few"+changing, 100).rest()
			testkit.Must(t, err)
			_, err = conn.must(request.bytes)
			testkit.Must(t, err)
		}
		var found []counts
		ops := counted()
		for _, op := range ops {
			request, err := op.call(w, 0).rest()
			testkit.Must(t, err)
			var all []counts
			for range costsTimes {
				quiet(t, begun)
				empty()
				take()
				bytes := written(t)
				next := request.next()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := conn.must(next)
				runtime.ReadMemStats(&after)
				testkit.Must(t, err)
				got := take()
				got.bytes = written(t) - bytes
				got.allocations, got.allocated = int64(after.Mallocs-before.Mallocs),
					int64(after.TotalAlloc-before.TotalAlloc)
				all = append(all, got)
			}
			found = append(found, undisturbed(all))
		}
		judge(t, db.Engine, ops, found)
	})
}

// quiet waits until nothing was asked of the database for a while: what follows from the last call is done.
func quiet(t *testing.T, begun func() int64) {
	t.Helper()
	last, since := begun(), time.Now()
	testkit.Await(t, "the server does nothing", func() bool {
		if now := begun(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 20*time.Millisecond
	})
}

// undisturbed is what the call cost beside which nothing else happened: the server's own work only adds to it. Of what
// is never the same twice it takes the median.
func undisturbed(all []counts) counts {
	middle := func(of func(c *counts) int64) int64 {
		values := make([]int64, len(all))
		for i := range all {
			values[i] = of(&all[i])
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	got := slices.MinFunc(all,
		func(a, b counts) int { return int(a.rows + a.statements + a.trips - b.rows - b.statements - b.trips) })
	for i := range all { // the disk may be slow: what was written before the call may be synced during it
		got.syncs = min(got.syncs, all[i].syncs)
	}
	got.bytes = middle(func(c *counts) int64 { return c.bytes })
	got.allocations = middle(func(c *counts) int64 { return c.allocations })
	got.allocated = middle(func(c *counts) int64 { return c.allocated })
	return got
}

var syncsMetric = regexp.MustCompile(`(?m)^signet_sync_duration_seconds_count (\d+)$`)

// syncs is how often the embedded database has waited for the disk.
func syncs(t *testing.T, s *signet.Server) int64 {
	t.Helper()
	answer, err := http.Get("http://" + s.MetricsAddr().String() + "/metrics")
	testkit.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	n := syncsMetric.FindSubmatch(text)
	if n == nil {
		t.Fatalf("%s", text)
	}
	count, err := strconv.ParseInt(string(n[1]), 10, 64)
	testkit.Must(t, err)
	return count
}

// judge compares what was found with the table of an engine, or writes that.
func judge(t *testing.T, engine string, ops []*operation, found []counts) {
	t.Helper()
	is := columns(engine)
	raw, err := os.ReadFile(costsFile)
	testkit.Must(t, err)
	begin, end := "<!-- costs on "+engine+": written by go test ./bench -->\n", "<!-- end -->\n"
	head, rest, some := strings.Cut(string(raw), begin)
	before, tail, whole := strings.Cut(rest, end)
	if !some || !whole {
		t.Fatalf("%s lacks %q or its end", costsFile, begin)
	}
	if os.Getenv("SIGNET_UPDATE_DOCS") != "" {
		rows := [][]string{{"operation"}}
		for _, c := range is {
			rows[0] = append(rows[0], c.name)
		}
		for i, op := range ops {
			row := []string{op.name}
			for _, c := range is {
				row = append(row, strconv.FormatInt(c.of(&found[i]), 10))
			}
			rows = append(rows, row)
		}
		testkit.Must(t, os.WriteFile(costsFile, []byte(head+begin+"\n"+table(rows, 1)+"\n"+end+tail), 0o644))
		return
	}
	documented := map[string][]string{}
	for line := range strings.Lines(before) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		documented[cells[0]] = cells[1:]
	}
	for i, op := range ops {
		want := documented[op.name]
		if len(want) != len(is) {
			t.Errorf("%s lacks %s: write it with SIGNET_UPDATE_DOCS=1", costsFile, op.name)
			continue
		}
		for n, c := range is {
			got := c.of(&found[i])
			if said, err := strconv.ParseInt(want[n], 10, 64); err != nil || c.held && got != said {
				t.Errorf("%s: %d %s, and %s says %s. If that is meant, write it with SIGNET_UPDATE_DOCS=1. It did:\n%s",
					op.name, got, c.name, costsFile, want[n], strings.Join(found[i].what, "\n"))
			}
		}
	}
}
