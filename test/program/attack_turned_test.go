package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"html"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/test/portal"
)

// turns is every operation that changes an application, with requests by which its codes, tokens or data would reach
// somebody else, or why there are none.
func turns(t *testing.T, app, project string) map[string]any {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/apps/" + app
	set := func(field string, value any) turn {
		return turn{"PATCH", path, object{field: value, "updateMask": field}}
	}
	return map[string]any{
		"ModifyApplication": []turn{
			set("redirectUris", []string{firmCallback, attackCallback}),
			set("postLogoutUris", []string{attackCallback}), set("backChannelLogoutUri", attackCallback),
			set("initiateLoginUri", attackCallback), set("keySetUri", attackCallback),
			set("authMethod", "AUTH_METHOD_CLIENT_SECRET_POST"),
			set("grantTypes", []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN",
				"GRANT_TYPE_DEVICE_CODE"}),
			set("tokenFormat", "TOKEN_FORMAT_JWT"), set("consentRequired", false), set("exactAuthMethod", false),
		},
		"GenerateApplicationSecret": []turn{{"POST", path + "/secret", object{}},
			{"POST", path + "/secret", object{"keepOldSeconds": 3600}}},
		"AddApplicationKey": []turn{{"POST", path + "/keys",
			object{"publicKey": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}}},
		"SetApplicationAPIAccess": []turn{{"PUT", path + "/api_access",
			object{"scopes": []string{"signet.read", "signet.write", "signet.passwords"}}}},
		"SetApplicationOwnSignIn":  []turn{{"PUT", path + "/own_sign_in", object{"allowed": true}}},
		"SetApplicationFirstParty": []turn{{"PUT", path + "/first_party", object{"firstParty": true}}},
		"SetApplicationRoleSettings": []turn{{"PUT", path + "/role_settings", object{"projectId": project}},
			{"PUT", path + "/role_settings", object{"groupsInTokens": true}}},
		"SetApplicationClaimMappings": []turn{{"PUT", path + "/claim_mappings", object{"mappings": []object{
			{"source": "SOURCE_GROUP_NAMES", "claim": "groups", "targets": []string{"TARGET_ID_TOKEN"}}}}}},
		"AddApplication":          "a new one has no scopes",
		"DeactivateApplication":   "takes away",
		"ReactivateApplication":   "opens what stood there before",
		"RemoveApplication":       "takes away",
		"RemoveApplicationSecret": "takes away",
		"RemoveApplicationKey":    "takes away",
		"ApproveAudience":         "lets others send tokens to it, and gives away none of its own",
		"WithdrawAudience":        "takes away",
		"SetApplicationMetadata":  "programs keep it; Signet does nothing because of it",
		"StartSignInTrial":        "changes nothing, and goes to the one who starts it",
	}
}

type turn struct {
	method, path string
	body         object
}

const firmCallback = "https://firm.example/cb"

// An application that an owner of the installation gave scopes of the API, and that the owner of its organization uses,
// is to be turned by somebody who may only change the settings of the organization.
func TestAttackAnApplicationIsTurned(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, "")
		root.base, root.token = s.admin(t).URL, s.admin(t).Token // as browsers know it
		org, _, domain := root.organization(t, "Firm", "olga@mail.example")
		firm := *root
		firm.org = org
		firm.want(t, 200, "PUT", "/v1/orgs/"+org+"/members/"+firm.person(t, "manager", "m@mail.example", false),
			object{"roles": []string{"ORG_SETTINGS_MANAGER"}})
		manager := root.with(root.with("").signIn(t, "manager@"+domain, hisPassword))
		owner := root.with(root.with("").signIn(t, "owner@"+domain, herPassword))
		a := &attacked{t: t, api: root, cookies: map[string]string{"__Host-signet": owner.token},
			secrets: map[string]string{}}
		app := a.add(owner, object{
			"name":            "Tool",
			"type":            "APPLICATION_TYPE_WEB",
			"redirectUris":    []string{firmCallback},
			"consentRequired": true,
			"exactAuthMethod": true,
			"grantTypes":      []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"},
		})
		project := at[string](t, owner.want(t, 200, "POST", "/v1/projects", object{"name": "Plans"}), "projectId")
		scopes := []string{"signet.read", "signet.write"}
		firm.want(t, 200, "PUT", "/v1/apps/"+app+"/api_access", object{"scopes": scopes})

		wanted := "openid offline_access " + strings.Join(scopes, " ")
		ask := func(prompt, scopes, callback string) (told url.Values, page string, to *url.URL) {
			link := url.Values{"client_id": {app}, "redirect_uri": {callback}, "response_type": {"code"},
				"scope": {scopes}}
			if prompt != "" {
				link.Set("prompt", prompt)
			}
			to, page = a.open("GET", root.base+"/oauth/authorize?"+link.Encode(), nil)
			return to.Query(), page, to
		}
		exchange := func(code string) object {
			got := a.asks(app, "/oauth/token", "grant_type", "authorization_code", "code", code,
				"redirect_uri", firmCallback)
			if got["access_token"] == nil {
				t.Fatalf("no tokens: %v", got)
			}
			return got
		}
		silently := func(scopes, want string) string {
			t.Helper()
			told, page, to := ask("none", scopes, firmCallback)
			if told.Get("error") != want || (told.Get("code") == "") != (want != "") {
				t.Fatalf("prompt=none for %q came to %s %s", scopes, to, page)
			}
			return told.Get("code")
		}
		agree := func() {
			t.Helper()
			_, page, to := ask("", wanted, firmCallback)
			if !strings.Contains(page, "Tool") || to.Host != mustURL(t, root.base).Host {
				t.Fatalf("nobody is asked: %s %s", to, page)
			}
			a.open("POST", to.String(), url.Values{"do": {"allow"}})
		}
		agree()
		tokens, plain := exchange(silently(wanted, "")), exchange(silently("openid", ""))
		asOwner := root.with(at[string](t, tokens, "access_token"))
		asOwner.want(t, 200, "GET", "/v1/users", nil)

		// Neither the manager nor the owner of the organization turns it: refused at the first step, and nothing has
		// changed.
		sequence := func() string {
			return at[string](t, owner.want(t, 200, "GET", "/v1/apps/"+app, nil), "app", "details", "sequence")
		}
		before := sequence()
		all := turns(t, app, project)
		for _, name := range changingApplications() {
			switch how := all[name].(type) {
			case []turn:
				for _, one := range how {
					for who, c := range map[string]*client{"manager": manager, "owner": owner} {
						if status, answer, err := c.do(t.Context(), one.method, one.path, one.body); err != nil ||
							status != 403 {
							t.Errorf("%s: %s by the %s: %d %v %v", name, one.body, who, status, answer, err)
						}
					}
				}
			case string:
			default:
				t.Errorf("%s changes an application: say in turns how it lets others have more of one, or why it does not", name)
			}
		}
		if now := sequence(); now != before {
			t.Errorf("the application has changed: %s, %s", before, now)
		}
		if told, page, to := ask("none", wanted, attackCallback); told.Get("code") != "" ||
			to.Host == mustURL(t, attackCallback).Host {
			t.Errorf("a code reached the attacker: %s %s", to, page)
		}
		exchange(silently(wanted, ""))
		asOwner.want(t, 200, "GET", "/v1/users", nil)

		// What takes away is the organization's own, and ends nothing else.
		manager.want(t, 200, "PATCH", "/v1/apps/"+app,
			object{"name": "Tool 2",
				"grantTypes": []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"},
				"updateMask": "name,grantTypes"})
		asOwner.want(t, 200, "GET", "/v1/users", nil)

		// An owner of the installation changes it. People are asked again, and what they gave of the API has ended.
		firm.want(t, 200, "PATCH", "/v1/apps/"+app,
			object{"redirectUris": []string{firmCallback, "https://firm.example/cb2"}, "updateMask": "redirectUris"})
		asOwner.want(t, 401, "GET", "/v1/users", nil)
		if a.active(app, tokens) || !a.active(app, plain) {
			t.Error("a token for the API counts, or one without it does not")
		}
		if got := a.asks(app, "/oauth/token", "grant_type", "refresh_token", "refresh_token",
			at[string](t, tokens, "refresh_token")); got["error"] != "invalid_grant" {
			t.Errorf("a refresh token with scopes of the API: %v", got)
		}
		silently(wanted, "consent_required")
		silently("openid", "")
		agree()
		root.with(at[string](t, exchange(silently(wanted, "")), "access_token")).want(t, 200, "GET", "/v1/users", nil)

		// Taking the scopes away, changing it, and having them given again is no way round.
		firm.want(t, 200, "PUT", "/v1/apps/"+app+"/api_access", object{"scopes": []string{}})
		manager.want(t, 200, "PATCH", "/v1/apps/"+app,
			object{"redirectUris": []string{firmCallback, attackCallback}, "updateMask": "redirectUris"})
		firm.want(t, 200, "PUT", "/v1/apps/"+app+"/api_access", object{"scopes": scopes})
		silently(wanted, "consent_required")
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

// A provider is to be turned by somebody who may only change the settings of the organization: with keys of their own
// they would be whoever is linked. An owner who later changes something else does not answer for that unseen, until
// they have looked and say so.
func TestAttackAProviderIsTurned(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, "--outbound-allow", "127.0.0.0/8")
		root := newClient(t, p, "")
		root.base, root.token = s.admin(t).URL, s.admin(t).Token // as browsers know it
		org, ownerID, domain := root.organization(t, "Firm", "olga@mail.example")
		firm := *root
		firm.org = org
		managerID := firm.person(t, "manager", "m@mail.example", false)
		firm.want(t, 200, "PUT", "/v1/orgs/"+org+"/members/"+managerID,
			object{"roles": []string{"ORG_SETTINGS_MANAGER"}})
		manager := root.with(root.with("").signIn(t, "manager@"+domain, hisPassword))
		owner := root.with(root.with("").signIn(t, "owner@"+domain, herPassword))

		theirs, evil := portal.Start(t), portal.Start(t)
		config := object(theirs.Config("Corp", ""))
		config["autoRegister"] = true
		idp := at[string](t, owner.want(t, 200, "POST", "/v1/idps/jwt", config), "idpId")
		// through comes back from the provider with a token of a portal in a header.
		through := func(by *portal.Portal, who, header string) (*visitor, string) {
			t.Helper()
			b := newBrowser(t, root.base)
			m := providerForm.FindStringSubmatch(b.get(root.base + "/login/idp/" + idp + "?to=/account"))
			if m == nil {
				t.Fatalf("the provider is not offered at %s", b.at)
			}
			state := mustURL(t, b.onward(b.post(root.base+html.UnescapeString(m[1]), nil))).Query().Get("state")
			token := by.Token(idp, who, nil)
			if header == "Authorization" {
				token = "Bearer " + token
			}
			return b, b.send(http.MethodGet,
				root.base+"/login/idp/"+idp+"/callback?"+url.Values{"state": {state}}.Encode(), nil, header, token)
		}
		people := map[string]string{}
		for who, role := range map[string]string{"chief": "ORG_OWNER", "staff": "ORG_USER_MANAGER", "plain": ""} {
			b, page := through(theirs, who, "Authorization")
			b.sees(b.creates(page), who+"@portal.test")
			people[who] = at[string](t, root.with(b.session()).want(t, 200, "GET", "/v1/users/me", nil),
				"user", "userId")
			if role != "" {
				owner.want(t, 200, "PUT", "/v1/orgs/"+org+"/members/"+people[who], object{"roles": []string{role}})
			}
		}
		// enter tells who gets in by a portal. The others see a page that says this.
		enter := func(by *portal.Portal, header, says string) (in []string) {
			t.Helper()
			for _, who := range slices.Sorted(maps.Keys(people)) {
				b, page := through(by, who, header)
				if b.session() != "" {
					in = append(in, who)
				} else {
					b.sees(page, says)
				}
			}
			return in
		}
		suspended := func() (all []string) {
			t.Helper()
			for _, who := range slices.Sorted(maps.Keys(people)) {
				for _, l := range at[[]any](t,
					owner.want(t, 200, "GET", "/v1/users/"+people[who]+"/links", nil), "links") {
					if l.(object)["suspended"] == true {
						all = append(all, who)
					}
				}
			}
			return all
		}
		unconfirmed := func() any {
			t.Helper()
			return owner.want(t, 200, "GET", "/v1/idps/"+idp, nil)["idp"].(object)["unconfirmed"]
		}
		sequence := func() string {
			t.Helper()
			return at[string](t, owner.want(t, 200, "GET", "/v1/idps/"+idp, nil), "idp", "details", "sequence")
		}
		const confirm = "Please confirm this link"
		everybody := []string{"chief", "plain", "staff"}
		if got := enter(theirs, "Authorization", ""); !slices.Equal(got, everybody) {
			t.Fatalf("only %v get in", got)
		}
		if got := enter(evil, "Authorization", "did not work"); got != nil {
			t.Fatalf("%v get in by foreign keys", got)
		}

		looked := sequence()
		manager.want(t, 200, "PATCH", "/v1/idps/"+idp,
			object{"jwt": object{"keysEndpoint": evil.URL + "/keys"}, "updateMask": "jwt.keysEndpoint"})
		if got := enter(evil, "Authorization", confirm); got != nil {
			t.Fatalf("the manager got in as %v", got)
		}
		owner.want(t, 200, "PATCH", "/v1/idps/"+idp,
			object{"jwt": object{"headerName": "X-Portal-Token"}, "updateMask": "jwt.headerName"})
		owner.want(t, 200, "PATCH", "/v1/idps/"+idp, object{"name": "Corporation", "updateMask": "name"})
		if got := enter(evil, "X-Portal-Token", confirm); got != nil {
			t.Fatalf("after a change by the owner the manager got in as %v", got)
		}
		if got := suspended(); !slices.Equal(got, everybody) {
			t.Errorf("suspended are %v", got)
		}
		want := []any{object{"userId": managerID, "roles": []any{"ORG_SETTINGS_MANAGER"},
			"settings": []any{"jwt.keysEndpoint"}}}
		if got := unconfirmed(); !reflect.DeepEqual(got, any(want)) {
			t.Errorf("unconfirmed are %v", got)
		}
		if got := owner.want(t, 200, "GET", "/v1/idps/"+idp, nil)["idp"].(object)["vouchedBy"]; got != ownerID {
			t.Errorf("%v answers for it", got)
		}

		// Neither the manager nor an owner who looked before the change confirms it.
		adopt := func(c *client, match string) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "POST", c.base+"/v1/idps/"+idp+"/_check",
				strings.NewReader(`{"adopt":true}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+c.token)
			if match != "" {
				r.Header.Set("If-Match", `"`+match+`"`)
			}
			resp, err := c.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode
		}
		for name, match := range map[string]string{"without looking": "", "having looked before": looked} {
			if got := adopt(owner, match); got == 200 {
				t.Errorf("%s: %d", name, got)
			}
		}
		if got := unconfirmed(); !reflect.DeepEqual(got, any(want)) {
			t.Errorf("unconfirmed are %v", got)
		}
		adopt(manager, sequence())
		if got := enter(evil, "X-Portal-Token", confirm); got != nil {
			t.Fatalf("the manager confirmed it for %v", got)
		}
		// Who has looked at it answers for it.
		if got := adopt(owner, sequence()); got != 200 {
			t.Fatalf("an owner who has looked: %d", got)
		}
		if got := unconfirmed(); got != nil && len(got.([]any)) > 0 {
			t.Errorf("unconfirmed are %v", got)
		}
		if got := suspended(); got != nil {
			t.Errorf("suspended are %v", got)
		}
		if got := enter(evil, "X-Portal-Token", confirm); !slices.Equal(got, everybody) {
			t.Errorf("only %v get in", got)
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
	})
}

func mustURL(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// changingApplications are the operations below /v1/apps that are no reads.
func changingApplications() (names []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
				for _, path := range []string{rule.GetPost(), rule.GetPut(), rule.GetPatch(), rule.GetDelete()} {
					if path == "/v1/apps" || strings.HasPrefix(path, "/v1/apps/") {
						names = append(names, string(m.Name()))
					}
				}
			}
		}
		return true
	})
	return names
}
