//go:build faults

package faults

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// cluster is three members of PostgreSQL under Patroni, and what stands in front of them.
type cluster struct {
	dir      string
	members  []*member
	haproxy  string // address
	bouncer  string // likewise
	etcd     string // likewise
	as       *syscall.SysProcAttr
	postgres string // directory of its programs
}

type member struct {
	name    string
	address string // of PostgreSQL
	rest    string // of Patroni
	config  string
	data    string
	log     string
	patroni *exec.Cmd
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", testkit.FreePort(t))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func port(address string) string { _, p, _ := net.SplitHostPort(address); return p }

// asPostgres runs programs that refuse to run as root.
func asPostgres(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	u, err := user.Lookup("postgres")
	must(t, err)
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	must(t, os.Chown(dir, uid, gid))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		Pdeathsig: syscall.SIGKILL}
}

func (c *cluster) run(t *testing.T, log string, program string, args ...string) *exec.Cmd {
	t.Helper()
	out, err := os.OpenFile(filepath.Join(c.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(t, err)
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.dir, out, out, c.as
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "PATH="+os.Getenv("PATH")+":/usr/sbin")
	must(t, cmd.Start())
	return cmd
}

func (c *cluster) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "signet-faults")
	must(t, err)
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		t.Fatal("PostgreSQL is not installed: run through scripts/with-patroni.sh")
	}
	c := &cluster{dir: dir, as: asPostgres(t, dir), postgres: bins[len(bins)-1]}
	client, peer := freeAddress(t), freeAddress(t)
	c.etcd = client
	etcd := c.run(t, "etcd.log", "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls",
		"http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster",
		"default=http://"+peer, "--unsafe-no-fsync")
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range c.members {
				text, _ := os.ReadFile(filepath.Join(dir, m.log))
				t.Logf("%s\n%s", m.log, text[max(0, len(text)-4000):])
			}
		}
		for _, m := range c.members {
			c.signal(m, syscall.SIGKILL)
		}
		_ = etcd.Process.Kill()
		_ = etcd.Wait()
		os.RemoveAll(dir)
	})
	var checks strings.Builder
	for i := range 3 {
		m := &member{name: fmt.Sprint("m", i+1), address: freeAddress(t), rest: freeAddress(t),
			data: filepath.Join(dir, fmt.Sprint("data", i+1)), log: fmt.Sprint("patroni", i+1, ".log")}
		m.config = c.write(t, m.name+".yml", fmt.Sprintf(`scope: signet
name: %[1]s
restapi: {listen: "%[2]s", connect_address: "%[2]s"}
etcd3: {hosts: "%[3]s"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 3
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters: {wal_log_hints: "on", max_connections: 100, fsync: "off"}
  initdb: [{encoding: UTF8}, {locale: C}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "%[4]s"
  connect_address: "%[4]s"
  bin_dir: %[5]s
  data_dir: %[6]s
  pgpass: %[6]s.pgpass
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  authentication: {superuser: {username: postgres}, replication: {username: replicator}, rewind: {username: postgres}}
  parameters: {unix_socket_directories: "%[7]s"}
watchdog: {mode: "off"}
`, m.name, m.rest, client, m.address, c.postgres, m.data, dir))
		c.members = append(c.members, m)
		fmt.Fprintf(&checks, "  server %s %s check port %s\n", m.name, m.address, port(m.rest))
		c.start(t, m)
		if i == 0 {
			c.await(t, "a first leader", func() bool { return c.leader() == m })
		}
	}
	c.await(t, "a synchronous standby", c.whole)
	c.haproxy, c.bouncer = freeAddress(t), freeAddress(t)
	haproxy := c.run(t, "haproxy.log", "haproxy", "-db", "-f", c.write(t, "haproxy.cfg", fmt.Sprintf(`defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen primary
  bind %s
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
%s`, c.haproxy, checks.String())))
	bouncer := c.run(t, "pgbouncer.log", "/usr/sbin/pgbouncer", "-q", c.write(t, "pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
`, port(c.haproxy), port(c.bouncer))))
	t.Cleanup(func() {
		for _, p := range []*exec.Cmd{haproxy, bouncer} {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return c
}

func (c *cluster) start(t *testing.T, m *member) {
	t.Helper()
	m.patroni = c.run(t, m.log, "patroni", m.config)
}

func (c *cluster) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !within(t, 4*time.Minute, holds) {
		t.Fatal("it did not happen: " + what)
	}
}

func within(t *testing.T, patience time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return false
		}
	}
	return true
}

// mend waits until the cluster is whole between two faults. Patroni 3.0.2 may never have a synchronous standby again
// after a member was frozen: its leader cannot write the key that says which one it is ("updated by someone else").
// Then the key is removed, as an operator would do, and Patroni makes it anew.
func (c *cluster) mend(t *testing.T) {
	t.Helper()
	for range 3 {
		if within(t, 45*time.Second, c.whole) {
			return
		}
		t.Log("Patroni's key of the synchronous standby is removed")
		resp, err := quick.Post("http://"+c.etcd+"/v3/kv/deleterange", "application/json",
			strings.NewReader(`{"key": "`+base64.StdEncoding.EncodeToString([]byte("/service/signet/sync"))+`"}`))
		must(t, err)
		resp.Body.Close()
	}
	t.Fatal("the cluster does not become whole")
}

// pause is the pace of who does something again and again.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

var quick = &http.Client{Timeout: time.Second}

func (c *cluster) leader() *member {
	for _, m := range c.members {
		resp, err := quick.Get("http://" + m.rest + "/primary")
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			return m
		}
	}
	return nil
}

// whole tells that there is a leader, and that both others follow it closely, one of them synchronously.
func (c *cluster) whole() bool {
	leader := c.leader()
	if leader == nil {
		return false
	}
	resp, err := quick.Get("http://" + leader.rest + "/cluster")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var all struct {
		Members []struct {
			Role, State string
			Timeline    int
			Lag         any
		}
	}
	if json.NewDecoder(resp.Body).Decode(&all) != nil || len(all.Members) != len(c.members) {
		return false
	}
	synchronous := false
	for _, m := range all.Members {
		lag, known := m.Lag.(float64)
		if m.Timeline != all.Members[0].Timeline ||
			m.Role != "leader" && (!known || lag > 1<<20 || m.State != "running" && m.State != "streaming") {
			return false
		}
		synchronous = synchronous || m.Role == "sync_standby"
	}
	return synchronous
}

// processes are those of a member: Patroni, PostgreSQL, and whatever it has started.
func (c *cluster) processes(m *member) (all []int) {
	if m.patroni != nil {
		all = append(all, m.patroni.Process.Pid)
	}
	if text, err := os.ReadFile(filepath.Join(m.data, "postmaster.pid")); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(first); err == nil {
			all = append(all, pid)
			out, _ := exec.Command("pgrep", "-P", first).Output()
			for _, child := range strings.Fields(string(out)) {
				pid, _ := strconv.Atoi(child)
				all = append(all, pid)
			}
		}
	}
	return all
}

func (c *cluster) signal(m *member, s syscall.Signal) {
	for _, pid := range c.processes(m) {
		_ = syscall.Kill(pid, s)
	}
	if s == syscall.SIGKILL && m.patroni != nil {
		_ = m.patroni.Wait()
		m.patroni = nil
	}
}

// address is how a program reaches the cluster.
func (c *cluster) address(way, database string) string {
	switch way {
	case "HAProxy":
		return "postgres://postgres@" + c.haproxy + "/" + database + "?sslmode=disable"
	case "PgBouncer":
		return "postgres://postgres@" + c.bouncer + "/" + database + "?sslmode=disable&pooler=transaction"
	}
	var hosts []string
	for _, m := range c.members {
		hosts = append(hosts, m.address)
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/" + database +
		"?sslmode=disable&target_session_attrs=read-write"
}
