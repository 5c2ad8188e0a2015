package app_test

import (
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/event/eventtest"
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
		{"other redirect URIs", modify(app.SettingsChanged{RedirectURIs: &[]string{"https://evil.example/cb"}}), manager},
		{"one more redirect URI", modify(app.SettingsChanged{RedirectURIs: &[]string{"https://shop.example/cb", "https://evil.example/cb"}}), manager},
		{"the same redirect URIs", modify(app.SettingsChanged{RedirectURIs: &[]string{"https://shop.example/cb"}}), iam},
		{"another way to authenticate", modify(app.SettingsChanged{AuthMethod: new(app.SecretPost)}), manager},
		{"another name", modify(app.SettingsChanged{Name: new("Other")}), iam},
		{"where it is sent after signing out", modify(app.SettingsChanged{PostLogoutURIs: &[]string{"https://shop.example/bye"}}), iam},
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
			if !reflect.DeepEqual(a.Changer, c.want) || a.SignsInItself() != (c.want != nil) {
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
		{"one whose secret is gone", "app_active", given(app.SecretSet{}, app.SecretRemoved{}), event.IfMatch{}, app.ErrNeedsSecret},
		{"one that authenticates with a key", "app_active", given(app.SecretSet{}, app.SettingsChanged{AuthMethod: new(app.PrivateKeyJWT)}), event.IfMatch{}, app.ErrNeedsSecret},
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
				eventtest.Fact{Object: c.id, Type: "app.vouched.v1", Payload: `{"by":"usr_iam","roles":{"installation":["IAM_OWNER"]}}`})
		})
	}
}
