package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
)

// vendor is a world in which org_b is a customer of org_a: it has an access (pac_b) to the project prj_p of org_a with
// the roles admin and viewer, and so has org_c (pac_c) with viewer. app_spa, app_web and app_tv, app_jwt are of the
// project.
func vendor(t *testing.T, s app.RoleSettings) *world {
	t.Helper()
	w := newWorld(t)
	s.Project = "prj_p"
	eventtest.Given(t, w.store, org.Kind, "org_c", "org_c", nil, org.Added{Name: "c"})
	eventtest.Given(t, w.store, project.Kind, "prj_p", "org_a", nil, project.Added{Name: "p", NameKey: "p"},
		project.RoleSet{Key: "admin"}, project.RoleSet{Key: "viewer"})
	for id, roles := range map[string][]user.AppRole{"b": {role("admin", 1), role("viewer", 2)},
		"c": {role("viewer", 2)}} {
		w.grants("pac_"+id, "org_"+id, roles...)
	}
	for _, id := range []string{"app_spa", "app_web", "app_tv", "app_jwt"} {
		w.change(id, app.RoleSettingsSet{RoleSettings: s})
	}
	return w
}

func role(key string, epoch int64) user.AppRole { return user.AppRole{Key: key, Epoch: epoch} }

func (w *world) grants(id, to string, roles ...user.AppRole) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, project.AccessKind, id, to, []event.Claim{project.AccessClaim("prj_p", to)},
		project.AccessAdded{Project: "prj_p", Owner: "org_a", Roles: roles})
}

func (w *world) withdraws(id string) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, project.AccessKind, id, "", nil, project.AccessRemoved{})
}

// holds gives somebody roles in a place.
func (w *world) holds(who, place, in string, roles ...user.AppRole) {
	w.t.Helper()
	w.change(who, user.AppRolesSet{Place: place, Project: "prj_p", Org: in, Roles: roles})
}

func (w *world) joins(who, in, id string) {
	w.t.Helper()
	if r, err := w.store.Record(w.t.Context(), group.Kind.Ref(id)); err == nil && r == nil {
		eventtest.Given(w.t, w.store, group.Kind, id, in, []event.Claim{group.NameClaim(in, id)},
			group.Added{Name: id, NameKey: id})
	}
	w.change(who, user.GroupJoined{Org: in, Group: id})
}

func guest(in string) user.MembershipSet { return user.MembershipSet{Scope: in, Stays: true} }

// agreed lets an application have tokens of a person who agrees to everything that they are asked about.
func (w *world) agreed(client, userID, scopes string) *Tokens {
	w.t.Helper()
	made, err := w.exchange(client, w.agrees(client, userID, scopes))
	must(w.t, err)
	return made
}

// agrees is agreed up to the code.
func (w *world) agrees(client, userID, scopes string) string {
	w.t.Helper()
	id := w.begin(ask(client, scopes))
	p, err := w.Pending(w.t.Context(), id, browser)
	must(w.t, err)
	to, err := w.Approve(w.t.Context(), id, browser, w.signIn(userID), p.Asks())
	must(w.t, err)
	return parameters(w.t, to.Address).Get("code")
}

// need is what is missing before somebody can sign in; an error by its reason.
func (w *world) need(client, userID, scopes string) string {
	w.t.Helper()
	id := w.begin(ask(client, scopes))
	p, err := w.Pending(w.t.Context(), id, browser)
	must(w.t, err)
	in := w.signIn(userID)
	unmet, err := w.Needs(w.t.Context(), p, in)
	need := unmet.Need()
	_, refused := w.Approve(w.t.Context(), id, browser, in, p.Asks())
	if (need == NeedsNothing || need == NeedsConsent) != (refused == nil) && err == nil {
		w.t.Errorf("it needs %q, and approving says %v", need, refused)
	}
	if err != nil {
		return err.Error()
	}
	return string(need)
}

// seen are the claims about roles and groups, and the overflow, as JSON.
func seen(t *testing.T, claims map[string]any) string {
	t.Helper()
	only := map[string]any{}
	for _, name := range claimset.RoleClaims {
		if value, there := claims[name]; there {
			only[strings.TrimPrefix(name, "urn:signet:")] = value
		}
	}
	text, err := json.Marshal(only)
	must(t, err)
	return string(text)
}

// payload reads a JWT.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no JWT: %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	claims := map[string]any{}
	must(t, json.Unmarshal(text, &claims))
	return claims
}

// introspected is what a client sees of a token; "inactive" where it does not count for it.
func (w *world) introspected(client, text string) string {
	w.t.Helper()
	b := w.seenBy(client, text)
	if b == nil {
		return "inactive"
	}
	claims, err := w.ClaimsOf(w.t.Context(), b, w.client(client))
	must(w.t, err)
	return seen(w.t, claims.Values)
}

// userInfo is what the holder of a token sees.
func (w *world) userInfo(text string) string {
	w.t.Helper()
	b, err := w.Bearer(w.t.Context(), text)
	must(w.t, err)
	if b == nil {
		return "inactive"
	}
	claims, err := w.ClaimsOf(w.t.Context(), b, nil)
	must(w.t, err)
	return seen(w.t, claims.Values)
}

func TestTokensCarryRolesAndGroupsByOrganization(t *testing.T) {
	const scopes = "openid offline_access"
	both := app.RoleSettings{Roles: true, Groups: true}
	in := func(w *world) { // usr_b is admin at home and viewer as a guest of org_c, and in groups everywhere
		w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
		w.change("usr_b", guest("org_c"))
		w.holds("usr_b", "pac_c", "org_c", role("viewer", 1))
		w.joins("usr_b", "org_b", "grp_b")
		w.joins("usr_b", "org_c", "grp_c")
	}
	for _, tt := range []struct {
		name     string
		settings app.RoleSettings
		who      string
		scopes   string
		want     string
	}{
		{"nothing is switched on", app.RoleSettings{}, "usr_b", "", `{}`},
		{"roles", app.RoleSettings{Roles: true}, "usr_b", "", `{"app_roles":{"org_b":["admin"],"org_c":["viewer"]}}`},
		{"groups", app.RoleSettings{Groups: true}, "usr_b", "", `{"groups":{"org_b":["grp_b"],"org_c":["grp_c"]}}`},
		{"both", both, "usr_b", "",
			`{"app_roles":{"org_b":["admin"],"org_c":["viewer"]},"groups":{"org_b":["grp_b"],"org_c":["grp_c"]}}`},
		{"bound to home", both, "usr_b", " urn:signet:org:id:org_b",
			`{"app_roles":{"org_b":["admin"]},"groups":{"org_b":["grp_b"]}}`},
		{"bound to home by its domain", both, "usr_b", " urn:signet:org:domain:b.test",
			`{"app_roles":{"org_b":["admin"]},"groups":{"org_b":["grp_b"]}}`},
		{"bound to the other as a guest", both, "usr_b", " urn:signet:org:id:org_c",
			`{"app_roles":{"org_c":["viewer"]},"groups":{"org_c":["grp_c"]}}`},
		{"of somebody who has none", both, "usr_a", "", `{"app_roles":{},"groups":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, tt.settings)
			in(w)
			for _, client := range []string{"app_spa", "app_jwt"} {
				first := w.agreed(client, tt.who, scopes+tt.scopes)
				w.store.Advance(time.Minute)
				// A refresh that leaves the scope out is bound all the same.
				again, err := w.Refresh(t.Context(), w.client(client), first.Refresh,
					[]string{"openid", "offline_access"})
				must(t, err)
				for i, made := range []*Tokens{first, again} {
					for where, got := range map[string]string{"ID token": seen(t, payload(t, made.IDToken)),
						"user info": w.userInfo(made.Access), "introspection": w.introspected(client, made.Access)} {
						if got != tt.want {
							t.Errorf("%s, %s %d: %s", client, where, i, got)
						}
					}
				}
				if client != "app_jwt" {
					continue
				}
				for i, made := range []*Tokens{first, again} {
					if got := seen(t, payload(t, made.Access)); got != tt.want {
						t.Errorf("JWT %d: %s", i, got)
					}
				}
			}
		})
	}
}

// Sign-ins from before guests could sign in have only their scopes to tell that they are bound.
func TestASignInThatOnlyItsScopesBindStaysBound(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true})
	w.change("usr_a", guest("org_b"))
	w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
	w.holds("usr_a", "pac_b", "org_b", role("admin", 1))
	eventtest.Given(t, w.store, Kind, IDFor("usr_a"), "org_a", nil, Given{AppID: "app_spa", Scopes: []string{"openid"}})
	for scopes, want := range map[string]string{
		"openid":                              `{"app_roles":{"org_a":["viewer"],"org_b":["admin"]}}`,
		"openid urn:signet:org:id:org_a":      `{"app_roles":{"org_a":["viewer"]}}`,
		"openid urn:signet:org:domain:a.test": `{"app_roles":{"org_a":["viewer"]}}`,
	} {
		_, old, access := w.before("app_spa", strings.Fields(scopes)...)
		if got := w.userInfo(access); got != want {
			t.Errorf("%s: user info %s", scopes, got)
		}
		made, err := w.Refresh(t.Context(), w.client("app_spa"), old.text, []string{"openid"})
		must(t, err)
		if got := w.userInfo(made.Access); got != want {
			t.Errorf("%s: after a refresh %s", scopes, got)
		}
	}
}

func TestWhoReadsTheRolesInAToken(t *testing.T) {
	const want = `{"app_roles":{"org_a":["viewer"]},"groups":{}}`
	aud := func(id string) string { return " urn:signet:app:" + id + ":aud" }
	given := func() *world {
		w := vendor(t, app.RoleSettings{Roles: true, Groups: true})
		w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
		// an API of the project, which is told nothing of its own
		w.change("app_web", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p"}})
		eventtest.Given(t, w.store, project.Kind, "prj_q", "org_a", nil, project.Added{Name: "q", NameKey: "q"})
		w.change("app_tv", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_q", Roles: true,
			Groups: true}})
		// another organization's, which names the project
		w.change("app_all", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p", Roles: true,
			Groups: true}})
		for _, id := range []string{"app_spa", "app_jwt"} {
			w.change("app_all", approved(id))
		}
		return w
	}
	everybody := "openid" + aud("app_web") + aud("app_tv") + aud("app_asks") + aud("app_all")
	t.Run("introspection", func(t *testing.T) {
		w := given()
		made := w.agreed("app_spa", "usr_a", everybody)
		for reader, want := range map[string]string{"app_spa": want, "app_web": want, "app_tv": `{}`, "app_asks": `{}`,
			"app_all": `{}`, "app_jwt": "inactive"} {
			if got := w.introspected(reader, made.Access); got != want {
				t.Errorf("%s: %s", reader, got)
			}
		}
	})
	t.Run("JWT", func(t *testing.T) {
		w := given()
		for scopes, want := range map[string]string{
			"openid": want, "openid" + aud("app_web"): want, "openid signet.self" + aud("app_web"): want,
			"openid" + aud("app_tv"): `{}`, "openid" + aud("app_asks"): `{}`, "openid" + aud("app_all"): `{}`,
			everybody: `{}`,
		} {
			made := w.agreed("app_jwt", "usr_a", scopes)
			if got := seen(t, payload(t, made.Access)); got != want {
				t.Errorf("%s: %s", scopes, got)
			}
			if got := seen(t, payload(t, made.IDToken)); got != `{"app_roles":{"org_a":["viewer"]},"groups":{}}` {
				t.Errorf("%s: ID token %s", scopes, got)
			}
		}
	})
	t.Run("a service user", func(t *testing.T) {
		w := given()
		w.holds("usr_robot", "prj_p", "org_a", role("viewer", 2))
		made, err := w.ClientCredentials(t.Context(),
			&Client{Service: eventtest.State(t, w.store, user.Kind, "usr_robot")},
			[]string{"urn:signet:app:app_web:aud"})
		must(t, err)
		if got := w.introspected("app_web", made.Access); got != `{}` {
			t.Errorf("got %s", got)
		}
	})
}

// Customer b's admin is nothing at customer c, and the other way round.
func TestARoleOfOneCustomerIsNothingAtAnother(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true})
	w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
	w.holds("usr_b", "pac_c", "org_c", role("viewer", 1)) // though they are not in org_c
	if got := w.userInfo(w.agreed("app_spa", "usr_b", "openid").Access); got != `{"app_roles":{"org_b":["admin"]}}` {
		t.Errorf("got %s", got)
	}
	if need := w.need("app_spa", "usr_b", "openid urn:signet:org:id:org_c"); need != string(NeedsOtherAccount) {
		t.Errorf("bound to the other customer it needs %q", need)
	}
}

func TestWhatDoesNotFitIntoATokenIsSaidAndFoundElsewhere(t *testing.T) {
	long := strings.Repeat("r", 100)
	for _, tt := range []struct {
		name     string
		settings app.RoleSettings
		roles    int
		groups   int
		want     string // of the token; empty: all
	}{
		{"it fits", app.RoleSettings{Roles: true, Groups: true}, 10, 10, ""},
		{"the roles do not", app.RoleSettings{Roles: true}, 50, 0, `{"overflow":["urn:signet:app_roles"]}`},
		{"the groups do not", app.RoleSettings{Groups: true}, 0, 150, `{"overflow":["urn:signet:groups"]}`},
		{"both together do not", app.RoleSettings{Roles: true, Groups: true}, 25, 60,
			`{"overflow":["urn:signet:app_roles","urn:signet:groups"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, tt.settings)
			var held []user.AppRole
			for i := range tt.roles {
				key := fmt.Sprintf("%s%02d", long[:98], i)
				eventtest.Given(t, w.store, project.Kind, "prj_p", "", nil, project.RoleSet{Key: key})
				held = append(held, role(key, int64(3+i)))
			}
			if held != nil {
				w.holds("usr_a", "prj_p", "org_a", held...)
			}
			for i := range tt.groups {
				w.joins("usr_a", "org_a", fmt.Sprintf("grp_%032d", i))
			}
			made := w.agreed("app_jwt", "usr_a", "openid")
			whole := w.userInfo(made.Access)
			if strings.Contains(whole, "overflow") || tt.roles > 0 && !strings.Contains(whole, held[tt.roles-1].Key) ||
				len(whole) < 35*tt.groups {
				t.Errorf("user info: %s", whole)
			}
			if got := w.introspected("app_jwt", made.Access); got != whole {
				t.Errorf("introspection: %s", got)
			}
			want := tt.want
			if want == "" {
				want = whole
			}
			for where, token := range map[string]string{"JWT": made.Access, "ID token": made.IDToken} {
				if got := seen(t, payload(t, token)); got != want {
					t.Errorf("%s: %s", where, got)
				}
			}
		})
	}
	t.Run("the bound", func(t *testing.T) {
		for size, fits := range map[int]bool{claimset.MaxToken: true, claimset.MaxToken + 1: false} {
			claims := claimset.New(false)
			claimset.AddRolesToToken(claims,
				project.Held{Roles: map[string][]string{"o": {strings.Repeat("k", size-len(`{"o":[""]}`)-len(`{}`))}},
					Groups: map[string][]string{}}, claimset.Mapped{})
			if _, there := claims.Values[claimset.Roles]; there != fits {
				t.Errorf("%d bytes: %v", size, there)
			}
		}
	})
}

// What rests on an access or a role that is required stops with it, at whatever step somebody is.
func TestWhatRestsOnAnAccessOrARoleStopsWithIt(t *testing.T) {
	grantAgain := func(w *world) {
		w.withdraws("pac_b")
		w.grants("pac_again", "org_b", role("admin", 1))
	}
	for _, tt := range []struct {
		name     string
		required bool
		who      string
		scopes   string
		happens  func(*world)
		anew     string // what somebody needs who comes anew
		stops    bool
	}{
		{"nothing", false, "usr_b", "", func(*world) {}, "", false},
		{"nothing, with a role", true, "usr_b", "", func(*world) {}, "", false},
		{"the access is withdrawn", false, "usr_b", "", func(w *world) { w.withdraws("pac_b") },
			ErrAccessDenied.Error(), true},
		{"the access is withdrawn, and the sign-in is bound", false, "usr_b", " urn:signet:org:id:org_b",
			func(w *world) { w.withdraws("pac_b") }, ErrAccessDenied.Error(), true},
		{"the access is withdrawn and granted again", false, "usr_b", "", grantAgain, "", true},
		{"the access is withdrawn, and somebody is a guest of another customer", false, "usr_b", "", func(w *world) {
			w.change("usr_b", guest("org_c"))
			w.withdraws("pac_b")
		}, "consent", true},
		{"the project is removed", false, "usr_b", "",
			func(w *world) { eventtest.Given(w.t, w.store, project.Kind, "prj_p", "", nil, project.WasRemoved{}) },
			ErrAccessDenied.Error(), true},
		{"the application leaves the project", false, "usr_b", "",
			func(w *world) { w.change("app_spa", app.RoleSettingsSet{}); w.change("app_tv", app.RoleSettingsSet{}) },
			string(NeedsOtherAccount), true},
		{"an access is withdrawn that somebody does not need", false, "usr_a", "",
			func(w *world) { w.withdraws("pac_b") }, "", false},
		{"a guest leaves", false, "usr_a", " urn:signet:org:id:org_b",
			func(w *world) { w.change("usr_a", user.OrgLeft{Org: "org_b"}) }, string(NeedsOtherAccount), true},
		{"the role is taken away", true, "usr_b", "", func(w *world) { w.holds("usr_b", "pac_b", "org_b") },
			string(NeedsRole), true},
		{"the role is taken away at home", true, "usr_a", "", func(w *world) { w.holds("usr_a", "prj_p", "org_a") },
			string(NeedsRole), true},
		{"the role is removed", true, "usr_b", "", func(w *world) {
			eventtest.Given(w.t, w.store, project.Kind, "prj_p", "", nil, project.RoleRemoved{Key: "admin"})
		}, string(NeedsRole), true},
		{"the role is taken out of the access", true, "usr_b", "", func(w *world) {
			eventtest.Given(w.t, w.store, project.AccessKind, "pac_b", "", nil,
				project.AccessRolesSet{Roles: []user.AppRole{role("viewer", 2)}})
		}, string(NeedsRole), true},
		{"a role is required from now on", false, "usr_a", "", func(w *world) {
			w.holds("usr_a", "prj_p", "org_a")
			for _, id := range []string{"app_spa", "app_tv"} {
				w.change(id, app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p", Required: true}})
			}
		}, string(NeedsRole), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, app.RoleSettings{Required: tt.required})
			w.change("usr_a", guest("org_b"))
			w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
			w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
			scopes := "openid offline_access" + tt.scopes
			w.agreed("app_spa", tt.who, scopes)
			tokens, plain := w.agreed("app_spa", tt.who, scopes), w.agreed("app_spa", tt.who, "openid"+tt.scopes)
			parallel := w.agreed("app_spa", tt.who, scopes)
			_, err := w.Refresh(t.Context(), w.client("app_spa"), parallel.Refresh, nil)
			must(t, err)
			code := w.agrees("app_spa", tt.who, scopes)
			pending := w.begin(ask("app_spa", scopes))
			d, err := w.BeginDevice(t.Context(), w.client("app_tv"), strings.Fields(scopes))
			must(t, err)
			onDevice, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
			must(t, err)
			other, err := w.BeginDevice(t.Context(), w.client("app_tv"), strings.Fields(scopes))
			must(t, err)
			asks, err := w.DeviceByUserCode(t.Context(), home, other.UserCode)
			must(t, err)
			in := w.signIn(tt.who)
			must(t, w.ApproveDevice(t.Context(), onDevice, in, onDevice.Asks()))

			tt.happens(w)

			in = w.signIn(tt.who)
			refused := func(step string, err error) {
				t.Helper()
				if (err != nil) != tt.stops {
					t.Errorf("%s: %v", step, err)
				}
			}
			for name, made := range map[string]*Tokens{"with the refresh token": tokens, "with the session": plain} {
				if w.counts(made.Access) == tt.stops {
					t.Errorf("an access token that lives %s counts: %v", name, !tt.stops)
				}
				if (w.introspected("app_spa", made.Access) == "inactive") != tt.stops {
					t.Errorf("introspection of one that lives %s", name)
				}
			}
			_, err = w.exchange("app_spa", code)
			refused("code exchange", err)
			_, err = w.DeviceTokens(t.Context(), w.client("app_tv"), d.DeviceCode)
			refused("device", err)
			_, err = w.Refresh(t.Context(), w.client("app_spa"), parallel.Refresh, nil)
			refused("the same refresh again", err)
			_, err = w.Refresh(t.Context(), w.client("app_spa"), tokens.Refresh, nil)
			refused("refresh", err)
			if tt.stops {
				wants(t, err, ErrInvalidGrant)
			}
			p, err := w.Pending(t.Context(), pending, browser)
			must(t, err)
			_, err = w.Approve(t.Context(), pending, browser, in, p.Asks())
			if anew := w.need("app_spa", tt.who, scopes); anew != tt.anew && !(tt.anew == "consent" && anew == "") {
				t.Errorf("somebody who comes anew needs %q", anew)
			}
			letsIn := tt.anew == "" || tt.anew == "consent"
			if (err == nil) != letsIn {
				t.Errorf("a sign-in that was on its way: %v", err)
			}
			if err := w.ApproveDevice(t.Context(), asks, in, asks.Asks()); (err == nil) != letsIn {
				t.Errorf("a device that was on its way: %v", err)
			}
		})
	}
}

// justBefore is a store in which something happens just before the next command.
type justBefore struct {
	event.Store
	happens func() // once
}

func (m *justBefore) Do(ctx context.Context, c event.Command) error {
	if happens := m.happens; happens != nil {
		m.happens = nil
		happens()
	}
	return m.Store.Do(ctx, c)
}

// Between what is read before and what the command sees, an access or a role can go.
func TestAnAccessOrARoleThatGoesMeanwhileGivesNothing(t *testing.T) {
	for name, goes := range map[string]func(*world){
		"the access": func(w *world) { w.withdraws("pac_b") },
		"the role":   func(w *world) { w.holds("usr_b", "pac_b", "org_b") },
	} {
		for step, run := range map[string]func(w *world) func() error{
			"approving": func(w *world) func() error {
				id, in := w.begin(ask("app_spa", "openid")), w.signIn("usr_b")
				return func() error {
					_, err := w.Approve(t.Context(), id, browser, in, []string{"openid"})
					return err
				}
			},
			"a code": func(w *world) func() error {
				code := w.agrees("app_spa", "usr_b", "openid")
				return func() error { _, err := w.exchange("app_spa", code); return err }
			},
			"a refresh": func(w *world) func() error {
				made := w.agreed("app_spa", "usr_b", "openid offline_access")
				return func() error {
					_, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
					return err
				}
			},
			"the same refresh again": func(w *world) func() error {
				made := w.agreed("app_spa", "usr_b", "openid offline_access")
				_, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
				must(t, err)
				return func() error {
					_, err := w.Refresh(t.Context(), w.client("app_spa"), made.Refresh, nil)
					return err
				}
			},
		} {
			t.Run(name+", "+step, func(t *testing.T) {
				w := vendor(t, app.RoleSettings{Required: true})
				w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
				act := run(w)
				w.Store = &justBefore{Store: w.store, happens: func() { goes(w) }}
				if err := act(); err == nil {
					t.Error("it went on")
				}
			})
		}
	}
}

func TestPeopleOfOtherOrganizationsKnowWhatIsToldAboutThem(t *testing.T) {
	w := vendor(t, app.RoleSettings{})
	w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
	w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
	const scopes = "openid offline_access"
	before, own := w.agreed("app_spa", "usr_b", scopes), w.tokens("app_spa", "usr_a", scopes)
	onItsWay := w.begin(ask("app_spa", scopes))
	if need := w.need("app_spa", "usr_b", scopes); need != "" {
		t.Fatalf("it needs %q before", need)
	}
	w.change("app_spa", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p", Roles: true}})

	// What they agreed to before goes on, and tells nothing.
	refreshed, err := w.Refresh(t.Context(), w.client("app_spa"), before.Refresh, nil)
	must(t, err)
	if w.userInfo(before.Access) != `{}` || w.userInfo(refreshed.Access) != `{}` ||
		seen(t, payload(t, refreshed.IDToken)) != `{}` || w.introspected("app_spa", refreshed.Access) != `{}` {
		t.Error("what was agreed to before tells of roles")
	}
	// So does a sign-in whose page did not say it.
	_, err = w.Approve(t.Context(), onItsWay, browser, w.signIn("usr_b"), nil)
	must(t, err)
	// In one organization its administrators decide.
	if got := w.userInfo(own.Access); got != `{"app_roles":{"org_a":["viewer"]}}` {
		t.Errorf("in the own organization: %s", got)
	}
	// From now on they are asked, once.
	silent := ask("app_spa", scopes)
	silent.Prompt = "none"
	_, err = w.Approve(t.Context(), w.begin(silent), browser, w.signIn("usr_b"), nil)
	wants(t, err, ErrConsentRequired)
	if need := w.need("app_spa", "usr_b", scopes); need != string(NeedsConsent) { // this agrees, too
		t.Errorf("it needs %q", need)
	}
	if need := w.need("app_spa", "usr_b", scopes); need != "" {
		t.Errorf("asked again: %q", need)
	}
	if got := w.userInfo(w.agreed("app_spa", "usr_b", scopes).Access); got != `{"app_roles":{"org_b":["admin"]}}` {
		t.Errorf("after they agreed: %s", got)
	}
	list, err := w.Consents(t.Context(), w.signIn("usr_b").Caller)
	must(t, err)
	if len(list) != 1 || !slices.Contains(list[0].Scopes, claimset.Roles) {
		t.Errorf("listed %+v", list)
	}
	// Who agrees to the scopes alone is not told about.
	in := w.signIn("usr_b")
	must(t, w.Withdraw(t.Context(), in.Caller, "app_spa"))
	to, err := w.Approve(t.Context(), w.begin(ask("app_spa", scopes)), browser, in, strings.Fields(scopes))
	must(t, err)
	made, err := w.exchange("app_spa", parameters(t, to.Address).Get("code"))
	must(t, err)
	if w.userInfo(made.Access) != `{}` || seen(t, payload(t, made.IDToken)) != `{}` {
		t.Error("told without a consent")
	}
	// Nor does it go on with a consent that does not name what is told.
	named := w.agreed("app_spa", "usr_b", scopes)
	eventtest.Given(t, w.store, Kind, IDFor("usr_b"), "", nil,
		Given{AppID: "app_spa", Scopes: []string{"offline_access", "openid"}, Asked: true})
	_, err = w.Refresh(t.Context(), w.client("app_spa"), named.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
	// The names are no scopes.
	if made := w.agreed("app_spa", "usr_b",
		scopes+" urn:signet:app_roles urn:signet:groups"); slices.ContainsFunc(made.Scopes,
		func(s string) bool { return slices.Contains(claimset.RoleClaims, s) }) {
		t.Errorf("granted %q", made.Scopes)
	}
	// Switched off, it is told no longer.
	made = w.agreed("app_spa", "usr_b", scopes)
	w.change("app_spa", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p"}})
	if got := w.userInfo(made.Access); got != `{}` {
		t.Errorf("switched off: %s", got)
	}
}

func TestAnApplicationForAllOrganizationsStaysOpenWithAProject(t *testing.T) {
	w := newWorld(t)
	before := w.agreed("app_all", "usr_a", "openid offline_access")
	eventtest.Given(t, w.store, project.Kind, "prj_all", "org_b", nil, project.Added{Name: "all", NameKey: "all"})
	w.change("app_all", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_all", Roles: true}})
	if !w.counts(before.Access) || !w.counts(w.agreed("app_all", "usr_a", "openid").Access) {
		t.Error("a token stopped with the project that the application got")
	}
	w.change("app_all", app.SettingsChanged{AllOrganizations: new(false)})
	if w.counts(before.Access) {
		t.Error("a token counts though the application is closed")
	}
}

func TestADeviceTellsWhatItsPageSaid(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true})
	w.holds("usr_b", "pac_b", "org_b", role("admin", 1))
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid"})
	must(t, err)
	p, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	if !slices.Equal(p.Asks(), []string{claimset.OpenID, claimset.Roles}) {
		t.Errorf("it asks %q", p.Asks())
	}
	must(t, w.ApproveDevice(t.Context(), p, w.signIn("usr_b"), p.Asks()))
	made, err := w.DeviceTokens(t.Context(), w.client("app_tv"), d.DeviceCode)
	must(t, err)
	if got := w.userInfo(made.Access); got != `{"app_roles":{"org_b":["admin"]}}` {
		t.Errorf("got %s", got)
	}
}

// counted counts what is read besides the token.
type counted struct {
	event.Store
	reads atomic.Int64
}

func (c *counted) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	c.reads.Add(1)
	return c.Store.Record(ctx, ref)
}

func (c *counted) Holder(ctx context.Context, claim event.Claim) (string, error) {
	c.reads.Add(1)
	return c.Store.Holder(ctx, claim)
}

// What introspection and user info read besides the token, with its user, application, session and their organizations.
func TestWhatItCostsToBeTold(t *testing.T) {
	for _, tt := range []struct {
		name     string
		client   string
		settings app.RoleSettings
		who      string
		want     int64
	}{
		{"an application without a project", "app_asks", app.RoleSettings{}, "usr_a", 0},
		{"an application for all organizations", "app_all", app.RoleSettings{}, "usr_a", 0},
		{"nothing is switched on", "app_spa", app.RoleSettings{}, "usr_a", 0},
		{"roles", "app_spa", app.RoleSettings{Roles: true}, "usr_a", 1},
		{"roles, and one is required", "app_spa", app.RoleSettings{Roles: true, Required: true}, "usr_a", 1},
		{"an access", "app_spa", app.RoleSettings{}, "usr_b", 3},
		{"an access, roles, and one is required", "app_spa", app.RoleSettings{Roles: true, Required: true}, "usr_b", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, tt.settings)
			w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
			w.holds("usr_b", "pac_b", "org_b", role("viewer", 2))
			for i := range user.MaxGroups { // they give nothing
				w.change(tt.who, user.GroupJoined{Org: "org_" + tt.who[len("usr_"):], Group: fmt.Sprintf("grp_%d", i)})
			}
			made := w.agreed(tt.client, tt.who, "openid")
			store := &counted{Store: w.store}
			w.Store, w.Sessions.Store = store, store
			b, err := w.Bearer(t.Context(), made.Access)
			must(t, err)
			_, err = w.ClaimsOf(t.Context(), b, nil)
			must(t, err)
			const always = 2 // the user and the organization, where they do not come with the token
			if got := store.reads.Load() - always; got != tt.want {
				t.Errorf("%d reads more, want %d", got, tt.want)
			}
		})
	}
}

func TestABasisNamesThePlaceThatItRestsOn(t *testing.T) {
	for place, want := range map[string]bool{"": true, "pac_b": true, "pac_c": false} {
		if (session.Basis{Place: "pac_b"}).Holds(project.Admitted, place) != want ||
			(session.Basis{}).Holds(project.Admitted, place) != (place == "") {
			t.Errorf("%q", place)
		}
	}
}

// A sign-in that is bound to an organization lets its guests in only where the application has a project that the
// organization can use.
func TestGuestsAtABoundSignIn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client string
		who    string
		given  func(*world)
		want   string
	}{
		{"an application without a project", "app_asks", "usr_b", func(*world) {}, string(NeedsOtherAccount)},
		{"an application for all organizations without a project", "app_all", "usr_b", func(*world) {},
			string(NeedsOtherAccount)},
		{"an application with a project", "app_spa", "usr_b", func(*world) {}, string(NeedsConsent)},
		{"an application with a project, of somebody who is no guest", "app_spa", "usr_b",
			func(w *world) { w.change("usr_b", user.OrgLeft{Org: "org_a"}) }, string(NeedsOtherAccount)},
		{"an application whose project was removed", "app_spa", "usr_b",
			func(w *world) { eventtest.Given(w.t, w.store, project.Kind, "prj_p", "", nil, project.WasRemoved{}) },
			string(NeedsOtherAccount)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, app.RoleSettings{})
			w.change("usr_b", guest("org_a"))
			tt.given(w)
			if got := w.need(tt.client, tt.who, "openid urn:signet:org:id:org_a"); got != tt.want {
				t.Errorf("it needs %q", got)
			}
		})
	}
}
