package upgrade

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/net/html"
	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/factor/factortest"
)

// password is everybody's.
const password = "correct horse battery staple"

const callback = "https://shop.example/callback"

// notes are what has to be known about data to go on with it, and what the version before showed of it.
type notes struct {
	Version   string
	Made      time.Time
	Head      string // of the log, as signet verify prints it: POSITION:DIGEST
	Admin     string // a personal access token of the first administrator's service user
	Org       string
	Owner     person // of the organization
	Ada       person // has a verified e-mail address, a phone number and a role
	AdaEmail  string
	Grace     person // has an authenticator app, a passkey and recovery codes
	TOTP      string
	Recovery  string // one of the recovery codes
	Imported  person
	Locked    person
	Erased    string // identifier of a user who was removed
	Robot     string // identifier of a service user
	Token     string // a personal access token of the robot
	Secret    string // its secret
	App       string // an application that Ada allowed to see her profile
	AppKey    string // its secret
	Access    string // its access token for Ada
	Refresh   string // its refresh token for Ada
	JWT, OIDC string // identity providers
	Webhook   string
	Views     map[string]object // what reads answered, by path
}

// person is somebody with a session.
type person struct{ ID, LoginName, Session string }

func (p person) caller() caller { return caller{token: p.Session} }

// views are the reads whose answers stay the same when the program changes.
func (n *notes) views() []string {
	org := "/v1/orgs/" + n.Org
	return []string{org, org + "/domains", org + "/policy", org + "/members", "/v1/policy", "/v1/members", "/v1/users", "/v1/apps", "/v1/idps", "/v1/webhooks",
		"/v1/orgs", "/v1/users/" + n.Grace.ID + "/factors", "/v1/users/" + n.Robot + "/keys"}
}

// view reads what is shown at a path.
func (n *notes) view(t *testing.T, server *node, path string) object {
	t.Helper()
	reader := n.admin()
	if path == "/v1/policy" || path == "/v1/members" || path == "/v1/orgs" { // of the installation
		reader.org = ""
	}
	return server.want(t, reader, "GET", path, nil)
}

// admin acts with the rights of an owner of the installation on the organization.
func (n *notes) admin() caller { return caller{token: n.Admin, org: n.Org} }

// fill makes one of everything, and notes it.
func fill(t *testing.T, s *site, server *node) *notes {
	t.Helper()
	n := &notes{Version: versionBefore(), Made: time.Now().UTC(), Views: map[string]object{}}
	var first struct{ Token string }
	text, err := os.ReadFile(filepath.Join(s.dir, "first-admin.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &first))
	n.Admin = first.Token
	n.fillOrg(t, server)
	n.fillPeople(t, server)
	n.fillFactors(t, server)
	n.fillServices(t, server)
	n.fillApps(t, server)
	n.fillRest(t, server)
	for _, path := range n.views() {
		n.Views[path] = n.view(t, server, path)
	}
	return n
}

func (n *notes) fillOrg(t *testing.T, server *node) {
	t.Helper()
	admin := caller{token: n.Admin}
	server.want(t, admin, "PUT", "/v1/policy", object{"policy": object{"passwordMinLength": 10, "sessionSeconds": 2592000}})
	setUp := func(name string) (org, owner string) {
		t.Helper()
		made := server.want(t, admin, "POST", "/v1/orgs/_setup", object{"org": object{"name": name}, "human": object{"userName": "owner", "password": password,
			"email": object{"email": "owner@" + name + ".example", "isEmailVerified": true}, "profile": object{"firstName": "Olga", "lastName": "Owner"}}})
		return at[string](t, made, "orgId"), at[string](t, made, "userId")
	}
	n.Org, n.Owner.ID = setUp("fixture")
	org := "/v1/orgs/" + n.Org
	server.want(t, admin, "POST", org+"/domains", object{"domain": "fixture.example", "isVerified": true})
	server.want(t, admin, "POST", org+"/domains", object{"domain": "wanted.example"})
	server.want(t, admin, "POST", org+"/domains/fixture.example/_set_primary", object{})
	server.want(t, admin, "PUT", org+"/policy", object{"policy": object{"commonPasswordsRefused": true}})
	server.want(t, admin, "PUT", org, object{"name": "Fixture"})
	n.Owner.LoginName = "owner@fixture.example"
	n.Owner.Session = server.signIn(t, n.Owner.LoginName, password).token
	idle, _ := setUp("idle")
	server.want(t, admin, "POST", "/v1/orgs/"+idle+"/_deactivate", object{})
	gone, _ := setUp("gone")
	server.want(t, admin, "DELETE", "/v1/orgs/"+gone, nil)
}

// addHuman adds somebody to the organization who can sign in.
func (n *notes) addHuman(t *testing.T, server *node, userName string) person {
	t.Helper()
	made := server.want(t, n.admin(), "POST", "/v1/users/human", object{"userName": userName, "password": password, "noChangeRequired": true,
		"email": object{"email": userName + "@mail.example", "isEmailVerified": true}, "phone": object{"phone": "+41445550123"},
		"profile": object{"firstName": strings.ToUpper(userName[:1]) + userName[1:], "lastName": "Example", "preferredLanguage": "de"}})
	return person{ID: at[string](t, made, "userId"), LoginName: userName + "@fixture.example"}
}

func (n *notes) fillPeople(t *testing.T, server *node) {
	t.Helper()
	n.Ada, n.AdaEmail = n.addHuman(t, server, "ada"), "ada@mail.example"
	user := "/v1/users/" + n.Ada.ID
	server.want(t, n.admin(), "POST", user+"/password", object{"password": "another " + password, "noChangeRequired": true})
	ada := server.signInTo(t, n.Org, n.AdaEmail, "another "+password)
	server.want(t, ada, "PUT", "/v1/users/me/password", object{"currentPassword": "another " + password, "newPassword": password})
	server.want(t, ada, "PUT", "/v1/users/me/profile", object{"firstName": "Ada", "lastName": "Lovelace", "displayName": "Ada L.", "nickName": "Countess"})
	code := server.want(t, n.admin(), "POST", user+"/phone/_create_code", object{})
	server.want(t, ada, "POST", "/v1/users/me/phone/_verify", object{"code": code["code"]})
	server.want(t, n.admin(), "PUT", "/v1/orgs/"+n.Org+"/members/"+n.Ada.ID, object{"roles": []string{"ORG_USER_MANAGER"}})
	server.want(t, caller{token: n.Admin}, "PUT", "/v1/members/"+n.Ada.ID, object{"roles": []string{"IAM_OWNER_VIEWER"}})
	n.Ada.Session = server.signIn(t, n.Ada.LoginName, password).token

	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	must(t, err)
	server.want(t, n.admin(), "POST", "/v1/users/_import", object{"users": []object{{"userName": "imported", "passwordHash": string(hash),
		"email": object{"address": "imported@mail.example", "verified": true}, "profile": object{"firstName": "Im", "lastName": "Ported"}}}})
	n.Imported = person{LoginName: "imported@fixture.example"}

	n.Locked = n.addHuman(t, server, "locked")
	server.want(t, n.admin(), "POST", "/v1/users/"+n.Locked.ID+"/_lock", object{})
	idle := n.addHuman(t, server, "idle")
	server.want(t, n.admin(), "POST", "/v1/users/"+idle.ID+"/_deactivate", object{})
	erased := n.addHuman(t, server, "erased")
	server.signIn(t, erased.LoginName, password)
	server.want(t, n.admin(), "DELETE", "/v1/users/"+erased.ID, nil)
	n.Erased = erased.ID
	if status, _ := server.call(t, caller{}, "POST", "/v1/sessions", object{"loginName": n.Ada.LoginName, "password": "wrong password"}); status == http.StatusOK {
		t.Fatal("a wrong password is right")
	}
}

func (n *notes) fillFactors(t *testing.T, server *node) {
	t.Helper()
	n.Grace = n.addHuman(t, server, "grace")
	grace := server.signIn(t, n.Grace.LoginName, password)
	n.TOTP = at[string](t, server.want(t, grace, "POST", "/v1/users/me/factors/totp/_start", object{}), "secret")
	confirmed := server.want(t, grace, "POST", "/v1/users/me/factors/totp/_confirm", object{"code": factortest.Code(n.TOTP, time.Now())})
	if token, renewed := confirmed["token"].(string); renewed {
		grace.token = token
	}
	n.Recovery = at[[]any](t, server.want(t, grace, "POST", "/v1/users/me/recovery_codes", object{}), "codes")[0].(string)
	options := at[string](t, server.want(t, grace, "POST", "/v1/users/me/factors/passkey/_start", object{}), "creationOptions")
	device := factortest.Authenticator{Origin: base}
	credential, err := device.Create(options)
	must(t, err)
	server.want(t, grace, "POST", "/v1/users/me/factors/passkey/_confirm", object{"credential": credential, "name": "Key ring"})
	n.Grace.Session = grace.token
}

func (n *notes) fillServices(t *testing.T, server *node) {
	t.Helper()
	made := server.want(t, n.admin(), "POST", "/v1/users/service", object{"userName": "robot", "name": "Robot", "description": "Turns the lights on"})
	n.Robot = at[string](t, made, "userId")
	user := "/v1/users/" + n.Robot
	n.Token = at[string](t, server.want(t, n.admin(), "POST", user+"/tokens", object{"name": "Night shift"}), "token")
	n.Secret = at[string](t, server.want(t, n.admin(), "POST", user+"/secret", object{}), "secret")
	server.want(t, n.admin(), "POST", user+"/keys", object{"publicKey": publicKey(t)})
	server.want(t, n.admin(), "PUT", "/v1/orgs/"+n.Org+"/members/"+n.Robot, object{"roles": []string{"ORG_OWNER"}})
}

// publicKey is the public half of a key that nobody keeps.
func publicKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (n *notes) fillApps(t *testing.T, server *node) {
	t.Helper()
	add := func(name, kind string, more object) object {
		t.Helper()
		request := object{"name": name, "type": "APPLICATION_TYPE_" + kind, "redirectUris": []string{callback}}
		for field, value := range more {
			request[field] = value
		}
		return server.want(t, n.admin(), "POST", "/v1/apps", request)
	}
	shop := add("Shop", "WEB", object{"consentRequired": true, "allOrganizations": true, "refreshTokenSeconds": 7776000, "accessTokenSeconds": 86400,
		"grantTypes": []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"}})
	n.App, n.AppKey = at[string](t, shop, "appId"), at[string](t, shop, "clientSecret")
	server.want(t, n.admin(), "PUT", "/v1/apps/"+n.App+"/api_access", object{"scopes": []string{"signet.self"}})
	browser := add("Browser", "SINGLE_PAGE", nil)
	server.want(t, n.admin(), "POST", "/v1/apps/"+at[string](t, browser, "appId")+"/_deactivate", object{})
	gone := add("Gone", "NATIVE", nil)
	server.want(t, n.admin(), "DELETE", "/v1/apps/"+at[string](t, gone, "appId"), nil)
	server.want(t, n.admin(), "POST", "/v1/apps", object{"name": "Ledger", "type": "APPLICATION_TYPE_API"})
	n.Access, n.Refresh = n.allow(t, server)
}

// allow lets Ada sign in to the application through the pages, and gives the tokens that the application gets.
func (n *notes) allow(t *testing.T, server *node) (access, refresh string) {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	v := &visitor{t: t, server: server, cookies: map[string]string{}, answers: map[string]string{"loginName": n.Ada.LoginName, "password": password}}
	code := v.goTo("/oauth/authorize?" + url.Values{"client_id": {n.App}, "response_type": {"code"}, "redirect_uri": {callback}, "state": {"st"},
		"scope": {"openid profile email offline_access signet.self"}, "code_challenge_method": {"S256"}, "code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}}.Encode()).Get("code")
	tokens := n.exchange(t, server, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}})
	return at[string](t, tokens, "access_token"), at[string](t, tokens, "refresh_token")
}

// exchange asks for tokens as the application.
func (n *notes) exchange(t *testing.T, server *node, form url.Values) object {
	t.Helper()
	return server.tokens(t, n.App, n.AppKey, form)
}

// tokens asks for tokens as a client with a secret.
func (n *node) tokens(t *testing.T, client, secret string, form url.Values) (answer object) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", base+"/oauth/token", strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, secret)
	resp, err := n.http.Do(r)
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("asking for tokens: %d %v", resp.StatusCode, answer)
	}
	return answer
}

func (n *notes) fillRest(t *testing.T, server *node) {
	t.Helper()
	provider := object{"name": "Partner", "jwtEndpoint": "https://jwt.example/t", "issuer": "https://jwt.example", "keysEndpoint": "https://jwt.example/keys", "headerName": "x-token"}
	n.JWT = at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/jwt", provider), "idpId")
	gone := at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/jwt", provider), "idpId")
	server.want(t, n.admin(), "DELETE", "/v1/idps/"+gone, nil)
	n.OIDC = at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/oidc",
		object{"name": "Login", "issuer": "https://oidc.example", "clientId": "fixture", "clientSecret": "not a secret", "scopes": []string{"openid"}}), "idpId")
	server.want(t, n.admin(), "POST", "/v1/idps/"+n.OIDC+"/_deactivate", object{})
	// Nothing is sent to it: no event of these types happens.
	hook := object{"name": "Hook", "url": "https://hooks.example/fixture", "types": []string{"signing.*"}}
	n.Webhook = at[string](t, server.want(t, n.admin(), "POST", "/v1/webhooks", hook), "webhookId")
	gone = at[string](t, server.want(t, n.admin(), "POST", "/v1/webhooks", hook), "webhookId")
	server.want(t, n.admin(), "DELETE", "/v1/webhooks/"+gone, nil)
}

// visitor is a person at a browser that runs no script.
type visitor struct {
	t       *testing.T
	server  *node
	cookies map[string]string
	answers map[string]string // what is typed into fields, by their names
}

// goTo fills in and sends the first form of each page until one leads elsewhere, and gives what is sent there.
func (v *visitor) goTo(path string) url.Values {
	v.t.Helper()
	method, form := http.MethodGet, url.Values{}
	for range 20 {
		r, err := http.NewRequestWithContext(v.t.Context(), method, base+path, strings.NewReader(form.Encode()))
		must(v.t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", base)
		for name, value := range v.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		resp, err := v.server.http.Do(r)
		must(v.t, err)
		for _, c := range resp.Cookies() {
			v.cookies[c.Name] = c.Value
		}
		page, err := html.Parse(resp.Body)
		must(v.t, err)
		resp.Body.Close()
		button := ""
		form, button = v.read(page)
		if method = http.MethodPost; len(form) == 0 {
			method = http.MethodGet
			next, err := r.URL.Parse(cmp.Or(resp.Header.Get("Location"), button))
			must(v.t, err)
			if !strings.HasPrefix(next.String(), base+"/") {
				return next.Query()
			}
			path = next.RequestURI()
		}
	}
	v.t.Fatalf("the pages come to no end at %s", path)
	return nil
}

// read gives what the first form of a page sends when its first button is pressed, and where a button leads that is a link.
func (v *visitor) read(page *html.Node) (form url.Values, link string) {
	form, forms := url.Values{}, 0
	for element := range page.Descendants() {
		attributes := map[string]string{}
		for _, a := range element.Attr {
			attributes[a.Key] = a.Val
		}
		name := attributes["name"]
		switch {
		case element.Type != html.ElementNode:
		case element.Data == "a" && attributes["class"] == "button":
			link = attributes["href"]
		case element.Data == "form":
			forms++
		case forms == 1 && (element.Data == "input" || element.Data == "button") && name != "" && !form.Has(name):
			form.Set(name, attributes["value"])
			if typed, known := v.answers[name]; known {
				form.Set(name, typed)
			}
		}
	}
	return form, link
}

var headLine = regexp.MustCompile(`(?m)^head (\d+) ([0-9a-f]{64})$`)

// head is where the log ends.
func (s *site) head(t *testing.T, binary string) string {
	t.Helper()
	output := s.run(t, binary, "verify")
	head := headLine.FindStringSubmatch(output)
	if head == nil {
		t.Fatalf("verify says %s", output)
	}
	return head[1] + ":" + head[2]
}
