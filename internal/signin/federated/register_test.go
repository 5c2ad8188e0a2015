package federated

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

func TestWhoIsRegistered(t *testing.T) {
	invalid := errs.Invalid(errs.Violation{Field: "userName"})
	for _, c := range []struct {
		name     string
		given    func(*world)
		provider string
		change   func(*idp.Identity, *Registration)
		refusal  *errs.Error
		org      string
		userName string // what it begins with
		verified bool
	}{
		{"in the organization of the provider", nil, "idp_b", nil, nil, "org_b", "new", true},
		{"with an address that was edited", nil, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.Email = "other@b.test" }, nil, "org_b", "new", false},
		{"with an address that was typed in", nil, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.EmailFromProvider = false }, nil, "org_b", "new", false},
		{"with an address that the provider has not verified", nil, "idp_b",
			func(i *idp.Identity, _ *Registration) { i.EmailVerified = false }, nil, "org_b", "new", false},
		{"with a name that is taken", nil, "idp_b", func(_ *idp.Identity, r *Registration) { r.UserName = "ANN" }, nil,
			"org_b", "ANN-", true},
		{"with the address as the name", nil, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.UserName = "NEW@b.test" }, nil, "org_b", "NEW@b.test", true},
		{"with another address as the name", nil, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.UserName = "boss@b.test" }, invalid, "", "", false},
		{"with another address in wide letters as the name", nil, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.UserName = "boss＠b.test" }, invalid, "", "", false},
		{"with an unverified address as the name", nil, "idp_b",
			func(i *idp.Identity, r *Registration) { r.UserName, i.EmailVerified = "new@b.test", false }, invalid,
			"", "", false},
		{"without a name", nil, "idp_b", func(_ *idp.Identity, r *Registration) { r.UserName = "" }, invalid,
			"", "", false},
		{"without a last name", nil, "idp_b", func(_ *idp.Identity, r *Registration) { r.LastName = "" }, invalid,
			"", "", false},
		{"where the provider registers nobody", func(w *world) { w.idp("idp_b", idp.Changed{AutoRegister: new(bool)}) },
			"idp_b", nil, session.ErrNotLinked, "", "", false},
		{"in another organization", nil, "idp_b", func(_ *idp.Identity, r *Registration) { r.OrgID = "org_def" },
			session.ErrNotLinked, "", "", false},
		{"in another organization that lets others register people",
			func(w *world) { w.policy("org_def", policy.SignIn{RegistersFromDefault: true}) }, "idp_b",
			func(_ *idp.Identity, r *Registration) { r.OrgID = "org_def" }, session.ErrNotLinked, "", "", false},
		{"in another organization by the default one's provider", nil, "idp_def",
			func(_ *idp.Identity, r *Registration) { r.OrgID = "org_b" }, session.ErrNotLinked, "", "", false},
		{"in another organization that has opted in, by the default one's provider",
			func(w *world) { w.policy("org_b", policy.SignIn{RegistersFromDefault: true}) }, "idp_def",
			func(_ *idp.Identity, r *Registration) { r.OrgID = "org_b" }, nil, "org_b", "new", true},
		{"in an organization that has opted in and does not allow the provider", func(w *world) {
			w.policy("org_b", policy.SignIn{RegistersFromDefault: true, Providers: []string{"idp_b"}})
		}, "idp_def", func(_ *idp.Identity, r *Registration) { r.OrgID = "org_b" }, session.ErrMethodNotAllowed,
			"", "", false},
		{"in an organization that does not exist", nil, "idp_def",
			func(_ *idp.Identity, r *Registration) { r.OrgID = "org_x" }, session.ErrSignInFailed, "", "", false},
		{"in an inactive organization",
			func(w *world) { eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.Deactivated{}) }, "idp_b",
			nil, session.ErrSignInFailed, "", "", false},
		{"by a provider that is switched off", func(w *world) { w.idp("idp_b", idp.Deactivated{}) }, "idp_b", nil,
			session.ErrSignInFailed, "", "", false},
		{"by a provider that was changed since", nil, "idp_b", func(i *idp.Identity, _ *Registration) { i.Version = 7 },
			session.ErrSignInFailed, "", "", false},
		{"by a provider that nobody answers for", func(w *world) { w.idp("idp_old") }, "idp_old", nil,
			session.ErrSignInFailed, "", "", false},
		{"who is linked already", func(w *world) { w.user("usr_b", linked("idp_b", "new")) }, "idp_b", nil,
			user.ErrLinkTaken, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, idp.Kind, "idp_old", "org_b", nil,
				idp.OIDCAdded{General: idp.General{Name: "old", AutoRegister: true}})
			if c.given != nil {
				c.given(w)
			}
			who := w.who(c.provider, "new")
			who.Email, who.EmailVerified = "new@b.test", true
			r := Registration{UserName: "new", FirstName: "New", LastName: "Person", NickName: "N", Language: "de",
				Email: "new@b.test", EmailFromProvider: true, Peer: home, UserAgent: "curl/8"}
			if c.change != nil {
				c.change(&who, &r)
			}
			before := w.store.Fingerprint()
			in, err := w.RegisterThrough(t.Context(), who, r)
			if c.refusal != nil {
				if c.refusal == invalid {
					if e, ok := err.(*errs.Error); !ok || e.Kind != errs.InvalidArgument {
						t.Errorf("got %v", err)
					}
				} else {
					eventtest.As(t, err, c.refusal)
				}
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			u := eventtest.State(t, w.store, user.Kind, in.UserID)
			h := u.Data.Human
			if u.Org != c.org || !strings.HasPrefix(u.Data.UserName, c.userName) || h.Email.Verified != c.verified ||
				len(h.Links) != 1 || h.Profile.FirstName != "New" || h.Profile.PreferredLanguage != "de" {
				t.Errorf("%+v, %+v", u.Data, h)
			}
			if v := h.Email.Verification; c.verified && (v.By != user.VerifiedByProvider || v.Org != who.Org) {
				t.Errorf("%+v", v)
			}
			caller, err := w.Authenticate(t.Context(), in.Token)
			must(t, err)
			if caller.UserID != in.UserID || len(caller.Memberships) != 0 {
				t.Errorf("%+v", caller)
			}
			again, err := w.signIn(who)
			must(t, err)
			if again.UserID != in.UserID {
				t.Error("the next sign-in is somebody else's")
			}
		})
	}
}

// People whom a provider registers sign in whoever set it up; another one who changes it cannot take them over.
func TestWhoeverChangesAProviderDoesNotBecomeThoseWhoWereRegistered(t *testing.T) {
	w := newWorld(t)
	w.idp("idp_b", idp.Vouched{By: "usr_s", Roles: bSettings})
	in, err := w.RegisterThrough(t.Context(), w.who("idp_b", "new"),
		Registration{UserName: "new", FirstName: "N", LastName: "P", Email: "new@b.test"})
	must(t, err)
	if again, err := w.signIn(w.who("idp_b", "new")); err != nil || again.UserID != in.UserID {
		t.Errorf("%+v, %v", again, err)
	}
	w.idp("idp_b", idp.Vouched{By: "usr_s", Roles: bSettings})
	_, err = w.signIn(w.who("idp_b", "new"))
	eventtest.As(t, err, session.ErrLinkSuspended)
	w.idp("idp_b", idp.Vouched{By: "usr_o", Roles: access.Memberships{"org_b": {access.OrgOwner}}})
	_, err = w.signIn(w.who("idp_b", "new"))
	must(t, err)
}

func TestSomebodyIsRegisteredOnce(t *testing.T) {
	w := newWorld(t)
	who := w.who("idp_b", "new")
	var all sync.WaitGroup
	done := make([]error, 64)
	for i := range done {
		all.Go(func() {
			_, done[i] = w.RegisterThrough(t.Context(), who,
				Registration{UserName: "new", FirstName: "N", LastName: "P", Email: "new@b.test"})
		})
	}
	all.Wait()
	n := 0
	for _, err := range done {
		if err == nil {
			n++
		} else {
			eventtest.As(t, err, user.ErrLinkTaken)
		}
	}
	if n != 1 {
		t.Errorf("registered %d times", n)
	}
}

// Somebody who is invited joins in the command that registers them: what lets them in is used up, and the link counts
// with the roles that they got.
func TestWhoIsInvitedJoinsThroughAProvider(t *testing.T) {
	ticket := event.RowKey{Table: event.Flows, Key: "ticket"}
	owner := []access.Role{access.OrgOwner}
	word := user.Verification{By: user.VerifiedByOwner}
	for _, c := range []struct {
		name     string
		given    func(*world)
		provider string
		change   func(*Registration)
		refusal  *errs.Error
		verified user.Verifier
	}{
		{"through the organization's provider", nil, "idp_b", nil, nil, user.VerifiedByOwner},
		{"through one that registers nobody by itself",
			func(w *world) { w.idp("idp_b", idp.Changed{AutoRegister: new(bool)}) }, "idp_b", nil, nil,
			user.VerifiedByOwner},
		{"through one that a settings manager changed",
			func(w *world) { w.idp("idp_b", idp.Vouched{By: "usr_s", Roles: bSettings}) }, "idp_b", nil, nil,
			user.VerifiedByOwner},
		{"through the default organization's provider", nil, "idp_def", nil, nil, user.VerifiedByOwner},
		{"with an address that nobody has confirmed", nil, "idp_b",
			func(r *Registration) { r.Verification = user.Verification{} }, nil, ""},
		{"under the confirmed address", nil, "idp_b", func(r *Registration) { r.UserName = "New@b.test" }, nil,
			user.VerifiedByOwner},
		{"under an address that nobody has confirmed", nil, "idp_b",
			func(r *Registration) { r.UserName, r.Verification = "new@b.test", user.Verification{} },
			errs.Invalid(errs.Violation{Field: "userName"}), ""},
		{"through one that the organization does not allow",
			func(w *world) { w.policy("org_b", policy.SignIn{Providers: []string{"idp_b"}}) }, "idp_def", nil,
			session.ErrMethodNotAllowed, ""},
		{"through one of another organization", nil, "idp_c", nil, session.ErrNotLinked, ""},
		{"after what lets them in was used", func(w *world) {
			must(w.t, w.store.Do(w.t.Context(),
				event.Command{Origin: event.Origin{Actor: event.System},
					Decide: func(tx *event.Tx) error { tx.DropRow(ticket); return nil }}))
		}, "idp_b", nil, session.ErrSignInFailed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
			eventtest.Given(t, w.store, idp.Kind, "idp_c", "org_c", nil,
				idp.OIDCAdded{General: idp.General{Name: "c", AutoRegister: true},
					OIDC: idp.OIDC{Issuer: "https://c.test"}},
				idp.Vouched{By: "usr_admin", Roles: iamOwner})
			w.store.GivenRow(event.Row{RowKey: ticket, Value: []byte{1}})
			if c.given != nil {
				c.given(w)
			}
			who := w.who(c.provider, "new")
			who.Email = "elsewhere@up.test"
			r := Registration{OrgID: "org_b", UserName: "new", FirstName: "New", LastName: "Person",
				Email: "new@b.test", Verification: word}
			join := func(tx *event.Tx, u *event.Object[user.User]) error {
				row, err := tx.Row(ticket)
				if err != nil {
					return err
				}
				if row == nil {
					return session.ErrSignInFailed
				}
				tx.DropRow(ticket)
				return u.Append(user.MembershipSet{Scope: "org_b", Roles: owner})
			}
			if c.change != nil {
				c.change(&r)
			}
			before := w.store.Fingerprint()
			in, err := w.RegisterInvited(t.Context(), who, r, event.Command{Rows: []event.RowKey{ticket}}, join)
			if c.refusal != nil {
				if got, is := errors.AsType[*errs.Error](err); !is || got.Kind != c.refusal.Kind ||
					got.Reason != c.refusal.Reason {
					t.Errorf("got %v", err)
				}
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			u := eventtest.State(t, w.store, user.Kind, in.UserID)
			if v := u.Data.Human.Email; u.Org != "org_b" || v.Address != "new@b.test" ||
				v.Verification.By != c.verified || v.Verified != (c.verified != "") ||
				!slices.Equal(u.Data.Memberships["org_b"], owner) {
				t.Errorf("%+v, %+v", u.Data, u.Data.Human)
			}
			if again, err := w.signIn(who); err != nil || again.UserID != in.UserID {
				t.Errorf("the next sign-in: %+v, %v", again, err)
			}
		})
	}
}

func TestProvidersRegisterNobodyPastTheTerms(t *testing.T) {
	const terms = "https://b.test/terms"
	for _, c := range []struct {
		name            string
		asked, accepted string
		invited         bool
		refused         bool
		recorded        string
	}{
		{"none are asked for", "", "", false, false, ""},
		{"none are asked for, and some are accepted", "", terms, false, false, ""},
		{"they are accepted", terms, terms, false, false, terms},
		{"they are not accepted", terms, "", false, true, ""},
		{"others are accepted", terms, terms + "/1", false, true, ""},
		{"somebody who is invited", terms, "", true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventtest.Given(t, w.store, org.Kind, "org_b", "", nil,
				org.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{Registering: policy.Registering{TermsURI: c.asked}})})
			var join func(*event.Tx, *event.Object[user.User]) error
			if c.invited {
				join = func(*event.Tx, *event.Object[user.User]) error { return nil }
			}
			r := Registration{UserName: "new", FirstName: "N", LastName: "P", Email: "new@b.test",
				AcceptedTerms: c.accepted}
			in, err := w.RegisterInvited(t.Context(), w.who("idp_b", "new"), r, event.Command{}, join)
			if c.refused {
				if e, ok := err.(*errs.Error); !ok || e.Kind != errs.InvalidArgument || len(e.Fields) != 1 ||
					e.Fields[0].Field != user.TermsField {
					t.Errorf("got %v", err)
				}
				return
			}
			must(t, err)
			got := ""
			if accepted := eventtest.State(t, w.store, user.Kind, in.UserID).Data.Human.Terms; accepted != nil {
				got = accepted.URI
			}
			if got != c.recorded {
				t.Errorf("%q is recorded", got)
			}
		})
	}
}
