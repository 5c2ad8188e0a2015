package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhatIsWrongWithACallIsTold(t *testing.T) {
	s := newSide(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/late":
			<-r.Context().Done()
		case "/hungup":
			panic(http.ErrAbortHandler)
		case "/nonsense":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = conn.Write([]byte("nonsense\r\n\r\n"))
			conn.Close()
		}
	})
	s.names.answers["other.example.org"] = [][]string{{here}}
	clear := httptest.NewServer(nil)
	t.Cleanup(clear.Close)
	old := httptest.NewUnstartedServer(nil)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	gone := httptest.NewTLSServer(nil)
	gone.Close()
	patient := func(*Config) {}
	for name, c := range map[string]struct {
		address string
		change  func(*Config)
		want    Trouble
	}{
		"an address inside, where something listens": {strings.Replace(clear.URL, here, inside, 1), patient, NotCalled},
		"one where nothing listens":                  {"http://" + inside + ":1", patient, NotCalled},
		"a name that leads inside":                   {s.at("inside.example.com", "/"), patient, NotCalled},
		"a name that there is not":                   {s.at("nowhere.example.com", "/"), patient, UnknownName},
		"nothing listens":                            {gone.URL, patient, Closed},
		"nothing listens, without TLS":               {"http://" + here + ":1", patient, Closed},
		"a server that hangs up":                     {s.at("example.com", "/hungup"), patient, Hungup},
		"an answer that is no HTTP":                  {s.at("example.com", "/nonsense"), patient, Unclear},
		"no answer": {s.at("example.com", "/late"),
			func(c *Config) { c.Timeout = 50 * time.Millisecond }, Late},
		"a certificate for another": {s.at("other.example.org", "/"), patient, Untrusted},
		"a certificate that nobody vouches for": {s.at("example.com", "/"),
			func(c *Config) { c.Roots = x509.NewCertPool() }, Untrusted},
		"no TLS":  {strings.Replace(clear.URL, "http:", "https:", 1), patient, NoTLS},
		"old TLS": {old.URL, patient, NoTLS},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.client(t, c.change).Post(t.Context(), c.address, "text/plain", nil, 100)
			if got := TroubleOf(err); err == nil || got != c.want {
				t.Errorf("got %d, want %d: %v", got, c.want, err)
			}
		})
	}
}

// What no test can bring about on every machine.
func TestWhatTheNetworkSaysIsTold(t *testing.T) {
	for number, want := range map[syscall.Errno]Trouble{syscall.EHOSTUNREACH: NoRoute, syscall.ENETUNREACH: NoRoute,
		syscall.ECONNRESET: Hungup, syscall.EACCES: Unclear} {
		err := refusedOrFailed(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", number)})
		if got := TroubleOf(err); got != want {
			t.Errorf("%v: got %d, want %d", number, got, want)
		}
	}
}
