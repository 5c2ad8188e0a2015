package testkit

import (
	"net/http"
	"os/exec"
	"syscall"
	"testing"
)

// RunProxy runs a proxy, with its children, until the test ends, and waits until the server answers through it.
func RunProxy(t testing.TB, name string, cmd *exec.Cmd, client *http.Client, url string) {
	t.Helper()
	said := &Log{}
	cmd.Stdout, cmd.Stderr = said, said
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	Must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its children; asked to stop, some take ten seconds
		<-ended
		if t.Failed() {
			text := said.String()
			t.Logf("%s said:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	Await(t, name+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s does not start", name)
		default:
		}
		resp, err := client.Get(url + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}
