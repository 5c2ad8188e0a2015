package program

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// scaled gives the size of a test: what make scale asks for, or what is quick.
func scaled(quick, full int) int {
	if os.Getenv("SIGNET_SCALE") == "1" {
		return full
	}
	return quick
}

// TestMoveThereAndBackScale carries an installation that was made through the API, with a long log, to PostgreSQL and
// back.
func TestMoveThereAndBackScale(t *testing.T) {
	t.Parallel()
	events := scaled(2_000, 1_000_000)
	from := newSite(t, testdb.New(t, testdb.SQLite))
	p := from.start(t)
	w := newInhabitants(t, from, p)
	p.stop(t)
	from.fill(t, w.admin.OrgID, events-from.events(t))
	before := from.sums(t)

	to := &site{Database: testdb.New(t, testdb.Postgres), dir: from.dir} // it keeps its master key
	timed(t, "move to PostgreSQL", events, func() string {
		return runLong(t, from.args("move", "--to", to.URL)...).fine(t).stdout
	}, "moved and checked", "signet start --database postgres://… --data-dir "+from.dir, "master.key", "Keep it",
		"signet move --undo")
	wantSums(t, from.sums(t), before)
	wantSums(t, to.sums(t), before)
	timed(t, "rebuild --check on SQLite", events,
		func() string { return runLong(t, from.args("rebuild", "--check")...).fine(t).stdout }, "events of")
	timed(t, "rebuild --check on PostgreSQL", events,
		func() string { return runLong(t, to.args("rebuild", "--check")...).fine(t).stdout }, "events of")
	w.goOn(t, to, events)

	after := to.sums(t)
	back := newSite(t, testdb.Database{Engine: testdb.SQLite})
	timed(t, "move back to SQLite", events, func() string {
		return runLong(t, to.args("move", "--to", back.dir)...).fine(t).stdout
	}, "moved and checked", "signet start --data-dir "+back.dir, back.path("master.key"))
	wantSums(t, to.sums(t), after)
	wantSums(t, back.sums(t), after)
	private(t, back.dir)
	w.goOn(t, back, to.events(t))
	timed(t, "rebuild --check on SQLite", events,
		func() string { return runLong(t, back.args("rebuild", "--check")...).fine(t).stdout }, "events of")
}

// timed runs a command, says how long it took, and checks what it said.
func timed(t *testing.T, what string, events int, command func() string, says ...string) {
	t.Helper()
	began := time.Now()
	said := command()
	t.Logf("%s: %v, %.0f events/s", what, time.Since(began).Round(time.Millisecond),
		float64(events)/time.Since(began).Seconds())
	for _, s := range says {
		if !strings.Contains(said, s) {
			t.Errorf("%s does not say %q:\n%s", what, s, said)
		}
	}
}

// runLong is run for a command that may take its time.
func runLong(t *testing.T, args ...string) result {
	t.Helper()
	p := launch(t, program(nil, args...))
	<-p.done
	return result{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// inhabitants are somebody and something of every kind, with what they hold to prove it.
type inhabitants struct {
	admin                   firstAdmin
	session                 string // of the first administrator
	org, owner, ownerName   string
	token                   string // a personal access token
	codes                   []string
	idp, app, clientSecret  string
	removed, removedSession string
}

func newInhabitants(t *testing.T, s *site, p *process) *inhabitants {
	t.Helper()
	w := &inhabitants{admin: s.admin(t)}
	c := newClient(t, p, w.admin.Token)
	w.session = c.signIn(t, w.admin.LoginName, w.admin.Password)
	made := c.want(t, 200, "POST", "/v1/orgs/_setup", newOrg("Moving house", "a password"))
	w.org, w.owner = at[string](t, made, "orgId"), at[string](t, made, "userId")
	w.ownerName = "owner@" + at[string](t, c.want(t, 200, "GET", "/v1/orgs/"+w.org, nil), "org", "primaryDomain")
	owner := c.with(c.signIn(t, w.ownerName, "a password"))
	w.token = at[string](t, owner.want(t, 200, "POST", "/v1/users/me/tokens", object{"name": "a token"}), "token")
	w.idp = at[string](t, owner.want(t, 200, "POST", "/v1/idps/jwt", newProvider("Portal")), "idpId")
	owner.want(t, 200, "POST", "/v1/idps/oidc",
		object{"name": "Elsewhere", "issuer": "https://idp.example.com", "clientId": "signet",
			"clientSecret": "keep this", "scopes": []string{"openid"}})
	app := owner.want(t, 200, "POST", "/v1/apps", object{
		"name":         "Shop",
		"type":         "APPLICATION_TYPE_WEB",
		"authMethod":   "AUTH_METHOD_CLIENT_SECRET_BASIC",
		"redirectUris": []string{"https://shop.example/cb"},
	})
	w.app, w.clientSecret = at[string](t, app, "appId"), at[string](t, app, "clientSecret")
	begun := time.Now()
	totp := at[string](t, owner.want(t, 200, "POST", "/v1/users/me/factors/totp/_start", object{}), "secret")
	owner.want(t, 200, "POST", "/v1/users/me/factors/totp/_confirm",
		object{"code": factortest.Code(totp, begun), "name": "Phone"})
	for _, code := range at[[]any](t, owner.want(t, 200, "POST", "/v1/users/me/recovery_codes", object{}), "codes") {
		w.codes = append(w.codes, code.(string))
	}
	gone := owner.want(t, 200, "POST", "/v1/users/human", object{"userName": "gone", "password": "a password",
		"email": object{"email": "gone@example.org"}, "profile": object{"firstName": "Gone", "lastName": "Person"}})
	w.removed = at[string](t, gone, "userId")
	w.removedSession = owner.signIn(t, "gone@"+strings.TrimPrefix(w.ownerName, "owner@"), "a password")
	owner.want(t, 200, "DELETE", "/v1/users/"+w.removed, nil)
	return w
}

// goOn starts a server where everything has been moved to, and uses all that was given out before. The log has so many
// events.
func (w *inhabitants) goOn(t *testing.T, s *site, events int) {
	t.Helper()
	if n := s.events(t); n != events {
		t.Errorf("%d events, want %d", n, events)
	}
	p := s.start(t)
	c := newClient(t, p, w.session)
	c.want(t, 200, "GET", "/v1/users/me", nil)
	c.with(w.admin.Token).want(t, 200, "GET", "/v1/orgs/"+w.org, nil)
	c.with(w.removedSession).want(t, 401, "GET", "/v1/users/me", nil)
	owner := c.with(w.token)
	owner.want(t, 200, "GET", "/v1/idps/"+w.idp, nil)
	owner.want(t, 404, "GET", "/v1/users/"+w.removed, nil)

	in := c.with(c.signIn(t, w.ownerName, "a password"))
	in.want(t, 403, "GET", "/v1/users/me", nil)
	in.want(t, 200, "POST", "/v1/sessions/_prove", object{"recoveryCode": w.codes[0]})
	w.codes = w.codes[1:]
	sequence := at[string](t, in.want(t, 200, "GET", "/v1/users/me", nil), "user", "details", "sequence")
	changed := at[string](t, in.want(t, 200, "PUT", "/v1/users/me/profile", profile("after "+sequence)),
		"details", "sequence")
	if len(changed) < len(sequence) || changed == sequence {
		t.Errorf("sequence %s follows %s", changed, sequence)
	}

	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/oauth/introspect",
		strings.NewReader(url.Values{"token": {"nonsense"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(w.app, w.clientSecret)
	resp, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer object
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 ||
		answer["active"] != false {
		t.Errorf("the application's secret: %d %v %v", resp.StatusCode, answer, err)
	}
	p.stop(t)
	var count, last, head int
	db := s.open(t)
	defer db.Close()
	if err := db.QueryRow("SELECT count(*), max(position), (SELECT position FROM log_head) FROM events").Scan(&count,
		&last, &head); err != nil {
		t.Fatal(err)
	}
	if count <= events || last != count || head != count {
		t.Errorf("%d events, the last at %d, %d given out", count, last, head)
	}
}

// store opens the data of a stopped server.
func (s *site) store(t *testing.T) (*store.Store, secret.MasterKey) {
	t.Helper()
	master, err := secret.ParseMasterKey(readFile(t, s.path("master.key")))
	if err != nil {
		t.Fatal(err)
	}
	database := s.URL
	if s.Engine == testdb.SQLite {
		database = s.path("signet.db")
	}
	st, _, err := store.Open(t.Context(),
		store.Options{Database: database, Kinds: model.Kinds, Master: master,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return st, master
}

// fill adds events to the log of a stopped server: users, and changes of them.
func (s *site) fill(t *testing.T, org string, events int) {
	t.Helper()
	const each, hands = 10, 64
	st, _ := s.store(t)
	defer st.Close()
	began := time.Now()
	todo := make(chan [2]int, 1+events/each)
	for i := 0; i*each < events; i++ {
		todo <- [2]int{i, min(each, events-i*each)}
	}
	close(todo)
	var all sync.WaitGroup
	for range hands {
		all.Go(func() {
			for next := range todo {
				if err := addHistory(st, org, fmt.Sprintf("history%06d", next[0]), next[1]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("making %d events: %v", events, time.Since(began).Round(time.Millisecond))
}

// addHistory adds a person with so many events.
func addHistory(st event.Store, org, name string, events int) error {
	id := user.Kind.NewID()
	return st.Do(context.Background(), event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: "req_" + name},
		Write:  []event.Ref{user.Kind.Ref(id)}, Claims: []event.Claim{user.NameClaim(org, syntax.NameKey(name))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, id, org, &user.NewHuman{
				UserName:      name,
				Email:         name + "@example.org",
				EmailVerified: true,
				Profile: user.Profile{FirstName: "Zoë", LastName: "Żółć", DisplayName: "Zoë " + name,
					PreferredLanguage: "pl"},
			})
			for i := 1; i < events && err == nil; i++ {
				nick := fmt.Sprint("nick ", i)
				err = u.Append(user.ProfileChanged{Personal: user.ProfileFacts{NickName: &nick}})
			}
			return err
		},
	})
}

// sums reads every row of every table. What two databases with the same rows have in common is, for each table, the
// number of rows and the sum of their hashes; whatever order they come in.
func (s *site) sums(t *testing.T) map[string]string {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	list := "SELECT name FROM sqlite_schema WHERE type = 'table'"
	if s.Engine == testdb.Postgres {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	rows, err := db.Query(list)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		tables = append(tables, "")
		if err := rows.Scan(&tables[len(tables)-1]); err != nil {
			t.Fatal(err)
		}
	}
	sums := map[string]string{}
	for _, table := range tables {
		sums[table] = sumOf(t, db, table)
	}
	return sums
}

func sumOf(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	query := "SELECT * FROM " + table
	if table == "meta" {
		query += " WHERE name <> 'moved_to'" // about the one database
	}
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range dest {
		dest[i] = &values[i]
	}
	count, sum := 0, uint64(0)
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		digest := sha256.New()
		for i, v := range values {
			fmt.Fprintf(digest, "%s=%T %q;", columns[i], v, fmt.Sprint(v))
		}
		count++
		var number uint64
		for _, b := range digest.Sum(nil)[:8] {
			number = number<<8 | uint64(b)
		}
		sum += number
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d rows, %x", count, sum)
}

func wantSums(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the tables are %q, and should be %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for table, sum := range want {
		if got[table] != sum {
			t.Errorf("%s: %s, want %s", table, got[table], sum)
		}
	}
}

// TestMoveCutOff kills moves at any moment. Whatever is left is refused, or is all of it, or nothing; and a move starts
// anew on it.
func TestMoveCutOff(t *testing.T) {
	t.Parallel()
	sqlite := newSite(t, testdb.New(t, testdb.SQLite))
	sqlite.start(t).stop(t)
	sqlite.fill(t, sqlite.admin(t).OrgID, 3_000)
	postgres := &site{Database: testdb.New(t, testdb.Postgres), dir: sqlite.dir}
	runLong(t, sqlite.args("move", "--to", postgres.URL)...).fine(t)
	sqlite.run(t, "move", "--undo").fine(t) // to move it once more
	want := sqlite.sums(t)
	for _, from := range []*site{sqlite, postgres} {
		var to *site
		target := func() string { return to.URL }
		if from == sqlite {
			to = &site{Database: testdb.New(t, testdb.Postgres), dir: from.dir}
		} else {
			to = newSite(t, testdb.Database{Engine: testdb.SQLite})
			target = func() string { return to.dir }
		}
		halves, whole := 0, false
		for round := 0; round < 30 && halves < 3 && !whole; round++ {
			p := launch(t, program(nil, from.args("move", "--to", target())...))
			pull := time.NewTimer(time.Duration(50+rand.IntN(100*(1+round))) * time.Millisecond)
			select {
			case <-pull.C:
			case <-p.done:
			}
			p.kill(t)
			if whole = p.cmd.ProcessState.Success(); whole {
				break
			}
			switch r := run(t, nil, to.args("rebuild", "--check")...); {
			case strings.Contains(r.stderr, "a move into this database was not finished"):
				halves++
				started := to.launch(t, nil)
				result{started.exit(t), started.stdout.String(), started.stderr.String()}.refused(t,
					"run signet move again, which starts over")
			case strings.Contains(r.stderr, "there is no installation here yet"),
				strings.Contains(r.stderr, "no such file or directory"),
				strings.Contains(r.stderr, "the database was cut off while it was made"):
			case r.code == 0: // it was killed on its last steps
				whole = true
			default:
				t.Fatalf("it was killed, and now:\n%s%s", r.stdout, r.stderr)
			}
		}
		t.Logf("%d times half of a move from %s was left", halves, from.Engine)
		if !whole {
			again := runLong(t, from.args("move", "--to", target())...)
			// PostgreSQL has not noticed yet that nobody is there any more
			for strings.Contains(again.stderr, "try again when that is done") {
				again = runLong(t, from.args("move", "--to", target())...)
			}
			again.fine(t)
		}
		wantSums(t, to.sums(t), want)
		wantSums(t, from.sums(t), want)
	}
}

// private checks that a data directory is for its owner alone.
func private(t *testing.T, dir string) {
	t.Helper()
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "master.key": 0o600, "signet.db": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%q in the data directory: %v, %v", name, info, err)
		}
	}
}

// TestMoveMistakes: what an operator can get wrong is said in one line, and changes nothing.
func TestMoveMistakes(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.New(t, testdb.SQLite))
	target := testdb.New(t, testdb.Postgres)
	s.run(t, "move", "--to", target.URL).refused(t, "no such file or directory")
	p := s.start(t)
	s.run(t, "move", "--to", target.URL).refused(t, "in use by another signet process")
	p.stop(t)
	before := s.sums(t)
	s.run(t, "move").refused(t, "name the target with --to")
	s.run(t, "move", "--undo").refused(t, "nothing was moved from here")
	s.run(t, "move", "--undo", "--to", target.URL).refused(t, "--to and --undo exclude each other")
	s.run(t, "move", "--to", "mysql://signet:geheim@host/db").refused(t,
		"--to must be a URL such as postgres://user@host:5432/name, or a directory")
	s.run(t, "move", "--to", "postgres://signet:geheim@localhost:1/db").refused(t,
		"PostgreSQL at localhost:1 does not answer: connecting to PostgreSQL failed: connection refused: check --to, and that it is running")
	nowhere := address(t, target.URL)
	nowhere.Path = "/nodb"
	s.run(t, "move", "--to", nowhere.String()).refused(t,
		`has no database "nodb": create it (CREATE DATABASE "nodb"), or correct --to`)
	s.run(t, "move", "--to", s.dir).refused(t, "the target already contains data")
	s.run(t, "move", "--to", s.path("master.key")).refused(t, "not a directory")
	damaged := t.TempDir()
	writeFile(t, filepath.Join(damaged, "signet.db"), strings.Repeat("no database ", 100), 0o600)
	s.run(t, "move", "--to", damaged).refused(t, "reading the target: file is not a database")
	run(t, nil, newSite(t, target).args("move", "--to", damaged)...).refused(t,
		"give the master key with --master-key-file or SIGNET_MASTER_KEY, or the directory that holds it with --data-dir")

	s.run(t, "move", "--to", target.URL).fine(t)
	s.run(t, "move", "--to", target.URL).refused(t, "this installation was moved to PostgreSQL at")
	s.run(t, "move", "--undo").fine(t)
	s.run(t, "move", "--to", target.URL).refused(t, "the target already contains data and was not changed")
	wantSums(t, s.sums(t), before)
	moved := &site{Database: target, dir: s.dir}
	wantSums(t, moved.sums(t), before)

	// On PostgreSQL the lock of a directory says nothing about other nodes.
	node := moved.start(t)
	elsewhere := newSite(t, target)
	key := strings.TrimSpace(string(readFile(t, s.path("master.key"))))
	back := filepath.Join(t.TempDir(), "back")
	run(t, []string{"SIGNET_MASTER_KEY=" + key}, elsewhere.args("move", "--to", back)...).refused(t,
		"other signet nodes are running on this database")
	node.stop(t)

	// A key that is there already is not written over.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	text := string(secret.NewMasterKey().Text())
	writeFile(t, filepath.Join(other, "master.key"), text, 0o600)
	run(t, []string{"SIGNET_MASTER_KEY=" + key}, elsewhere.args("move", "--to", other)...).refused(t,
		"is a different master key than that of the data")
	if now := string(readFile(t, filepath.Join(other, "master.key"))); now != text {
		t.Error("the key was written over")
	}
	run(t, []string{"SIGNET_MASTER_KEY=" + key}, elsewhere.args("move", "--to", back)...).fine(t)
	if now := strings.TrimSpace(string(readFile(t, filepath.Join(back, "master.key")))); now != key {
		t.Error("the key was not put beside the data")
	}
	private(t, back)
	if _, err := os.Stat(elsewhere.dir); err == nil {
		t.Error("a directory was made")
	}

	// Back into the directory that the nodes have used all along, once the old database is out of the way.
	moved.run(t, "move", "--undo").fine(t)
	moved.run(t, "move", "--to", s.dir).refused(t, "the target already contains data")
	if err := os.Rename(s.path("signet.db"), s.path("signet.db.before")); err != nil {
		t.Fatal(err)
	}
	moved.run(t, "move", "--to", s.dir).fine(t)
	s.start(t).stop(t)
}

// TestAfterAMoveTheOldDatabaseSaysWhereItWent: whoever forgets the new address must not go on with the old data without
// noticing.
func TestAfterAMoveTheOldDatabaseSaysWhereItWent(t *testing.T) {
	t.Parallel()
	old := newSite(t, testdb.New(t, testdb.SQLite))
	old.start(t).stop(t)
	next := &site{Database: testdb.New(t, testdb.Postgres), dir: old.dir}
	back := newSite(t, testdb.Database{Engine: testdb.SQLite})
	address, err := url.Parse(next.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range []struct {
		from, to      *site
		target, where string
	}{
		{old, next, next.URL, "this installation was moved to PostgreSQL at "},
		{next, back, back.dir, "this installation was moved to " + back.path("signet.db")},
	} {
		p := move.from.start(t)
		p.stop(t)
		move.from.run(t, "move", "--to", move.target).fine(t)
		commands := [][]string{{"start", "--listen", "localhost:0"}, {"rebuild"}, {"admin", "recover"},
			{"keys", "rotate"}, {"master-key", "rotate"}, {"move", "--to", t.TempDir()}}
		if move.from.Engine == testdb.SQLite {
			commands = append(commands, []string{"backup", filepath.Join(t.TempDir(), "backup.db")})
		}
		before := move.from.events(t)
		for _, command := range commands {
			r := move.from.run(t, command...)
			r.refused(t, move.where)
			if secret, _ := address.User.Password(); secret != "" && strings.Contains(r.stderr, secret) {
				t.Errorf("signet %v gives the password away", command)
			}
			if !strings.Contains(r.stderr, "signet move --undo") {
				t.Errorf("signet %v does not say how to go back: %s", command, r.stderr)
			}
		}
		if after := move.from.events(t); after != before {
			t.Errorf("%d events were added", after-before)
		}
		move.from.run(t, "rebuild", "--check").fine(t) // which only reads
		move.to.start(t).stop(t)
	}
	old.run(t, "move", "--undo").fine(t)
	old.start(t).stop(t)
}
