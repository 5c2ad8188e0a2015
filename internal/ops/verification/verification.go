// Package verification verifies the log at intervals, while a server answers requests. Nodes share a database, so a
// lease lets one of them do it at a time. The result is a row of the database: every node reports it as metrics and as
// a detail of /readyz.
//
// Every run reads the whole log, because what was right yesterday may have been changed since. A run works a quarter of
// the time and rests the other three, and remembers few chains, so that it costs a fraction of one core and a few
// megabytes.
package verification

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

// Bounds of the interval.
const (
	MinEvery = time.Minute
	MaxEvery = 366 * 24 * time.Hour
)

// Chains is how many are remembered.
const Chains = 1 << 16

const (
	look      = time.Minute // between two looks whether it is due
	retry     = 10 * time.Minute
	life      = 2 * time.Minute // of the lease
	restFor   = 3               // times as long as it has worked
	lastWords = 3 * time.Second // for giving the lease back when the server stops
)

var (
	leaseRow  = event.RowKey{Table: event.Followers, Key: "verification"}
	resultRow = event.RowKey{Table: event.Followers, Key: "verification/result"}
)

// Result is what is known of all runs. Times are in microseconds.
type Result struct {
	Since    int64  `json:"since"`              // when verification was first switched on
	Ended    int64  `json:"ended,omitempty"`    // when the last run came to a result; 0: none has
	Success  int64  `json:"success,omitempty"`  // when the last run ended that found nothing
	Position int64  `json:"position,omitempty"` // up to which that had read the log
	Finding  string `json:"finding,omitempty"`  // of the last run
	Damage   string `json:"damage,omitempty"`   // of the file of the embedded database, that the last run has found
}

// Read gives the result; nil where verification was never switched on.
func Read(ctx context.Context, r event.Reader) (*Result, error) {
	row, err := r.Row(ctx, resultRow)
	if err != nil || row == nil {
		return nil, err
	}
	result := &Result{}
	if err := json.Unmarshal(row.Value, result); err != nil {
		return nil, fmt.Errorf("the row %s: %w", resultRow.Key, err)
	}
	return result, nil
}

func (r *Result) row() (event.Row, error) {
	value, err := json.Marshal(r)
	return event.Row{RowKey: resultRow, Value: value}, err
}

// due tells whether the last run, or the beginning of all, was an interval ago. A clock that went back does not hold it
// up.
func (r *Result) due(now int64, every time.Duration) bool {
	last := cmp.Or(r.Ended, r.Since)
	return now-last >= every.Microseconds() || last > now+every.Microseconds()
}

// Late tells whether the log was not verified for more than twice the interval.
func (r *Result) Late(now int64, every time.Duration) bool {
	return now-cmp.Or(r.Success, r.Since) > 2*every.Microseconds()+time.Hour.Microseconds()
}

// Verify is that of the store.
type Verify func(ctx context.Context, o proof.Options) (*proof.Report, error)

// CheckFile is that of the store.
type CheckFile func(ctx context.Context, rest func(context.Context) error) error

// Schedule verifies until its Run ends. Make one with New.
type Schedule struct {
	store  event.Store
	verify Verify
	file   CheckFile
	every  time.Duration
	clock  func() time.Time
	log    *slog.Logger
	lease  notify.Lease

	tried    time.Time // when a run last failed without a result; zero: the last one did not
	known    atomic.Pointer[Result]
	failures prometheus.Counter
}

// New makes a schedule.
func New(s event.Store, verify Verify, file CheckFile, every time.Duration, log *slog.Logger) *Schedule {
	return &Schedule{store: s, verify: verify, file: file, every: every, clock: time.Now, log: log,
		lease: notify.Lease{Store: s, Row: leaseRow, Node: event.NewID("nod"), Life: life},
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "signet_verification_failures_total",
			Help: "Verifications by this node that found a change of the log, or did not come to a result."})}
}

// Register registers the metrics. All nodes tell the same, but for failures.
func (s *Schedule) Register(r prometheus.Registerer) error {
	gauge := func(name, help string, value func(*Result) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if known := s.known.Load(); known != nil {
				return value(known)
			}
			return 0
		})
	}
	var err error
	for _, c := range []prometheus.Collector{s.failures,
		gauge("signet_verification_last_success_timestamp_seconds",
			"When the whole log was last verified and found unchanged, in seconds since 1970; 0: never.",
			func(r *Result) float64 { return float64(r.Success) / 1e6 }),
		gauge("signet_verification_position", "Position up to which the log was last verified.",
			func(r *Result) float64 { return float64(r.Position) }),
		gauge("signet_verification_log_changed", "1 if the last verification found that the log was changed, else 0.",
			func(r *Result) float64 {
				return one(r.Finding != "")
			}),
		gauge("signet_database_file_damaged",
			"1 if the last verification found damage in the file of the embedded database, else 0.",
			func(r *Result) float64 { return one(r.Damage != "") }),
	} {
		err = errors.Join(err, r.Register(c))
	}
	return err
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Detail is what /readyz says; empty: all is well. A changed log makes no node unready: nothing is repaired by an
// outage of every sign-in.
func (s *Schedule) Detail() string {
	switch known := s.known.Load(); {
	case known == nil:
	case known.Finding != "":
		return "the log was changed: run signet verify"
	case known.Damage != "":
		return "the database file is damaged: run signet verify"
	case known.Late(event.Micros(s.clock()), s.every) && known.Success == 0:
		return "the log was never verified"
	case known.Late(event.Micros(s.clock()), s.every):
		return "the log was last verified at " + event.Time(known.Success).UTC().Format(time.RFC3339)
	}
	return ""
}

// Run verifies until ctx ends. It begins with a look only: a start has other things to do.
func (s *Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	_, _ = s.read(ctx)
	for {
		select {
		case <-ticker.C:
			s.Tend(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// read gives the result, which the metrics then tell.
func (s *Schedule) read(ctx context.Context) (*Result, error) {
	result, err := Read(ctx, s.store)
	if err == nil && result != nil {
		s.known.Store(result)
	}
	return result, err
}

// Tend verifies the log if that is due and no other node is doing it. Run calls it, one at a time.
func (s *Schedule) Tend(ctx context.Context) {
	now := s.clock()
	if since := now.Sub(s.tried); !s.tried.IsZero() && since >= 0 && since < min(retry, s.every) {
		return
	}
	err := s.tend(ctx)
	switch {
	case ctx.Err() != nil: // the server stops
	case err != nil:
		s.tried = now
		s.failures.Inc()
		s.log.Warn("the log could not be verified: it is tried again", "error", err, "in", min(retry, s.every).String())
	default:
		s.tried = time.Time{}
	}
}

func (s *Schedule) tend(ctx context.Context) error {
	result, err := s.read(ctx)
	if err != nil {
		return err
	}
	if result == nil {
		return s.begin(ctx)
	}
	if !result.due(event.Micros(s.clock()), s.every) {
		return nil
	}
	progress, err := s.lease.Acquire(ctx)
	if err != nil || progress == nil {
		return err
	}
	// another node has just done it
	if result, err = s.read(ctx); err != nil || !result.due(event.Micros(s.clock()), s.every) {
		return errors.Join(err, s.release(ctx, progress, nil))
	}
	began := s.clock()
	pace := s.pace(progress)
	report, err := s.verify(ctx, proof.Options{Chains: Chains, Pace: pace})
	if err != nil {
		return errors.Join(err, s.release(ctx, progress, nil))
	}
	damage := s.file(ctx, pace)
	if damage != nil && !engine.IsDamage(damage) {
		return errors.Join(damage, s.release(ctx, progress, nil))
	}
	result.Ended, result.Finding, result.Damage = event.Micros(s.clock()), "", ""
	if damage != nil {
		result.Damage = damage.Error()
		s.failures.Inc()
		s.log.Error(damage.Error() + ": " + engine.Mend)
	}
	if report.Finding == nil {
		result.Success, result.Position = result.Ended, report.Head.Position
		s.log.Info("the log was verified", "events", report.Events, "head", report.Head.String(), "took",
			s.clock().Sub(began).Round(time.Millisecond).String())
	} else {
		result.Finding = report.Finding.String()
		s.failures.Inc()
		s.log.Error("THE LOG WAS CHANGED: copy the database as it is, and see docs/operations/verify.md", "finding",
			result.Finding)
	}
	s.known.Store(result)
	return s.release(ctx, progress, result)
}

// begin makes the rows. The first run comes an interval later.
func (s *Schedule) begin(ctx context.Context) error {
	return s.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{leaseRow, resultRow},
		Decide: func(tx *event.Tx) error {
			row, err := tx.Row(resultRow)
			if err != nil || row != nil {
				return err
			}
			made, err := (&Result{Since: tx.Now()}).row()
			if err != nil {
				return err
			}
			tx.PutRow(made)
			return (&notify.Progress{}).Put(tx, leaseRow)
		},
	})
}

// release gives the lease back, also when the server stops, and saves a result with it.
func (s *Schedule) release(ctx context.Context, progress *notify.Progress, result *Result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	var rows []event.Row
	if result != nil {
		row, err := result.row()
		if err != nil {
			return err
		}
		rows = []event.Row{row}
	}
	_, err := s.lease.Release(ctx, *progress, rows)
	return err
}

// errLost says that this node was too slow to keep the lease.
var errLost = errors.New("another node verifies the log by now")

// pace rests after every piece of work, in proportion to it, and keeps the lease.
func (s *Schedule) pace(progress *notify.Progress) func(ctx context.Context) error {
	began, renewed := time.Now(), time.Now()
	return func(ctx context.Context) error {
		rest := time.NewTimer(restFor * time.Since(began))
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if time.Since(renewed) > life/4 {
			renewed = time.Now()
			kept, err := s.lease.Renew(ctx, *progress, nil)
			if err == nil && kept == nil {
				err = errLost
			}
			if err != nil {
				return err
			}
		}
		began = time.Now()
		return nil
	}
}
