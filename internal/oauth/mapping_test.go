package oauth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
)

var everywhere = []app.ClaimTarget{app.InIDToken, app.InAccessToken, app.InUserInfo, app.InIntrospection}

// declares lets an application declare claims whose names begin with "x", everywhere where nothing else is said.
func (w *world) declares(client string, mappings ...app.ClaimMapping) {
	w.t.Helper()
	for i := range mappings {
		m := &mappings[i]
		if m.Claim == "" {
			m.Claim = "x"
		}
		if m.Targets == nil {
			m.Targets = everywhere
		}
		if m.Shape == "" {
			m.Shape = app.AsString
			if m.Listed() {
				m.Shape = app.AsArray
			}
		}
	}
	must(w.t, app.ClaimMappingViolations(mappings).Err())
	w.change(client, app.ClaimMappingsSet{Mappings: mappings})
}

// inGroups puts somebody into a new group of an organization that has a name.
func (w *world) inGroups(who, in string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		id := fmt.Sprintf("grp_%s_%x", in, sum[:8])
		if r, err := w.store.Record(w.t.Context(), group.Kind.Ref(id)); err == nil && r == nil {
			eventtest.Given(w.t, w.store, group.Kind, id, in, []event.Claim{group.NameClaim(in, name)},
				group.Added{Name: name, NameKey: name})
		}
		w.change(who, user.GroupJoined{Org: in, Group: id})
	}
}

// declared are the claims that begin with "x", and what overflowed, as JSON.
func declared(t *testing.T, claims map[string]any) string {
	t.Helper()
	only := maps.Clone(claims)
	maps.DeleteFunc(only, func(name string, _ any) bool { return name[0] != 'x' && name != claimset.Overflow })
	text, err := json.Marshal(only)
	must(t, err)
	return string(text)
}

// told are the declared claims in all places that somebody's tokens have.
func (w *world) told(client, who, scopes string) map[app.ClaimTarget]string {
	w.t.Helper()
	return w.toldBy(client, w.agreed(client, who, scopes))
}

func (w *world) toldBy(client string, made *Tokens) map[app.ClaimTarget]string {
	w.t.Helper()
	b, err := w.Bearer(w.t.Context(), made.Access)
	must(w.t, err)
	info, err := w.ClaimsOf(w.t.Context(), b, nil)
	must(w.t, err)
	all := map[app.ClaimTarget]string{app.InIDToken: declared(w.t, payload(w.t, made.IDToken)),
		app.InUserInfo: declared(w.t, info.Values), app.InIntrospection: w.introspectedBy(client, made)}
	if client == "app_jwt" {
		all[app.InAccessToken] = declared(w.t, payload(w.t, made.Access))
	}
	return all
}

func (w *world) introspectedBy(reader string, made *Tokens) string {
	w.t.Helper()
	b := w.seenBy(reader, made.Access)
	if b == nil {
		return "inactive"
	}
	about, err := w.ClaimsOf(w.t.Context(), b, w.client(reader))
	must(w.t, err)
	return declared(w.t, w.Introspection(b, about).Values)
}

func TestWhatAnApplicationDeclaresIsTold(t *testing.T) {
	const scopes = "openid profile email phone urn:signet:org"
	m := func(from app.ClaimSource, change ...func(*app.ClaimMapping)) []app.ClaimMapping {
		one := app.ClaimMapping{Source: from}
		for _, c := range change {
			c(&one)
		}
		return []app.ClaimMapping{one}
	}
	shape := func(s app.ClaimShape) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.Shape = s } }
	joined := func(m *app.ClaimMapping) { m.Shape, m.Separator = app.AsJoined, "," }
	prefix := func(p string) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.Prefix = p } }
	key := func(k string) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.Key = k } }
	constant := func(c string) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.Constant = c } }
	begins := func(b string) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.BeginsWith = b } }
	only := func(names ...string) func(*app.ClaimMapping) { return func(m *app.ClaimMapping) { m.Only = names } }
	member := func(name string, of []app.ClaimMapping) []app.ClaimMapping {
		of[0].Member = name
		return of
	}
	groups := func(w *world) { w.inGroups("usr_a", "org_a", "dev", "ops", "k8s-admins", "a,b") }
	for _, tt := range []struct {
		name     string
		mappings []app.ClaimMapping
		who      string
		scopes   string
		given    func(*world)
		want     string
	}{
		{"the identifier", m(app.FromUserID), "usr_b", "openid", nil, `{"x":"usr_b"}`},
		{"the login name", m(app.FromLoginName), "usr_b", scopes, nil, `{"x":"jo@b.test"}`},
		{"the user name", m(app.FromUserName), "usr_a", scopes, nil, `{"x":"jo"}`},
		{"the user name of another organization", m(app.FromUserName), "usr_b", scopes, nil, `{}`},
		{"the display name", m(app.FromDisplayName), "usr_b", scopes, nil, `{"x":"Jo Doe"}`},
		{"the first name in an array", m(app.FromFirstName, shape(app.AsArray)), "usr_b", scopes, nil, `{"x":["Jo"]}`},
		{"the last name with a prefix", m(app.FromLastName, prefix("p:")), "usr_b", scopes, nil, `{"x":"p:Doe"}`},
		{"the language", m(app.FromLanguage), "usr_b", scopes, nil, `{"x":"de"}`},
		{"a name without its scope", m(app.FromDisplayName), "usr_a", "openid", nil, `{}`},
		{"a name that is not there", m(app.FromNickName), "usr_a", scopes, nil, `{}`},
		{"the e-mail address", m(app.FromEmail), "usr_b", scopes, nil, `{"x":"jo@b.test"}`},
		{"the e-mail address without its scope", m(app.FromEmail), "usr_a", "openid profile", nil, `{}`},
		{"an e-mail address that nobody has proven", m(app.FromEmail), "usr_a", scopes, func(w *world) {
			w.change("usr_a", user.EmailChanged{Verified: new(false), Personal: user.EmailFacts{Email: new("boss@a.test"), EmailKey: new("boss@a.test")}})
		}, `{}`},
		{"no phone", m(app.FromPhone), "usr_a", scopes, nil, `{}`},
		{"the organization", m(app.FromOrgID), "usr_b", scopes, nil, `{"x":"org_b"}`},
		{"its name", m(app.FromOrgName), "usr_b", scopes, nil, `{"x":"b"}`},
		{"its domain", m(app.FromPrimaryDomain), "usr_b", scopes, nil, `{"x":"b.test"}`},
		{"the organization without its scope", m(app.FromOrgID), "usr_a", "openid profile", nil, `{}`},
		{"a constant", m(app.FromConstant, constant("v")), "usr_b", "openid", nil, `{"x":"v"}`},
		{"a constant boolean", m(app.FromConstant, constant("false"), shape(app.AsBoolean)), "usr_b", "openid", nil,
			`{"x":false}`},
		{"metadata", m(app.FromMetadata, key("team")), "usr_a", "openid", nil, `{"x":"blue"}`},
		{"metadata as a boolean", m(app.FromMetadata, key("vip"), shape(app.AsBoolean)), "usr_a", "openid", nil,
			`{"x":true}`},
		{"metadata that is not there", m(app.FromMetadata, key("none")), "usr_a", "openid", nil, `{}`},
		{"metadata of another organization", m(app.FromMetadata, key("team")), "usr_b", "openid", nil, `{}`},
		{"groups", m(app.FromGroupNames), "usr_a", "openid", groups, `{"x":["a,b","dev","k8s-admins","ops"]}`},
		{"no group", m(app.FromGroupNames), "usr_a", "openid", nil, `{"x":[]}`},
		{"groups that begin", m(app.FromGroupNames, begins("k8s-")), "usr_a", "openid", groups, `{"x":["k8s-admins"]}`},
		{"groups by name", m(app.FromGroupNames, only("ops", "none")), "usr_a", "openid", groups, `{"x":["ops"]}`},
		{"groups of both", m(app.FromGroupNames, begins("k8s-"), only("ops"), prefix("oidc:")), "usr_a", "openid", groups,
			`{"x":["oidc:k8s-admins","oidc:ops"]}`},
		{"whether there is a group", m(app.FromGroupNames, only("ops"), shape(app.AsBoolean)), "usr_a", "openid", groups,
			`{"x":true}`},
		{"whether there is another group", m(app.FromGroupNames, only("none"), shape(app.AsBoolean)), "usr_a", "openid",
			groups, `{"x":false}`},
		// A name with the separator in it would be two.
		{"groups joined", m(app.FromGroupNames, joined), "usr_a", "openid", groups, `{"x":"dev,k8s-admins,ops"}`},
		{"groups joined by a space", m(app.FromGroupNames, func(m *app.ClaimMapping) { m.Shape, m.Separator = app.AsJoined, " " }),
			"usr_a", "openid", func(w *world) {
				w.inGroups("usr_a", "org_a", "ops", "a b", "a\tb", "a\u00a0b", "a\u2003b")
			}, `{"x":"ops"}`},
		{"groups joined that have lines", m(app.FromGroupNames, joined), "usr_a", "openid",
			func(w *world) { w.inGroups("usr_a", "org_a", "ops", "a\nb") }, `{"x":"ops"}`},
		{"nothing to join", m(app.FromGroupNames, joined), "usr_a", "openid", nil, `{}`},
		{"identifiers of groups", m(app.FromGroupIDs), "usr_a", "openid",
			func(w *world) { w.joins("usr_a", "org_a", "grp_1") }, `{"x":["grp_1"]}`},
		{"roles", m(app.FromAppRoles), "usr_a", "openid",
			func(w *world) { w.holds("usr_a", "prj_p", "org_a", role("viewer", 2), role("admin", 1)) },
			`{"x":["admin","viewer"]}`},
		{"an object", slices.Concat(member("allowed", m(app.FromGroupNames, begins("d"))),
			member("id", m(app.FromUserID)), member("none", m(app.FromNickName))), "usr_a", scopes, groups,
			`{"x":{"allowed":["dev"],"id":"usr_a"}}`},
		// Nobody's group is taken for one of the application's own organization.
		{"groups of a customer", m(app.FromGroupNames), "usr_b", "openid",
			func(w *world) { w.inGroups("usr_b", "org_b", "admins") }, `{}`},
		{"whether a customer has a group", m(app.FromGroupNames, shape(app.AsBoolean)), "usr_b", "openid",
			func(w *world) { w.inGroups("usr_b", "org_b", "admins") }, `{}`},
		{"roles of a customer", m(app.FromAppRoles, joined), "usr_b", "openid",
			func(w *world) { w.holds("usr_b", "pac_b", "org_b", role("admin", 1)) }, `{}`},
		{"groups of somebody who is a guest elsewhere", m(app.FromGroupNames), "usr_a", "openid", func(w *world) {
			w.change("usr_a", guest("org_b"))
			w.inGroups("usr_a", "org_b", "admins")
			w.inGroups("usr_a", "org_a", "dev")
		}, `{"x":["dev"]}`},
		{"groups of a guest", m(app.FromGroupNames), "usr_b", "openid", func(w *world) {
			w.change("usr_b", guest("org_a"))
			w.inGroups("usr_b", "org_b", "admins")
			w.inGroups("usr_b", "org_a", "dev")
		}, `{"x":["dev"]}`},
		{"groups of somebody who signs in elsewhere", m(app.FromGroupNames), "usr_a", "openid urn:signet:org:id:org_b",
			func(w *world) {
				w.change("usr_a", guest("org_b"))
				w.inGroups("usr_a", "org_a", "dev")
			}, `{}`},
		{"groups with their organization", m(app.FromGroupNames, prefix("{orgId}:")), "usr_b", "openid", func(w *world) {
			w.change("usr_b", guest("org_a"))
			w.inGroups("usr_b", "org_b", "admins", "org_a:admins")
			w.inGroups("usr_b", "org_a", "dev")
		}, `{"x":["org_a:dev","org_b:admins","org_b:org_a:admins"]}`},
		{"groups with their organization, joined", m(app.FromGroupNames, prefix("{orgId}:"), joined), "usr_b", "openid",
			func(w *world) { w.inGroups("usr_b", "org_b", "dev", "x,org_a:admins") }, `{"x":"org_b:dev"}`},
		{"roles with their organization", m(app.FromAppRoles, prefix("{orgId}/")), "usr_b", "openid",
			func(w *world) { w.holds("usr_b", "pac_b", "org_b", role("admin", 1)) }, `{"x":["org_b/admin"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, app.RoleSettings{})
			for _, who := range []string{"usr_a", "usr_b"} {
				w.keeps(who, map[string]string{"team": "blue", "vip": "true"})
			}
			if tt.given != nil {
				tt.given(w)
			}
			for _, client := range []string{"app_spa", "app_jwt"} {
				w.declares(client, slices.Clone(tt.mappings)...)
				for in, got := range w.told(client, tt.who, tt.scopes) {
					if got != tt.want {
						t.Errorf("%s, %s: %s", client, in, got)
					}
				}
			}
		})
	}
}

func TestADeclaredClaimIsToldWhereItIsMeantToBe(t *testing.T) {
	for _, in := range everywhere {
		w := vendor(t, app.RoleSettings{})
		w.declares("app_jwt", app.ClaimMapping{Source: app.FromUserID, Targets: []app.ClaimTarget{in, app.InSAML}})
		for at, got := range w.told("app_jwt", "usr_a", "openid") {
			if want := map[bool]string{true: `{"x":"usr_a"}`, false: `{}`}[at == in]; got != want {
				t.Errorf("meant for %s, %s has %s", in, at, got)
			}
		}
	}
}

// Somebody of another organization is told of what they agreed to, and no mapping of later widens it.
func TestAMappingTellsNothingThatNobodyAgreedTo(t *testing.T) {
	w := vendor(t, app.RoleSettings{})
	w.inGroups("usr_b", "org_b", "admins")
	mapping := app.ClaimMapping{Source: app.FromGroupNames, Prefix: "{orgId}:"}
	made := w.agreed("app_jwt", "usr_b", "openid offline_access")
	w.declares("app_jwt", mapping)
	w.store.Advance(time.Minute)
	again, err := w.Refresh(t.Context(), w.client("app_jwt"), made.Refresh, nil)
	must(t, err)
	for _, tokens := range []*Tokens{made, again} {
		for in, got := range w.toldBy("app_jwt", tokens) {
			if got != `{}` {
				t.Errorf("%s has %s", in, got)
			}
		}
	}
	p, err := w.Pending(t.Context(), w.begin(ask("app_jwt", "openid")), browser)
	must(t, err)
	if !slices.Contains(p.Asks(), claimset.Groups) {
		t.Errorf("people are asked about %q", p.Asks())
	}
	if got := w.told("app_jwt", "usr_b", "openid")[app.InIDToken]; got != `{"x":["org_b:admins"]}` {
		t.Errorf("after they agreed: %s", got)
	}
}

// Others who read the same token learn what applications of the project do, but for metadata.
func TestWhoElseReadsDeclaredClaims(t *testing.T) {
	const own = `{"x":"blue","xid":"usr_a"}`
	for _, tt := range []struct{ reader, jwt, seen string }{
		{"app_web", `{"xid":"usr_a"}`, `{"xid":"usr_a"}`}, // of the project
		{"app_asks", `{}`, `{}`},                          // of none
	} {
		w := vendor(t, app.RoleSettings{})
		w.keeps("usr_a", map[string]string{"team": "blue"})
		w.declares("app_jwt", app.ClaimMapping{Source: app.FromMetadata, Key: "team"},
			app.ClaimMapping{Source: app.FromUserID, Claim: "xid"})
		made := w.agreed("app_jwt", "usr_a", "openid urn:signet:app:"+tt.reader+":aud")
		for in, want := range map[app.ClaimTarget]string{app.InIDToken: own, app.InAccessToken: tt.jwt, app.InUserInfo: own,
			app.InIntrospection: own} {
			if got := w.toldBy("app_jwt", made)[in]; got != want {
				t.Errorf("%s, %s has %s", tt.reader, in, got)
			}
		}
		if got := w.introspectedBy(tt.reader, made); got != tt.seen {
			t.Errorf("%s reads %s", tt.reader, got)
		}
	}
}

func TestDeclaredClaimsCountTowardTheSizeOfATokensClaims(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true})
	w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
	w.declares("app_jwt", app.ClaimMapping{Source: app.FromGroupNames})
	for i := range 21 {
		w.inGroups("usr_a", "org_a", fmt.Sprintf("%0200d", i))
	}
	made := w.agreed("app_jwt", "usr_a", "openid")
	for in, token := range map[string]string{"ID token": made.IDToken, "JWT": made.Access} {
		if got := declared(t, payload(t, token)); got != `{"urn:signet:overflow":["urn:signet:app_roles","x"]}` {
			t.Errorf("the %s has %s", in, got)
		}
		if got := seen(t, payload(t, token)); strings.Contains(got, "viewer") {
			t.Errorf("the %s has %s", in, got)
		}
	}
	if got := w.toldBy("app_jwt", made)[app.InUserInfo]; len(got) < 4000 {
		t.Errorf("user info has %s", got)
	}
}

func TestDeclaredClaimsOfAnAnswerAreBounded(t *testing.T) {
	w := vendor(t, app.RoleSettings{})
	var many []app.ClaimMapping
	for i := range app.MaxClaimMappings {
		many = append(many, app.ClaimMapping{Source: app.FromGroupNames, Claim: fmt.Sprintf("x%02d", i)})
	}
	w.declares("app_spa", many...)
	for i := range 9 {
		w.inGroups("usr_a", "org_a", fmt.Sprintf("%0200d", i))
	}
	for _, in := range []app.ClaimTarget{app.InUserInfo, app.InIntrospection} {
		got := w.told("app_spa", "usr_a", "openid")[in]
		if !strings.HasPrefix(got, `{"urn:signet:overflow":["x00","x01",`) || len(got) > 1000 {
			t.Errorf("%s has %.200s", in, got)
		}
	}
}

// What introspection and user info read of an application that declares claims, besides what they always read.
func TestWhatDeclaredClaimsCost(t *testing.T) {
	for _, tt := range []struct {
		name     string
		mappings []app.ClaimMapping
		reader   string // empty: user info
		want     int64
	}{
		{"none", nil, "", 0},
		{"a name", []app.ClaimMapping{{Source: app.FromUserID}}, "", 1},                            // the application
		{"a name, to the application", []app.ClaimMapping{{Source: app.FromUserID}}, "app_spa", 0}, // it is there
		{"groups", []app.ClaimMapping{{Source: app.FromGroupNames}}, "app_spa", 1 + 2},             // the project and the groups
		{"roles", []app.ClaimMapping{{Source: app.FromAppRoles}}, "app_spa", 1},                    // the project
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, app.RoleSettings{})
			w.inGroups("usr_a", "org_a", "dev", "ops")
			w.declares("app_spa", tt.mappings...)
			made := w.agreed("app_spa", "usr_a", "openid")
			var reader *Client
			if tt.reader != "" {
				reader = w.client(tt.reader)
			}
			store := &counted{Store: w.store}
			w.Store, w.Sessions.Store = store, store
			b, err := w.Bearer(t.Context(), made.Access)
			must(t, err)
			_, err = w.ClaimsOf(t.Context(), b, reader)
			must(t, err)
			const always = 2 // the user and the organization, where they do not come with the token
			if got := store.reads.Load() - always; got != tt.want {
				t.Errorf("%d reads more, want %d", got, tt.want)
			}
		})
	}
}

// A declared claim can never stand in the place of one that the server makes.
func TestEveryClaimOfTheServerIsReserved(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true, Groups: true})
	w.change("usr_a", user.PhoneChanged{Personal: user.PhoneFacts{Phone: new("+49 30 1"), PhoneNormal: new("+49301")}})
	made := w.agreed("app_jwt", "usr_a", strings.Join(Scopes, " "))
	b, err := w.Bearer(t.Context(), made.Access)
	must(t, err)
	info, err := w.ClaimsOf(t.Context(), b, w.client("app_jwt"))
	must(t, err)
	for where, claims := range map[string]map[string]any{"ID token": payload(t, made.IDToken),
		"JWT": payload(t, made.Access), "user info": info.Values, "introspection": w.Introspection(b, info).Values} {
		if len(claims) < 10 {
			t.Errorf("%s has only %v", where, claims)
		}
		for name := range claims {
			m := app.ClaimMapping{Source: app.FromUserID, Claim: name, Targets: everywhere}
			if len(app.ClaimMappingViolations([]app.ClaimMapping{m})) == 0 {
				t.Errorf("%s: %s can be declared", where, name)
			}
		}
	}
}

// A trial says why a claim is there, and why one is missing.
func TestATrialExplainsDeclaredClaims(t *testing.T) {
	w := vendor(t, app.RoleSettings{})
	w.declares("app_jwt", app.ClaimMapping{Source: app.FromUserID}, app.ClaimMapping{Source: app.FromEmail, Claim: "x1"},
		app.ClaimMapping{Source: app.FromGroupNames, Claim: "x2"}, app.ClaimMapping{Source: app.FromOrgID, Claim: "x3"})
	made := w.agreed("app_jwt", "usr_b", "openid email")
	b, err := w.Bearer(t.Context(), made.Access)
	must(t, err)
	about, err := w.addClaims(t.Context(), claimset.New(true), &session.Bearer{Token: b.Token, Caller: b.Caller,
		Given: b.Given, ClientOrg: b.ClientOrg, Client: b.Client, Places: b.Places, Person: b.Person}, nil)
	must(t, err)
	for where, s := range map[string]claimset.Set{"user info": about, "introspection": w.Introspection(b, about)} {
		if why := s.Why("x"); why.Source != claimset.Setting || why.Of != "claimMappings" {
			t.Errorf("%s: x is there because of %+v", where, why)
		}
		for claim, want := range map[string]claimset.Missing{"x2": {Lack: claimset.OtherOrganization},
			"x3": {Lack: claimset.NoScope, Of: claimset.OrgScope}} {
			if got := s.Missing()[claim]; got != want {
				t.Errorf("%s: %s is missing because of %+v", where, claim, got)
			}
		}
		if s.Values["x1"] != "jo@b.test" {
			t.Errorf("%s: x1 is %v", where, s.Values["x1"])
		}
	}
}
