package mail

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const sender = "Signet <no-reply@id.example.org>"

func TestSettingsThatCannotBeMeant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("geheim\n"), 0o600))
	for name, s := range map[string]Settings{
		"no URL":                        {URL: "mail.example.org", From: sender},
		"another scheme":                {URL: "https://mail.example.org", From: sender},
		"no host":                       {URL: "smtp://", From: sender},
		"a path":                        {URL: "smtp://mail.example.org/x", From: sender},
		"a port that is none":           {URL: "smtp://mail.example.org:0", From: sender},
		"no TLS to another machine":     {URL: "smtp://mail.example.org?tls=none", From: sender},
		"no TLS with a password":        {URL: "smtp://jo:geheim@localhost?tls=none", From: sender},
		"no TLS with a password's file": {URL: "smtp://localhost?tls=none", From: sender, PasswordFile: file},
		"no TLS over TLS":               {URL: "smtps://localhost?tls=none", From: sender},
		"an unknown parameter":          {URL: "smtp://localhost?tls=off", From: sender},
		"a user without a password":     {URL: "smtp://jo@localhost", From: sender},
		"a password without a user":     {URL: "smtp://localhost", From: sender, PasswordFile: file},
		"two passwords":                 {URL: "smtp://jo:geheim@localhost", From: sender, PasswordFile: file},
		"a file that is not there":      {URL: "smtp://jo@localhost", From: sender, PasswordFile: file + "x"},
		"no sender":                     {URL: "smtp://localhost"},
		"a sender that is none":         {URL: "smtp://localhost", From: "Signet"},
		"a broken URL":                  {URL: "smtp://jo:geheim@local host", From: sender},
	} {
		if _, err := NewSMTP(s); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sent sends a mail and gives what arrived.
func sent(t *testing.T, sink *mailtest.Sink, s Settings, m Mail) mailtest.Message {
	t.Helper()
	smtp, err := NewSMTP(s)
	must(t, err)
	must(t, smtp.Send(t.Context(), m))
	return sink.Next(t)
}

var hello = Mail{To: "jo@mail.test", Language: "de", Subject: "Grüße", Text: "Schöne Grüße\n.\n",
	HTML: "<p>Schöne Grüße</p>\n"}

func TestMailArrivesOverEveryKindOfConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("ge heim:@\n"), 0o600))
	for name, o := range map[string]mailtest.Options{
		"in the clear":                   {},
		"STARTTLS":                       {STARTTLS: true},
		"TLS":                            {TLS: true},
		"STARTTLS with a password":       {STARTTLS: true, User: "jo", Password: "ge heim:@"},
		"TLS with a password":            {TLS: true, User: "jo", Password: "ge heim:@"},
		"TLS with a password in a file ": {TLS: true, User: "jo", Password: "ge heim:@"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := mailtest.StartWith(t, o)
			s := Settings{URL: sink.URL, From: sender, Roots: sink.Roots}
			if strings.Contains(name, "file") {
				s.URL, s.PasswordFile = strings.Replace(s.URL, ":ge%20heim%3A%40@", "@", 1), file
			}
			m := sent(t, sink, s, hello)
			if m.From != "no-reply@id.example.org" || m.To != "jo@mail.test" || m.Subject != "Grüße" ||
				m.Text != "Schöne Grüße\n.\n" || m.HTML != "<p>Schöne Grüße</p>\n" {
				t.Errorf("%+v", m)
			}
			if m.Header.Get("From") != `"Signet" <no-reply@id.example.org>` ||
				m.Header.Get("Auto-Submitted") != "auto-generated" || m.Header.Get("Content-Language") != "de" ||
				!strings.HasSuffix(m.Header.Get("Message-Id"), "@id.example.org>") || m.Header.Get("X-Mailer") != "" {
				t.Errorf("%+v", m.Header)
			}
		})
	}
}

func TestMailDoesNotGoWhereItIsNotSafe(t *testing.T) {
	plain := mailtest.Start(t)
	secure := mailtest.StartWith(t, mailtest.Options{STARTTLS: true})
	tls := mailtest.StartWith(t, mailtest.Options{TLS: true})
	locked := mailtest.StartWith(t, mailtest.Options{TLS: true, User: "jo", Password: "right"})
	for name, s := range map[string]Settings{
		"no STARTTLS offered":                  {URL: strings.TrimSuffix(plain.URL, "?tls=none"), From: sender},
		"STARTTLS with an unknown certificate": {URL: secure.URL, From: sender},
		"TLS with an unknown certificate":      {URL: tls.URL, From: sender, Roots: x509.NewCertPool()},
		"a wrong password": {URL: strings.Replace(locked.URL, "right", "geheim", 1), From: sender,
			Roots: locked.Roots},
	} {
		smtp, err := NewSMTP(s)
		must(t, err)
		if err := smtp.Send(t.Context(), hello); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, sink := range []*mailtest.Sink{plain, secure, tls, locked} {
		sink.None(t)
	}
}

func TestNothingInAnAddressOrTextMakesAHeader(t *testing.T) {
	sink := mailtest.Start(t)
	s := Settings{URL: sink.URL, From: sender}
	for _, to := range []string{`"john doe"@mail.test`, `"a,b"@mail.test`, "o'hara+x@mail.test", "jo@[192.0.2.1]"} {
		if _, problem := syntax.Email(to); problem != nil {
			t.Fatalf("%s: %s", to, problem)
		}
		m := hello
		m.To = to
		if got := sent(t, sink, s, m); got.To != to || len(got.Header["Bcc"]) > 0 {
			t.Errorf("%s: went to %s, %v", to, got.To, got.Header)
		}
	}
	smtp, err := NewSMTP(s)
	must(t, err)
	for _, to := range []string{"jo@mail.test\r\nBcc: eve@mail.test", "jo@mail.test>, <eve@mail.test",
		"\"a\r\nb\"@mail.test"} {
		m := hello
		m.To = to
		if smtp.Send(t.Context(), m) == nil {
			t.Errorf("%q was sent to", to)
		}
	}
	m := hello
	m.Subject, m.Text = "Hi\r\nBcc: eve@mail.test", "Bcc: eve@mail.test\r\n\r\n"
	if got := sent(t, sink, s, m); len(got.Header["Bcc"]) > 0 || got.To != "jo@mail.test" {
		t.Errorf("%v", got.Header)
	}
	sink.None(t)
}

func TestWhatAMailServerSaysIsNotRepeatedWithTheAddress(t *testing.T) {
	sink := mailtest.Start(t)
	sink.Fail(1)
	smtp, err := NewSMTP(Settings{URL: sink.URL, From: sender})
	must(t, err)
	err = smtp.Send(t.Context(), hello)
	if err == nil || !strings.Contains(err.Error(), "not now") || strings.Contains(err.Error(), "jo@mail.test") {
		t.Errorf("%v", err)
	}
}

// TestOnlyARefusedReceiverIsARefusal: whatever else a mail server says is about the server, and passes.
func TestOnlyARefusedReceiverIsARefusal(t *testing.T) {
	for _, c := range []struct {
		answer           string // to the receiver
		refused, forGood bool
	}{
		{"550 5.1.1 unknown", true, true},
		{"452 4.2.2 mailbox full", true, false},
		{"", false, false}, // the mail itself is put off
	} {
		sink := mailtest.Start(t)
		sink.Refuse(c.answer)
		sink.Fail(1)
		smtp, err := NewSMTP(Settings{URL: sink.URL, From: sender})
		must(t, err)
		err = smtp.Send(t.Context(), hello)
		refusal, refused := errors.AsType[*notify.Refusal](err)
		if err == nil || refused != c.refused || refused && refusal.ForGood != c.forGood ||
			strings.Contains(err.Error(), "jo@mail.test") {
			t.Errorf("%q: %v, refused %t", c.answer, err, refused)
		}
	}
}

func TestAReceiverIsTakenOutOfWhatAMailServerSays(t *testing.T) {
	for _, c := range []struct{ says, to, left string }{
		{"550 5.1.1 <Jo.Ek@Mail.test>: user unknown", "Jo.Ek@Mail.test", "550 5.1.1 <…>: user unknown"},
		{"550 jo.ek@mail.test is not known, jo.ek@mail.test", "Jo.Ek@Mail.test", "550 … is not known, …"},
		{"550 no mailbox JO.EK at mail.test", "jo.ek@mail.test", "550 no mailbox … at mail.test"},
		{"550 zoë?", "Zoë@mail.test", "550 …?"},
		{"450 joint relay, jo", "jo@mail.test", "450 joint relay, …"},
		{"421 closing", "jo+a(b@mail.test", "421 closing"},
		{"421 closing", "", "421 closing"},
	} {
		if got := withoutReceiver(c.says, c.to); got != c.left {
			t.Errorf("%q becomes %q", c.says, got)
		}
	}
}

func TestAMailServerThatStallsIsGivenUpInTime(t *testing.T) {
	sink := mailtest.Start(t)
	_, resume := sink.Stall()
	defer resume()
	smtp, err := NewSMTP(Settings{URL: sink.URL, From: sender})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := smtp.Send(ctx, hello); err == nil || err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("%v", err)
	}
}

// office is a database whose nodes send mails.
type office struct{ *eventtest.Nodes }

func newOffice(db testdb.Database) *office { return &office{eventtest.NewNodes(db, model.Kinds...)} }

// node opens a node whose mails go to the sink. start lets it work, until it is stopped or the test ends.
func (o *office) node(t *testing.T, sink *mailtest.Sink) (s *store.Store, start func() (stop func())) {
	t.Helper()
	s = o.Open(t)
	smtp, err := NewSMTP(Settings{URL: sink.URL, From: sender, Roots: sink.Roots})
	must(t, err)
	m := &Mailer{Store: s, Master: s.RootKey(), Clock: o.Clock.Now, Sender: smtp, ExternalURL: "https://id.example.org"}
	r := &notify.Runner{Store: s, Log: slog.New(slog.NewTextHandler(&o.Log, nil)), Clock: o.Clock.Now,
		Followers: []notify.Follower{m.Follower()}}
	must(t, r.Begin(t.Context()))
	return s, func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx)
		}()
		stop := sync.OnceFunc(func() { cancel(); testkit.Receive(t, done, "the node has stopped") })
		t.Cleanup(stop)
		return stop
	}
}

func add(t *testing.T, s event.Store, name string) {
	t.Helper()
	id := user.Kind.NewID()
	must(t, s.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim("org_a", name)},
		Decide: func(tx *event.Tx) error {
			_, err := user.AddHuman(tx, id, "org_a",
				&user.NewHuman{UserName: name, Email: name + "@mail.test",
					Profile: user.Profile{FirstName: "F", LastName: "L"}})
			return err
		},
	}))
}

func TestAMailThatFailedIsSentLater(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		o := newOffice(db)
		sink := mailtest.StartWith(t, mailtest.Options{STARTTLS: true})
		s, start := o.node(t, sink)
		sink.Fail(1)
		start()
		add(t, s, "unlucky")
		add(t, s, "lucky")
		if m := sink.Next(t); m.To != "lucky@mail.test" {
			t.Errorf("the first mail is for %s", m.To)
		}
		o.Clock.Advance(10 * time.Second)
		if m := sink.Next(t); m.To != "unlucky@mail.test" {
			t.Errorf("the second mail is for %s", m.To)
		}
		if said := o.Log.String(); !strings.Contains(said, "will be retried") || strings.Contains(said, "@mail.test") {
			t.Errorf("the log says\n%s", said)
		}
	})
}

func TestTwoNodesSendOneMail(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		o := newOffice(db)
		sink := mailtest.Start(t)
		one, startOne := o.node(t, sink)
		two, startTwo := o.node(t, sink)
		stopOne, stopTwo := startOne(), startTwo()
		for i, name := range []string{"a", "b", "c", "d"} {
			add(t, []event.Store{one, two}[i%2], name)
			if m := sink.Next(t); m.To != name+"@mail.test" {
				t.Errorf("a mail to %s", m.To)
			}
		}
		stopOne()
		add(t, one, "e")
		if m := sink.Next(t); m.To != "e@mail.test" {
			t.Errorf("a mail to %s", m.To)
		}
		stopTwo()
		sink.None(t)
	})
}

func TestTheMailOfAKilledNodeIsSentByAnother(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		o := newOffice(db)
		stuck, sink := mailtest.Start(t), mailtest.Start(t)
		// The first node hangs in the middle of a mail and loses its database: it can neither renew its lease nor give
		// it back.
		stalled, resume := stuck.Stall()
		defer resume()
		one, startOne := o.node(t, stuck)
		_, startTwo := o.node(t, sink)
		startOne()
		add(t, one, "a")
		testkit.Receive(t, stalled, "a mail is on its way")
		must(t, one.Close())
		o.Clock.Advance(time.Minute)
		startTwo()
		if m := sink.Next(t); m.To != "a@mail.test" {
			t.Errorf("a mail to %s", m.To)
		}
	})
}
