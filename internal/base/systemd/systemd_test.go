package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// manager listens as systemd does.
func manager(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", name)
	return conn
}

func heard(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	text := make([]byte, 100)
	n, err := conn.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:n])
}

func TestSystemdHearsStates(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@signet-test-" + strconv.Itoa(os.Getpid())} {
		conn := manager(t, name)
		for _, state := range []string{Ready, Stopping} {
			if err := Notify(state); err != nil {
				t.Fatal(err)
			}
			if got := heard(t, conn); got != state {
				t.Errorf("%s: systemd heard %q", name, got)
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify(Ready); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := Notify(Ready); err == nil || !strings.Contains(err.Error(), Ready) {
		t.Errorf("nobody listens, and Notify says %v", err)
	}
}

func TestTheWatchdogHearsOnlyOfAServiceThatIsAlive(t *testing.T) {
	conn := manager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(int(30*time.Millisecond/time.Microsecond)))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs := errors.New("it hangs")
	asked, failures, done := 0, []error{}, make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("a service that hangs would make the watchdog hang")
			}
			if asked++; asked > 1 { // alive once, then never again
				if asked == 5 {
					cancel()
				}
				return hangs
			}
			return nil
		}, func(err error) { failures = append(failures, err) })
	}()
	testkit.Receive(t, done, "the watch ends")
	if got := heard(t, conn); got != "WATCHDOG=1" {
		t.Errorf("systemd heard %q", got)
	}
	if err := conn.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("systemd heard %d bytes of a service that hangs", n)
	}
	if len(failures) != 3 || !errors.Is(failures[0], hangs) {
		t.Errorf("the failures that were told: %v", failures)
	}
}

func TestWithoutAWatchdogNobodyIsAsked(t *testing.T) {
	for _, env := range []map[string]string{
		{"WATCHDOG_USEC": "", "WATCHDOG_PID": ""},
		{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, // another process
		{"WATCHDOG_USEC": "soon", "WATCHDOG_PID": ""},
	} {
		for name, value := range env {
			t.Setenv(name, value)
		}
		Watch(t.Context(), func(context.Context) error { t.Errorf("%v: it was asked", env); return nil }, nil)
	}
}

// TestSocketsAreTakenOver runs this test again as the service: descriptors are passed from process to process.
func TestSocketsAreTakenOver(t *testing.T) {
	if os.Getenv("SYSTEMD_TEST_SERVICE") != "" {
		serveSockets()
	}
	var files []*os.File
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		files, addresses = append(files, file), append(addresses, l.Addr().String())
	}
	// The shell knows the process id that the service will have, as systemd does.
	run := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run=TestSocketsAreTakenOver`, os.Args[0])
	run.Env = append(os.Environ(), "SYSTEMD_TEST_SERVICE=1", "LISTEN_FDS=2", "LISTEN_FDNAMES=signet.socket:metrics")
	run.ExtraFiles = files
	out, err := run.CombinedOutput()
	want := "signet.socket " + addresses[0] + "\nmetrics " + addresses[1] + "\nleft \n"
	if err != nil || string(out) != want {
		t.Errorf("the service got %q, %v; want %q", out, err, want)
	}
}

// serveSockets says which sockets it has, and what is left for its children.
func serveSockets() {
	sockets, err := Sockets()
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
	for _, s := range sockets {
		os.Stdout.WriteString(s.Name + " " + s.Addr().String() + "\n")
	}
	os.Stdout.WriteString("left " + os.Getenv("LISTEN_PID") + os.Getenv("LISTEN_FDS") +
		os.Getenv("LISTEN_FDNAMES") + "\n")
	os.Exit(0)
}

func TestSocketsOfAnotherProcessAreLeftAlone(t *testing.T) {
	for _, env := range []map[string]string{
		{"LISTEN_PID": "", "LISTEN_FDS": ""},
		{"LISTEN_PID": "1", "LISTEN_FDS": "1"},
	} {
		for name, value := range env {
			t.Setenv(name, value)
		}
		if sockets, err := Sockets(); err != nil || len(sockets) != 0 {
			t.Errorf("%v: %v, %v", env, sockets, err)
		}
	}
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("LISTEN_FDS", "many")
	if _, err := Sockets(); err == nil {
		t.Error("a number that is none is accepted")
	}
}
