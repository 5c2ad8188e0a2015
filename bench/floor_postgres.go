package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgres is the database server that is measured with.
type postgres struct {
	address    string
	facts      []string
	postmaster int
	made       []string // databases
}

// openPostgres looks at the server in SIGNET_TEST_POSTGRES. One that does not wait for its disk is refused.
func openPostgres(ctx context.Context) (*postgres, error) {
	p := &postgres{address: os.Getenv("SIGNET_TEST_POSTGRES")}
	if p.address == "" {
		return nil, errors.New("SIGNET_TEST_POSTGRES is not set: run this through scripts/with-postgres.sh, or with -engines sqlite")
	}
	conn, err := pgx.Connect(ctx, p.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	settings := map[string]string{}
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes",
		"shared_buffers"} {
		var value string
		if err := conn.QueryRow(ctx, "SHOW "+name).Scan(&value); err != nil {
			return nil, err
		}
		settings[name] = value
	}
	if settings["fsync"] != "on" || settings["synchronous_commit"] == "off" {
		return nil, fmt.Errorf("PostgreSQL runs with fsync %s and synchronous_commit %s: what it does not keep cannot be compared",
			settings["fsync"], settings["synchronous_commit"])
	}
	version, _, _ := strings.Cut(settings["server_version"], " ")
	p.facts = []string{fmt.Sprintf("PostgreSQL %s on the same machine, fsync %s, synchronous_commit %s, full_page_writes %s, shared_buffers %s",
		version, settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"],
		settings["shared_buffers"])}
	var pid int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return nil, err
	}
	p.postmaster = parentOfBackend(pid)
	return p, nil
}

// parentOfBackend finds the process that starts PostgreSQL's backends; 0 where it runs elsewhere.
func parentOfBackend(pid int) int {
	backend, err := readProcess(pid)
	if err != nil {
		return 0
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", backend.parent))
	if err != nil || !strings.HasPrefix(string(name), "post") {
		return 0
	}
	return backend.parent
}

// create makes an empty database and gives its address.
func (p *postgres) create(ctx context.Context) (string, error) {
	address, err := url.Parse(p.address)
	if err != nil {
		return "", errors.New("SIGNET_TEST_POSTGRES is not a URL") // err would quote it
	}
	name := "signet_bench_" + strings.ToLower(rand.Text())
	if err := p.exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	p.made = append(p.made, name)
	address.Path = "/" + name
	return address.String(), nil
}

func (p *postgres) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, p.address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// vacuum removes the dead rows that writes have left, as PostgreSQL does by itself after a minute or so: reads of the
// server and of their floor start from the same.
func vacuum(ctx context.Context, databases ...string) error {
	for _, address := range databases {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "VACUUM")
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// close drops the databases, also when the run was cut off.
func (p *postgres) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []error
	for _, name := range p.made {
		all = append(all, p.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
	}
	return errors.Join(all...)
}

// rawPostgres is the floor of operations that write on PostgreSQL: a connection and a transaction per caller, as
// pgbench would do it. BEGIN, the state row locked and read, the event inserted, the state row updated, COMMIT: five
// prepared statements, each a round trip. Positions come from a sequence, so nobody waits for anybody else.
type rawPostgres struct {
	conns      []*pgconn.PgConn
	event      string // the body of every event
	postmaster int
}

// openRawPostgres makes the floor's tables in a database of its own, with a row and a connection for each caller.
func openRawPostgres(ctx context.Context, database string, callers, postmaster int) (_ *rawPostgres, err error) {
	f := &rawPostgres{postmaster: postmaster, event: floorBody(floorEventBytes)}
	target, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer target.Close(ctx)
	if _, err := target.Exec(ctx, "CREATE SEQUENCE floor_position CACHE 1"); err != nil {
		return nil, err
	}
	for i, table := range floorTables {
		if i == 0 {
			table = fmt.Sprintf(table, "BIGINT")
		}
		if _, err := target.Exec(ctx, table); err != nil {
			return nil, err
		}
	}
	for i := range callers {
		if _, err := target.Exec(ctx, floorAdd, floorID(i), floorName(1), floorBody(floorStateBytes)); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	for range callers {
		conn, err := pgconn.Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		f.conns = append(f.conns, conn)
		for name, text := range map[string]string{
			"begin": "BEGIN", "commit": "COMMIT", "load": floorLoad + " FOR NO KEY UPDATE",
			"insert": fmt.Sprintf(floorInsert, "nextval('floor_position')"), "update": floorUpdate,
		} {
			if _, err := conn.Prepare(ctx, name, text, nil); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func (f *rawPostgres) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, conn := range f.conns {
		_ = conn.Close(ctx) // the database goes away with it
	}
	return nil
}

func (f *rawPostgres) run(ctx context.Context, callers int, warm, measured time.Duration) (sample, error) {
	var calls []func() error
	for i := range callers {
		conn := f.conns[i]
		if err := conn.Conn().SetDeadline(time.Now().Add(warm + measured + patience)); err != nil {
			return sample{}, err
		}
		calls = append(calls, f.caller(conn, floorID(i)))
	}
	return drive(ctx, calls, warm, measured, &meter{database: f.postmaster})
}

// caller writes to one state row on one connection. Parameters are sent as text.
func (f *rawPostgres) caller(conn *pgconn.PgConn, id string) func() error {
	ctx := context.Background() // the connection has a deadline; watching a context costs
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	load := [][]byte{[]byte(id)}
	insert := [][]byte{[]byte(id), nil, nil, []byte(f.event)}
	update := [][]byte{[]byte(id), nil, nil, nil, nil}
	return func() error {
		run := func(name string, args [][]byte) error {
			return conn.ExecPrepared(ctx, name, args, nil, nil).Read().Err
		}
		if err := run("begin", nil); err != nil {
			return err
		}
		found := conn.ExecPrepared(ctx, "load", load, nil, nil).Read()
		if found.Err != nil || len(found.Rows) != 1 {
			return errors.Join(errors.New("the row is gone"), found.Err)
		}
		row := found.Rows[0]
		sequence, err := strconv.ParseInt(string(row[0]), 10, 64)
		if err != nil {
			return err
		}
		next, now := number(sequence+1), number(time.Now().UnixMicro())
		insert[1], insert[2] = next, now
		update[1], update[2], update[3], update[4] = next, now, []byte(floorName(sequence+1)), row[2]
		if err := run("insert", insert); err != nil {
			return err
		}
		if err := run("update", update); err != nil {
			return err
		}
		return run("commit", nil)
	}
}
