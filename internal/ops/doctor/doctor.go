// Package doctor examines an installation: its settings, database, keys, disk, certificates, backups, and how it looks
// from outside. It uses the settings of a server, works while the server runs and while it is stopped, and changes
// nothing: all it writes is a file to measure the disk with, which it removes. Every finding that is not fine says what
// to do. No finding contains a secret.
//
// The checks are functions in a table (All). They do not depend on each other, so a check that fails does not hide the
// others.
package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/ops/verification"
)

// Level is how bad a finding is.
type Level string

// Levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, but something should be done
	Error   Level = "error"   // it does not work, or data is in danger
)

// Finding is what a check has seen.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// Options of Examine.
type Options struct {
	Mail    bool             // connect to the mail server
	Timeout time.Duration    // for each call to others; zero: 5 seconds
	Clock   func() time.Time // nil: time.Now
	Roots   *x509.CertPool   // who signs the certificate of the external address; nil: as the machine trusts
}

// Worst is the worst level of some findings.
func Worst(all []Finding) Level {
	worst := OK
	for _, f := range all {
		if f.Level == Error || f.Level == Warning && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// check is one thing to look at.
type check struct {
	name string
	run  func(ctx context.Context, p *patient) []Finding
}

// all are the checks, in the order in which they are told.
var all = []check{
	{"settings", checkSettings},
	{"data-directory", checkDirectory},
	{"disk", checkDisk},
	{"fsync", checkFsync},
	{"database", checkDatabase},
	{"migrations", checkMigrations},
	{"hashes", checkHashes},
	{"clock", checkClock},
	{"keys", checkKeys},
	{"verification", checkVerification},
	{"backup", checkBackup},
	{"tls", checkCertificate},
	{"server", checkServer},
	{"external", checkExternal},
	{"mail", checkMail},
}

// patient is the installation, and what is known of it.
type patient struct {
	Options
	config   server.Config
	settings *server.Settings // nil: they are wrong
	problem  error            // with the settings

	dir    *datadir.Dir // nil: there is none
	absent error        // why

	engine engine.Engine // nil: the database could not be opened
	away   error         // why
	filled bool          // there is an installation

	keyProblem   error // why the data could not be read with the master key
	keys         []signing.Key
	verification *verification.Result // nil: it was never switched on

	running bool // the server answers on this machine
}

// Examine runs all checks.
func Examine(ctx context.Context, c server.Config, o Options) []Finding {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	p := &patient{Options: o, config: c}
	p.settings, p.problem = c.Settle()
	p.dir, p.absent = datadir.Open(c.DataDir, false)
	p.openDatabase(ctx)
	if p.engine != nil {
		defer p.engine.Close()
	}
	p.openStore(ctx)
	p.running = p.answers(ctx)
	var findings []Finding
	for _, check := range all {
		for _, f := range check.run(ctx, p) {
			f.Check, f.Do = check.name, p.linked(f.Do)
			findings = append(findings, f)
		}
	}
	return findings
}

var pageOfDocs = regexp.MustCompile(`\bdocs/([a-z/-]+)\.md`)

// linked puts addresses into a text that names pages of the documentation, where one is known that answers: the running
// server, or what --docs-url says.
func (p *patient) linked(text string) string {
	if p.settings == nil || p.settings.DocsURL == "" && !p.running {
		return text
	}
	at := strings.TrimSuffix(cmp.Or(p.settings.DocsURL, p.settings.ExternalURL+"/docs"), "/")
	return pageOfDocs.ReplaceAllString(text, at+"/$1")
}

// openDatabase opens the database to look at the database itself.
func (p *patient) openDatabase(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	database := p.config.Database
	if database == "" {
		if p.dir == nil {
			p.away = p.absent
			return
		}
		if !p.dir.HasDatabase() {
			p.away = server.ErrNoInstallation
			return
		}
		if p.away = p.dir.Whole(); p.away != nil {
			return
		}
		if database, p.away = p.dir.Database(); p.away != nil {
			return
		}
	} else if !engine.IsPostgres(database) {
		p.away = errors.New("--database is not the address of a PostgreSQL database")
		return
	}
	if p.engine, p.away = engine.Open(ctx, engine.Options{Database: database, ReadOnly: true}); p.away != nil {
		return
	}
	var one int64
	if p.away = p.engine.Query(ctx, "SELECT 1", nil,
		func(scan engine.Scanner) error { return scan(&one) }); p.away != nil {
		p.engine.Close()
		p.engine = nil
		return
	}
	p.filled = p.engine.Query(ctx, "SELECT count(*) FROM events WHERE position = 1", nil,
		func(scan engine.Scanner) error { return scan(&one) }) == nil && one == 1
}

// openStore opens the data with the master key, and reads what checks need of it.
func (p *patient) openStore(ctx context.Context) {
	if p.engine == nil {
		return
	}
	quiet := slog.New(slog.DiscardHandler)
	p.keyProblem = server.Maintain(ctx, p.config, quiet, true, func(ctx context.Context, st *store.Store) (err error) {
		if p.keys, _, err = signing.New(st, st.RootKey(), p.Clock).ListByOperator(ctx); err != nil {
			return err
		}
		p.verification, err = verification.Read(ctx, st)
		return err
	})
}

func fine(format string, args ...any) []Finding {
	return []Finding{{Level: OK, What: fmt.Sprintf(format, args...)}}
}

func warn(do, format string, args ...any) []Finding {
	return []Finding{{Level: Warning, What: fmt.Sprintf(format, args...), Do: do}}
}

func fail(do, format string, args ...any) []Finding {
	return []Finding{{Level: Error, What: fmt.Sprintf(format, args...), Do: do}}
}

func checkSettings(_ context.Context, p *patient) []Finding {
	if p.problem != nil {
		return fail("Correct the setting: signet start --help lists all of them.", "%v", p.problem)
	}
	if p.config.Development {
		return warn("Leave --development out on a server that people use.",
			"--development is on: codes that people request are written to the log")
	}
	return fine("all settings are valid")
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ago is a time in words.
func ago(d time.Duration) string {
	if d > 48*time.Hour {
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
	return d.Round(time.Second).String()
}
