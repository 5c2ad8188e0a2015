package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// subject is the server on one engine, filled, with the floors it is compared with.
type subject struct {
	engine     string
	binary     string
	dir        string // the server's data directory
	database   string // postgres:// address; empty for SQLite
	server     *server
	world      *world
	floors     map[floorKind]floor
	postmaster int                             // process id; 0: unknown or none
	vacuum     func(ctx context.Context) error // clears away what writes have left; nil where nothing is left
	facts      []string
	cleanups   []func() error
}

// floor is what an operation is compared with: the same work with nothing around it.
type floor interface {
	run(ctx context.Context, callers int, warm, measured time.Duration) (sample, error)
	close() error
}

// openSubject gets an engine ready. What it returns is to be closed, also after an error.
func openSubject(ctx context.Context, p *plan, engine, binary, dir string) (*subject, error) {
	s := &subject{engine: engine, binary: binary, dir: filepath.Join(dir, "data"),
		floors: map[floorKind]floor{hashFloor: rawHash{}}}
	floorFile, floorDatabase := filepath.Join(dir, "floor.db"), ""
	if engine == "postgres" {
		pg, err := openPostgres(ctx)
		if err != nil {
			return s, err
		}
		s.cleanups = append(s.cleanups, pg.close)
		s.facts, s.postmaster = pg.facts, pg.postmaster
		if s.database, err = pg.create(ctx); err != nil {
			return s, err
		}
		if floorDatabase, err = pg.create(ctx); err != nil {
			return s, err
		}
		s.vacuum = func(ctx context.Context) error { return vacuum(ctx, s.database, floorDatabase) }
	}
	say("starting and filling %s", engine)
	var err error
	if s.server, err = start(ctx, binary, s.dir, s.database, p.flags(s.engine)...); err != nil {
		return s, err
	}
	admin, err := firstToken(s.dir)
	if err != nil {
		return s, err
	}
	if s.world, err = fill(ctx, s.server.address, admin, p.largest(), true); err != nil {
		return s, s.explain(err)
	}
	var write floor
	if engine == "postgres" {
		write, err = openRawPostgres(ctx, floorDatabase, p.largest(), s.postmaster)
	} else {
		write, err = openRawSQLite(ctx, floorFile, p.largest())
	}
	if err != nil {
		return s, fmt.Errorf("floor: %w", err)
	}
	s.floors[writeFloor] = write
	if s.floors[readFloor], err = openRawRead(ctx, floorDatabase, floorFile, s.postmaster); err != nil {
		return s, fmt.Errorf("floor: %w", err)
	}
	if !p.lists() {
		return s, nil
	}
	if err := s.server.stop(); err != nil {
		return s, err
	}
	say("adding %d users to %s", fewUsers+someUsers+manyUsers, engine)
	if err := s.seed(ctx); err != nil {
		return s, fmt.Errorf("adding users: %w", err)
	}
	s.server, err = start(ctx, binary, s.dir, s.database, p.flags(s.engine)...)
	return s, err
}

func (s *subject) close() error {
	var all []error
	if s.server != nil {
		all = append(all, s.server.stop())
	}
	for _, f := range s.floors {
		all = append(all, f.close())
	}
	for _, cleanup := range slices.Backward(s.cleanups) {
		all = append(all, cleanup())
	}
	return errors.Join(all...)
}

// explain adds the end of the server's log to an error.
func (s *subject) explain(err error) error {
	if err == nil || s.server == nil {
		return err
	}
	if log := s.server.tail(); log != "" {
		return fmt.Errorf("%w\nthe server's log ends with\n%s", err, log)
	}
	return err
}

func firstToken(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "first-admin.json"))
	if err != nil {
		return "", err
	}
	var first struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(raw, &first); err != nil {
		return "", err
	}
	return first.Token, nil
}

// patience is how long a call may take before a run gives up.
const patience = 60 * time.Second

// drive measures one operation.
func (s *subject) drive(ctx context.Context, op *operation, protocol string, callers int,
	warm, measured time.Duration) (sample, error) {
	deadline := time.Now().Add(warm + measured + patience)
	var calls []func() error
	var shared *grpcConn
	for i := range callers {
		if op.steps != nil {
			conn, err := dialREST(s.server.address, deadline)
			if err != nil {
				return sample{}, err
			}
			defer conn.close()
			step := op.steps(s.world, i)
			calls = append(calls, func() error { return step(conn) })
			continue
		}
		what := op.call(s.world, i)
		if protocol == "rest" {
			again, end, err := restCaller(s.server.address, what, deadline)
			if err != nil {
				return sample{}, err
			}
			defer end()
			calls = append(calls, again)
			continue
		}
		if i%callersPerConn == 0 {
			conn, err := dialGRPC(s.server.address, deadline)
			if err != nil {
				return sample{}, err
			}
			defer conn.close()
			shared = conn
		}
		caller, err := shared.caller(what)
		if err != nil {
			return sample{}, err
		}
		calls = append(calls, caller.do)
	}
	return drive(ctx, calls, warm, measured, &meter{server: s.server.pid(), database: s.postmaster})
}

// server is a running process of the program.
type server struct {
	cmd     *exec.Cmd
	address string
	log     string
	took    time.Duration // from its start until it was ready
	ended   chan error
}

// start runs the program and waits until it is ready.
func start(ctx context.Context, binary, dir, database string, flags ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"start", "--listen", address, "--data-dir", dir, "--log-level", "warn", "--outbound-allow",
		"127.0.0.1/32"}
	if database != "" {
		args = append(args, "--database", database)
	}
	args = append(args, flags...)
	s := &server{cmd: exec.Command(binary, args...), address: address, log: dir + ".log", ended: make(chan error, 1)}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SIGNET_") })
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	for {
		if ready(address) {
			s.took = time.Since(began)
			return s, nil
		}
		switch {
		case len(s.ended) > 0:
			return nil, fmt.Errorf("the server does not start: %w\n%s", <-s.ended, s.tail())
		case ctx.Err() != nil || time.Since(began) > 30*time.Second:
			return nil, errors.Join(errors.New("the server does not get ready"), ctx.Err(), s.stop())
		}
		time.Sleep(300 * time.Microsecond)
	}
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// stop ends the process: politely, and after a while not.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case err := <-s.ended:
		s.ended <- err // for whoever stops it again
		if err != nil {
			return fmt.Errorf("the server ended with %w\n%s", err, s.tail())
		}
		return nil
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		s.ended <- <-s.ended
		return errors.New("the server did not stop in time and was killed")
	}
}

// tail gives the last lines of the log.
func (s *server) tail() string {
	raw, err := os.ReadFile(s.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

var readyRequest = []byte("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

func ready(address string) bool {
	conn, err := dialREST(address, time.Now().Add(time.Second))
	if err != nil {
		return false
	}
	defer conn.close()
	status, _, err := conn.do(readyRequest)
	return err == nil && status == 200
}

// starts is how the server does on data that is there already.
type starts struct {
	ready time.Duration // median of several starts
	idle  int64         // private memory two seconds after the last one
}

func (s *subject) measureStarts(ctx context.Context) (starts, error) {
	const times = 7
	var took []time.Duration
	for range times {
		if err := s.server.stop(); err != nil {
			return starts{}, err
		}
		again, err := start(ctx, s.binary, s.dir, s.database)
		if err != nil {
			return starts{}, err
		}
		s.server = again
		took = append(took, again.took)
	}
	if err := pause(ctx, nil, 2*time.Second); err != nil {
		return starts{}, err
	}
	idle, err := readMemory(s.server.pid(), private)
	slices.Sort(took)
	say("%-9s ready after %s, %.1f MiB idle", s.engine, took[times/2].Round(time.Millisecond/10), mebibytes(idle))
	return starts{ready: took[times/2], idle: idle}, err
}

// history compares changing an object that has many events with changing objects that have few.
type history struct {
	events      uint64 // of the old object
	old, young  time.Duration
	oldPerSec   float64
	youngPerSec float64
}

const (
	longHistory = 10_000
	perYoung    = 20  // a young object is left alone after so many changes
	pairsAtMost = 640 // of a change to the old object and one to a young one
)

// measureHistory changes one user's profile ten thousand times, and then takes turns between that user and users with
// ten to thirty events, one call at a time.
func (s *subject) measureHistory(ctx context.Context) (history, error) {
	deadline := time.Now().Add(3 * time.Minute)
	if err := s.grow(ctx, deadline); err != nil {
		return history{}, s.explain(err)
	}
	conn, err := dialREST(s.server.address, deadline)
	if err != nil {
		return history{}, err
	}
	defer conn.close()
	timed := func(t *template) (time.Duration, error) {
		request := t.next()
		begin := time.Now()
		_, err := conn.must(request)
		return time.Since(begin), err
	}
	old, err := updateMyProfile(&s.world.old).rest()
	if err != nil {
		return history{}, err
	}
	var olds, youngs []time.Duration
	for i := range s.world.people {
		young, err := updateMyProfile(&s.world.people[i]).rest()
		if err != nil {
			return history{}, err
		}
		for range 4 { // up to about ten events
			if _, err := timed(young); err != nil {
				return history{}, err
			}
		}
		for range perYoung {
			a, err := timed(old)
			if err != nil {
				return history{}, err
			}
			b, err := timed(young)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return history{}, err
			}
			olds, youngs = append(olds, a), append(youngs, b)
		}
		if len(olds) >= pairsAtMost {
			break
		}
	}
	var me signetv1.GetMyUserResponse
	if err := conn.ask(call{token: s.world.old.token, verb: "GET", path: "/v1/users/me"}, &me); err != nil {
		return history{}, err
	}
	h := history{events: me.GetUser().GetDetails().GetSequence()}
	h.old, h.oldPerSec = middle(olds)
	h.young, h.youngPerSec = middle(youngs)
	say("%-9s %d events: %s; few events: %s", s.engine, h.events, h.old, h.young)
	return h, nil
}

// grow gives one user a long history.
func (s *subject) grow(ctx context.Context, deadline time.Time) error {
	const hands = 16
	failed := make(chan error, hands)
	for range hands {
		go func() {
			failed <- func() error {
				conn, err := dialREST(s.server.address, deadline)
				if err != nil {
					return err
				}
				defer conn.close()
				t, err := updateMyProfile(&s.world.old).rest()
				if err != nil {
					return err
				}
				for range longHistory / hands {
					if _, err := conn.must(t.next()); err != nil {
						return err
					}
					if ctx.Err() != nil {
						return ctx.Err()
					}
				}
				return nil
			}()
		}()
	}
	var all error
	for range hands {
		all = errors.Join(all, <-failed)
	}
	return all
}

// middle gives the median, and what the sum of all makes per second.
func middle(took []time.Duration) (time.Duration, float64) {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	perSecond := float64(len(took)) / sum.Seconds()
	slices.Sort(took)
	return percentile(took, 0.5), perSecond
}
