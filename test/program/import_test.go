package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const bcryptHash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e" // of "correct horse"

// crowd is how many users the tests of imports bring: few, or as many as SIGNET_SCALE=1 asks for.
func crowd() int {
	if os.Getenv("SIGNET_SCALE") != "" {
		return 100_000
	}
	return 3000
}

// writeUsers writes a file with n users, whose names it gives. Every line in bad is followed by one that cannot be
// imported.
func writeUsers(t *testing.T, path string, n int, bad ...int) (names []string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(f)
	for i := range n {
		name := fmt.Sprintf("user%06d", i)
		names = append(names, name)
		fmt.Fprintf(out, `{"userName":%q,"profile":{"firstName":"First%d","lastName":"Last%d","preferredLanguage":"en"},"email":{"address":"user%d@mail%d.example.com","verified":true},"passwordHash":%q}`+"\n",
			name, i%977, i*7919%n, i, i%13, bcryptHash)
		if slices.Contains(bad, i) {
			fmt.Fprintf(out, `{"reference":"bad %d","userName":%q,"profile":{"firstName":"A","lastName":"B"},"email":{"address":"a@b.example"},"passwordHash":%q}`+"\n", i, strings.ToUpper(name), bcryptHash)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return names
}

// importing gives the command that imports a file through a server.
func (s *site) importing(t *testing.T, p *process, file string, more ...string) []string {
	t.Helper()
	token := writeFile(t, filepath.Join(t.TempDir(), "token"), s.admin(t).Token+"\n", 0o600)
	return append([]string{"import", "users", file, "--server", p.url, "--token-file", token}, more...)
}

// names lists all users whose name begins like those of writeUsers, in order.
func (s *site) names(t *testing.T, p *process) (names []string) {
	t.Helper()
	c := newClient(t, p, s.admin(t).Token)
	for token := ""; ; {
		page := c.want(t, 200, "GET", "/v1/users?userName=user&pageSize=500&pageToken="+url.QueryEscape(token), nil)
		for _, u := range at[[]any](t, page, "users") {
			names = append(names, u.(object)["userName"].(string))
		}
		if token = at[string](t, page, "nextPageToken"); token == "" {
			return names
		}
	}
}

// midst starts an import and returns in the midst of it, when the log has so many more events; done: the test has come to
// look only when all was imported.
func (s *site) midst(t *testing.T, more int, args []string) (importer *process, done bool) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	position := func() (at int) {
		testkit.Must(t, db.QueryRow("SELECT position FROM log_head").Scan(&at))
		return at
	}
	first := position()
	importer = launch(t, program(nil, args...))
	testkit.Await(t, "users are imported", func() bool {
		select {
		case <-importer.done:
			done = true
			t.Log("the import was done before it was cut off")
			return true
		default:
			return position() >= first+more
		}
	})
	return importer, done
}

func rejectedLines(t *testing.T, path string) (lines []object) {
	t.Helper()
	for text := range bytes.Lines(readFile(t, path)) {
		var line object
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestScaleImport brings a crowd in at once: how fast, and in how much memory.
func TestScaleImport(t *testing.T) {
	s := newSite(t, testdb.New(t, testdb.SQLite))
	n := crowd()
	p := s.start(t)
	file := filepath.Join(t.TempDir(), "users.ndjson")
	names := writeUsers(t, file, n)
	began := time.Now()
	importer := launch(t, program(nil, s.importing(t, p, file)...))
	select {
	case <-importer.done:
	case <-time.After(10 * time.Minute):
		t.Fatal("it does not end")
	}
	took := time.Since(began)
	if code := importer.exit(t); code != 0 ||
		importer.stdout.String() != fmt.Sprintf("%d users imported, 0 lines rejected\n", n) {
		t.Fatalf("exit code %d: %s%s", code, importer.stdout, importer.stderr)
	}
	resident := statusKiB(t, p, "VmRSS")
	t.Logf("%d users in %s: %.0f users/s, %.0f MiB resident", n, took.Round(time.Millisecond),
		float64(n)/took.Seconds(), float64(resident)/1024)
	if resident > 200<<10 {
		t.Errorf("the server takes %d KiB", resident)
	}
	if !slices.Equal(s.names(t, p), names) {
		t.Error("the users are not those of the file")
	}
	if _, err := os.Stat(file + ".rejected"); err == nil {
		t.Error("there is a file of rejected lines without any")
	}
	c := newClient(t, p, "")
	c.signIn(t, names[n/2]+"@"+strings.SplitN(s.admin(t).LoginName, "@", 2)[1], "correct horse")

	// What is imported is imported.
	events := s.events(t)
	again := run(t, nil, s.importing(t, p, file)...).fine(t)
	if !strings.Contains(again.stdout, "is already imported") || s.events(t) != events {
		t.Errorf("%d events, and it says %s", s.events(t)-events, again.stdout)
	}
	p.stop(t)
	s.run(t, "rebuild", "--check").fine(t)
}

// TestScaleImportThatIsCutOff kills the importer and the server in the midst of an import. Nobody is missing or twice.
func TestScaleImportThatIsCutOff(t *testing.T) {
	s := newSite(t, testdb.New(t, testdb.SQLite))
	n := crowd()
	p := s.start(t, "--listen", "localhost:"+testkit.FreePort(t))
	file := filepath.Join(t.TempDir(), "users.ndjson")
	bad := []int{0, 10, n / 3, n/2 - 1, n - 1}
	names := writeUsers(t, file, n, bad...)
	args := s.importing(t, p, file)
	importer, done := s.midst(t, n/5, args)
	for range 2 {
		if !done {
			importer.kill(t)
			importer, done = s.midst(t, n/5, args)
		}
	}
	p.kill(t)
	p = s.start(t, "--listen", p.listen)
	select {
	case <-importer.done:
	case <-time.After(10 * time.Minute):
		t.Fatal("it does not end")
	}
	if code := importer.exit(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if want := fmt.Sprintf("%d users imported, %d lines rejected\n", n, len(bad)); importer.stdout.String() != want {
		t.Errorf("it says %q, want %q", importer.stdout, want)
	}
	if got := s.names(t, p); !slices.Equal(got, names) {
		t.Errorf("%d users, want %d: the users are not those of the file", len(got), n)
	}
	rejected := rejectedLines(t, file+".rejected")
	for i, line := range rejected {
		if at := bad[min(i, len(bad)-1)] + 2 + i; line["line"] != float64(at) || line["reason"] != "USER_NAME_TAKEN" ||
			line["reference"] != fmt.Sprint("bad ", bad[i]) {
			t.Errorf("rejected line %d: %v, want line %d", i, line, at)
		}
	}
	if len(rejected) != len(bad) || bytes.Contains(readFile(t, file+".rejected"), []byte("$2b$")) {
		t.Errorf("rejected: %v", rejected)
	}
	if again := run(t, nil, args...); again.code != 1 || !strings.Contains(again.stdout, "is already imported") {
		t.Errorf("again: %+v", again)
	}
	p.stop(t)
	s.run(t, "rebuild", "--check").fine(t)
}

// TestImportAtOnceAfterTheFirstStart needs nothing but the data directory, and takes CSV from a pipe as well.
func TestImportAtOnceAfterTheFirstStart(t *testing.T) {
	s := embedded(t)
	s.start(t)
	dir := t.TempDir()
	const lines = "userName,profile.firstName,profile.lastName,email.address,passwordHash\r\n" +
		"user1,Ada,\"Lovelace, Countess\",ada@example.org," + bcryptHash + "\r\n" +
		"user2,,Hopper,grace@example.org,\r\n" +
		"user3,Mary,Jackson,mary@example.org,$2b$31" + "$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\r\n" +
		"user4,Joan\r\n"
	file := writeFile(t, filepath.Join(dir, "users.csv"), "\ufeff"+lines, 0o600)
	r := run(t, nil, "import", "users", file, "--data-dir", s.dir)
	if r.code != 1 || r.stdout != "1 users imported, 3 lines rejected\n" ||
		!strings.Contains(r.stderr, "3 lines were rejected: "+file+".rejected says why") {
		t.Errorf("%+v", r)
	}
	var got []string
	for _, line := range rejectedLines(t, file+".rejected") {
		field := ""
		if fields, has := line["fields"].([]any); has {
			field = fmt.Sprint(fields[0].(object)["field"])
		}
		got = append(got, fmt.Sprint(line["line"], line["reason"], field))
	}
	if want := []string{"3INVALID_REQUESTprofile.firstName", "4INVALID_REQUESTpasswordHash",
		"5LINE_INVALID"}; !slices.Equal(got, want) {
		t.Errorf("rejected %q, want %q", got, want)
	}
	for _, name := range []string{file + ".rejected", file + ".import"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 ||
			bytes.Contains(readFile(t, name), []byte("$2b$")) {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}

	cmd := program(nil, "import", "users", "-", "--format", "csv", "--data-dir", s.dir, "--rejected",
		filepath.Join(dir, "piped.rejected"))
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(lines, "user", "piped"),
		"pipedName", "userName"))
	piped := launch(t, cmd)
	if code := piped.exit(t); code != 1 || piped.stdout.String() != "1 users imported, 3 lines rejected\n" {
		t.Errorf("exit code %d: %s%s", code, piped.stdout, piped.stderr)
	}
}

// TestImportsThatAreRefused end at once with one line that says what to do, and change nothing.
func TestImportsThatAreRefused(t *testing.T) {
	s := embedded(t)
	p := s.start(t)
	dir := t.TempDir()
	file := func(name, text string) string { return writeFile(t, filepath.Join(dir, name), text, 0o600) }
	const one = `{"userName":"user1","profile":{"firstName":"A","lastName":"B"},"email":{"address":"a@b.example"}}` + "\n"
	users := file("users.ndjson", one)
	token, wrong := file("token", s.admin(t).Token), file("wrong", "signet_pat_wrong")
	changed := file("changed.ndjson", strings.Repeat("\n", 10))
	run(t, nil, s.importing(t, p, changed)...).fine(t)
	other := file("other.ndjson", "\n")
	run(t, nil, s.importing(t, p, other)...).fine(t)
	file("changed.ndjson", one)
	file("broken.ndjson", one)
	file("broken.ndjson.import", "{")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a token that does not count", []string{users, "--server", p.url, "--token-file", wrong}, "UNAUTHENTICATED"},
		{"an organization that is not there",
			[]string{users, "--server", p.url, "--token-file", token, "--org", "org_x"}, "ORGANIZATION_NOT_FOUND"},
		{"a server that is not there",
			[]string{users, "--server", "http://127.0.0.1:1", "--token-file", token, "--give-up", "500ms"},
			"the server has accepted nothing"},
		{"what is no address", []string{users, "--server", "localhost:8080", "--token-file", token},
			"--server must be a URL such as https://id.example.org"},
		{"a token for nobody in particular", []string{users, "--token-file", token},
			"--server and --token-file belong together"},
		{"a server that gets the token of another", []string{users, "--server", p.url},
			"--server and --token-file belong together"},
		{"no token", []string{users, "--server", p.url, "--token-file", filepath.Join(dir, "nothing")},
			"reading the token"},
		{"no first administrator", []string{users, "--data-dir", dir}, "give --server and --token-file"},
		{"no file", []string{filepath.Join(dir, "nothing.csv"), "--data-dir", s.dir}, "no such file"},
		{"a file of any kind", []string{file("users.txt", one), "--data-dir", s.dir}, "--format"},
		{"JSON that may be one list", []string{file("users.json", one), "--data-dir", s.dir}, "--format"},
		{"columns that are not known", []string{file("users.csv", "name\nada\n"), "--data-dir", s.dir},
			`column 1 "name" is unknown`},
		{"a file that has changed", []string{changed, "--server", p.url, "--token-file", token},
			"when its import started"},
		{"another organization", []string{other, "--server", p.url, "--token-file", token, "--org", "org_x"},
			"started with another --org"},
		{"rejected lines in place of the users", []string{users, "--data-dir", s.dir, "--rejected", users},
			"give another one as --rejected"},
		{"a state that is damaged", []string{filepath.Join(dir, "broken.ndjson"), "--data-dir", s.dir},
			"remove it to start over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.events(t)
			r := run(t, nil, append([]string{"import", "users"}, c.args...)...)
			last := strings.TrimSpace(r.stderr)
			last = last[strings.LastIndex(last, "\n")+1:]
			if r.code == 0 || !strings.HasPrefix(last, "signet: ") || !strings.Contains(last, c.says) ||
				strings.Contains(r.stderr, s.admin(t).Token) {
				t.Errorf("it should say %q, and said (%d) %s%s", c.says, r.code, r.stdout, r.stderr)
			}
			if s.events(t) != before {
				t.Error("something was imported")
			}
		})
	}
}

func TestAnImportIsTriedFirst(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		file := filepath.Join(t.TempDir(), "users.ndjson")
		writeUsers(t, file, 1500, 3, 1200)
		// The same name again, far behind the first: in another request.
		text := string(readFile(t, file))
		writeFile(t, file, text+strings.SplitAfter(text, "\n")[0], 0o600)
		before := s.events(t)
		got := run(t, nil, s.importing(t, p, file, "--dry-run")...)
		if got.code == 0 || !strings.Contains(got.stdout, "1500 users would be imported, 3 lines would be rejected") {
			t.Errorf("%d: %s%s", got.code, got.stdout, got.stderr)
		}
		if rejected := string(readFile(t, file+".dry-run.rejected")); strings.Count(rejected, "USER_NAME_TAKEN") != 3 {
			t.Error(rejected)
		}
		if s.events(t) != before || len(s.names(t, p)) != 0 {
			t.Error("somebody was imported")
		}
		if _, err := os.Stat(file + ".import"); err == nil {
			t.Error("progress was noted")
		}
		run(t, nil, s.importing(t, p, file)...)
		if n := len(s.names(t, p)); n != 1500 {
			t.Errorf("%d people were imported", n)
		}
	})
}
