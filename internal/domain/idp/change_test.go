package idp_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// storedSecret opens the secret that is in a side table; empty where there is none.
func storedSecret(t *testing.T, s *eventtest.Store, id string) string {
	t.Helper()
	row, err := s.Row(t.Context(), idp.SecretRow(id))
	must(t, err)
	if row == nil {
		return ""
	}
	plain, err := s.Master.Unwrap("idp client secret", row.Value, []byte(id))
	must(t, err)
	return string(plain)
}

func TestANewOIDCProviderKeepsItsSecretBesideTheLog(t *testing.T) {
	const clientSecret = "a very secret secret"
	for name, c := range map[string]struct {
		oidc    idp.OIDC
		secret  string
		payload string
	}{
		"with a secret": {idp.OIDC{Issuer: "https://i", ClientID: "c", Scopes: []string{"a", "b"}}, clientSecret,
			`{"issuer":"https://i","clientId":"c","hasClientSecret":true,"scopes":["a","b"]}`},
		"without": {idp.OIDC{Issuer: "i", ClientID: "c"}, "",
			`{"issuer":"i","clientId":"c"}`},
		"without, whatever the caller says": {idp.OIDC{Issuer: "i", ClientID: "c", HasClientSecret: true}, "",
			`{"issuer":"i","clientId":"c"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			mark := s.Mark()
			added, err := idp.AddOIDC(t.Context(), s, s.Master, ownerA, event.Once{}, idp.General{Name: "Corp"},
				c.oidc, c.secret, false)
			must(t, err)
			state, draft := idp.Active, ""
			if c.secret == "" {
				state, draft = idp.Draft, `,"draft":true`
			}
			s.Then(t, mark, eventtest.Fact{Object: added.ID, Type: "idp.oidc_added.v1",
				Payload: `{"general":{"name":"Corp","nameKey":"corp"},"oidc":` + c.payload + draft + `}`},
				vouchedFor(added.ID))
			p, err := idp.Get(t.Context(), s, ownerA, added.ID)
			must(t, err)
			if p.Data.Type() != idp.IsOIDC || p.Data.State != state || p.Org != "org_a" ||
				added.Details != p.Details() {
				t.Errorf("got %+v", p)
			}
			if got := storedSecret(t, s, added.ID); got != c.secret {
				t.Errorf("the stored secret is %q", got)
			}
			if s.Stored(t, clientSecret) {
				t.Error("the secret is stored in the clear")
			}
		})
	}
	_, err := idp.AddOIDC(t.Context(), world(t), eventtest.New(t).Master, permit("org_gone"), event.Once{},
		general, oidc, "x", false)
	eventtest.As(t, err, org.ErrNotFound)
}

func TestAModificationRecordsWhatDiffersAndLeavesTheRest(t *testing.T) {
	type facts = []eventtest.Fact
	changedIt := func(id string, pairs ...string) (f facts) {
		for i := 0; i < len(pairs); i += 2 {
			f = append(f, eventtest.Fact{Object: id, Type: event.Type(pairs[i]), Payload: pairs[i+1]})
		}
		return f
	}
	for _, c := range []struct {
		name   string
		id     string
		m      idp.Modification
		want   facts
		state  func(p *idp.Provider)
		secret string
	}{
		{"the name", "idp_active", idp.Modification{General: idp.Changed{Name: new("Ärzte")}},
			changedIt("idp_active", "idp.changed.v1", `{"name":"Ärzte","nameKey":"ärzte"}`),
			func(p *idp.Provider) { p.General.Name, p.General.NameKey = "Ärzte", "ärzte" }, ""},
		{"a key without a name does not count", "idp_active",
			idp.Modification{General: idp.Changed{NameKey: new("x"), AutoRegister: new(false)}},
			changedIt("idp_active", "idp.changed.v1", `{"autoRegister":false}`),
			func(p *idp.Provider) { p.General.AutoRegister = false }, ""},
		{"nothing differs: an event without content", "idp_active",
			idp.Modification{General: idp.Changed{Name: new("Corp")}, JWT: &idp.JWTChanged{Audience: new("us")}},
			changedIt("idp_active", "idp.changed.v1", `{}`), func(*idp.Provider) {}, ""},
		{"the audience alone", "idp_inactive", idp.Modification{JWT: &idp.JWTChanged{Audience: new("")}},
			changedIt("idp_inactive", "idp.jwt_changed.v1", `{"audience":""}`),
			func(p *idp.Provider) { p.JWT.Audience = "" }, ""},
		{"both parts of a JWT provider", "idp_active",
			idp.Modification{General: idp.Changed{Styling: new(idp.Styling(""))},
				JWT: &idp.JWTChanged{Endpoint: new("e"), Issuer: new("corp"), HeaderName: new("h")}},
			changedIt("idp_active", "idp.changed.v1", `{"styling":""}`, "idp.jwt_changed.v1",
				`{"endpoint":"e","headerName":"h"}`),
			func(p *idp.Provider) { p.General.Styling, p.JWT.Endpoint, p.JWT.HeaderName = "", "e", "h" }, ""},
		{"an OpenID Connect provider without touching its secret", "idp_oidc",
			idp.Modification{OIDC: &idp.OIDCChanged{Issuer: new("https://oidc.example/i"),
				ClientChanged: idp.ClientChanged{ClientID: new("signet"), Scopes: &[]string{"groups"}}}},
			changedIt("idp_oidc", "idp.oidc_changed.v1", `{"issuer":"https://oidc.example/i"}`),
			func(p *idp.Provider) { p.OIDC.Issuer = "https://oidc.example/i" }, "old"},
		{"no scopes", "idp_oidc",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: idp.ClientChanged{Scopes: new([]string(nil))}}},
			changedIt("idp_oidc", "idp.oidc_changed.v1", `{"scopes":[]}`),
			func(p *idp.Provider) { p.OIDC.Scopes = []string{} }, "old"},
		{"another secret", "idp_oidc", idp.Modification{OIDCSecret: new("new")},
			changedIt("idp_oidc", "idp.client_secret_set.v1", `{}`), func(*idp.Provider) {}, "new"},
		{"no secret", "idp_oidc", idp.Modification{OIDCSecret: new("")},
			changedIt("idp_oidc", "idp.client_secret_removed.v1", `{}`),
			func(p *idp.Provider) { p.OIDC.HasClientSecret = false }, ""},
		{"a secret where there was none", "idp_public",
			idp.Modification{OIDC: &idp.OIDCChanged{ClientChanged: idp.ClientChanged{ClientID: new("d")}},
				OIDCSecret: new("new")},
			changedIt("idp_public", "idp.oidc_changed.v1", `{"clientId":"d"}`, "idp.client_secret_set.v1", `{}`),
			func(p *idp.Provider) { p.OIDC.ClientID, p.OIDC.HasClientSecret = "d", true }, "new"},
		{"no secret where there was none", "idp_public", idp.Modification{OIDCSecret: new("")},
			changedIt("idp_public", "idp.changed.v1", `{}`), func(*idp.Provider) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, idp.Kind, "idp_public", "org_a", nil,
				idp.OIDCAdded{General: general, OIDC: idp.OIDC{Issuer: "i", ClientID: "c"}})
			s.GivenRow(event.Row{RowKey: idp.SecretRow("idp_oidc"),
				Value: s.Master.Wrap("idp client secret", []byte("old"), []byte("idp_oidc"))})
			want := eventtest.State(t, s, idp.Kind, c.id).Data
			mark := s.Mark()
			d, err := idp.Modify(t.Context(), s, s.Master, ownerA, c.id, event.IfMatch{}, c.m)
			must(t, err)
			// Nothing of the general configuration counts here. What is sent again counts where nobody answers for it
			// yet.
			if c.m.JWT != nil || c.m.OIDC != nil ||
				slices.ContainsFunc(c.want, func(f eventtest.Fact) bool { return f.Type != "idp.changed.v1" }) {
				c.want = append(c.want, vouchedFor(c.id))
				want.Changer = &idp.Changer{UserID: "usr_iam", Roles: iamOwner, Version: 1}
			}
			s.Then(t, mark, c.want...)
			c.state(&want)
			p := eventtest.State(t, s, idp.Kind, c.id)
			if !reflect.DeepEqual(p.Data, want) || d != p.Details() {
				t.Errorf("got  %+v\nwant %+v", p.Data, want)
			}
			if got := storedSecret(t, s, c.id); got != c.secret {
				t.Errorf("the stored secret is %q", got)
			}
		})
	}
}

func TestWhatCannotBeModified(t *testing.T) {
	ofJWT, ofOIDC := idp.Modification{JWT: &idp.JWTChanged{Issuer: new("x")}},
		idp.Modification{OIDC: &idp.OIDCChanged{Issuer: new("x")}}
	secret := idp.Modification{OIDCSecret: new("x")}
	stale := event.IfMatch{Set: true, Sequence: 9}
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		match   event.IfMatch
		m       idp.Modification
		refusal *errs.Error
	}{
		{"what is JWT's of an OpenID Connect provider", ownerA, "idp_oidc", event.IfMatch{}, ofJWT, idp.ErrNotJWT},
		{"what is OpenID Connect's of a JWT provider", ownerA, "idp_active", event.IfMatch{}, ofOIDC, idp.ErrNotOIDC},
		{"a secret of a JWT provider", ownerA, "idp_active", event.IfMatch{}, secret, idp.ErrNotOIDC},
		{"no secret of a JWT provider", ownerA, "idp_active", event.IfMatch{}, idp.Modification{OIDCSecret: new("")},
			idp.ErrNotOIDC},
		{"the type comes before the sequence", ownerA, "idp_oidc", stale, ofJWT, idp.ErrNotJWT},
		{"another sequence", ownerA, "idp_oidc", stale, secret, moved},
		{"of another organization", ownerA, "idp_foreign", event.IfMatch{}, ofOIDC, idp.ErrNotFound},
		{"removed", ownerA, "idp_gone", event.IfMatch{}, ofOIDC, idp.ErrNotFound},
		{"unknown", ownerA, "idp_x", event.IfMatch{}, ofJWT, idp.ErrNotFound},
		{"without a permit", access.Permit{}, "idp_active", event.IfMatch{}, ofJWT, idp.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			before := s.Fingerprint()
			_, err := idp.Modify(t.Context(), s, s.Master, c.permit, c.id, c.match, c.m)
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before {
				t.Error("a refusal wrote something")
			}
		})
	}
}

func TestStatesOfAProvider(t *testing.T) {
	type do = func(t *testing.T, s *eventtest.Store, permit access.Permit, id string,
		match event.IfMatch) (event.Details, error)
	deactivate := func(t *testing.T, s *eventtest.Store, permit access.Permit, id string,
		match event.IfMatch) (event.Details, error) {
		return idp.Deactivate(t.Context(), s, permit, id, match)
	}
	reactivate := func(t *testing.T, s *eventtest.Store, permit access.Permit, id string,
		match event.IfMatch) (event.Details, error) {
		return idp.Reactivate(t.Context(), s, permit, id, match)
	}
	remove := func(t *testing.T, s *eventtest.Store, permit access.Permit, id string,
		match event.IfMatch) (event.Details, error) {
		return idp.Remove(t.Context(), s, permit, id, match)
	}
	stale := event.IfMatch{Set: true, Sequence: 9}
	for _, c := range []struct {
		name    string
		do      do
		id      string
		match   event.IfMatch
		refusal *errs.Error
		typ     event.Type
		then    idp.State
	}{
		{"deactivate an active one", deactivate, "idp_active", event.IfMatch{Set: true, Sequence: 1}, nil,
			"idp.deactivated.v1", idp.Inactive},
		{"deactivate an inactive one", deactivate, "idp_inactive", stale, idp.ErrNotActive, "", ""},
		{"reactivate an inactive one", reactivate, "idp_inactive", event.IfMatch{}, nil,
			"idp.reactivated.v1", idp.Active},
		{"deactivate a draft", deactivate, "idp_draft", stale, idp.ErrDraft, "", ""},
		{"offer a draft", reactivate, "idp_draft", event.IfMatch{Set: true, Sequence: 1}, nil,
			"idp.reactivated.v1", idp.Active},
		{"remove a draft", remove, "idp_draft", event.IfMatch{}, nil, "idp.removed.v1", idp.Removed},
		{"reactivate an active one", reactivate, "idp_active", stale, idp.ErrNotInactive, "", ""},
		{"remove an active one", remove, "idp_active", event.IfMatch{}, nil, "idp.removed.v1", idp.Removed},
		{"remove an inactive one", remove, "idp_inactive", event.IfMatch{}, nil, "idp.removed.v1", idp.Removed},
		{"remove one with a secret", remove, "idp_oidc", event.IfMatch{}, nil, "idp.removed.v1", idp.Removed},
		{"deactivate at another sequence", deactivate, "idp_active", stale, moved, "", ""},
		{"reactivate at another sequence", reactivate, "idp_inactive", stale, moved, "", ""},
		{"remove at another sequence", remove, "idp_oidc", stale, moved, "", ""},
		{"deactivate a foreign one", deactivate, "idp_foreign", event.IfMatch{}, idp.ErrNotFound, "", ""},
		{"reactivate a removed one", reactivate, "idp_gone", event.IfMatch{}, idp.ErrNotFound, "", ""},
		{"remove a removed one", remove, "idp_gone", event.IfMatch{}, idp.ErrNotFound, "", ""},
		{"remove a foreign one", remove, "idp_foreign", event.IfMatch{}, idp.ErrNotFound, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, idp.Kind, "idp_draft", "org_a", nil,
				idp.JWTAdded{General: general, JWT: jwt, Drafted: idp.Drafted{Draft: true}})
			mark, before := s.Mark(), s.Fingerprint()
			d, err := c.do(t, s, ownerA, c.id, c.match)
			eventtest.As(t, err, c.refusal)
			if c.refusal != nil {
				if s.Fingerprint() != before {
					t.Error("a refusal wrote something")
				}
				return
			}
			s.Then(t, mark, eventtest.Fact{Object: c.id, Type: c.typ, Payload: `{}`})
			p := eventtest.State(t, s, idp.Kind, c.id)
			if p.Data.State != c.then || d != p.Details() {
				t.Errorf("got %+v", p)
			}
			if row, _ := s.Row(t.Context(), idp.SecretRow(c.id)); row != nil {
				t.Error("its secret is still there")
			}
		})
	}
}

func TestProvidersAreListedByNameStateAndType(t *testing.T) {
	s := world(t)
	for id, name := range map[string]string{"idp_1": "Alpha", "idp_2": "ALPINE"} {
		// from before keys were recorded
		eventtest.Given(t, s, idp.Kind, id, "org_b", nil, idp.JWTAdded{General: idp.General{Name: name}})
	}
	eventtest.Given(t, s, idp.Kind, "idp_0", "org_b", nil,
		idp.OIDCAdded{General: idp.General{Name: "alps", NameKey: "alps"}}, idp.Deactivated{})
	for _, c := range []struct {
		name   string
		org    string
		filter idp.Filter
		want   []string
	}{
		{"all of an organization, the oldest first", "org_b", idp.Filter{},
			[]string{"idp_0", "idp_1", "idp_2", "idp_foreign"}},
		{"none that is removed", "org_a", idp.Filter{}, []string{"idp_active", "idp_inactive", "idp_oidc"}},
		{"by the beginning of the name, in its order", "org_b", idp.Filter{Name: "AlP"},
			[]string{"idp_1", "idp_2", "idp_0"}},
		{"by state", "org_b", idp.Filter{State: idp.Inactive}, []string{"idp_0"}},
		{"by type", "org_a", idp.Filter{Type: idp.IsOIDC}, []string{"idp_oidc"}},
		{"by all of them", "org_b", idp.Filter{Name: "al", State: idp.Active, Type: idp.IsJWT},
			[]string{"idp_1", "idp_2"}},
		{"by what does not come together", "org_b", idp.Filter{Name: "al", State: idp.Active, Type: idp.IsOIDC}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := eventtest.IDs(t, func(after event.Cursor) ([]*event.Object[idp.Provider], *event.Cursor, error) {
				return idp.List(t.Context(), s, permit(c.org), c.filter, after, 2)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, _, err := idp.List(t.Context(), s, access.Permit{}, idp.Filter{}, event.Cursor{}, 10)
	eventtest.As(t, err, access.ErrDenied)
}
