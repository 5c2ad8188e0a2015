package oauth

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
)

// app_all belongs to org_b; usr_a is of org_a.

func TestPeopleOfOtherOrganizationsAreAskedUntilTheirConsentCovers(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	silent := func(scopes string) error {
		t.Helper()
		a := ask("app_all", scopes)
		a.Prompt = "none"
		id := w.begin(a)
		p, err := w.Pending(t.Context(), id, browser)
		must(t, err)
		unmet, err := w.Needs(t.Context(), p, in)
		need := unmet.Need()
		must(t, err)
		_, err = w.Approve(t.Context(), id, browser, in, nil)
		if (need == NeedsConsent) != (err != nil) {
			t.Errorf("it needs %q, and approving says %v", need, err)
		}
		return err
	}
	allow := func(scopes string) {
		t.Helper()
		_, err := w.Approve(t.Context(), w.begin(ask("app_all", scopes)), browser, in, strings.Fields(scopes))
		must(t, err)
	}
	wants(t, silent("openid"), ErrConsentRequired)
	wants(t, silent(""), ErrConsentRequired) // who asks for nothing learns who is there
	allow("openid email")
	must(t, silent("openid email"))
	must(t, silent("openid"))
	wants(t, silent("openid email phone"), ErrConsentRequired)
	wants(t, silent("openid email offline_access"), ErrConsentRequired)
	allow("openid offline_access")
	must(t, silent("openid email offline_access"))
	w.tokens("app_spa", "usr_a", "openid")
	list, err := w.Consents(t.Context(), in.Caller)
	must(t, err)
	if len(list) != 2 || list[0].Publisher != "b" || list[1].Publisher != "" {
		t.Errorf("listed %+v", list)
	}
	must(t, w.Withdraw(t.Context(), in.Caller, "app_all"))
	wants(t, silent("openid"), ErrConsentRequired)
}

func TestAConsentThatNobodyWasAskedForCoversNothing(t *testing.T) {
	w := newWorld(t)
	unasked(w, "app_all", "openid", "email")
	_, err := w.Approve(t.Context(), w.begin(ask("app_all", "openid")), browser, w.signIn("usr_a"), nil)
	wants(t, err, ErrConsentRequired)
}

// unasked records what an application could have before people of other organizations had to be asked.
func unasked(w *world, client string, scopes ...string) {
	w.t.Helper()
	eventtest.Given(w.t, w.store, Kind, IDFor("usr_a"), "org_a", nil,
		Given{AppID: client, Scopes: scopes, At: event.Micros(w.store.Now())})
}

// before is what came of a sign-in of usr_a from before people of other organizations had to be asked: rows as they
// were.
func (w *world) before(client string, scopes ...string) (t terms, refresh *refresh, access string) {
	w.t.Helper()
	a := w.client(client).App
	t = terms{
		Client:    client,
		ClientOrg: a.Org,
		UserID:    "usr_a",
		OrgID:     "org_a",
		Session:   w.signIn("usr_a").Token.ID,
		Consent:   1,
		Scopes:    scopes,
		Audience:  []string{client},
		Family:    event.NewID("fam"),
	}
	made, err := w.prepare(w.t.Context(), &Client{App: a}, &t, scopes)
	must(w.t, err)
	refresh = newRefresh(a, &t)
	must(w.t, w.store.Do(w.t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Decide: func(tx *event.Tx) error {
			tx.PutToken(made.stored)
			refresh.put(tx, &t)
			return nil
		},
	}))
	return t, refresh, made.Access
}

func TestGrantsAcrossOrganizationsThatNobodyWasAskedForEndAtTheirNextRefresh(t *testing.T) {
	scopes := []string{"offline_access", "openid"}
	for _, tt := range []struct {
		name   string
		client string
		since  func(*world)
		ends   bool
	}{
		{"never asked", "app_all", func(*world) {}, true},
		{"never asked, in one organization", "app_spa", func(*world) {}, false},
		{"asked for all of it since", "app_all", func(w *world) {
			_, err := w.Approve(w.t.Context(), w.begin(ask("app_all", "openid offline_access")), browser,
				w.signIn("usr_a"), scopes)
			must(w.t, err)
		}, false},
		{"asked for less since", "app_all", func(w *world) {
			_, err := w.Approve(w.t.Context(), w.begin(ask("app_all", "openid")), browser, w.signIn("usr_a"),
				[]string{"openid"})
			must(w.t, err)
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			unasked(w, tt.client, scopes...)
			had, old, text := w.before(tt.client, scopes...)
			tt.since(w)
			if !w.counts(text) {
				t.Fatal("the access token does not count before")
			}
			_, err := w.Refresh(t.Context(), w.client(tt.client), old.text, nil)
			row, rowErr := w.store.Row(t.Context(), families.Key(had.Family))
			must(t, rowErr)
			if !tt.ends {
				must(t, err)
				return
			}
			wants(t, err, ErrInvalidGrant)
			if row != nil || w.counts(text) {
				t.Error("the family lives on")
			}
		})
	}
}

func TestWhatIsOnItsWayWithoutAConsentLeadsNowhere(t *testing.T) {
	w := newWorld(t)
	w.change("app_tv", app.SettingsChanged{AllOrganizations: new(true)})
	in := w.signIn("usr_b")
	codeText := w.code(ask("app_all", "openid"), w.signIn("usr_a"))
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid"})
	must(t, err)
	p, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	must(t, w.ApproveDevice(t.Context(), p, in, p.Scopes))
	// The consents, as they were recorded when nobody had to be asked.
	for _, c := range []struct{ who, app, org string }{{"usr_a", "app_all", "org_a"}, {"usr_b", "app_tv", "org_b"}} {
		eventtest.Given(t, w.store, Kind, IDFor(c.who), c.org, nil, Given{AppID: c.app, Scopes: []string{"openid"}})
	}
	_, err = w.exchange("app_all", codeText)
	wants(t, err, ErrInvalidGrant)
	w.store.Advance(6 * time.Second)
	_, err = w.DeviceTokens(t.Context(), w.client("app_tv"), d.DeviceCode)
	wants(t, err, ErrInvalidGrant)
}

const forAll = "urn:signet:app:app_all:aud" // the scope for tokens that are meant for app_all of org_b

func approved(client string) app.AudienceApproved {
	return app.AudienceApproved{ClientID: client, ClientOrg: "org_a", At: 1}
}

// seenBy is what an application learns of an access token.
func (w *world) seenBy(client, text string) *session.Bearer {
	w.t.Helper()
	b, err := w.Introspect(w.t.Context(), text, w.proven(client))
	must(w.t, err)
	return b
}

func TestTokensForAnApplicationOfAnotherOrganizationNeedItsApproval(t *testing.T) {
	w := newWorld(t)
	scopes := "openid offline_access " + forAll
	without := w.tokens("app_spa", "usr_a", scopes)
	if slices.Contains(without.Scopes, forAll) || w.seenBy("app_all", without.Access) != nil {
		t.Errorf("without an approval: %q", without.Scopes)
	}
	w.change("app_all", approved("app_jwt"))
	if another := w.tokens("app_spa", "usr_a", scopes); slices.Contains(another.Scopes, forAll) {
		t.Errorf("with another client's approval: %q", another.Scopes)
	}
	w.change("app_all", approved("app_spa"))
	with := w.tokens("app_spa", "usr_a", scopes)
	if !slices.Contains(with.Scopes, forAll) || w.seenBy("app_all", with.Access) == nil {
		t.Errorf("with the approval: %q", with.Scopes)
	}
	refresh := func(text string) *Tokens {
		t.Helper()
		made, err := w.Refresh(t.Context(), w.client("app_spa"), text, nil)
		must(t, err)
		return made
	}
	if grown := refresh(without.Refresh); slices.Contains(grown.Scopes, forAll) {
		t.Error("a refresh gives what the person was not asked about")
	}
	with = refresh(with.Refresh)
	w.change("app_all", app.AudienceWithdrawn{ClientID: "app_spa"})
	if w.seenBy("app_all", with.Access) != nil || w.seenBy("app_spa", with.Access) == nil {
		t.Error("a token that was made before the withdrawal must not count at the application, but for its client")
	}
	last := refresh(with.Refresh)
	if slices.Contains(last.Scopes, forAll) || !slices.Contains(last.Scopes, "openid") ||
		slices.Contains(w.seenBy("app_spa", last.Access).Given.Audience, "app_all") {
		t.Errorf("after the withdrawal: %q", last.Scopes)
	}
}

func TestACodeOnItsWayIsNarrowedToWhatIsApproved(t *testing.T) {
	w := newWorld(t)
	w.change("app_all", approved("app_spa"))
	code := w.code(ask("app_spa", "openid "+forAll), w.signIn("usr_a"))
	w.change("app_all", app.AudienceWithdrawn{ClientID: "app_spa"})
	made, err := w.exchange("app_spa", code)
	must(t, err)
	if !slices.Equal(made.Scopes, []string{"openid"}) || w.seenBy("app_all", made.Access) != nil {
		t.Errorf("got %q", made.Scopes)
	}
}

func TestAnAudienceThatIsApprovedMeanwhileIsNotSlippedIn(t *testing.T) {
	w := newWorld(t)
	w.change("app_tv", app.SettingsChanged{AllOrganizations: new(true)})
	id := w.begin(ask("app_asks", "openid "+forAll))
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid", forAll})
	must(t, err)
	w.change("app_all", approved("app_asks"))
	w.change("app_all", approved("app_tv"))
	p, err := w.Pending(t.Context(), id, browser)
	must(t, err)
	on, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	if slices.Contains(p.Request.Scopes, forAll) || slices.Contains(on.Scopes, forAll) {
		t.Errorf("asked for %q and %q", p.Request.Scopes, on.Scopes)
	}
}

func TestServiceUsersNeedTheApprovalTheSameWay(t *testing.T) {
	w := newWorld(t)
	robot := &Client{Service: eventtest.State(t, w.store, user.Kind, "usr_robot")}
	made, err := w.ClientCredentials(t.Context(), robot, []string{forAll, "urn:signet:app:app_web:aud"})
	must(t, err)
	if !slices.Equal(made.Scopes, []string{"urn:signet:app:app_web:aud"}) || w.seenBy("app_web", made.Access) == nil {
		t.Errorf("without an approval: %q", made.Scopes)
	}
	w.change("app_all", approved("usr_robot"))
	made, err = w.ClientCredentials(t.Context(), robot, []string{forAll})
	must(t, err)
	if w.seenBy("app_all", made.Access) == nil {
		t.Error("with the approval, the token does not count")
	}
	w.change("app_all", app.AudienceWithdrawn{ClientID: "usr_robot"})
	if w.seenBy("app_all", made.Access) != nil {
		t.Error("after the withdrawal, the token counts")
	}
}

func TestAnApplicationOfAnotherOrganizationIsToldOfTheRolesThatConcernIt(t *testing.T) {
	w := newWorld(t)
	for scope, role := range map[string]access.Role{"org_a": access.OrgOwner, "org_b": access.OrgUserManager,
		"org_c": access.OrgOwnerViewer, access.Installation: access.IAMOwner} {
		w.change("usr_a", user.MembershipSet{Scope: scope, Roles: []access.Role{role}})
	}
	for client, want := range map[string]string{
		"app_spa": `{"installation":["IAM_OWNER"],"org_a":["ORG_OWNER"],"org_b":["ORG_USER_MANAGER"],"org_c":["ORG_OWNER_VIEWER"]}`,
		"app_all": `{"org_a":["ORG_OWNER"],"org_b":["ORG_USER_MANAGER"]}`,
	} {
		made := w.tokens(client, "usr_a", "openid urn:signet:roles")
		b, err := w.Bearer(t.Context(), made.Access)
		must(t, err)
		claims, err := w.ClaimsOf(t.Context(), b, nil)
		must(t, err)
		for where, told := range map[string]any{"user info": claims.Values[claimset.RolesScope],
			"ID token": claimsOf(t, made.IDToken)[claimset.RolesScope]} {
			if got, _ := json.Marshal(told); string(got) != want {
				t.Errorf("%s, %s: got %s", client, where, got)
			}
		}
	}
}

// A JWT is read by all that it is meant for: it says what each of them may know.
func TestAJWTForAnotherOrganizationTellsOfTheRolesThatConcernIt(t *testing.T) {
	w := newWorld(t)
	for scope, role := range map[string]access.Role{"org_a": access.OrgOwner, "org_b": access.OrgUserManager,
		access.Installation: access.IAMOwner} {
		w.change("usr_a", user.MembershipSet{Scope: scope, Roles: []access.Role{role}})
	}
	w.change("app_all", approved("app_jwt"))
	for scopes, want := range map[string]string{
		"openid urn:signet:roles signet.self urn:signet:app:app_web:aud": `{"installation":["IAM_OWNER"],"org_a":["ORG_OWNER"],"org_b":["ORG_USER_MANAGER"]}`,
		"openid urn:signet:roles urn:signet:app:app_web:aud " +
			forAll: `{"org_a":["ORG_OWNER"],"org_b":["ORG_USER_MANAGER"]}`,
	} {
		_, signed, _ := strings.Cut(w.tokens("app_jwt", "usr_a", scopes).Access, ".")
		payload, _, _ := strings.Cut(signed, ".")
		text, err := base64.RawURLEncoding.DecodeString(payload)
		must(t, err)
		var claims map[string]json.RawMessage
		must(t, json.Unmarshal(text, &claims))
		if got := string(claims[claimset.RolesScope]); got != want {
			t.Errorf("%s: got %s", scopes, got)
		}
	}
}
