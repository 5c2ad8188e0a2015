package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

func TestSettle(t *testing.T) {
	base := Config{Data: Data{DataDir: "data"}, Listen: "localhost:8080"}
	for name, c := range map[string]struct {
		change func(*Config)
		url    string
		suffix string
	}{
		"as it comes":   {func(*Config) {}, "http://localhost:8080", "localhost"},
		"every address": {func(c *Config) { c.Listen = ":80" }, "http://localhost:80", "localhost"},
		"every address, written out": {func(c *Config) { c.Listen = "0.0.0.0:80" },
			"http://localhost:80", "localhost"},
		"every address of IPv6": {func(c *Config) { c.Listen = "[::]:80" },
			"http://localhost:80", "localhost"},
		"an address": {func(c *Config) { c.Listen, c.InsecureURL = "192.0.2.1:80", true },
			"http://192.0.2.1:80", "localhost"},
		"an address of IPv6": {func(c *Config) { c.Listen, c.InsecureURL = "[2001:db8::1]:80", true },
			"http://[2001:db8::1]:80", "localhost"},
		"a host": {func(c *Config) { c.Listen, c.InsecureURL = "id.example.org:80", true },
			"http://id.example.org:80", "id.example.org"},
		"a port with a name": {func(c *Config) { c.Listen = "localhost:http" },
			"http://localhost:80", "localhost"},
		"an external URL": {func(c *Config) { c.ExternalURL = "https://ID.example.org/" },
			"https://id.example.org", "id.example.org"},
		"an external URL with an address": {func(c *Config) { c.ExternalURL = "https://[2001:db8::1]:8443" },
			"https://[2001:db8::1]:8443", "localhost"},
		"an external URL beyond ASCII": {func(c *Config) { c.ExternalURL = "https://bücher.example" },
			"https://b%C3%BCcher.example", "xn--bcher-kva.example"},
		"a suffix": {func(c *Config) { c.DomainSuffix = ".Example.ORG." },
			"http://localhost:8080", "example.org"},
		"development here": {func(c *Config) { c.Development = true },
			"http://localhost:8080", "localhost"},
		"development on a loopback name": {func(c *Config) {
			c.Development, c.ExternalURL = true, "http://Signet.LocalHost"
		}, "http://signet.localhost", "signet.localhost"},
		"development on an address": {func(c *Config) {
			c.Development, c.ExternalURL = true, "http://127.0.0.2:1"
		}, "http://127.0.0.2:1", "localhost"},
		"proxies and origins with spaces": {func(c *Config) {
			c.TrustedProxies, c.CORSOrigins = []string{" 10.0.0.0/8", "::1"}, []string{" https://a.example:8443"}
		}, "http://localhost:8080", "localhost"},
		"networks to call": {func(c *Config) {
			c.OutboundAllow = []string{" 10.0.0.0/8", "fd00::/8", "192.0.2.1"}
		}, "http://localhost:8080", "localhost"},
		"a database on another machine": {func(c *Config) { c.Database = "postgresql://db/signet" },
			"http://localhost:8080", "localhost"},
		"metrics": {func(c *Config) { c.MetricsListen = ":9090" },
			"http://localhost:8080", "localhost"},
		"mail": {func(c *Config) {
			c.SMTPURL, c.SMTPFrom = "smtps://mail.example.org", "no-reply@example.org"
		}, "http://localhost:8080", "localhost"},
		"a port that the system is to say": {func(c *Config) { c.Listen = "localhost:0" },
			"http://localhost:4711", "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			config := base
			c.change(&config)
			s, err := config.settle()
			if err != nil {
				t.Fatal(err)
			}
			s.listening(&net.TCPAddr{Port: 4711})
			if s.ExternalURL != c.url || s.DomainSuffix != c.suffix {
				t.Errorf("URL %s, suffix %s; want %s and %s", s.ExternalURL, s.DomainSuffix, c.url, c.suffix)
			}
		})
	}
	for name, change := range map[string]func(*Config){
		"no port":              func(c *Config) { c.Listen = "localhost" },
		"an empty port":        func(c *Config) { c.Listen = "localhost:" },
		"nothing to listen on": func(c *Config) { c.Listen = "" },
		"a listener beside the URL": func(c *Config) {
			c.Listen, c.ExternalURL = "nonsense", "https://id.example.org"
		},
		"a URL with a path":          func(c *Config) { c.ExternalURL = "https://id.example.org/auth" },
		"a URL with a query":         func(c *Config) { c.ExternalURL = "https://id.example.org?" },
		"a URL with a fragment":      func(c *Config) { c.ExternalURL = "https://id.example.org#x" },
		"a URL with a user":          func(c *Config) { c.ExternalURL = "https://me@id.example.org" },
		"a URL without a host":       func(c *Config) { c.ExternalURL = "https://:8443" },
		"a URL with a port too high": func(c *Config) { c.ExternalURL = "https://id.example.org:70000" },
		"cleartext for everybody":    func(c *Config) { c.ExternalURL = "http://id.example.org:8085" },
		"cleartext on an address":    func(c *Config) { c.Listen = "192.0.2.1:80" },
		"a suffix with an at":        func(c *Config) { c.DomainSuffix = "a@b" },
		"a suffix of dots":           func(c *Config) { c.DomainSuffix = "..." },
		"a suffix without room":      func(c *Config) { c.DomainSuffix = strings.Repeat("a.", 80) },
		"development elsewhere": func(c *Config) {
			c.Development, c.ExternalURL = true, "https://localhost.example.org"
		},
		"development on all addresses": func(c *Config) { c.Development, c.ExternalURL = true, "http://0.0.0.0:80" },
		"a proxy":                      func(c *Config) { c.TrustedProxies = []string{""} },
		"a network to call": func(c *Config) {
			c.OutboundAllow = []string{"10.0.0.0/8", "internal.example.org"}
		},
		"a network in mapped form": func(c *Config) { c.OutboundAllow = []string{"::ffff:10.0.0.0/104"} },
		"an origin in capitals":    func(c *Config) { c.CORSOrigins = []string{"https://A.example"} },
		"an origin with a slash":   func(c *Config) { c.CORSOrigins = []string{"https://a.example/"} },
		"an origin with a star":    func(c *Config) { c.CORSOrigins = []string{"https://*.example"} },
		"an origin that is null":   func(c *Config) { c.CORSOrigins = []string{"null"} },
		"a file for a database":    func(c *Config) { c.Database = "signet.db" },
		"mail without a sender":    func(c *Config) { c.SMTPURL = "smtps://mail.example.org" },
		"a sender without mail":    func(c *Config) { c.SMTPFrom = "no-reply@example.org" },
		"mail in the clear": func(c *Config) {
			c.SMTPURL, c.SMTPFrom = "smtp://mail.example.org?tls=none", "no-reply@example.org"
		},
	} {
		config := base
		change(&config)
		if s, err := config.settle(); err == nil {
			t.Errorf("%s is accepted: %+v", name, s)
		}
	}
}

func TestWhichNetworksAreCalled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"none as it comes": {func(*Config) {}, "[]"},
		"those that the operator allows": {func(c *Config) { c.OutboundAllow = []string{"10.1.0.0/16", "fd00::1"} },
			"[10.1.0.0/16 fd00::1/128]"},
		"a developer's own machine": {func(c *Config) { c.Development = true }, "[127.0.0.0/8 ::1/128]"},
	} {
		config := Config{Listen: "localhost:8080"}
		c.change(&config)
		s, err := config.settle()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.outbound); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestHTTPServerIsBounded(t *testing.T) {
	s := NewHTTPServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadHeaderTimeout > 10*time.Second {
		t.Errorf("headers may take %v", s.ReadHeaderTimeout)
	}
	// A request has 30 s by itself; its connection has a little more, so that the answer gets through.
	if s.ReadTimeout <= 30*time.Second || s.WriteTimeout <= s.ReadTimeout || s.WriteTimeout > time.Minute ||
		s.IdleTimeout <= 0 {
		t.Errorf("read %v, write %v, idle %v", s.ReadTimeout, s.WriteTimeout, s.IdleTimeout)
	}
	if s.MaxHeaderBytes != 32<<10 || s.HTTP2.MaxConcurrentStreams != 250 {
		t.Errorf("%d bytes of headers, %d streams", s.MaxHeaderBytes, s.HTTP2.MaxConcurrentStreams)
	}
}

// TestSlowHeaders: who sends a request byte by byte to keep a connection is sent away.
func TestSlowHeaders(t *testing.T) {
	for name, opening := range map[string]string{
		"a connection that says nothing":    "",
		"a request line without an end":     "GET /he",
		"headers without an end":            "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"HTTP/2 that stops after the magic": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewHTTPServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
			s.ReadHeaderTimeout, s.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond
			listener, err := net.Listen("tcp", "localhost:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = s.Serve(listener) }()
			defer s.Close()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, opening) // on a busy machine the server may have ended it before
			if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is still there: %v", err)
			}
		})
	}
}
