package invitation

import (
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/mailcount"
	"github.com/signet-idm/signet/internal/signin/session"
)

// sends is the link that somebody sends usr_bea to set the password.
func (w *world) sends(by string) (token string, err error) {
	w.t.Helper()
	permit, err := w.as(by).In("org_a", access.CredentialWrite)
	must(w.t, err)
	made, err := w.SendSetup(w.t.Context(), permit, "usr_bea", event.IfMatch{})
	if err != nil {
		return "", err
	}
	if made.Link != "" {
		u, err := url.Parse(made.Link)
		must(w.t, err)
		return u.Query().Get(ParamToken), nil
	}
	events, err := w.store.EventsOf(w.t.Context(), "usr_bea", 1, 100)
	must(w.t, err)
	d, err := MailedSetup(w.t.Context(), w.store, w.store.Master, &events[len(events)-1])
	must(w.t, err)
	return d.Text, nil
}

func (w *world) use(token string) error {
	w.t.Helper()
	_, err := w.UseSetup(w.t.Context(), w.newcomers.Sessions, SetPassword{Token: token, Password: right, Peer: home})
	return err
}

func TestALinkToSetAPasswordIsWorthNoMoreThanItsSender(t *testing.T) {
	for _, c := range []struct {
		name    string
		mail    bool
		given   func(*world)
		refusal *errs.Error
	}{
		{"by mail", true, nil, nil},
		{"shown", false, nil, nil},
		{"the user was promoted since", false,
			func(w *world) {
				w.user("usr_bea",
					user.MembershipSet{Scope: "org_a", Roles: owner["org_a"]})
			}, ErrSetupLink},
		{"the user got a role elsewhere since", false,
			func(w *world) {
				w.user("usr_bea",
					user.MembershipSet{Scope: "org_def", Roles: viewer["org_a"]})
			}, ErrSetupLink},
		{"the sender may not any more", false,
			func(w *world) { w.user("usr_manager", user.MembershipSet{Scope: "org_a"}) }, ErrSetupLink},
		{"the sender is switched off", true,
			func(w *world) { w.user("usr_manager", user.Deactivated{}) }, ErrSetupLink},
		{"the sender is gone", true, func(w *world) { w.user("usr_manager", user.WasRemoved{}) }, ErrSetupLink},
		{"the user is locked", true, func(w *world) { w.user("usr_bea", user.WasLocked{}) }, ErrSetupLink},
		{"the address was changed since", true, func(w *world) {
			other := "other@b.test"
			w.user("usr_bea", user.EmailChanged{Personal: user.EmailFacts{Email: &other, EmailKey: &other}})
		}, ErrSetupLink},
		{"the password was changed since", true,
			func(w *world) { w.user("usr_bea", user.PasswordChanged{}) }, ErrSetupLink},
		{"another one was sent since", true, func(w *world) {
			w.store.Advance(2 * time.Minute)
			_, err := w.sends("usr_manager")
			must(w.t, err)
		}, ErrSetupLink},
		{"expired", true, func(w *world) { w.store.Advance(DefaultLife) }, ErrSetupLink},
		{"passwords are not allowed", true, func(w *world) {
			o := eventtest.State(w.t, w.store, org.Kind, "org_a")
			eventtest.Given(w.t, w.store, org.Kind, "org_a", "", nil,
				org.PolicySet{Diff: o.Data.Policy.DiffTo(policy.Policy{SignIn: policy.SignIn{SignInMethods: []policy.Way{policy.WithPasskey}}})})
		}, session.ErrMethodNotAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.mail)
			w.person("usr_bea", "org_a", "bea@b.test", "")
			token, err := w.sends("usr_manager")
			must(t, err)
			if w.store.Stored(t, token) {
				t.Error("the link is stored")
			}
			if c.given != nil {
				c.given(w)
			}
			before := w.store.Fingerprint()
			err = w.use(token)
			if c.refusal != nil {
				eventtest.As(t, err, c.refusal)
				if w.store.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			must(t, err)
			in, err := w.newcomers.SignIn(t.Context(),
				session.Attempt{LoginName: "usr_bea", Password: right, OrgID: "org_a", Peer: home})
			must(t, err)
			u := eventtest.State(t, w.store, user.Kind, "usr_bea")
			if in.UserID != "usr_bea" || in.ChangeRequired || u.Data.Human.Email.Verified != c.mail {
				t.Errorf("%+v, %+v", in, u.Data.Human.Email)
			}
			eventtest.As(t, w.use(token), ErrSetupLink)
		})
	}
}

// Whoever was shown the link may have used it: such a password is not enough to accept roles elsewhere.
func TestAPasswordThroughAShownLinkIsNotThePersonsOwn(t *testing.T) {
	for _, mail := range []bool{true, false} {
		w := newWorld(t, mail)
		w.person("usr_bea", "org_a", "bea@a.test", user.VerifiedByOwner)
		token, err := w.sends("usr_manager")
		must(t, err)
		must(t, w.use(token))
		u := eventtest.State(t, w.store, user.Kind, "usr_bea")
		if refused := u.Data.MayAccept([]access.Role{access.OrgOwner}) != nil; refused == mail {
			t.Errorf("by mail: %t, refused: %t", mail, refused)
		}
	}
}

// Roles elsewhere may come after a link was shown: whoever gave them reads that it was used. By mail it is the person's
// own act.
func TestHostsReadThatAShownLinkWasUsed(t *testing.T) {
	for _, mail := range []bool{true, false} {
		w := newWorld(t, mail)
		w.person("usr_bea", "org_a", "bea@a.test", user.VerifiedByOwner)
		token, err := w.sends("usr_owner")
		must(t, err)
		w.user("usr_bea", user.MembershipSet{Scope: "org_def", Roles: []access.Role{access.OrgOwnerViewer}})
		mark := w.store.Mark()
		must(t, w.use(token))
		var told []eventtest.Fact
		for _, f := range w.store.Since(t, mark) {
			if f.Object == "org_def" {
				told = append(told, f)
			}
		}
		want := `{"userId":"usr_bea","org":"org_a","event":"user.password_set.v1"}`
		if mail && told != nil ||
			!mail && (len(told) != 1 || told[0].Type != "org.guest_credential_set.v1" || told[0].Payload != want) {
			t.Errorf("by mail: %t, told %v", mail, told)
		}
	}
}

func TestWhoSendsALinkToSetAPassword(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_bea", "org_a", "bea@b.test", "")
	w.user("usr_bea", user.MembershipSet{Scope: "org_a", Roles: owner["org_a"]})
	_, err := w.sends("usr_manager")
	eventtest.As(t, err, access.ErrTargetHoldsMore)
	_, err = w.sends("usr_owner")
	must(t, err)
	_, err = w.sends("usr_owner")
	eventtest.As(t, err, mailcount.ErrTooMany)
	w.user("usr_bea", user.Deactivated{})
	_, err = w.sends("usr_owner")
	eventtest.As(t, err, session.ErrUserNotActive)
}

func TestALinkSetsAPasswordOnce(t *testing.T) {
	w := newWorld(t, true)
	w.person("usr_bea", "org_a", "bea@b.test", "")
	token, err := w.sends("usr_manager")
	must(t, err)
	if e, is := errors.AsType[*errs.Error](func() error {
		_, err := w.UseSetup(t.Context(), w.newcomers.Sessions, SetPassword{Token: token, Password: "short"})
		return err
	}()); !is || e.Kind != errs.InvalidArgument {
		t.Errorf("%v", e)
	}
	var all sync.WaitGroup
	done := make([]error, 16)
	for i := range done {
		all.Go(func() { done[i] = w.use(token) })
	}
	all.Wait()
	n := 0
	for _, err := range done {
		if err == nil {
			n++
		} else if !errors.Is(err, ErrSetupLink) && !errors.Is(err, secret.ErrBusy) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("used %d times", n)
	}
}
