//go:build recovery

package recovery

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// tools runs PostgreSQL's programs as the user that they may run as.
type tools struct {
	bin  string
	as   *syscall.SysProcAttr
	home string
}

func newTools(t *testing.T) *tools {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		found = append(found, strings.TrimSpace(string(out)))
	}
	if len(found) == 0 {
		t.Fatal("PostgreSQL was not found")
	}
	p := &tools{bin: found[len(found)-1]}
	var err error
	p.home, err = os.MkdirTemp("/tmp", "signet-recovery-") // another user has to reach it
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(p.home) })
	if os.Getuid() == 0 {
		name, err := user.Lookup("postgres")
		testkit.Must(t, err)
		uid, _ := strconv.Atoi(name.Uid)
		gid, _ := strconv.Atoi(name.Gid)
		p.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		testkit.Must(t, os.Chown(p.home, uid, gid))
	}
	return p
}

func (p *tools) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = p.home, p.as
	return cmd
}

func (p *tools) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := p.command(t.Context(), name, args...)
	out := &testkit.Log{} // a server that pg_ctl starts keeps a pipe open
	if name != "pg_ctl" {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out.String())
	}
}

func TestRecoveryToAPointInTime(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	source, err := url.Parse(db.URL)
	testkit.Must(t, err)
	p := newTools(t)
	archive, base := filepath.Join(p.home, "archive"), filepath.Join(p.home, "base")
	p.run(t, "pg_ctl", "--version")
	testkit.Must(t, exec.Command("install", "-d", "-m", "777", archive).Run())
	to := []string{"-h", source.Hostname(), "-p", source.Port(), "-U", source.User.Username()}

	// The WAL is received all the time, as by an archive on another machine.
	ctx, stop := context.WithCancel(t.Context())
	receiving := p.command(ctx, "pg_receivewal", append(to, "-D", archive)...)
	testkit.Must(t, receiving.Start())
	defer func() { stop(); _ = receiving.Wait() }()
	testkit.Await(t, "the WAL arrives", func() bool { all, _ := os.ReadDir(archive); return len(all) > 0 })

	c := server.Config{Data: server.Data{DataDir: filepath.Join(t.TempDir(), "data"), Database: db.URL},
		Listen: "localhost:0", Hasher: secret.NewCheapHasher()}
	s, err := server.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer s.Close()
	write := func(n int) {
		t.Helper()
		for range n {
			_, err := setup.Setup{Store: s.Store(), Hasher: c.Hasher}.Recover(t.Context())
			testkit.Must(t, err)
		}
	}
	position := func() int64 {
		t.Helper()
		n, err := s.Store().Position(t.Context())
		testkit.Must(t, err)
		return n
	}
	write(3)
	p.run(t, "pg_basebackup", append(to, "-D", base, "-c", "fast", "-X", "stream")...)
	write(3)
	sealed := func() bool { n, err := s.Store().Sealed(t.Context()); return err == nil && n == position() }
	testkit.Await(t, "everything is sealed", sealed)
	sqldb, err := sql.Open("pgx", db.URL)
	testkit.Must(t, err)
	defer sqldb.Close()
	var at, segment string
	testkit.Must(t, sqldb.QueryRow("SELECT clock_timestamp()::text").Scan(&at))
	want := position()
	write(3) // what is not to come back
	testkit.Must(t, sqldb.QueryRow("SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment))
	testkit.Await(t, "the archive has it",
		func() bool { _, err := os.Stat(filepath.Join(archive, segment)); return err == nil })
	if position() == want {
		t.Fatal("nothing was written since: this test shows nothing")
	}

	port := testkit.FreePort(t)
	settings := fmt.Sprintf("\nrestore_command = 'cp %s/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = 'promote'\nport = %s\nunix_socket_directories = '%s'\n", archive, at, port, p.home)
	add := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(base, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, fs.FileMode(0o644))
		testkit.Must(t, err)
		_, err = f.WriteString(text)
		testkit.Must(t, err)
		testkit.Must(t, f.Close())
	}
	add("postgresql.auto.conf", settings)
	add("recovery.signal", "")
	p.run(t, "pg_ctl", "-D", base, "-w", "-t", "60", "-l", filepath.Join(p.home, "log"), "start")
	defer p.run(t, "pg_ctl", "-D", base, "-m", "immediate", "stop")
	restored := *source
	restored.Host = net.JoinHostPort("127.0.0.1", port)

	binary, err := testkit.Program(t.TempDir())
	testkit.Must(t, err)
	check := func(database, says string, args ...string) {
		t.Helper()
		out, err := exec.Command(binary,
			append(args, "--database", database, "--master-key-file",
				filepath.Join(c.DataDir, "master.key"))...).CombinedOutput()
		t.Logf("signet %s: %s", strings.Join(args, " "), out)
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("signet %s: %v", strings.Join(args, " "), err)
		}
	}
	check(restored.String(), fmt.Sprintf("\nhead %d ", want), "verify")
	check(restored.String(), fmt.Sprintf("%d events of ", want), "rebuild", "--check")
}
