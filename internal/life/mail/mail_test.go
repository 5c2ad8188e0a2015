package mail

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// outbox keeps what is sent, or fails as often as it is told. It refuses some receivers, for good or not.
type outbox struct {
	mu      sync.Mutex
	sent    []Mail
	fail    int
	refuses map[string]bool
}

func (o *outbox) Send(_ context.Context, m Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail > 0 {
		o.fail--
		return errors.New("no line")
	}
	if forGood, refused := o.refuses[m.To]; refused {
		return &notify.Refusal{Cause: errors.New("no such mailbox"), ForGood: forGood}
	}
	o.sent = append(o.sent, m)
	return nil
}

// one gives the only mail since the last look.
func (o *outbox) one(t *testing.T) Mail {
	t.Helper()
	if len(o.sent) != 1 {
		t.Fatalf("%d mails were sent", len(o.sent))
	}
	m := o.sent[0]
	o.sent = nil
	return m
}

func (o *outbox) none(t *testing.T, why string) {
	t.Helper()
	if len(o.sent) != 0 {
		t.Errorf("%s: %q was sent to %s", why, o.sent[0].Subject, o.sent[0].To)
		o.sent = nil
	}
}

// post is a store whose events can be given to the mailer one by one.
type post struct {
	*eventtest.Store
	outbox
	mailer *Mailer
	follow notify.Follower
	mark   int64
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{Store: eventtest.New(t, installation.Kind, org.Kind, user.Kind, session.Kind, idp.Kind, invitation.Kind,
		member.OfferKind)}
	eventtest.Given(t, p.Store, org.Kind, "org_a", "org_a", nil, org.Added{Name: "A"})
	p.mailer = &Mailer{Store: p.Store, Master: p.Master, Clock: p.Now, Sender: &p.outbox,
		ExternalURL: "https://id.example.org"}
	p.follow = p.mailer.Follower()
	p.mark = p.Mark()
	return p
}

// deliver hands the mailer what happened since the last time.
func (p *post) deliver(t *testing.T) error {
	t.Helper()
	events, err := p.Events(t.Context(), p.mark, 100)
	must(t, err)
	var failed error
	for i := range events {
		if slices.Contains(p.follow.Types, events[i].Type) {
			failed = errors.Join(failed, p.follow.Handle(t.Context(), &events[i]))
		}
	}
	if failed == nil {
		p.mark = p.Mark()
	}
	return failed
}

// person adds usr_<name>, without a mail.
func (p *post) person(t *testing.T, name string, verified bool, profile user.Profile) {
	t.Helper()
	p.add(t, name, verified, profile)
	must(t, p.deliver(t))
	p.sent = nil
	p.Advance(time.Hour)
}

func (p *post) add(t *testing.T, name string, verified bool, profile user.Profile) {
	t.Helper()
	key := syntax.NameKey(name)
	eventtest.Given(t, p.Store, user.Kind, "usr_"+name, "org_a", []event.Claim{user.NameClaim("org_a", key)},
		user.HumanAdded{
			EmailVerified: verified,
			Personal: user.HumanFacts{UserName: name, UserNameKey: key, Profile: profile, Email: name + "@mail.test",
				EmailKey: name + "@mail.test"},
		})
}

func (p *post) happened(t *testing.T, name string, facts ...event.Fact[user.User]) {
	t.Helper()
	eventtest.Given(t, p.Store, user.Kind, "usr_"+name, "", nil, facts...)
	must(t, p.deliver(t))
}

func (p *post) signedIn(t *testing.T, name, address, userAgent string) {
	t.Helper()
	p.companion(t, name, session.Succeeded{SessionID: "ses_1",
		Personal: session.RequestSource{Address: address, UserAgent: userAgent}})
	must(t, p.deliver(t))
}

func (p *post) companion(t *testing.T, name string, facts ...event.Fact[session.SignIns]) {
	t.Helper()
	id := session.IDFor("usr_" + name)
	must(t, p.Do(t.Context(), event.Command{
		Write: []event.Ref{session.Kind.Ref(id)},
		Read:  []event.Ref{user.Kind.Ref("usr_" + name)},
		Decide: func(tx *event.Tx) error {
			c, err := session.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			if c == nil {
				_, err = session.Kind.CreateBeside(tx, id, user.Kind.Ref("usr_"+name), facts...)
				return err
			}
			return c.Append(facts...)
		},
	}))
}

var jo = user.Profile{FirstName: "Jo", LastName: "Doe", DisplayName: "Jo Doe", PreferredLanguage: "en"}

var link = regexp.MustCompile(`https://\S+`)

func TestAPersonWithAnUnverifiedAddressGetsACodeAndALinkThatProveIt(t *testing.T) {
	p := newPost(t)
	p.add(t, "jo", false, jo)
	must(t, p.deliver(t))
	m := p.one(t)
	if m.To != "jo@mail.test" || m.Kind != AccountCreated || m.Subject != "Your new account" || len(m.Code) != 8 {
		t.Errorf("%+v", m)
	}
	for _, body := range []string{m.Text, m.HTML} {
		if !strings.Contains(body, "Hello Jo Doe,") || !strings.Contains(body, m.Code) ||
			!strings.Contains(body, "id.example.org") {
			t.Errorf("the mail is\n%s", body)
		}
	}
	u, err := url.Parse(link.FindString(m.Text))
	must(t, err)
	if u.Scheme+"://"+u.Host+u.Path != "https://id.example.org/verify" || u.Query().Get("user") != "usr_jo" ||
		u.Query().Get("code") != m.Code || u.Fragment != "" {
		t.Errorf("the link is %s", u)
	}
	if p.Stored(t, m.Code) {
		t.Error("the code is stored")
	}
	_, err = user.VerifyEmailByCode(t.Context(), p.Store, p.Master, event.Origin{Actor: "usr_jo"},
		u.Query().Get("user"), u.Query().Get("code"))
	must(t, err)

	p.add(t, "known", true, jo)
	must(t, p.deliver(t))
	p.none(t, "the address was verified from the start")
}

func TestWhoAsksForACodeGetsOne(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", false, jo)
	p.happened(t, "jo", user.EmailCodeRequested{})
	first := p.one(t)
	p.happened(t, "jo", user.EmailCodeRequested{}) // whether it is too early was decided when it was asked for
	if second := p.one(t); second.Code == first.Code {
		t.Error("the same code again")
	}
	p.happened(t, "jo", user.EmailVerified{}, user.EmailCodeRequested{})
	p.none(t, "the address is verified by now")
	p.happened(t, "jo", user.EmailCodeRequested{}, user.WasRemoved{})
	p.none(t, "the user is gone")
}

func TestAMailSaysWhichAccountItIsAbout(t *testing.T) {
	for name, want := range map[string]string{
		"jo":                             "Account: jo",
		"jo.doe-1":                       "Account: jo.doe-1",
		"visit https://evil.example now": "",
		"evil.example/x":                 "",
		" jo ":                           "",
		"j\u202eo":                       "",
		strings.Repeat("j", 65):          "",
	} {
		p := newPost(t)
		p.person(t, "jo", true, jo)
		p.happened(t, "jo", user.UserNameChanged{Personal: user.UserNameFacts{UserName: &name}}, user.PasswordChanged{})
		m := p.one(t)
		for _, body := range []string{m.Text, m.HTML} {
			if got := strings.Contains(body, "Account:"); got != (want != "") || !strings.Contains(body, want) ||
				strings.Contains(body, "evil") {
				t.Errorf("%q: %s", name, body)
			}
		}
	}
}

func TestAResetGoesToAVerifiedAddress(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, user.Profile{DisplayName: "Jo", PreferredLanguage: "de-CH"})
	p.companion(t, "jo", session.PasswordResetRequested{})
	must(t, p.deliver(t))
	m := p.one(t)
	if m.Kind != ResetPassword || m.Subject != "Setzen Sie Ihr Passwort zurück" ||
		!strings.HasPrefix(m.Link, "https://id.example.org/reset?code="+m.Code+"&user=usr_jo") ||
		!strings.Contains(m.Text, m.Link) {
		t.Errorf("%+v", m)
	}
	sessions := &session.Sessions{Store: p.Store, Hasher: secret.NewCheapHasher(), Master: p.Master, Clock: p.Now,
		DefaultOrg: "org_a"}
	_, err := sessions.Reset(t.Context(), session.Reset{UserID: "usr_jo", Code: m.Code, Password: "kettle-brume"})
	must(t, err)
	must(t, p.deliver(t))
	if m := p.one(t); m.Kind != PasswordChanged || m.Code != "" {
		t.Errorf("%+v", m)
	}

	p.person(t, "lax", false, jo)
	p.companion(t, "lax", session.PasswordResetRequested{})
	must(t, p.deliver(t))
	p.none(t, "the address is not verified")
}

func TestNewsAboutTheAccount(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	for _, x := range []struct {
		fact event.Fact[user.User]
		kind Kind
	}{
		{user.PasswordSet{}, ""}, // sequence 2: it came with the user
		{user.PasswordSet{}, PasswordSet},
		{user.PasswordChanged{}, PasswordChanged},
		{user.PasswordReset{}, PasswordChanged},
		{user.SessionsEnded{}, ""},
		{user.EmailVerified{}, ""},
	} {
		p.Advance(time.Minute)
		p.happened(t, "jo", x.fact)
		if x.kind == "" {
			p.none(t, string(x.fact.EventType()))
		} else if m := p.one(t); m.Kind != x.kind || m.To != "jo@mail.test" ||
			!strings.Contains(m.Text, "2 Jan 2026") || m.Link != "" {
			t.Errorf("%+v", m)
		}
	}
	p.Advance(time.Minute)
	p.happened(t, "jo", user.PasswordChanged{})
	p.Advance(59 * time.Second)
	p.happened(t, "jo", user.PasswordChanged{})
	p.one(t) // one a minute
	p.person(t, "lax", false, jo)
	p.happened(t, "lax", user.PasswordChanged{})
	p.none(t, "the address may be a stranger's")
}

const firefox, chrome = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"

func TestASignInFromANewSourceIsNewsOnce(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	for _, x := range []struct {
		why, address, userAgent string
		news                    bool
	}{
		{"the first source of all", "192.0.2.1", firefox, false},
		{"the same", "192.0.2.1", firefox, false},
		{"a neighbouring address and a newer version", "192.0.2.99", strings.ReplaceAll(firefox, "140", "141"), false},
		{"another network", "198.51.100.7", firefox, true},
		{"which is known by now", "198.51.100.8", firefox, false},
		{"another browser", "192.0.2.1", chrome, true},
		{"another network on IPv6", "2001:db8:1:2::3", chrome, true},
		{"a neighbour of that", "2001:db8:1:9::3", chrome, false},
		{"nothing is known", "", "", false},
	} {
		p.Advance(time.Hour)
		p.signedIn(t, "jo", x.address, x.userAgent)
		if !x.news {
			p.none(t, x.why)
		} else if m := p.one(t); m.Kind != NewSignIn || !strings.Contains(m.Text, x.address) ||
			!strings.Contains(m.Text, browser(x.userAgent)) {
			t.Errorf("%s: %+v", x.why, m)
		}
	}
	row, err := p.Row(t.Context(), user.SignInSourcesRow("usr_jo"))
	must(t, err)
	if strings.Contains(string(row.Value), "Firefox") || strings.Contains(string(row.Value), "198.51") {
		t.Errorf("sources are kept in the clear: %s", row.Value)
	}
	// A mail that fails is sent when it is tried again, though the source has been noted.
	p.Advance(time.Hour)
	p.fail = 1
	p.companion(t, "jo", session.Succeeded{SessionID: "ses_2",
		Personal: session.RequestSource{Address: "203.0.113.5", UserAgent: firefox}})
	if p.deliver(t) == nil {
		t.Error("the failure was hidden")
	}
	p.Advance(time.Second)
	must(t, p.deliver(t))
	p.one(t)
}

func TestWhoseCodesAreGuessedIsToldFromWhere(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	p.companion(t, "jo", session.SecondFactorGuessed{Method: session.ByTOTP, Count: 10,
		Personal: session.RequestSource{Address: "203.0.113.5", UserAgent: "curl/8"}})
	must(t, p.deliver(t))
	if m := p.one(t); m.Kind != FactorGuessed || !strings.Contains(m.Text, "203.0.113.5") ||
		!strings.Contains(m.Text, "curl") {
		t.Errorf("%+v", m)
	}
	// Once that is erased there is nothing to tell.
	p.companion(t, "jo", session.SecondFactorGuessed{Method: session.ByTOTP, Count: 10})
	must(t, p.deliver(t))
	p.none(t, "erased")
}

func TestAMailThatFailsIsNotLostToTheCountOfMails(t *testing.T) {
	p := newPost(t)
	p.fail = 1
	p.add(t, "jo", false, jo)
	if p.deliver(t) == nil {
		t.Error("the failure was hidden")
	}
	p.Advance(5 * time.Second)
	must(t, p.deliver(t))
	if m := p.one(t); m.Kind != AccountCreated {
		t.Errorf("%+v", m)
	}
}

func TestNobodyWritesToSomebodyWhoWasErased(t *testing.T) {
	p := newPost(t)
	p.add(t, "jo", false, jo)
	p.add(t, "ann", true, jo)
	for _, name := range []string{"jo", "ann"} {
		p.companion(t, name, session.Succeeded{SessionID: "ses_1",
			Personal: session.RequestSource{Address: "192.0.2.1", UserAgent: "curl/8"}},
			session.Succeeded{SessionID: "ses_2",
				Personal: session.RequestSource{Address: "198.51.100.1", UserAgent: "wget/1"}},
			session.PasswordResetRequested{})
		must(t, p.Do(t.Context(), event.Command{
			Write: []event.Ref{user.Kind.Ref("usr_" + name), session.Companion("usr_" + name)},
			Decide: func(tx *event.Tx) error {
				u, err := user.Kind.Get(tx, "usr_"+name)
				must(t, err)
				must(t, u.Append(user.EmailCodeRequested{}, user.PasswordChanged{}, user.PasswordReset{},
					user.PasswordSet{}, user.TOTPAdded{FactorID: "fac_1"}, user.FactorRemoved{FactorID: "fac_1"}))
				return errors.Join(session.Erase(tx, u.ID), u.Erase(), u.Append(user.WasRemoved{}))
			},
		}))
	}
	must(t, p.deliver(t))
	p.none(t, "they are gone")
	for _, name := range []string{"jo", "ann"} {
		if row, err := p.Row(t.Context(), user.SignInSourcesRow("usr_"+name)); row != nil || err != nil {
			t.Errorf("a source is remembered: %v", err)
		}
	}
}

func TestWhatIsOldIsNoNews(t *testing.T) {
	p := newPost(t)
	p.add(t, "jo", false, jo)
	p.Advance(stale + time.Second)
	must(t, p.deliver(t))
	p.none(t, "it happened long ago")
}

func TestHostileNamesWriteNothingIntoAMail(t *testing.T) {
	for name, want := range map[string]string{
		"Zoë Müller":                     "Hello Zoë Müller,",
		"Dr. O'Hara-Łukasiewicz":         "Hello Dr. O'Hara-Łukasiewicz,",
		"Eve\r\nBcc: victim@mail.test":   "Hello,",
		"Eve\n\nYou have won":            "Hello Eve You have won,",
		"see evil.example now":           "Hello,",
		"https://evil.example":           "Hello,",
		"<b>bold</b>":                    "Hello,",
		"a <img src=x onerror=alert(1)>": "Hello a <img src=x onerror=alert(1)>,",
		"{{.Code}}":                      "Hello {{.Code}},",
		"Eve\u202egnp":                   "Hello Eve gnp,",
		strings.Repeat("x", 51):          "Hello,",
		"WWW evil":                       "Hello,",
		"\x00\x1b[31mred":                "Hello [31mred,",
	} {
		p := newPost(t)
		p.add(t, "jo", false, user.Profile{DisplayName: name})
		must(t, p.deliver(t))
		m := p.one(t)
		first, _, _ := strings.Cut(m.Text, "\n")
		if first != want {
			t.Errorf("%q is greeted by %q", name, first)
		}
		if strings.Contains(m.HTML, "<b>") || strings.Contains(m.HTML, "<img") ||
			strings.ContainsAny(m.Subject, "\r\n") {
			t.Errorf("%q is in the mail as it is:\n%s", name, m.HTML)
		}
		if got := len(link.FindAllString(m.Text, -1)); got != 1 {
			t.Errorf("%q: there are %d links", name, got)
		}
	}
}

func TestNobodyIsToldOfAnImport(t *testing.T) {
	p := newPost(t)
	eventtest.Given(t, p.Store, user.Kind, "usr_jo", "org_a", []event.Claim{user.NameClaim("org_a", "jo")},
		user.HumanImported{
			Password:       true,
			ChangeRequired: true,
			Personal: user.HumanFacts{UserName: "jo", UserNameKey: "jo", Profile: jo, Email: "jo@mail.test",
				EmailKey: "jo@mail.test"},
		})
	must(t, p.deliver(t))
	if len(p.sent) > 0 {
		t.Errorf("sent %+v", p.sent)
	}
	p.Advance(time.Second)
	p.happened(t, "jo", user.EmailVerified{}, user.PasswordChanged{}) // but of everything else
	if len(p.sent) != 1 {
		t.Errorf("sent %+v", p.sent)
	}
}
