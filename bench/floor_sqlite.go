package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// state is a user's row, and logged a row of the log, as the server has written them. The floors write copies, so that
// what goes to the disk has the same size.
type state struct {
	id, org                    string
	sequence, created, changed int64
	hash                       []byte
	key                        string
	shape                      int64
	doc                        string
	lookup                     [9]string // the lookup columns
}

type logged struct {
	org, kind, payload string
	sealed             []byte
	key                string
	prev               []byte
	actor, request     string
	time               int64
}

func (s *state) columns() []any {
	all := []any{&s.id, &s.org, &s.sequence, &s.created, &s.changed, &s.hash, &s.key, &s.shape, &s.doc}
	for i := range s.lookup {
		all = append(all, &s.lookup[i])
	}
	return all
}

func (e *logged) columns() []any {
	return []any{&e.org, &e.kind, &e.payload, &e.sealed, &e.key, &e.prev, &e.actor, &e.request, &e.time}
}

// The statements that both floors share, but for the way parameters are written.
const (
	selectState = "SELECT " + stateColumns + " FROM users WHERE id = "
	selectEvent = "SELECT org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time FROM events " +
		"WHERE type = 'user.profile_changed.v1' ORDER BY position DESC LIMIT 1"
	eventColumns = "position, object_id, sequence, org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time"
	stateColumns = "id, org_id, sequence, created, changed, hash, key_id, shape, doc, standing, verified_email, state, type, user_name, name, email, email_order, email_word"
	nameColumn   = 5 // of the lookup columns: changes with every new display name
)

// placeholders gives $1, $2, … for columns; both engines take them.
func placeholders(columns string) string {
	marks := strings.Split(columns, ", ")
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(marks, ", ")
}

// rawSQLite is the floor of operations that write on SQLite: one writer that takes whatever has queued up, and for each
// reads the state row, inserts the event and updates the state row, by prepared statements in one transaction that is
// durable before anybody is answered.
type rawSQLite struct {
	db     *sql.DB
	conn   *sql.Conn
	states []state
	event  logged
	queue  chan *rawWrite
	ended  chan struct{}

	begin, commit, load, insert, update, head *sql.Stmt
	position                                  int64
}

type rawWrite struct {
	state *state
	done  chan error
}

const rawBatch = 128

// openRawSQLite takes rows of people out of the server's database into the floor's.
func openRawSQLite(ctx context.Context, from, into string, people []person) (_ *rawSQLite, err error) {
	source, err := sql.Open("sqlite", sqliteAddress(from, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	defer source.Close()
	f := &rawSQLite{states: make([]state, len(people)), queue: make(chan *rawWrite, rawBatch), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			close(f.ended)
			err = errors.Join(err, f.close())
		}
	}()
	if err := source.QueryRowContext(ctx, selectEvent).Scan(f.event.columns()...); err != nil {
		return nil, err
	}
	for i := range people {
		if err := source.QueryRowContext(ctx, selectState+"?", people[i].user).Scan(f.states[i].columns()...); err != nil {
			return nil, err
		}
	}
	f.db, err = sql.Open("sqlite", sqliteAddress(into, "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16000)"))
	if err != nil {
		return nil, err
	}
	f.db.SetMaxOpenConns(1)
	if f.conn, err = f.db.Conn(ctx); err != nil {
		return nil, err
	}
	var mode string
	var durable int
	if err := f.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return nil, err
	}
	if err := f.conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&durable); err != nil {
		return nil, err
	}
	if mode != "wal" || durable != 2 {
		return nil, fmt.Errorf("SQLite runs with journal_mode %s and synchronous %d", mode, durable)
	}
	for i := range f.states {
		if _, err := f.conn.ExecContext(ctx, "INSERT INTO users ("+stateColumns+") VALUES ("+placeholders(stateColumns)+")", values(f.states[i].columns())...); err != nil {
			return nil, err
		}
	}
	if err := f.conn.QueryRowContext(ctx, "SELECT position FROM log_head WHERE id = 1").Scan(&f.position); err != nil {
		return nil, err
	}
	for text, statement := range map[string]**sql.Stmt{
		"BEGIN IMMEDIATE": &f.begin, "COMMIT": &f.commit, selectState + "?": &f.load,
		"INSERT INTO events (" + eventColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)": &f.insert,
		"UPDATE users SET sequence = ?, changed = ?, hash = ?, doc = ?, name = ? WHERE id = ?":  &f.update,
		"UPDATE log_head SET position = ? WHERE id = 1":                                         &f.head,
	} {
		if *statement, err = f.conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	go f.write()
	return f, nil
}

// anotherName gives a name of the same length that ends in a number.
func anotherName(name string, n int64) string {
	digits := strconv.FormatInt(n, 10)
	return name[:max(0, len(name)-len(digits))] + digits
}

func sqliteAddress(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// values takes what pointers to columns point at.
func values(columns []any) []any {
	out := make([]any, len(columns))
	for i, c := range columns {
		switch c := c.(type) {
		case *string:
			out[i] = *c
		case *int64:
			out[i] = *c
		case *[]byte:
			out[i] = *c
		}
	}
	return out
}

func (f *rawSQLite) close() error {
	close(f.queue)
	<-f.ended
	var all []error
	if f.conn != nil {
		all = append(all, f.conn.Close())
	}
	if f.db != nil {
		all = append(all, f.db.Close())
	}
	return errors.Join(all...)
}

func (f *rawSQLite) run(ctx context.Context, callers int, warm, measured time.Duration) (sample, error) {
	var calls []func() error
	for i := range callers {
		w := &rawWrite{state: &f.states[i], done: make(chan error, 1)}
		calls = append(calls, func() error {
			f.queue <- w
			return <-w.done
		})
	}
	return drive(ctx, calls, warm, measured, &meter{})
}

// write is the one writer.
func (f *rawSQLite) write() {
	defer close(f.ended)
	batch := make([]*rawWrite, 0, rawBatch)
	for first := range f.queue {
		batch = append(batch[:0], first)
	more:
		for len(batch) < rawBatch {
			select {
			case w, open := <-f.queue:
				if !open {
					break more
				}
				batch = append(batch, w)
			default:
				break more
			}
		}
		err := f.transaction(batch)
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (f *rawSQLite) transaction(batch []*rawWrite) error {
	if _, err := f.begin.Exec(); err != nil {
		return err
	}
	for _, w := range batch {
		var s state
		if err := f.load.QueryRow(w.state.id).Scan(s.columns()...); err != nil {
			return err
		}
		f.position++
		s.sequence++
		s.changed++
		e := &f.event
		if _, err := f.insert.Exec(f.position, s.id, s.sequence, e.org, e.kind, e.payload, e.sealed, e.key, e.prev, e.actor, e.request, s.changed); err != nil {
			return err
		}
		if _, err := f.update.Exec(s.sequence, s.changed, s.hash, s.doc, anotherName(s.lookup[nameColumn], s.sequence), s.id); err != nil {
			return err
		}
	}
	if _, err := f.head.Exec(f.position); err != nil {
		return err
	}
	_, err := f.commit.Exec()
	return err
}
