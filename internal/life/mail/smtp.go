package mail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/signet-idm/signet/internal/eventlog/notify"
)

// sendTime bounds one delivery. A follower has a little more for an event.
const sendTime = 15 * time.Second

// Settings say how mail leaves the machine.
type Settings struct {
	URL          string // smtps://user:password@host:465, or smtp://host:587 with STARTTLS
	From         string // Signet <no-reply@id.example.org>
	PasswordFile string // the password, where it is not in the URL
	Roots        *x509.CertPool
}

// SMTP hands mails to a mail server.
type SMTP struct {
	client   *gomail.Client
	from     *mail.Address
	domain   string // of the sender
	password string
	server   string
}

// NewSMTP checks the settings. It does not connect. What it says is wrong never quotes the URL: there may be a password
// in it.
func NewSMTP(s Settings) (*SMTP, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return nil, errors.New("--smtp-url must be a URL such as smtps://user@mail.example.org:465 or smtp://mail.example.org:587")
	}
	port := 587
	options := []gomail.Option{gomail.WithTimeout(sendTime), gomail.WithTLSPolicy(gomail.TLSMandatory)}
	if u.Scheme == "smtps" {
		port = 465
		options = append(options, gomail.WithSSL())
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			return nil, errors.New("--smtp-url has an invalid port")
		}
	}
	plain := false
	switch {
	case u.RawQuery == "":
	case u.RawQuery == "tls=none" && u.Scheme == "smtp" && isLoopback(u.Hostname()) && u.User == nil:
		plain = true
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, errors.New("--smtp-url may end in ?tls=none only for smtp:// to a server on this machine without a user; no other query is allowed")
	}
	out := &SMTP{server: u.Hostname()}
	if u.User != nil {
		out.password, _ = u.User.Password()
	}
	if s.PasswordFile != "" {
		if out.password != "" {
			return nil, errors.New("the password is in --smtp-url and in --smtp-password-file: use only one of them")
		}
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("reading --smtp-password-file: %w", err)
		}
		out.password = strings.TrimRight(string(text), "\r\n")
	}
	name := u.User.Username()
	if (name == "") != (out.password == "") || plain && out.password != "" {
		return nil, errors.New("--smtp-url needs a user and a password, or neither: use smtps://user@host with --smtp-password-file, or put the password into the URL, after the user and a colon")
	}
	if name != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(name),
			gomail.WithPassword(out.password))
	}
	if out.from, err = mail.ParseAddress(s.From); err != nil {
		return nil, errors.New("--smtp-from must be the sender's address, such as Signet <no-reply@id.example.org>")
	}
	out.domain = out.from.Address[strings.LastIndexByte(out.from.Address, '@')+1:]
	options = append(options, gomail.WithPort(port), gomail.WithHELO(out.domain),
		gomail.WithTLSConfig(&tls.Config{ServerName: u.Hostname(), RootCAs: s.Roots, MinVersion: tls.VersionTLS12}))
	if out.client, err = gomail.NewClient(u.Hostname(), options...); err != nil {
		return nil, fmt.Errorf("--smtp-url: %w", err)
	}
	return out, nil
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return host == "localhost"
}

// Server is where mails go, without anything secret.
func (s *SMTP) Server() string { return s.server }

// Send delivers one mail. Its errors hold neither the password nor the receiver's address, which mail servers repeat:
// they go to the log. Errors: a *notify.Refusal where the server does not take mail for this receiver.
func (s *SMTP) Send(ctx context.Context, m Mail) error {
	err := s.send(ctx, m)
	if err == nil {
		return nil
	}
	text := withoutReceiver(err.Error(), m.To)
	if s.password != "" {
		text = strings.ReplaceAll(text, s.password, "…")
	}
	failed := errors.New(text)
	if refused, ok := errors.AsType[*gomail.SendError](err); ok && refused.Reason == gomail.ErrSMTPRcptTo &&
		refused.ErrorCode() != 0 {
		return &notify.Refusal{Cause: failed, ForGood: !refused.IsTemp()}
	}
	return failed
}

// withoutReceiver takes an address out of what a mail server says, and what stands before the @ where that is a word of
// its own, in whatever case.
func withoutReceiver(text, address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return text
	}
	text = regexp.MustCompile("(?i)"+regexp.QuoteMeta(address)).ReplaceAllLiteralString(text, "…")
	return regexp.MustCompile(`(?i)(^|[^\pL\pN])`+regexp.QuoteMeta(address[:at])+
		`($|[^\pL\pN])`).ReplaceAllString(text, "${1}…${2}")
}

func (s *SMTP) send(ctx context.Context, m Mail) error {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	// A plain address: names come from people, and nothing that does goes into a header.
	if err := msg.To("<" + m.To + ">"); err != nil {
		return err
	}
	msg.Subject(m.Subject)
	msg.SetDate()
	msg.SetMessageIDWithValue(rand.Text() + "@" + s.domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("Content-Language", m.Language)
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	// What is over in time must be over when ctx is: the client itself looks at ctx only while it connects.
	sent := make(chan error, 1)
	go func() { sent <- s.client.DialAndSendWithContext(ctx, msg) }()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Check connects to the mail server as Send does, with TLS and the password, and sends nothing. Its errors hold no
// password.
func (s *SMTP) Check(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		err := s.client.DialWithContext(ctx)
		if err == nil {
			err = s.client.Close()
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && s.password != "" {
		return errors.New(strings.ReplaceAll(err.Error(), s.password, "…"))
	}
	return err
}
