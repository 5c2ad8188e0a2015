package federated

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestAPolicyNamesProvidersOfTheOrganizationOnly(t *testing.T) {
	w := newWorld(t)
	eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
	eventtest.Given(t, w.store, idp.Kind, "idp_c", "org_c", nil, idp.OIDCAdded{}, idp.Vouched{By: "x"})
	eventtest.Given(t, w.store, idp.Kind, "idp_gone", "org_b", nil, idp.OIDCAdded{}, idp.WasRemoved{})
	permit, err := (&access.Caller{UserID: "usr_admin", OrgID: "org_b", Memberships: bOwner}).In("org_b",
		access.PolicyWrite)
	must(t, err)
	for _, c := range []struct {
		name   string
		policy policy.SignIn
		wrong  []string
	}{
		{"its own and the default one's",
			policy.SignIn{Providers: []string{"idp_b", "idp_def"}, SecondFactorProviders: []string{"idp_def"},
				DefaultProvider: "idp_b"}, nil},
		{"another organization's", policy.SignIn{Providers: []string{"idp_b", "idp_c"}}, []string{"policy.idpIds[1]"}},
		{"a removed one", policy.SignIn{DefaultProvider: "idp_gone"}, []string{"policy.defaultIdpId"}},
		{"unknown ones", policy.SignIn{Providers: []string{"idp_x"}, SecondFactorProviders: []string{"idp_y"},
			DefaultProvider: "idp_x"},
			[]string{"policy.idpIds[0]", "policy.secondFactorIdpIds[0]", "policy.defaultIdpId"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := w.store.Fingerprint()
			_, refused := w.TryPolicy(t.Context(), permit, event.IfMatch{}, policy.Policy{SignIn: c.policy})
			_, _, err := w.SetPolicy(t.Context(), permit, event.IfMatch{}, policy.Policy{SignIn: c.policy})
			if !reflect.DeepEqual(refused, err) {
				t.Errorf("tried: %v, set: %v", refused, err)
			}
			var fields []string
			if e := (*errs.Error)(nil); errors.As(err, &e) {
				for _, v := range e.Fields {
					fields = append(fields, v.Field)
				}
			}
			if !slices.Equal(fields, c.wrong) || (err == nil) != (c.wrong == nil) ||
				err != nil && w.store.Fingerprint() != before {
				t.Errorf("got %v, %q", err, fields)
			}
		})
	}
}

func TestWhoeverSetsAPolicyIsToldWhoCannotSignIn(t *testing.T) {
	permit, err := (&access.Caller{UserID: "usr_admin", OrgID: "org_b", Memberships: bOwner}).In("org_b",
		access.PolicyWrite)
	must(t, err)
	owner := user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwner}}
	for _, c := range []struct {
		name  string
		given func(*world)
		ways  []policy.Way
		out   []string
	}{
		{"everything is allowed", nil, nil, nil},
		{"passwords are", nil, []policy.Way{policy.WithPassword}, nil},
		{"providers only", nil, []policy.Way{policy.WithProvider}, []string{"ann"}},
		{"providers only, and they are linked", func(w *world) { w.user("usr_b", linked("idp_b", "1")) },
			[]policy.Way{policy.WithProvider}, nil},
		{"providers only, and their link is suspended", func(w *world) {
			w.user("usr_b", linked("idp_b", "1"))
			w.idp("idp_b", idp.Vouched{By: "x"})
		}, []policy.Way{policy.WithProvider}, []string{"ann"}},
		{"the only owner keeps the password", func(w *world) { w.user("usr_b", owner) },
			[]policy.Way{policy.WithProvider}, nil},
		{"an owner, where another one can sign in", func(w *world) {
			w.user("usr_b", owner)
			w.person("usr_o", "org_b", "own", "own@b.test")
			w.user("usr_o", owner, linked("idp_b", "2"))
		}, []policy.Way{policy.WithProvider}, []string{"ann"}},
		{"who could not sign in before", func(w *world) { w.user("usr_b", user.Deactivated{}) },
			[]policy.Way{policy.WithProvider}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.user("usr_b", user.PasswordSet{})
			if c.given != nil {
				c.given(w)
			}
			p := policy.Policy{SignIn: policy.SignIn{SignInMethods: c.ways}}
			tried := tryPolicy(t, w, permit, p)
			_, noticed, err := w.SetPolicy(t.Context(), permit, event.IfMatch{}, p)
			must(t, err)
			out := noticed.LockedOut
			if !slices.Equal(out.UserNames, c.out) || out.Users != len(c.out) || noticed.Incomplete {
				t.Errorf("%+v", noticed)
			}
			if !reflect.DeepEqual(tried, noticed) {
				t.Errorf("tried: %+v, set: %+v", tried, noticed)
			}
		})
	}
}

// tryPolicy tells what is noticed about a policy that is only tried.
func tryPolicy(t *testing.T, w *world, permit access.Permit, p policy.Policy) Noticed {
	t.Helper()
	before := w.store.Fingerprint()
	noticed, err := w.TryPolicy(t.Context(), permit, event.IfMatch{}, p)
	must(t, err)
	if w.store.Fingerprint() != before {
		t.Error("trying a policy has written something")
	}
	return noticed
}

func TestWhoeverRequiresASecondFactorIsToldWhoHasNone(t *testing.T) {
	permit, err := (&access.Caller{UserID: "usr_admin", OrgID: "org_b", Memberships: bOwner}).In("org_b",
		access.PolicyWrite)
	must(t, err)
	required := policy.Policy{SecondFactorRequired: true}
	for _, c := range []struct {
		name  string
		given func(*world)
		asked policy.Policy
		out   []string
	}{
		{"nobody requires one", nil, policy.Policy{PasswordMinLength: 9}, nil},
		{"who has none", nil, required, []string{"ann"}},
		{"who has one", func(w *world) { w.user("usr_b", user.PasskeyAdded{FactorID: "fac_1"}) }, required, nil},
		{"who cannot sign in", func(w *world) { w.user("usr_b", user.Deactivated{}) }, required, nil},
		{"it was required before", func(w *world) {
			_, _, err := w.SetPolicy(w.t.Context(), permit, event.IfMatch{}, required)
			must(w.t, err)
		}, policy.Policy{SecondFactorRequired: true, PasswordMinLength: 9}, nil},
		{"the installation requires one", func(w *world) {
			eventtest.Given(w.t, w.store, installation.Kind, access.Installation, "", nil,
				installation.PolicySet{Diff: policy.Policy{}.DiffTo(required)})
		}, required, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.user("usr_b", user.PasswordSet{})
			if c.given != nil {
				c.given(w)
			}
			tried := tryPolicy(t, w, permit, c.asked)
			_, noticed, err := w.SetPolicy(t.Context(), permit, event.IfMatch{}, c.asked)
			must(t, err)
			if out := noticed.FactorMissing; !slices.Equal(out.UserNames, c.out) || out.Users != len(c.out) ||
				noticed.LockedOut.Users != 0 || !reflect.DeepEqual(tried, noticed) {
				t.Errorf("tried: %+v, set: %+v", tried, noticed)
			}
		})
	}
}

func TestNotAllOfManyUsersAreLookedAt(t *testing.T) {
	permit, err := (&access.Caller{UserID: "usr_admin", OrgID: "org_b", Memberships: bOwner}).In("org_b",
		access.PolicyWrite)
	must(t, err)
	w := newWorld(t)
	for i := range mostTried {
		name := fmt.Sprintf("many%03d", i)
		w.person("usr_"+name, "org_b", name, name+"@b.test")
		w.user("usr_"+name, user.PasswordSet{})
	}
	noticed := tryPolicy(t, w, permit, policy.Policy{SecondFactorRequired: true})
	if out := noticed.FactorMissing; !noticed.Incomplete || out.Users < mostTried-1 || out.Users > mostTried ||
		len(out.UserNames) != mostNamed {
		t.Errorf("got %d, incomplete %t, named %q", out.Users, noticed.Incomplete, out.UserNames)
	}
}

// Who is to be led to a provider by the name that they type, is led there by a domain.
func TestAPolicyThatLeadsNobodyIsNoticed(t *testing.T) {
	permit, err := (&access.Caller{UserID: "usr_n", OrgID: "org_n",
		Memberships: access.Memberships{"org_n": {access.OrgOwner}}}).In("org_n", access.PolicyWrite)
	must(t, err)
	const domain = "corp.test"
	added := org.DomainAdded{Domain: domain, Verified: true}
	byDefault := policy.SignIn{DefaultProvider: "idp_n"}
	onlyThere := policy.SignIn{SignInMethods: []policy.Way{policy.WithProvider}}
	for _, c := range []struct {
		name     string
		given    []event.Fact[org.Org]
		policy   policy.SignIn
		unrouted bool
	}{
		{"nobody is to be led", nil, policy.SignIn{}, false},
		{"passkeys are another way", nil, policy.SignIn{SignInMethods: []policy.Way{policy.WithPasskey,
			policy.WithProvider}}, false},
		{"to a default, without a domain", nil, byDefault, true},
		{"to the only way, without a domain", nil, onlyThere, true},
		{"by a domain that is only verified", []event.Fact[org.Org]{added}, byDefault, true},
		{"by a domain that DNS has proven", []event.Fact[org.Org]{added,
			org.DomainVerified{Domain: domain, Proven: true}}, onlyThere, false},
		{"by a domain on somebody's word", []event.Fact[org.Org]{added,
			org.DomainRoutingSet{Domain: domain, Routed: &org.Routing{By: "usr_root"}}}, byDefault, false},
		{"by a domain on nobody's word any more", []event.Fact[org.Org]{added,
			org.DomainRoutingSet{Domain: domain, Routed: &org.Routing{By: "usr_root"}},
			org.DomainRoutingSet{Domain: domain}}, byDefault, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, org.Kind, "org_n", "org_n",
				[]event.Claim{org.DomainClaim(domain), org.ProvenClaim(domain)},
				append([]event.Fact[org.Org]{org.Added{Name: "n"}}, c.given...)...)
			eventtest.Given(t, w.store, idp.Kind, "idp_n", "org_n", nil, idp.OIDCAdded{}, idp.Vouched{By: "x"})
			tried := tryPolicy(t, w, permit, policy.Policy{SignIn: c.policy})
			_, noticed, err := w.SetPolicy(t.Context(), permit, event.IfMatch{}, policy.Policy{SignIn: c.policy})
			must(t, err)
			if noticed.Unrouted != c.unrouted || tried.Unrouted != c.unrouted {
				t.Errorf("tried: %+v, set: %+v", tried, noticed)
			}
		})
	}
}
