package testdb

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

// Pooled puts PgBouncer in transaction mode in front of a database of PostgreSQL, with few connections behind it, so
// that nobody gets the same one twice for sure.
func Pooled(t testing.TB, db Database) Database {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		const missing = "PgBouncer is not tested: it is not installed (run through scripts/with-postgres.sh)"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	address, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal("the address is not a URL")
	}
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	// not under TMPDIR, which may be private: it does not run as root
	dir, err := os.MkdirTemp("/tmp", "signet-pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listen := testkit.FreePort(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 12
max_client_conn = 500
logfile = %s
`, host, port, address.User.Username(), listen, filepath.Join(dir, "log"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-q", config)
	command.SysProcAttr = asNobody(t, dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address.Host = net.JoinHostPort("127.0.0.1", listen)
	testkit.Await(t, "PgBouncer takes connections", func() bool {
		c, err := net.Dial("tcp", address.Host)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	address.RawQuery += "&pooler=transaction"
	return Database{Engine: Postgres, URL: address.String()}
}

// asNobody is for programs that refuse to run as root, and gives them a directory.
func asNobody(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
