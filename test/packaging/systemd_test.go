//go:build packages

package packaging

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// boot runs systemd as the first process of its own namespaces, on the system in the folder $1. It has the network of
// this machine.
const boot = `
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  touch dev/$device
  mount --bind /dev/$device dev/$device
done
mkdir dev/shm dev/pts dev/mqueue
mount -t devpts devpts dev/pts
ln -s pts/ptmx dev/ptmx
mkdir -p old
pivot_root . old
umount --lazy /old
exec env --ignore-environment container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=basic.target
`

// machine is a Debian with its own systemd.
type machine struct {
	dir string
	pid string // of systemd, as this machine sees it
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{dir: filepath.Join(t.TempDir(), "debian")}
	if err := os.Chmod(filepath.Dir(m.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, "cp", "--archive", os.Getenv("PACKAGES_DEBIAN"), m.dir)
	cmd := exec.Command("unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "bash",
		"-c", boot, "boot", m.dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // systemd goes with it
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s", out.String())
		}
	})
	await(t, "systemd to be there", func() bool {
		children, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/task/" +
			strconv.Itoa(cmd.Process.Pid) + "/children")
		m.pid = strings.TrimSpace(string(children))
		name, _ := os.ReadFile("/proc/" + m.pid + "/comm")
		return string(name) == "systemd\n"
	})
	await(t, "systemd to have started", func() bool {
		out, _ := m.command("systemctl", "is-system-running").Output()
		return string(out) == "running\n"
	})
	return m
}

// await asks until it is so. Nobody tells when a unit of another machine has changed.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	every, end := time.NewTicker(100*time.Millisecond), time.After(patience)
	defer every.Stop()
	for !so() {
		select {
		case <-every.C:
		case <-end:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter",
		append([]string{"--target", m.pid, "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--root", "--wd",
			"env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, args...)...)
}

func (m *machine) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		log, _ := m.command("journalctl", "--no-pager", "--unit=signet", "--lines=20").CombinedOutput()
		t.Fatalf("%q: %v\n%s\n%s", args, err, out, log)
	}
	return strings.TrimSpace(string(out))
}

func (m *machine) show(t *testing.T, property string) string {
	t.Helper()
	return m.run(t, "systemctl", "show", "--value", "--property="+property, "signet.service")
}

func answers(url string) bool {
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// TestPackagesSystemd has the unit run by systemd itself, with everything that locks it in.
func TestPackagesSystemd(t *testing.T) {
	m, port, other := newMachine(t), testkit.FreePort(t), testkit.FreePort(t)
	url := "http://127.0.0.1:" + port
	sh(t, "cp", made(t, "*.deb"), filepath.Join(m.dir, "signet.deb"))
	m.run(t, "dpkg", "--install", "/signet.deb")
	if active := m.show(t, "ActiveState"); active != "inactive" {
		t.Errorf("before it is configured, it is %s", active)
	}
	m.run(t, "sh", "-c", "echo SIGNET_LISTEN=127.0.0.1:"+port+" >>/etc/signet/signet.env")
	began := time.Now()
	m.run(t, "systemctl", "start", "signet") // waits until the server says that it is ready
	t.Logf("systemctl start took %v", time.Since(began).Round(time.Millisecond))
	if !answers(url) {
		t.Error("systemd says that it is ready, and it is not")
	}
	use(t, url, m.run(t, "cat", "/var/lib/signet/first-admin.json"))
	m.run(t, "dpkg", "--install", "/signet.deb") // an upgrade restarts it
	if !answers(url) {
		t.Error("after an upgrade it does not answer")
	}

	// A server that hangs is restarted.
	m.run(t, "sh", "-c", "mkdir -p /run/systemd/system/signet.service.d && printf '[Service]\nWatchdogSec=3s\nRestartSec=0\n' >/run/systemd/system/signet.service.d/test.conf && systemctl daemon-reload && systemctl restart signet")
	hung := m.show(t, "MainPID")
	m.run(t, "systemctl", "kill", "--signal=STOP", "signet")
	await(t, "a restart by the watchdog", func() bool { return m.show(t, "NRestarts") == "1" && answers(url) })
	if now := m.show(t, "MainPID"); now == hung {
		t.Error("the server that hung is still there")
	}

	// systemd holds the socket: the first request starts the server, and the port is that of the socket.
	m.run(t, "systemctl", "stop", "signet")
	m.run(t, "sh", "-c", "mkdir -p /run/systemd/system/signet.socket.d && printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:"+other+"\n' >/run/systemd/system/signet.socket.d/test.conf && systemctl daemon-reload && systemctl start signet.socket")
	if active := m.show(t, "ActiveState"); active != "inactive" {
		t.Errorf("before the first request, it is %s", active)
	}
	if !answers("http://127.0.0.1:" + other) {
		t.Error("the first request does not start it")
	}
	if answers(url) {
		t.Error("it listens on a port of its own, too")
	}

	m.run(t, "dpkg", "--remove", "signet")
	if answers("http://127.0.0.1:" + other) {
		t.Error("it is removed, and still there")
	}
	if said := m.run(t, "dpkg", "--purge", "signet"); !strings.Contains(said, "are kept") {
		t.Errorf("the purge says %q", said)
	}
}
