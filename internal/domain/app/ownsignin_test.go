package app_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// byManager is the permit of somebody who manages the settings of org_a.
func byManager(t *testing.T) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_m", OrgID: "org_a", Memberships: manages}).In("org_a", access.AppWrite)
	must(t, err)
	return p
}

var manages = access.Memberships{"org_a": {access.OrgSettingsManager}}

func TestWhoAnswersForAnApplicationWithItsOwnSignInPage(t *testing.T) {
	iam := &app.Changer{UserID: "usr_iam", Roles: access.Memberships{access.Installation: {access.IAMOwner}}}
	manager := &app.Changer{UserID: "usr_m", Roles: manages}
	modify := func(m app.SettingsChanged) func(*testing.T, *eventtest.Store) error {
		return func(t *testing.T, s *eventtest.Store) error {
			_, err := app.Modify(t.Context(), s, byManager(t), "app_active", event.IfMatch{}, m)
			return err
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *eventtest.Store) error
		want   *app.Changer
	}{
		{"nothing", func(*testing.T, *eventtest.Store) error { return nil }, iam},
		{"a new secret", func(t *testing.T, s *eventtest.Store) error {
			_, _, err := app.GenerateSecret(t.Context(), s, byManager(t), "app_active", event.IfMatch{}, 0)
			return err
		}, manager},
		{"other redirect URIs",
			modify(app.SettingsChanged{RedirectURIs: &[]string{"https://evil.example/cb"}}), manager},
		{"one more redirect URI",
			modify(app.SettingsChanged{RedirectURIs: &[]string{"https://shop.example/cb",
				"https://evil.example/cb"}}), manager},
		{"the same redirect URIs",
			modify(app.SettingsChanged{RedirectURIs: &[]string{"https://shop.example/cb"}}), iam},
		{"another way to authenticate", modify(app.SettingsChanged{AuthMethod: new(app.SecretPost)}), manager},
		{"another name", modify(app.SettingsChanged{Name: new("Other")}), iam},
		{"where it is sent after signing out",
			modify(app.SettingsChanged{PostLogoutURIs: &[]string{"https://shop.example/bye"}}), iam},
		{"switched off", func(t *testing.T, s *eventtest.Store) error {
			_, err := app.SetOwnSignIn(t.Context(), s, ownerA, "app_active", event.IfMatch{}, false)
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			generate(t, s, 0)
			for range 2 {
				_, err := app.SetOwnSignIn(t.Context(), s, ownerA, "app_active", event.IfMatch{}, true)
				must(t, err)
			}
			must(t, c.change(t, s))
			a := eventtest.State(t, s, app.Kind, "app_active").Data
			if (a.Changer == nil) != (c.want == nil) ||
				c.want != nil &&
					(a.Changer.UserID != c.want.UserID || !reflect.DeepEqual(a.Changer.Roles, c.want.Roles)) ||
				a.SignsInItself() != (c.want != nil) {
				t.Errorf("%+v answers for it, want %+v", a.Changer, c.want)
			}
			// Whoever allows it answers for it, also where it is allowed already.
			_, err := app.SetOwnSignIn(t.Context(), s, ownerA, "app_active", event.IfMatch{}, true)
			must(t, err)
			if got := eventtest.State(t, s, app.Kind, "app_active").Data.Changer; !reflect.DeepEqual(got, iam) {
				t.Errorf("after all %+v answers for it", got)
			}
		})
	}
}

func TestWhichApplicationsHaveTheirOwnSignInPage(t *testing.T) {
	none := func(*testing.T, *eventtest.Store) {}
	given := func(facts ...event.Fact[app.App]) func(*testing.T, *eventtest.Store) {
		return func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, app.Kind, "app_active", "", nil, facts...)
		}
	}
	for _, c := range []struct {
		name, id string
		given    func(*testing.T, *eventtest.Store)
		match    event.IfMatch
		want     *errs.Error
	}{
		{"one with a secret", "app_active", given(app.SecretSet{}), event.IfMatch{}, nil},
		{"one without", "app_active", none, event.IfMatch{}, app.ErrNeedsSecret},
		{"one whose secret is gone", "app_active", given(app.SecretSet{}, app.SecretRemoved{}), event.IfMatch{},
			app.ErrNeedsSecret},
		{"one that authenticates with a key", "app_active",
			given(app.SecretSet{}, app.SettingsChanged{AuthMethod: new(app.PrivateKeyJWT)}), event.IfMatch{},
			app.ErrNeedsSecret},
		{"one in a browser", "app_spa", none, event.IfMatch{}, app.ErrNeedsSecret},
		{"one that is gone", "app_gone", none, event.IfMatch{}, app.ErrNotFound},
		{"one of another organization", "app_foreign", none, event.IfMatch{}, app.ErrNotFound},
		{"one that has moved", "app_active", given(app.SecretSet{}), stale, moved},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			c.given(t, s)
			mark := s.Mark()
			_, err := app.SetOwnSignIn(t.Context(), s, ownerA, c.id, c.match, true)
			if c.want != nil {
				eventtest.As(t, err, c.want)
				s.Then(t, mark)
				return
			}
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: c.id, Type: "app.own_sign_in_set.v1", Payload: `{"allowed":true}`},
				eventtest.Fact{Object: c.id, Type: "app.vouched.v1",
					Payload: `{"by":"usr_iam","roles":{"installation":["IAM_OWNER"]}}`})
		})
	}
}

// Who changes one part of an application with its own sign-in page answers for that part, and not for what others
// changed before.
func TestAnEditorAnswersForNoSecretThatSomebodyElseMade(t *testing.T) {
	holds := map[string]access.Memberships{"usr_m": {"org_a": {access.OrgSettingsManager}},
		"usr_o": {"org_a": {access.OrgOwner}}, "usr_i": {access.Installation: {access.IAMOwner}}}
	type change = func(*eventtest.Store, access.Permit) error
	secret := func(keep time.Duration) change {
		return func(s *eventtest.Store, p access.Permit) error {
			_, _, err := app.GenerateSecret(t.Context(), s, p, "app_active", event.IfMatch{}, keep)
			return err
		}
	}
	redirect := func(to string) change {
		return func(s *eventtest.Store, p access.Permit) error {
			_, err := app.Modify(t.Context(), s, p, "app_active", event.IfMatch{},
				app.SettingsChanged{RedirectURIs: &[]string{to}})
			return err
		}
	}
	method := func(s *eventtest.Store, p access.Permit) error {
		_, err := app.Modify(t.Context(), s, p, "app_active", event.IfMatch{},
			app.SettingsChanged{AuthMethod: new(app.SecretPost)})
		return err
	}
	allow := func(s *eventtest.Store, p access.Permit) error {
		_, err := app.SetOwnSignIn(t.Context(), s, p, "app_active", event.IfMatch{}, true)
		return err
	}
	type step struct {
		by string
		do change
	}
	for _, c := range []struct {
		name   string
		steps  []step
		counts bool // for somebody whom an owner of the organization could be
	}{
		{"a manager's secret", []step{{"usr_m", secret(0)}}, false},
		{"and an owner's address", []step{{"usr_m", secret(0)}, {"usr_o", redirect("https://shop.example/2")}}, false},
		{"and an owner's method", []step{{"usr_m", secret(0)}, {"usr_o", method}}, false},
		{"and an owner's secret", []step{{"usr_m", secret(0)}, {"usr_o", secret(0)}}, true},
		{"and an owner's secret beside it", []step{{"usr_m", secret(0)}, {"usr_o", secret(time.Hour)}}, false},
		{"and an owner's secret after both",
			[]step{{"usr_m", secret(0)}, {"usr_o", secret(time.Hour)}, {"usr_o", secret(0)}}, true},
		{"and all that there is of an owner's, beside it",
			[]step{{"usr_m", secret(0)}, {"usr_o", redirect("https://shop.example/2")}, {"usr_o", method},
				{"usr_o", secret(time.Hour)}}, false},
		{"and somebody allows it again", []step{{"usr_m", secret(0)}, {"usr_i", allow}}, true},
		{"an owner's secret, and a manager's address",
			[]step{{"usr_o", secret(0)}, {"usr_m", redirect("https://shop.example/2")}}, false},
		{"an owner's secret and address after a manager's",
			[]step{{"usr_m", redirect("https://shop.example/2")}, {"usr_o", secret(0)},
				{"usr_o", redirect("https://shop.example/3")}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			generate(t, s, 0)
			must(t, allow(s, of(t, "org_a", access.AppWrite, holds["usr_i"])))
			for _, step := range c.steps {
				p, err := (&access.Caller{UserID: step.by, OrgID: "org_a", Memberships: holds[step.by]}).In("org_a",
					access.AppWrite)
				must(t, err)
				must(t, step.do(s, p))
			}
			changer := eventtest.State(t, s, app.Kind, "app_active").Data.Changer
			if got := changer.All(func(roles access.Memberships) bool {
				return roles.Cover(holds["usr_o"])
			}); got != c.counts {
				t.Errorf("counts %t: %+v", got, changer)
			}
		})
	}
}
