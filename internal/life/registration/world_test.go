package registration

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	externalURL = "https://id.signet.test"
	right       = "correct horse battery"
	terms       = "https://b.test/terms"
)

var (
	must   = testkit.Must
	home   = netip.MustParseAddr("192.0.2.1")
	hasher = secret.NewCheapHasher()
	kinds  = []event.Definition{installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, session.Kind}
)

// sent is a mail that went out.
type sent struct {
	Receiver
	link string // empty: it says that there is an account
}

// outbox keeps mails, or fails.
type outbox struct {
	mu   sync.Mutex
	sent []sent
	fail error
}

func (o *outbox) put(m sent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return o.fail
	}
	o.sent = append(o.sent, m)
	return nil
}

func (o *outbox) Register(_ context.Context, to Receiver, token string) error {
	return o.put(sent{to, token})
}

func (o *outbox) Registered(_ context.Context, to Receiver) error { return o.put(sent{to, ""}) }

// one gives the only mail since the last look.
func (o *outbox) one(t *testing.T) sent {
	t.Helper()
	if len(o.sent) != 1 {
		t.Fatalf("%d mails were sent", len(o.sent))
	}
	m := o.sent[0]
	o.sent = nil
	return m
}

// world has the organizations org_b, which is open to all, org_c, which is open to addresses in its proven domain
// c.test, and org_d, which registers nobody. In org_b and org_c is ann, whose address is verified.
type world struct {
	*Registrations
	outbox
	t     *testing.T
	store *eventtest.Store
}

func sessionsOf(t testing.TB, s event.Store, master secret.MasterKey, clock *testkit.Clock) *session.Sessions {
	t.Helper()
	factors, err := factor.New(master, externalURL)
	must(t, err)
	return &session.Sessions{Store: s, Factors: factors, Hasher: hasher, Master: master, Clock: clock.Now,
		DefaultOrg: "org_b", Standings: &session.Standings{}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, kinds...)
	w := &world{t: t, store: s}
	w.Registrations = New(sessionsOf(t, s, s.Master, s.Clock), &w.outbox)
	for id, open := range map[string]policy.Openness{"org_b": policy.ToAll, "org_c": policy.ToDomains,
		"org_d": policy.ToNobody} {
		domain := strings.TrimPrefix(id, "org_") + ".test"
		eventtest.Given(t, s, org.Kind, id, id, []event.Claim{org.DomainClaim(domain), org.ProvenClaim(domain)},
			org.Added{Name: id}, org.DomainAdded{Domain: domain}, org.DomainVerified{Domain: domain, Proven: true},
			org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{Registering: policy.Registering{Registration: open}})})
		eventtest.Given(t, s, user.Kind, "usr_ann_"+id, id, []event.Claim{user.NameClaim(id, "ann")}, user.HumanAdded{
			EmailVerified: true,
			Personal: user.HumanFacts{UserName: "ann", UserNameKey: "ann", Email: "Ann@c.test", EmailKey: "ann@c.test",
				Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}},
		})
	}
	return w
}

// policy changes what an organization asks for.
func (w *world) policy(id string, change func(*policy.Policy)) {
	w.t.Helper()
	o := eventtest.State(w.t, w.store, org.Kind, id)
	next := o.Data.Policy
	change(&next)
	eventtest.Given(w.t, w.store, org.Kind, id, "", nil, org.PolicySet{Diff: o.Data.Policy.DiffTo(next)})
}

func start(orgID, email string) Start {
	return Start{OrgID: orgID, Email: email, Language: "de", Return: "req_app", Peer: home, RequestID: "req_1"}
}

// link has a mail sent, and gives the link in it.
func (w *world) link(orgID, email string) string {
	w.t.Helper()
	must(w.t, w.Start(w.t.Context(), start(orgID, email)))
	must(w.t, w.SendWaiting(w.t.Context()))
	m := w.one(w.t)
	if m.link == "" {
		w.t.Fatal("there is an account already")
	}
	return m.link
}

func finish(link string) Finish {
	return Finish{Link: link, FirstName: "New", LastName: "Person", Password: right, Peer: home, UserAgent: "browser",
		RequestID: "req_2"}
}

func answer(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ours := errors.AsType[*errs.Error](err); ours {
		text := string(e.Reason)
		for _, f := range e.Fields {
			text += " " + f.Field
		}
		return text
	}
	return err.Error()
}

var gone = &notify.Refusal{Cause: errors.New("no such mailbox"), ForGood: true}
