package scrubvfs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// workload is a long row of random transactions, the same for the same seed.
type workload struct {
	Seed, Transactions, PageSize int
	Path, VFS                    string
}

const workloadVariable = "SIGNET_TEST_SCRUBVFS_WORKLOAD"

// TestMain is also the process that is killed: it runs a workload where it finds one in its environment.
func TestMain(m *testing.M) {
	if path, child := os.LookupEnv(commitsVariable); child {
		fmt.Fprintln(os.Stderr, commits(path))
		os.Exit(1)
	}
	text, child := os.LookupEnv(workloadVariable)
	if !child {
		os.Exit(m.Run())
	}
	var w workload
	_, err := fmt.Sscanf(text, "%d %d %d %q %q", &w.Seed, &w.Transactions, &w.PageSize, &w.Path, &w.VFS)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// strayLine is how a process says how much it found in the file that should be gone.
const strayLine = "stray:"

// killed runs the workload in processes of their own, each but the last killed in the midst of it. After each kill the
// file is in order. It adds up what the processes found in the file that should be gone.
func (w workload) killed(t *testing.T, kills int) (stray int) {
	t.Helper()
	const linesPerTransaction = 16
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(),
			workloadVariable+"="+fmt.Sprintf("%d %d %d %q %q", w.Seed, w.Transactions, w.PageSize, w.Path, w.VFS))
		said := &bytes.Buffer{}
		cmd.Stderr = said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := -1
		if kills > 0 {
			kill = rand.IntN(2 * linesPerTransaction * w.Transactions / kills)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if text, ok := strings.CutPrefix(lines.Text(), strayLine+" "); ok {
				found, _ := strconv.Atoi(text)
				stray += found
			}
			if n == kill {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		err = cmd.Wait()
		if err == nil {
			return stray
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
			t.Fatalf("%v: %s", err, said)
		}
		kills--
		w.copied(t).check(t)
	}
}

// copied is what a killed process has left, with SQLite's own file system.
func (w workload) copied(t *testing.T) workload {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(w.Path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue // killed before it was made
		}
		if err == nil {
			err = os.WriteFile(to+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Path, w.VFS = to, ""
	return w
}

func (w workload) check(t *testing.T) {
	t.Helper()
	db, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("%s, %v", verdict, err)
	}
}

// open gives a database with little room in memory, so that SQLite writes pages before a commit and moves them often.
func (w workload) open() (*sql.DB, error) {
	q := url.Values{"_pragma": {fmt.Sprintf("page_size(%d)", w.PageSize), "journal_mode(WAL)", "synchronous(OFF)",
		"secure_delete(1)", "wal_autocheckpoint(100)", "cache_size(20)"}}
	if w.VFS != "" {
		q.Set("vfs", w.VFS)
	}
	db, err := sql.Open("sqlite", "file:"+w.Path+"?"+q.Encode())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

var tableNames = [...]string{"people", "log", "secrets"}

// run does what is not done yet. It says what it does as it goes, so that it can be killed at any point.
func (w workload) run() error {
	if w.VFS != "" {
		if _, err := VFS(); err != nil {
			return err
		}
	}
	db, err := w.open()
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, text := range []string{"CREATE TABLE IF NOT EXISTS people (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID",
		"CREATE INDEX IF NOT EXISTS people_name ON people (name, id)",
		"CREATE TABLE IF NOT EXISTS log (position INTEGER PRIMARY KEY, text TEXT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS secrets (key TEXT PRIMARY KEY, value BLOB NOT NULL)",
		"CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, done INTEGER NOT NULL)",
		"INSERT OR IGNORE INTO progress (id, done) VALUES (1, 0)"} {
		if err := do(conn, text); err != nil {
			return err
		}
	}
	var done int
	if err := conn.QueryRowContext(context.Background(), "SELECT done FROM progress").Scan(&done); err != nil {
		return err
	}
	for n := done + 1; n <= w.Transactions; n++ {
		r := rand.New(rand.NewPCG(uint64(w.Seed), uint64(n)))
		if err := errors.Join(w.transaction(conn, r, n), w.between(conn, r)); err != nil {
			return fmt.Errorf("transaction %d: %w", n, err)
		}
	}
	return w.scrub(conn)
}

func do(conn *sql.Conn, text string, args ...any) error {
	fmt.Println(text)
	_, err := conn.ExecContext(context.Background(), text, args...)
	return err
}

// transaction changes some rows, and may take it all back.
func (w workload) transaction(conn *sql.Conn, r *rand.Rand, n int) error {
	if err := do(conn, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	grows := n/30%2 == 0 // for a while most is written, then most is erased
	for k := range 1 + r.IntN(25) {
		change := func() error { return w.erase(conn, r) }
		if grows != (r.IntN(6) == 0) {
			change = func() error { return w.write(conn, r, w.mark(n, k)) }
		}
		if err := change(); err != nil {
			return err
		}
	}
	if r.IntN(8) == 0 {
		if err := errors.Join(do(conn, "ROLLBACK"), do(conn, "BEGIN IMMEDIATE")); err != nil {
			return err
		}
	}
	return errors.Join(do(conn, "UPDATE progress SET done = ?", n), do(conn, "COMMIT"))
}

// mark is a text by which one write is found wherever a part of it lies in the file.
func (w workload) mark(n, k int) string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d %d %d", w.Seed, n, k))
	return fmt.Sprintf("<%x>", digest[:12])
}

var marks = regexp.MustCompile("<[0-9a-f]{24}>")

// write adds or replaces rows: most of them small, some about as large as a page, some over many pages.
func (w workload) write(conn *sql.Conn, r *rand.Rand, mark string) error {
	text := strings.Repeat(mark, 1+r.IntN([...]int{1, 4, 20, 20, 40, 40, 40, 40, 200, 1000}[r.IntN(10)]))
	short := text[:min(len(text), 900)]
	switch who := r.IntN(people); r.IntN(8) {
	case 0, 1, 2:
		return do(conn, "INSERT OR REPLACE INTO people (id, name, doc) VALUES (?, ?, ?)", person(who), mark, text)
	case 3, 4:
		return do(conn, "UPDATE people SET doc = ? WHERE id >= ? AND id < ?", short, person(who), person(who+3))
	case 5:
		return do(conn, "UPDATE people SET name = ? WHERE id = ?", short, person(who))
	case 6:
		return do(conn, "INSERT INTO log (text) VALUES (?)", text)
	default:
		return do(conn, "INSERT INTO secrets (key, value) VALUES (?, ?)", mark, []byte(text))
	}
}

// erase deletes rows, or takes out what is in them.
func (w workload) erase(conn *sql.Conn, r *rand.Rand) error {
	switch who := r.IntN(people); r.IntN(5) {
	case 0, 1:
		return do(conn, "UPDATE people SET name = '', doc = '' WHERE id = ?", person(who))
	case 2:
		return do(conn, "DELETE FROM people WHERE id >= ? AND id < ?", person(who), person(who+5))
	case 3:
		return do(conn, "DELETE FROM log WHERE position % 20 = ?", r.IntN(20))
	default:
		return do(conn, "DELETE FROM secrets WHERE key IN (SELECT key FROM secrets ORDER BY key LIMIT ? OFFSET ?)",
			r.IntN(5), r.IntN(50))
	}
}

const people = 1000

func person(i int) string { return fmt.Sprintf("person-%04d", i) }

// between transactions the database is scrubbed at times, and rarely vacuumed.
func (w workload) between(conn *sql.Conn, r *rand.Rand) error {
	switch r.IntN(200) {
	case 0:
		return do(conn, "VACUUM")
	case 1, 2, 3:
		return w.scrub(conn)
	}
	return nil
}

// scrub does what the engine does after an erasure, and looks whether that has worked.
func (w workload) scrub(conn *sql.Conn) error {
	if err := errors.Join(do(conn, "PRAGMA wal_checkpoint(TRUNCATE)"), do(conn, "PRAGMA shrink_memory")); err != nil {
		return err
	}
	stray, err := w.stray(conn)
	fmt.Println(strayLine, stray)
	if err == nil && w.VFS != "" && stray > 0 {
		err = fmt.Errorf("%d writes that were undone are in the file", stray)
	}
	return err
}

// stray counts the marks in the file that are in no row.
func (w workload) stray(conn *sql.Conn) (int, error) {
	rows, err := content(conn)
	if err != nil {
		return 0, err
	}
	file, err := os.ReadFile(w.Path)
	if err != nil {
		return 0, err
	}
	inFile := found(file)
	live := found([]byte(strings.Join(rows, "\n")))
	for mark := range live {
		if !inFile[mark] {
			return 0, errors.New("the search does not find what is there")
		}
		delete(inFile, mark)
	}
	return len(inFile), nil
}

func found(text []byte) map[string]bool {
	all := map[string]bool{}
	for _, at := range marks.FindAllIndex(text, -1) {
		all[string(text[at[0]:at[1]])] = true
	}
	return all
}

// content is every row of every table.
func content(conn *sql.Conn) (all []string, err error) {
	for _, table := range tableNames {
		rows, err := conn.QueryContext(context.Background(), "SELECT * FROM "+table+" ORDER BY 1")
		if err != nil {
			return nil, err
		}
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		values, dest := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range dest {
			dest[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				return nil, err
			}
			all = append(all, fmt.Sprintf("%s %s", table, values))
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// finished gives what the workload has made of the database.
func (w workload) finished(t *testing.T) []string {
	t.Helper()
	w.check(t)
	db, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rows, err := content(conn)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The same transactions, in processes that are killed again and again, leave the same rows with this file system and
// without it, the file in order, and nothing in it that was deleted, replaced or rolled back.
func TestScaleARandomWorkloadEndsTheSame(t *testing.T) {
	vfs, err := VFS()
	if err != nil {
		t.Fatal(err)
	}
	transactions, kills := 120, 4
	if os.Getenv("SIGNET_SCALE") == "1" {
		transactions, kills = 5_000, 100
	}
	for _, size := range []int{512, 4096, 65536} {
		t.Run(fmt.Sprintf("pages of %d bytes", size), func(t *testing.T) {
			t.Parallel()
			w := workload{Seed: rand.IntN(1 << 30), Transactions: transactions, PageSize: size}
			own, scrubbed := w, w
			own.Path, scrubbed.Path, scrubbed.VFS = filepath.Join(t.TempDir(), "own.db"),
				filepath.Join(t.TempDir(), "scrubbed.db"), vfs
			stray := own.killed(t, kills)
			scrubbed.killed(t, kills) // fails where it finds anything
			rows, same := own.finished(t), scrubbed.finished(t)
			t.Logf("seed %d: %d rows; without it, %d writes that were gone were in the file", w.Seed, len(rows), stray)
			if !slices.Equal(rows, same) {
				t.Errorf("%d rows without it, %d with it, and they are not the same", len(rows), len(same))
			}
		})
	}
}
