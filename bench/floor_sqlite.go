package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// rawSQLite is the floor of operations that write on SQLite: one writer that takes whatever has queued up, and for each
// reads the state row, inserts the event and updates the state row, by prepared statements in one transaction that is
// durable before anybody is answered.
type rawSQLite struct {
	db    *sql.DB
	conn  *sql.Conn
	event string // the body of every event
	queue chan *rawWrite
	ended chan struct{}

	begin, commit, load, insert, update *sql.Stmt
	position                            int64
}

type rawWrite struct {
	id   string
	done chan error
}

const rawBatch = 128

// openRawSQLite makes the floor's file, with a row for each caller.
func openRawSQLite(ctx context.Context, file string, callers int) (_ *rawSQLite, err error) {
	f := &rawSQLite{event: floorBody(floorEventBytes), queue: make(chan *rawWrite, rawBatch),
		ended: make(chan struct{})}
	defer func() {
		if err != nil {
			close(f.ended)
			err = errors.Join(err, f.close())
		}
	}()
	f.db, err = sql.Open("sqlite", sqliteAddress(file, "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16000)"))
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
	for i, table := range floorTables {
		if i == 0 {
			table = fmt.Sprintf(table, "INTEGER")
		}
		if _, err := f.conn.ExecContext(ctx, table); err != nil {
			return nil, err
		}
	}
	for i := range callers {
		if _, err := f.conn.ExecContext(ctx, floorAdd, floorID(i), floorName(1),
			floorBody(floorStateBytes)); err != nil {
			return nil, err
		}
	}
	for text, statement := range map[string]**sql.Stmt{
		"BEGIN IMMEDIATE": &f.begin, "COMMIT": &f.commit, floorLoad: &f.load, fmt.Sprintf(floorInsert, "$5"): &f.insert,
		floorUpdate: &f.update,
	} {
		if *statement, err = f.conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	go f.write()
	return f, nil
}

func sqliteAddress(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
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
		w := &rawWrite{id: floorID(i), done: make(chan error, 1)}
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
		var sequence int64
		var name, body string
		if err := f.load.QueryRow(w.id).Scan(&sequence, &name, &body); err != nil {
			return err
		}
		f.position++
		sequence++
		now := time.Now().UnixMicro()
		if _, err := f.insert.Exec(w.id, sequence, now, f.event, f.position); err != nil {
			return err
		}
		if _, err := f.update.Exec(w.id, sequence, now, floorName(sequence), body); err != nil {
			return err
		}
	}
	_, err := f.commit.Exec()
	return err
}
