package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/signet-idm/signet/test/testdb"
)

// A fixture is a data directory as an archive. On PostgreSQL the database is one more file in it.
const (
	notesFile = "notes.json"
	dumpFile  = "dump.sql"
)

func fixture(engine string) string { return filepath.Join("testdata", engine+".tar.gz") }

// TestFixturesAreOfTheVersionBefore makes the fixtures anew where SIGNET_UPDATE_FIXTURES is set.
func TestFixturesAreOfTheVersionBefore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		if os.Getenv("SIGNET_UPDATE_FIXTURES") != "" {
			makeFixture(t, db)
		}
		if s, n := openFixture(t, testdb.New(t, db.Engine)); n.Version != versionBefore() {
			t.Errorf("%s is of %s, and VERSION says %s: make fixtures", s.Engine, n.Version, versionBefore())
		}
	})
}

func makeFixture(t *testing.T, db testdb.Database) {
	t.Helper()
	s := &site{db, filepath.Join(t.TempDir(), "data")}
	binary := theVersionBefore(t)
	server := s.start(t, binary)
	n := fill(t, s, server)
	server.stop(t)
	n.Head = s.head(t, binary)
	s.run(t, binary, "rebuild", "--check")
	text, err := json.MarshalIndent(n, "", "  ")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.dir, notesFile), text, 0o600))
	if s.Engine == testdb.Postgres {
		must(t, os.WriteFile(filepath.Join(s.dir, dumpFile), dump(t, s.URL), 0o600))
	}
	pack(t, s.dir, fixture(s.Engine))
}

// dump gives a database as statements that any client can send. What is left out is for psql, or not known to older
// servers.
func dump(t *testing.T, address string) []byte {
	t.Helper()
	text, err := exec.Command("pg_dump", "--inserts", "--no-owner", "--no-privileges", "--no-comments", "--dbname",
		address).Output()
	must(t, err)
	var kept bytes.Buffer
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "SET ") && !strings.HasPrefix(line, "--") &&
			!strings.HasPrefix(line, `\`) {
			kept.WriteString(line)
		}
	}
	return kept.Bytes()
}

func pack(t *testing.T, dir, archive string) {
	t.Helper()
	f, err := os.Create(archive)
	must(t, err)
	zipped, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	must(t, err)
	packed := tar.NewWriter(zipped)
	must(t, packed.AddFS(os.DirFS(dir)))
	must(t, packed.Close())
	must(t, zipped.Close())
	must(t, f.Close())
}

// openFixture gives a site with the data of the version before, as if it had been made just now: what expires has as
// long to live.
func openFixture(t *testing.T, db testdb.Database) (*site, *notes) {
	t.Helper()
	s := &site{db, t.TempDir()}
	unpack(t, fixture(s.Engine), s.dir)
	text, err := os.ReadFile(filepath.Join(s.dir, notesFile))
	must(t, err)
	n := &notes{}
	must(t, json.Unmarshal(text, n))
	if s.Engine == testdb.Postgres {
		dumped, err := os.ReadFile(filepath.Join(s.dir, dumpFile))
		must(t, err)
		conn, err := pgx.Connect(t.Context(), s.URL)
		must(t, err)
		defer conn.Close(context.Background())
		_, err = conn.PgConn().Exec(t.Context(), string(dumped)).ReadAll()
		must(t, err)
	}
	raw := s.open(t)
	defer raw.Close()
	passed := time.Since(n.Made).Microseconds()
	_, err = raw.Exec(fmt.Sprintf("UPDATE tokens SET created = created + %d, expires = expires + %[1]d", passed))
	must(t, err)
	_, err = raw.Exec(fmt.Sprintf("UPDATE flows SET expires = expires + %d WHERE expires > 0", passed))
	must(t, err)
	return s, n
}

// open connects to the site's database behind the program's back.
func (s *site) open(t *testing.T) *sql.DB {
	t.Helper()
	driver, address := "pgx", s.URL
	if s.Engine == testdb.SQLite {
		driver, address = "sqlite", filepath.Join(s.dir, "signet.db")
	}
	db, err := sql.Open(driver, address)
	must(t, err)
	return db
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	must(t, err)
	for packed := tar.NewReader(zipped); ; {
		header, err := packed.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		content, err := io.ReadAll(packed)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, 0o600))
	}
}
