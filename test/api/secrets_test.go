package api_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // to look at the tables without the store
	_ "modernc.org/sqlite"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
)

// noSecretsLeft searches everything that the server has written for every password and token of the run.
func (w *World) noSecretsLeft(t *testing.T) {
	places := map[string][]byte{"the log": []byte(w.log.String()), "the answers": w.answers.Bytes(),
		"the sealed parts of events": w.unsealed(t)}
	events := 0
	for table, rows := range w.dump(t) {
		places["the table "+table] = rows
		if table == "events" {
			events = bytes.Count(rows, []byte{'\n'})
		}
	}
	if events < 100 || places["the table users"] == nil || len(places["the sealed parts of events"]) < 10000 ||
		len(places["the log"]) < 10000 || len(places["the answers"]) < 10000 {
		t.Fatalf("there is too little to search: %d events, %d bytes of log, %d of answers", events,
			len(places["the log"]), len(places["the answers"]))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.secrets) < 50 {
		t.Fatalf("only %d secrets to look for", len(w.secrets))
	}
	var forms []string
	for s := range w.secrets {
		forms = append(forms, s, base64.StdEncoding.EncodeToString([]byte(s)), hex.EncodeToString([]byte(s)))
	}
	for place, content := range places {
		for _, at := range occurrences(content, forms) {
			t.Errorf("%s hold a secret: after …%q", place, content[max(0, at-80):at])
		}
	}
	// Hashes of passwords live in the table of secrets, sealed, and are nowhere to be read.
	for place, content := range places {
		if bytes.Contains(content, []byte("$argon2")) {
			t.Errorf("%s have a hash that can be read", place)
		}
	}
	// Neither where the database is, nor how the program failed, is anybody's business.
	for _, no := range []string{w.dir, "goroutine ", ".go:", "SELECT ", "postgres://"} {
		if bytes.Contains(places["the answers"], []byte(no)) {
			t.Errorf("an answer has %q in it", no)
		}
	}
	if said := engineNamed(places["the answers"]); said != nil {
		t.Errorf("an answer has %q in it", said)
	}
	if strings.Contains(w.log.String(), `"level":"ERROR"`) {
		t.Error("the log has errors")
	}
}

// engineNamed gives where the name of the engine stands as a word, perhaps with a version, or that of its library. The
// answers are full of random names and tokens, some of which have it in them by chance.
func engineNamed(answers []byte) []byte {
	const name, before, after = "sqlite", len("modernc.org/"), 4
	for at := 0; ; at += len(name) { // the name first: for all answers, the expression alone takes ten seconds
		found := bytes.Index(answers[at:], []byte(name))
		if found < 0 {
			return nil
		}
		at += found
		if near := answers[max(0, at-before):min(len(answers), at+len(name)+after)]; asWord.Match(near) {
			return near
		}
	}
}

var asWord = regexp.MustCompile(`(?:^|[^0-9A-Za-z_+-])sqlite[0-9A-Za-z]{0,3}(?:[^0-9A-Za-z_+/-]|$)|modernc\.org/sqlite`)

// unsealed opens the personal parts of all events, but of those who were erased: what is sealed is not gone.
func (w *World) unsealed(t *testing.T) []byte {
	var all bytes.Buffer
	for after := int64(0); ; {
		events, err := w.server.Store().Events(t.Context(), after, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return all.Bytes()
		}
		for _, e := range events {
			after = e.Position
			plain, _, err := event.Personal(t.Context(), w.server.Store(), w.server.Store().RootKey(), &e)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(plain)
		}
	}
}

// dump reads all tables, every column of them, without the help of the store.
func (w *World) dump(t *testing.T) map[string][]byte {
	driver, source := "pgx", w.db.URL
	list := "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	if w.db.Engine == testdb.SQLite {
		found, err := filepath.Glob(filepath.Join(w.dir, "*.db"))
		if err != nil || len(found) != 1 {
			t.Fatalf("the database is not in its directory: %v %v", found, err)
		}
		driver, source = "sqlite", "file:"+found[0]+"?mode=ro"
		list = "SELECT name FROM sqlite_master WHERE type = 'table'"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	tables := map[string][]byte{}
	for _, row := range query(ctx, t, db, list) {
		name := fmt.Sprint(row[0])
		var content bytes.Buffer
		for _, row := range query(ctx, t, db, `SELECT * FROM "`+name+`"`) {
			for _, value := range row {
				switch v := value.(type) {
				case []byte:
					content.Write(v)
				default:
					fmt.Fprint(&content, v)
				}
				content.WriteByte('\t')
			}
			content.WriteByte('\n')
		}
		tables[name] = content.Bytes()
	}
	return tables
}

func query(ctx context.Context, t *testing.T, db *sql.DB, text string) (all [][]any) {
	t.Helper()
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// rebuildsEqual folds the whole log again after all that has happened.
func (w *World) rebuildsEqual(t *testing.T) {
	report, err := w.server.Store().RebuildCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Differences) > 0 || report.Events < 100 {
		t.Errorf("%d events, %d objects; different: %q", report.Events, report.Objects, report.Differences)
	}
}

// occurrences finds where any of many words stands, in one pass. A short one, such as a code to copy, counts only where
// no letter or digit stands beside it: a part of a long random text, such as the identifier of a request, is like it by
// chance.
func occurrences(content []byte, words []string) (found []int) {
	const head, short = 8, 12
	byHead := map[[head]byte][]string{}
	for _, word := range words {
		byHead[[head]byte([]byte(word[:head]))] = append(byHead[[head]byte([]byte(word[:head]))], word)
	}
	for at := range max(0, len(content)-head+1) {
		for _, word := range byHead[[head]byte(content[at:])] {
			end := at + len(word)
			if !bytes.HasPrefix(content[at:], []byte(word)) ||
				len(word) < short && (at > 0 && inText(content[at-1]) || end < len(content) && inText(content[end])) {
				continue
			}
			found = append(found, at)
		}
	}
	return found
}

// inText tells whether a byte is a letter or a digit.
func inText(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}
