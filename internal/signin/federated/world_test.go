package federated

import (
	"net/netip"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	must = testkit.Must
	home = netip.MustParseAddr("192.0.2.1")

	iamOwner  = access.Memberships{access.Installation: {access.IAMOwner}}
	bOwner    = access.Memberships{"org_b": {access.OrgOwner}}
	bSettings = access.Memberships{"org_b": {access.OrgSettingsManager}}
)

// world has the default organization org_def and org_b, which has proven b.test by DNS, with a person each (usr_def,
// usr_b) and a provider each (idp_def, idp_b). Somebody who may do everything there has set the providers up.
type world struct {
	Sessions
	t     *testing.T
	store *eventtest.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, app.Kind, idp.Kind, session.Kind)
	factors, err := factor.New(s.Master, "https://id.signet.test")
	must(t, err)
	w := &world{t: t, store: s,
		Sessions: Sessions{&session.Sessions{Store: s, Factors: factors, Master: s.Master, Clock: s.Now,
			DefaultOrg: "org_def", Standings: &session.Standings{}}}}
	eventtest.Given(t, s, org.Kind, "org_def", "org_def", nil, org.Added{Name: "def"})
	eventtest.Given(t, s, org.Kind, "org_b", "org_b",
		[]event.Claim{org.DomainClaim("b.test"), org.ProvenClaim("b.test")}, org.Added{Name: "b"},
		org.DomainAdded{Domain: "b.test", Verified: true, Primary: true},
		org.DomainVerified{Domain: "b.test", Proven: true})
	w.person("usr_def", "org_def", "jo", "jo@def.test")
	w.person("usr_b", "org_b", "ann", "ann@b.test")
	for id, by := range map[string]access.Memberships{"def": iamOwner, "b": bOwner} {
		eventtest.Given(t, s, idp.Kind, "idp_"+id, "org_"+id, nil,
			idp.OIDCAdded{General: idp.General{Name: id, AutoRegister: true},
				OIDC: idp.OIDC{Issuer: "https://" + id + ".test"}},
			idp.Vouched{By: "usr_admin", Roles: by})
	}
	return w
}

func (w *world) person(id, orgID, name, email string) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, user.Kind, id, orgID, []event.Claim{user.NameClaim(orgID, syntax.NameKey(name))},
		user.HumanAdded{
			EmailVerified: true,
			Verification:  &user.Verification{By: user.VerifiedByOwner, At: 1},
			Personal: user.HumanFacts{UserName: name, UserNameKey: syntax.NameKey(name), Email: email, EmailKey: email,
				Profile: user.Profile{FirstName: "F", LastName: "L", DisplayName: "D"}},
		})
}

func (w *world) user(id string, facts ...event.Fact[user.User]) {
	w.t.Helper()
	var claims []event.Claim
	for _, f := range facts {
		if l, ok := f.(user.LinkAdded); ok {
			claims = append(claims, user.LinkClaim(l.Provider, l.Personal.Issuer, l.Personal.Subject))
		}
	}
	eventtest.Given(w.t, w.store, user.Kind, id, "", claims, facts...)
}

func (w *world) idp(id string, facts ...event.Fact[idp.Provider]) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, idp.Kind, id, "", nil, facts...)
}

func (w *world) policy(id string, p policy.SignIn) {
	w.t.Helper()
	o := eventtest.State(w.t, w.store, org.Kind, id)
	eventtest.Given(w.t, w.store, org.Kind, id, "", nil,
		org.PolicySet{Diff: o.Data.Policy.DiffTo(policy.Policy{SignIn: p,
			SecondFactorRequired: o.Data.Policy.SecondFactorRequired})})
}

// linked is a link of somebody to the subject of the same name at a provider.
func linked(provider, subject string) user.LinkAdded {
	return user.LinkAdded{LinkID: "lnk_" + subject, Provider: provider, Created: 1,
		Personal: user.LinkFacts{Issuer: "https://up.test", Subject: subject}}
}

// who is an identity as a provider tells of it now.
func (w *world) who(provider, subject string) idp.Identity {
	w.t.Helper()
	p := eventtest.State(w.t, w.store, idp.Kind, provider)
	who := idp.Identity{Provider: provider, Org: p.Org, Epoch: p.Data.Epoch, Issuer: "https://up.test",
		Subject: subject}
	if p.Data.Changer != nil {
		who.Version = p.Data.Changer.Version
	}
	return who
}

func (w *world) signIn(who idp.Identity) (session.SignedIn, error) {
	w.t.Helper()
	return w.SignInThrough(w.t.Context(), who, SignInRequest{Peer: home, UserAgent: "curl/8", RequestID: "req_1"})
}

// caller is somebody in a session that was opened in some way a while ago.
func (w *world) caller(userID string, proof session.Proof, ago time.Duration) *access.Caller {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Session)
	u := eventtest.State(w.t, w.store, user.Kind, userID)
	at := event.Micros(w.store.Now().Add(-ago))
	proof.At = at
	data := string(mustJSON(w.t, proof))
	w.store.GivenToken(event.Token{
		ID:       event.NewID("ses"),
		Hash:     hash,
		Kind:     string(secret.Session),
		UserID:   userID,
		Epoch:    u.Data.SessionEpoch,
		Created:  at,
		Expires:  event.Micros(w.store.Now().Add(time.Hour)),
		Provider: proof.Upstream.Of(),
		Data:     data,
	})
	c, err := w.Authenticate(w.t.Context(), text)
	must(w.t, err)
	return c
}

// byPassword is a proof of the usual kind.
var byPassword = session.Proof{Methods: []session.Method{session.ByPassword}}
