package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/ops/verification"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// site is an installation whose server runs until stop.
type site struct {
	config server.Config
	server *server.Server
	db     testdb.Database
	stop   func()
}

func newSite(t *testing.T, db testdb.Database, change func(*server.Config)) *site {
	t.Helper()
	c := server.Config{Data: server.Data{DataDir: filepath.Join(t.TempDir(), "data")}, Listen: "localhost:0",
		Hasher: secret.NewCheapHasher(), VerifyEvery: 24 * time.Hour}
	if db.Engine == testdb.Postgres {
		c.Database = db.URL
	} else {
		db.URL = filepath.Join(c.DataDir, "signet.db")
	}
	if change != nil {
		change(&c)
	}
	s, err := server.Open(t.Context(), c, quiet)
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, nil)
		s.Close()
	}()
	stop := func() { cancel(); testkit.Receive(t, done, "the server has stopped") }
	t.Cleanup(stop)
	c.Listen = s.Addr().String()
	c.ExternalURL = s.URL()
	return &site{config: c, server: s, db: db, stop: stop}
}

// changed is the configuration with something else in it.
func (s *site) changed(change func(*server.Config)) server.Config {
	c := s.config
	change(&c)
	return c
}

// exec changes the database behind the back of the server.
func (s *site) exec(t *testing.T, statement string) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Database: s.db.URL})
	testkit.Must(t, err)
	defer e.Close()
	testkit.Must(t, e.Transact(t.Context(), func(x engine.Executor) error { return x.Exec(t.Context(), statement) }))
}

// want insists on a finding, and that it says what to do unless all is fine.
func want(t *testing.T, all []Finding, check string, level Level, says string) {
	t.Helper()
	for _, f := range all {
		if (f.Do == "") != (f.Level == OK) {
			t.Errorf("it does not say what to do: %+v", f)
		}
	}
	if !slices.ContainsFunc(all,
		func(f Finding) bool { return f.Check == check && f.Level == level && strings.Contains(f.What, says) }) {
		t.Errorf("there is no %s of %s that says %q:\n%+v", level, check, says, all)
	}
}

// after is a clock that is ahead.
func after(d time.Duration) Options {
	return Options{Clock: func() time.Time { return time.Now().Add(d) }}
}

func examine(t *testing.T, c server.Config, o Options) []Finding {
	t.Helper()
	return Examine(t.Context(), c, o)
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestAnInstallationBesideItsServerAndWithoutIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := newSite(t, db, nil)
		before := names(t, s.config.DataDir)
		all := examine(t, s.config, Options{})
		for check, says := range map[string]string{
			"settings":       "valid",
			"data-directory": "owner alone",
			"migrations":     "up to date",
			"clock":          "",
			"keys":           "fits the database",
			"server":         "is ready",
			"external":       "is this installation",
			"verification":   "will be verified",
		} {
			want(t, all, check, OK, says)
		}
		want(t, all, "keys", OK, "the signing key is")
		want(t, all, "mail", Warning, "no mail server is configured")
		if after := names(t, s.config.DataDir); !slices.Equal(before, after) {
			t.Errorf("the directory had %q and has %q", before, after)
		}
		s.stop()
		before = names(t, s.config.DataDir)
		all = examine(t, s.config, Options{})
		want(t, all, "server", Warning, "no server answers")
		want(t, all, "external", Warning, "no server runs here")
		want(t, all, "keys", OK, "fits the database")
		for _, name := range names(t, s.config.DataDir) {
			if !slices.Contains(before, name) && !strings.HasPrefix(name, "signet.db-") {
				t.Errorf("it left %s", name)
			}
		}
	})
}

func TestKeysAndClocks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := newSite(t, db, nil)
		want(t, examine(t, s.config, after(-time.Hour)), "clock", Error, "the last event is")
		late := examine(t, s.config, after(150*24*time.Hour))
		want(t, late, "keys", Warning, "should have been rotated")
		want(t, late, "external", Error, "differ by 149 days")
		want(t, examine(t, s.config, after(-time.Hour)), "external", Error, "differ by ")
		if db.Engine == testdb.Postgres {
			want(t, late, "clock", Error, "that of the database differ by 149 days")
			want(t, examine(t, s.config, after(5*time.Second)), "clock", Warning, "differ by")
		}
		key := filepath.Join(s.config.DataDir, "master.key")
		testkit.Must(t, os.Chmod(key, 0o644))
		want(t, examine(t, s.config, Options{}), "keys", Error, "master.key")
		testkit.Must(t, os.Chmod(key, 0o600))
		other := filepath.Join(t.TempDir(), "other.key")
		testkit.Must(t, os.WriteFile(other, secret.NewMasterKey().Text(), 0o600))
		want(t, examine(t, s.changed(func(c *server.Config) { c.MasterKeyFile = other }), Options{}),
			"keys", Error, "key")
		testkit.Must(t, os.Rename(key, key+".away"))
		want(t, examine(t, s.config, Options{}), "keys", Error, "master.key")
	})
}

func TestMigrationsAndVerification(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s := newSite(t, db, nil)
		runs := verification.New(s.server.Store(), s.server.Store().Verify, s.server.Store().CheckFile,
			time.Nanosecond, quiet)
		runs.Tend(t.Context())
		want(t, examine(t, s.config, Options{}), "verification", OK, "will be verified")
		want(t, examine(t, s.config, after(72*time.Hour)), "verification", Warning, "was never verified")
		runs.Tend(t.Context())
		want(t, examine(t, s.config, Options{}), "verification", OK, "the log was verified")
		want(t, examine(t, s.config, after(72*time.Hour)), "verification", Warning, "was last verified 3 days ago")
		want(t, examine(t, s.changed(func(c *server.Config) { c.VerifyEvery = 0 }), Options{}), "verification", Warning,
			"does not verify")
		s.exec(t, "UPDATE events SET actor = 'somebody' WHERE position = 2")
		runs.Tend(t.Context())
		want(t, examine(t, s.config, Options{}), "verification", Error, "the log was changed")

		s.exec(t, "INSERT INTO schema_version (version, name) VALUES (999, 'from the future')")
		want(t, examine(t, s.config, Options{}), "migrations", Warning, "a newer program")
		s.exec(t, "DELETE FROM schema_version WHERE version > 9")
		want(t, examine(t, s.config, Options{}), "migrations", Warning, "migrations are pending")
	})
}

func TestSettingsOfPostgreSQL(t *testing.T) {
	s := newSite(t, testdb.New(t, testdb.Postgres), nil)
	e, err := engine.Open(t.Context(), engine.Options{Database: s.db.URL})
	testkit.Must(t, err)
	defer e.Close()
	all := examine(t, s.config, Options{})
	want(t, all, "database", OK, "PostgreSQL ")
	for _, name := range []string{"fsync", "full_page_writes"} { // off where the tests do not wait for the disk
		var value string
		testkit.Must(t, e.Query(t.Context(), "SELECT setting FROM pg_settings WHERE name = '"+name+"'", nil,
			func(scan engine.Scanner) error { return scan(&value) }))
		said := slices.ContainsFunc(all,
			func(f Finding) bool { return f.Level == Error && strings.HasPrefix(f.What, name+" is off") })
		if said != (value == "off") {
			t.Errorf("%s is %s: %+v", name, value, all)
		}
	}
	with := func(more string) server.Config {
		return s.changed(func(c *server.Config) { c.Database += "&" + more })
	}
	want(t, examine(t, with("synchronous_commit=off"), Options{}), "database", Error, "synchronous_commit is off")
	on := examine(t, with("synchronous_commit=on"), Options{})
	if slices.ContainsFunc(on, func(f Finding) bool { return strings.HasPrefix(f.What, "synchronous_commit") }) {
		t.Errorf("%+v", on)
	}
	want(t, examine(t, with("pool_max_conns=5000"), Options{}), "database", Warning, "up to 5000 connections")
	away := s.changed(func(c *server.Config) { c.Database = "postgres://signet:opensesame@127.0.0.1:1/signet" })
	all = examine(t, away, Options{})
	want(t, all, "database", Error, "")
	for _, f := range all {
		if strings.Contains(f.What+f.Do, "opensesame") {
			t.Errorf("a password: %+v", f)
		}
	}
}

func TestTheEmbeddedDatabaseAndItsDisk(t *testing.T) {
	s := newSite(t, testdb.New(t, testdb.SQLite), nil)
	all := examine(t, s.config, Options{})
	want(t, all, "database", OK, "SQLite")
	want(t, all, "fsync", OK, "for a sync")
	want(t, all, "backup", Warning, "no backups are scheduled")
	testkit.Must(t, os.Chmod(s.config.DataDir, 0o755))
	want(t, examine(t, s.config, Options{}), "data-directory", Warning, "0755")
	testkit.Must(t, os.Chmod(s.config.DataDir, 0o700))

	place := t.TempDir()
	c := s.changed(func(c *server.Config) { c.BackupDirectory = place })
	want(t, examine(t, c, Options{}), "backup", Error, "there is no backup")
	put := func(at time.Time) {
		testkit.Must(t, os.WriteFile(filepath.Join(place,
			"signet-"+at.UTC().Format("20060102T150405Z")+".db"), nil, 0o600))
	}
	put(time.Now().Add(-100 * time.Hour))
	want(t, examine(t, c, Options{}), "backup", Error, "the newest backup is 4 days old")
	put(time.Now().Add(-time.Hour))
	want(t, examine(t, c, Options{}), "backup", OK, "the newest backup is 1h")
	testkit.Must(t, os.RemoveAll(place))
	want(t, examine(t, c, Options{}), "backup", Error, "cannot be listed")

	s.stop()
	wal := s.db.URL + "-wal"
	testkit.Must(t, os.WriteFile(wal, nil, 0o600))
	testkit.Must(t, os.Truncate(wal, largeWAL+1)) // without blocks on the disk
	want(t, examine(t, s.config, Options{}), "database", Warning, "does not end")
	testkit.Must(t, os.Remove(wal))
	db, err := sql.Open("sqlite", "file:"+s.db.URL)
	testkit.Must(t, err)
	_, err = db.Exec("PRAGMA journal_mode = DELETE")
	testkit.Must(t, errors.Join(err, db.Close()))
	want(t, examine(t, s.config, Options{}), "database", Error, "journal mode of the database is delete")

	none := server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:0"}
	want(t, examine(t, none, Options{}), "database", Warning, "no installation")
	none.DataDir = filepath.Join(none.DataDir, "none")
	want(t, examine(t, none, Options{}), "data-directory", Error, "no such file")
}

func TestTimesOfTheDisk(t *testing.T) {
	for took, level := range map[time.Duration]Level{time.Millisecond: OK, slowSync: Warning, stuckSync: Error} {
		if got := judgeSync(took); got[0].Level != level {
			t.Errorf("%s: %+v", took, got)
		}
	}
}

// A disk that is nearly full, in memory.
func TestASmallDisk(t *testing.T) {
	place := t.TempDir()
	if err := mountSmall(place); err != nil {
		t.Skip("no small disk can be made here: ", err)
	}
	t.Cleanup(func() { testkit.Must(t, unmountSmall(place)) })
	all := examine(t, server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:0",
		BackupDirectory: place}, Options{})
	want(t, all, "disk", Error, "the disk of the backup directory has 0 MiB left")
	want(t, all, "disk", Warning, "the backup directory is in memory")
}

func TestWrongSettings(t *testing.T) {
	c := server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:0", SMTPFrom: "a@example.org"}
	want(t, examine(t, c, Options{}), "settings", Error, "need --smtp-url")
	c.SMTPFrom, c.Development = "", true
	want(t, examine(t, c, Options{}), "settings", Warning, "--development is on")
}

// certificate makes one for localhost.
func certificate(t *testing.T, name string,
	from, until time.Time) (cert, key string, pair tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             from,
		NotAfter:              until,
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	testkit.Must(t, err)
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	testkit.Must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	testkit.Must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	testkit.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}), 0o600))
	pair, err = tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	leaf, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	return cert, key, pair, roots
}

func TestCertificates(t *testing.T) {
	now, day := time.Now(), 24*time.Hour
	for _, w := range []struct {
		name        string
		from, until time.Time
		level       Level
		says        string
	}{
		{"localhost", now.Add(-day), now.Add(90 * day), OK, "is valid for another 89 days"},
		{"localhost", now.Add(-day), now.Add(10 * day), Warning, "expires in 9 days"},
		{"localhost", now.Add(-10 * day), now.Add(-5 * day), Error, "expired 5 days ago"},
		{"localhost", now.Add(day), now.Add(90 * day), Error, "is not valid yet"},
		{"id.example.org", now.Add(-day), now.Add(90 * day), Warning, "is not for localhost"},
	} {
		cert, key, pair, roots := certificate(t, w.name, w.from, w.until)
		c := server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:0", TLSCert: cert, TLSKey: key}
		want(t, examine(t, c, Options{}), "tls", w.level, w.says)
		// The same at a proxy, as everybody sees it.
		if w.level != Error && w.name == "localhost" {
			proxy := httptest.NewUnstartedServer(http.NotFoundHandler())
			proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			proxy.StartTLS()
			_, port, _ := strings.Cut(strings.TrimPrefix(proxy.URL, "https://"), ":")
			c := server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:1",
				ExternalURL: "https://localhost:" + port}
			all := examine(t, c, Options{Roots: roots})
			want(t, all, "external", w.level, w.says)
			want(t, all, "external", Warning, "--trusted-proxies is empty")
			want(t, all, "external", Error, "does not answer like a Signet server: HTTP 404")
			proxy.Close()
		}
	}
	_, _, pair, roots := certificate(t, "localhost", now.Add(-2*day), now.Add(-day))
	proxy := httptest.NewUnstartedServer(http.NotFoundHandler())
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxy.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	proxy.StartTLS()
	defer proxy.Close()
	s := newSite(t, testdb.New(t, testdb.SQLite), nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(proxy.URL, "https://"), ":")
	want(t, examine(t, s.changed(func(c *server.Config) { c.ExternalURL = "https://localhost:" + port }),
		Options{Roots: roots}), "external", Error, "has expired")
	_, port, _ = strings.Cut(strings.TrimPrefix(s.config.ExternalURL, "http://"), ":")
	want(t, examine(t, s.changed(func(c *server.Config) { c.ExternalURL = "http://127.0.0.1:" + port }), Options{}),
		"external", Error, "says that it is")
	want(t, examine(t, s.changed(func(c *server.Config) { c.ExternalURL = "http://localhost:1" }), Options{}),
		"external", Error, "cannot be reached")
	other := newSite(t, testdb.New(t, testdb.SQLite), nil)
	want(t, examine(t, s.changed(func(c *server.Config) { c.ExternalURL = other.config.ExternalURL }), Options{}),
		"external", Error, "leads to another installation")
}

func TestMail(t *testing.T) {
	sink := mailtest.Start(t)
	c := server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:0", SMTPURL: sink.URL,
		SMTPFrom: "no-reply@example.org", SMTPRoots: sink.Roots}
	want(t, examine(t, c, Options{}), "mail", OK, "was not asked")
	want(t, examine(t, c, Options{Mail: true}), "mail", OK, "lets us in")
	sink.None(t)
	c.SMTPURL = "smtp://user:opensesame@localhost:1"
	all := examine(t, c, Options{Mail: true})
	want(t, all, "mail", Error, "does not let us in")
	for _, f := range all {
		if strings.Contains(f.What, "opensesame") {
			t.Errorf("a password: %+v", f)
		}
	}
}

func TestHintsLeadToTheDocumentationThatAnswers(t *testing.T) {
	const hint = "Copy it, and see docs/operations/master-key.md."
	settled := func(c server.Config) *server.Settings {
		c.DataDir, c.Listen = t.TempDir(), "localhost:8080"
		s, err := c.Settle()
		testkit.Must(t, err)
		return s
	}
	plain, elsewhere := settled(server.Config{}), settled(server.Config{DocsURL: "https://docs.test/signet/"})
	for _, c := range []struct {
		p    patient
		want string
	}{
		{patient{running: true}, hint},
		{patient{settings: plain}, hint},
		{patient{settings: plain, running: true}, "Copy it, and see http://localhost:8080/docs/operations/master-key."},
		{patient{settings: elsewhere}, "Copy it, and see https://docs.test/signet/operations/master-key."},
	} {
		if got := c.p.linked(hint); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	for _, wrong := range []string{"docs.test", "ftp://docs.test", "https://me:pw@docs.test", "https://docs.test/?a=b", "https://docs.test/#a", "https://"} {
		if _, err := (server.Config{Data: server.Data{DataDir: t.TempDir()}, Listen: "localhost:8080", DocsURL: wrong}).Settle(); err == nil {
			t.Errorf("--docs-url %q is taken", wrong)
		}
	}
}
