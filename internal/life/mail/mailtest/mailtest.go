// Package mailtest is a mail server for tests: a real one, over SMTP, that keeps what it is given.
//
//	sink := mailtest.Start(t)
//	… --smtp-url sink.URL --smtp-from no-reply@id.example
//	m := sink.Next(t) // waits for the next mail
//
// It can offer TLS (with a certificate of its own, see Roots), want a password, refuse a number of mails, or stall.
package mailtest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

// Message is a mail that arrived.
type Message struct {
	From, To string // of the envelope, in angle brackets no more
	Subject  string
	Text     string
	HTML     string
	Header   mail.Header
	Raw      string
}

// Options of a sink. The zero value speaks plainly and takes mail from anybody.
type Options struct {
	TLS      bool   // from the first byte on
	STARTTLS bool   // offered, and wanted before anything else
	User     string // wanted, with Password
	Password string
}

// Sink is a running mail server. It ends with the test.
type Sink struct {
	URL   string         // as --smtp-url takes it, with user and password where they are wanted
	Roots *x509.CertPool // what its certificate is signed by; nil without TLS

	options  Options
	tls      *tls.Config
	listener net.Listener
	received chan Message
	done     chan struct{}
	tests    sync.WaitGroup

	mu    sync.Mutex
	fail  int    // so many of the next mails are refused
	never string // what is said to every receiver; empty: they are taken
	stall func() // not nil: mails wait for it
}

// Start starts a sink that takes mail in the clear, which Signet allows on this machine with ?tls=none.
func Start(t testing.TB) *Sink {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith starts a sink of another kind.
func StartWith(t testing.TB, o Options) *Sink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Sink{options: o, listener: listener, received: make(chan Message, 1000), done: make(chan struct{})}
	address := url.URL{Scheme: "smtp", Host: listener.Addr().String()}
	switch {
	case o.TLS:
		address.Scheme = "smtps"
	case !o.STARTTLS:
		address.RawQuery = "tls=none"
	}
	if o.User != "" {
		address.User = url.UserPassword(o.User, o.Password)
	}
	s.URL = address.String()
	if o.TLS || o.STARTTLS {
		s.certify(t)
	}
	if o.TLS {
		s.listener = tls.NewListener(listener, s.tls)
	}
	s.tests.Go(s.accept)
	t.Cleanup(func() {
		close(s.done)
		_ = listener.Close()
		s.tests.Wait()
	})
	return s
}

// Next waits for the next mail.
func (s *Sink) Next(t testing.TB) Message {
	t.Helper()
	select {
	case m := <-s.received:
		return m
	case <-time.After(testkit.Patience):
		t.Fatal("no mail came")
		return Message{}
	}
}

// None sees that no mail is waiting. What is still on its way is not seen: let something else arrive first.
func (s *Sink) None(t testing.TB) {
	t.Helper()
	select {
	case m := <-s.received:
		t.Errorf("a mail that nobody should get: %q to %s", m.Subject, m.To)
	default:
	}
}

// Fail lets the next n mails be refused for the time being.
func (s *Sink) Fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = n
}

// Refuse lets every receiver be refused with this answer of a mail server, such as "550 unknown".
func (s *Sink) Refuse(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.never = answer
}

// Stall lets mails wait in the middle of their delivery until resume is called. stalled is closed when the first one
// does.
func (s *Sink) Stall() (stalled <-chan struct{}, resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, over := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(first) })
	s.stall = func() {
		begin()
		select {
		case <-over:
		case <-s.done:
		}
	}
	return first, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stall = nil
		close(over)
	})
}

func (s *Sink) certify(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "mailtest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(parsed)
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (s *Sink) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.tests.Go(func() {
			defer conn.Close()
			over := make(chan struct{})
			defer close(over)
			go func() {
				select {
				case <-s.done:
					_ = conn.Close()
				case <-over:
				}
			}()
			s.serve(conn)
		})
	}
}

// dialogue is one connection.
type dialogue struct {
	conn   net.Conn
	in     *bufio.Reader
	secure bool
	signed bool
	from   string
	to     string
}

func (d *dialogue) say(format string, args ...any) bool {
	_, err := fmt.Fprintf(d.conn, format+"\r\n", args...)
	return err == nil
}

func (s *Sink) serve(conn net.Conn) {
	d := &dialogue{conn: conn, in: bufio.NewReader(conn), secure: s.options.TLS}
	for more := d.say("220 mailtest"); more; {
		line, err := d.in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		more = s.command(d, strings.ToUpper(verb), rest)
	}
}

func (s *Sink) command(d *dialogue, verb, rest string) (more bool) {
	switch verb {
	case "EHLO", "HELO":
		lines := []string{"mailtest", "8BITMIME"}
		if s.options.STARTTLS && !d.secure {
			lines = append(lines, "STARTTLS")
		} else if s.options.User != "" {
			lines = append(lines, "AUTH PLAIN")
		}
		for _, l := range lines[:len(lines)-1] {
			d.say("250-%s", l)
		}
		return d.say("250 %s", lines[len(lines)-1])
	case "STARTTLS":
		d.say("220 go on")
		conn := tls.Server(d.conn, s.tls)
		if conn.Handshake() != nil {
			return false
		}
		d.conn, d.in, d.secure = conn, bufio.NewReader(conn), true
		return true
	case "AUTH":
		want := base64.StdEncoding.EncodeToString([]byte("\x00" + s.options.User + "\x00" + s.options.Password))
		if d.signed = rest == "PLAIN "+want; !d.signed {
			return d.say("535 wrong password")
		}
		return d.say("235 welcome")
	case "NOOP", "RSET":
		return d.say("250 ok")
	case "QUIT":
		d.say("221 bye")
		return false
	case "MAIL":
		if s.options.STARTTLS && !d.secure || s.options.User != "" && !d.signed {
			return d.say("530 not like this")
		}
		d.from = address(rest)
		return d.say("250 ok")
	case "RCPT":
		s.mu.Lock()
		answer := cmp.Or(s.never, "250 ok")
		s.mu.Unlock()
		d.to = address(rest)
		return d.say("%s", answer)
	case "DATA":
		return s.data(d)
	}
	return d.say("502 what?")
}

func address(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	if end := strings.LastIndexByte(rest, '>'); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

func (s *Sink) data(d *dialogue) (more bool) {
	s.mu.Lock()
	stall, refuse := s.stall, s.fail > 0
	if refuse {
		s.fail--
	}
	s.mu.Unlock()
	if stall != nil {
		stall()
	}
	if refuse {
		return d.say("451 not now, %s", d.to)
	}
	d.say("354 go on")
	var raw strings.Builder
	for {
		line, err := d.in.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		raw.WriteString(strings.TrimPrefix(line, "."))
	}
	m, err := parse(raw.String())
	if err != nil {
		return d.say("554 %v", err)
	}
	m.From, m.To = d.from, d.to
	s.received <- m
	return d.say("250 taken")
}

func parse(raw string) (Message, error) {
	m := Message{Raw: raw}
	read, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return m, err
	}
	m.Header = read.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil {
		return m, err
	}
	kind, parameters, err := mime.ParseMediaType(read.Header.Get("Content-Type"))
	if err != nil {
		return m, err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return m, m.part(kind, read.Header.Get("Content-Transfer-Encoding"), read.Body)
	}
	parts := multipart.NewReader(read.Body, parameters["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			return m, err
		}
		if err := m.part(kind, p.Header.Get("Content-Transfer-Encoding"), p); err != nil {
			return m, err
		}
	}
}

func (m *Message) part(kind, encoding string, body io.Reader) error {
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	switch kind {
	case "text/plain":
		m.Text = string(text)
	case "text/html":
		m.HTML = string(text)
	}
	return err
}
