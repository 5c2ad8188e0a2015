package upgrade

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/passwap"
	"github.com/zitadel/passwap/argon2"
	"github.com/zitadel/passwap/bcrypt"
	"github.com/zitadel/passwap/pbkdf2"
	"github.com/zitadel/passwap/scrypt"
	"golang.org/x/net/html"
	"golang.org/x/oauth2"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/test/portal"
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
	Recovery  string   // one of the recovery codes
	Imported  []person // with a hash of each kind that was imported
	Locked    person
	Setup     person // has no password, and a link to set one
	SetupLink string
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
	Partner   string // another organization, whose people are guests
	Visitor   person // of it: a guest without roles, who is in the group
	Helper    person // of it: a guest with a role
	Group     string // of the organization: gives ORG_USER_MANAGER to Grace and Visitor
	Project   string
	Grants    []string          // of the project, to the partner: accepted; to the organization that is idle: open
	Linked    person            // has a link that counts and a suspended one
	Confirmed person            // has a link that an owner has confirmed
	Portal    string            // an identity provider that people are linked at
	Changed   string            // one that somebody has changed who does not answer for everybody
	Invited   string            // the token of an open invitation
	Views     map[string]object // what reads answered

	idle string // an organization that is deactivated
}

// person is somebody with a session.
type person struct{ ID, LoginName, Session string }

func (p person) caller() caller { return caller{token: p.Session} }

// views are the reads whose answers stay the same when the program changes: whose organization is asked, and the path.
func (n *notes) views() []string {
	org, partner := "/v1/orgs/"+n.Org, "/v1/orgs/"+n.Partner
	views := []string{" /v1/policy", " /v1/members", " /v1/orgs"} // of the installation
	for _, path := range []string{org, org + "/domains", org + "/policy", org + "/members", org + "/invitations",
		"/v1/users", "/v1/apps", "/v1/idps", "/v1/webhooks",
		"/v1/groups", "/v1/groups/" + n.Group, "/v1/groups/" + n.Group + "/members",
		"/v1/groups/" + n.Group + "/app_roles",
		"/v1/projects", "/v1/projects/" + n.Project, "/v1/projects/" + n.Project + "/grants",
		"/v1/projects/" + n.Project + "/users", "/v1/projects/" + n.Project + "/groups",
		"/v1/users/" + n.Grace.ID + "/factors", "/v1/users/" + n.Robot + "/keys",
		"/v1/users/" + n.Ada.ID + "/app_roles", "/v1/users/" + n.Grace.ID + "/groups",
		"/v1/users/" + n.Linked.ID + "/links", "/v1/users/" + n.Confirmed.ID + "/links"} {
		views = append(views, n.Org+" "+path)
	}
	for _, path := range []string{partner, partner + "/members", "/v1/users", "/v1/granted_projects",
		"/v1/users/" + n.Helper.ID + "/app_roles", "/v1/projects/" + n.Project + "/users"} {
		views = append(views, n.Partner+" "+path)
	}
	return views
}

// ownViews are the reads of people about themselves, by whose they are.
func (n *notes) ownViews() map[string]person {
	views := map[string]person{}
	for name, who := range map[string]person{"Ada": n.Ada, "Visitor": n.Visitor, "Helper": n.Helper} {
		for _, path := range []string{"/v1/users/me/memberships", "/v1/users/me/app_roles", "/v1/users/me/groups",
			"/v1/users/me/access"} {
			views[name+" "+path] = who
		}
	}
	return views
}

// see reads everything that is to stay the same.
func (n *notes) see(t *testing.T, server *node) map[string]object {
	t.Helper()
	seen := map[string]object{}
	for _, view := range n.views() {
		org, path, _ := strings.Cut(view, " ")
		seen[view] = server.want(t, caller{token: n.Admin, org: org}, "GET", path, nil)
	}
	for view, who := range n.ownViews() {
		_, path, _ := strings.Cut(view, " ")
		seen[view] = server.want(t, who.caller(), "GET", path, nil)
	}
	return seen
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
	n.fillGuests(t, server)
	n.fillProjects(t, server)
	n.fillLinks(t, server)
	n.fillInvitations(t, server)
	n.Views = n.see(t, server)
	return n
}

func (n *notes) fillOrg(t *testing.T, server *node) {
	t.Helper()
	admin := caller{token: n.Admin}
	server.want(t, admin, "PUT", "/v1/policy",
		object{"policy": object{"passwordMinLength": 10, "sessionSeconds": 2592000}})
	setUp := func(name string) (org, owner string) {
		t.Helper()
		made := server.want(t, admin, "POST", "/v1/orgs/_setup", object{
			"org": object{"name": name},
			"human": object{"userName": "owner", "password": password,
				"email":   object{"email": "owner@" + name + ".example", "isEmailVerified": true},
				"profile": object{"firstName": "Olga", "lastName": "Owner"}},
		})
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
	partner, _ := setUp("partner")
	server.want(t, admin, "POST", "/v1/orgs/"+partner+"/domains",
		object{"domain": "partner.example", "isVerified": true})
	server.want(t, admin, "POST", "/v1/orgs/"+partner+"/domains/partner.example/_set_primary", object{})
	n.Partner = partner
	idle, _ := setUp("idle")
	n.idle = idle
	server.want(t, admin, "POST", "/v1/orgs/"+idle+"/_deactivate", object{})
	gone, _ := setUp("gone")
	server.want(t, admin, "DELETE", "/v1/orgs/"+gone, nil)
}

// addHuman adds somebody to the organization who can sign in.
func (n *notes) addHuman(t *testing.T, server *node, userName string) person {
	t.Helper()
	made := server.want(t, n.admin(), "POST", "/v1/users/human", object{
		"userName":         userName,
		"password":         password,
		"noChangeRequired": true,
		"email":            object{"email": userName + "@mail.example", "isEmailVerified": true},
		"phone":            object{"phone": "+41445550123"},
		"profile": object{"firstName": strings.ToUpper(userName[:1]) + userName[1:], "lastName": "Example",
			"preferredLanguage": "de"},
	})
	return person{ID: at[string](t, made, "userId"), LoginName: userName + "@fixture.example"}
}

func (n *notes) fillPeople(t *testing.T, server *node) {
	t.Helper()
	n.Ada, n.AdaEmail = n.addHuman(t, server, "ada"), "ada@mail.example"
	user := "/v1/users/" + n.Ada.ID
	server.want(t, n.admin(), "POST", user+"/password",
		object{"password": "another " + password, "noChangeRequired": true})
	ada := server.signInTo(t, n.Org, n.AdaEmail, "another "+password)
	server.want(t, ada, "PUT", "/v1/users/me/password",
		object{"currentPassword": "another " + password, "newPassword": password})
	server.want(t, ada, "PUT", "/v1/users/me/profile",
		object{"firstName": "Ada", "lastName": "Lovelace", "displayName": "Ada L.", "nickName": "Countess"})
	code := server.want(t, n.admin(), "POST", user+"/phone/_create_code", object{})
	server.want(t, ada, "POST", "/v1/users/me/phone/_verify", object{"code": code["code"]})
	server.want(t, n.admin(), "PUT", "/v1/orgs/"+n.Org+"/members/"+n.Ada.ID,
		object{"roles": []string{"ORG_USER_MANAGER"}})
	server.want(t, caller{token: n.Admin}, "PUT", "/v1/members/"+n.Ada.ID,
		object{"roles": []string{"IAM_OWNER_VIEWER"}})
	n.Ada.Session = server.signIn(t, n.Ada.LoginName, password).token

	for name, hash := range importable(t) {
		server.want(t, n.admin(), "POST", "/v1/users/_import", object{
			"users": []object{{"userName": name, "passwordHash": hash,
				"email":   object{"address": name + "@mail.example", "verified": true},
				"profile": object{"firstName": "Im", "lastName": "Ported"}}},
		})
		n.Imported = append(n.Imported, person{LoginName: name + "@fixture.example"})
	}
	made := server.want(t, n.admin(), "POST", "/v1/users/human", object{
		"userName": "setup",
		"email":    object{"email": "setup@mail.example", "isEmailVerified": true},
		"profile":  object{"firstName": "Set", "lastName": "Up"},
	})
	n.Setup = person{ID: at[string](t, made, "userId"), LoginName: "setup@fixture.example"}
	n.SetupLink = at[string](t,
		server.want(t, n.admin(), "POST", "/v1/users/"+n.Setup.ID+"/_send_password_setup", object{}), "link")

	n.Locked = n.addHuman(t, server, "locked")
	server.want(t, n.admin(), "POST", "/v1/users/"+n.Locked.ID+"/_lock", object{})
	idle := n.addHuman(t, server, "idle")
	server.want(t, n.admin(), "POST", "/v1/users/"+idle.ID+"/_deactivate", object{})
	erased := n.addHuman(t, server, "erased")
	server.signIn(t, erased.LoginName, password)
	server.want(t, n.admin(), "DELETE", "/v1/users/"+erased.ID, nil)
	n.Erased = erased.ID
	if status, _ := server.call(t, caller{}, "POST", "/v1/sessions",
		object{"loginName": n.Ada.LoginName, "password": "wrong password"}); status == http.StatusOK {
		t.Fatal("a wrong password is right")
	}
}

// importable gives hashes of the password as other systems make them, by names for their users.
func importable(t *testing.T) map[string]string {
	t.Helper()
	hashes := map[string]string{}
	for name, hasher := range map[string]passwap.Hasher{
		"bcrypt":   bcrypt.New(4),
		"scrypt":   scrypt.New(scrypt.Params{N: 1 << 4, R: 8, P: 1, KeyLen: 32, SaltLen: 16}),
		"pbkdf2":   pbkdf2.NewSHA256(pbkdf2.Params{Rounds: 1000, KeyLen: 32, SaltLen: 16}),
		"argon2i":  argon2.NewArgon2i(argon2.Params{Time: 1, Memory: 64, Threads: 1, KeyLen: 32, SaltLen: 16}),
		"argon2id": argon2.NewArgon2id(argon2.Params{Time: 1, Memory: 64, Threads: 1, KeyLen: 32, SaltLen: 16}),
	} {
		hash, err := hasher.Hash(password)
		must(t, err)
		hashes[name] = hash
	}
	return hashes
}

func (n *notes) fillFactors(t *testing.T, server *node) {
	t.Helper()
	n.Grace = n.addHuman(t, server, "grace")
	grace := server.signIn(t, n.Grace.LoginName, password)
	n.TOTP = at[string](t, server.want(t, grace, "POST", "/v1/users/me/factors/totp/_start", object{}), "secret")
	confirmed := server.want(t, grace, "POST", "/v1/users/me/factors/totp/_confirm",
		object{"code": factortest.Code(n.TOTP, time.Now())})
	if token, renewed := confirmed["token"].(string); renewed {
		grace.token = token
	}
	n.Recovery = at[[]any](t, server.want(t, grace, "POST", "/v1/users/me/recovery_codes", object{}),
		"codes")[0].(string)
	options := at[string](t, server.want(t, grace, "POST", "/v1/users/me/factors/passkey/_start", object{}),
		"creationOptions")
	device := factortest.Authenticator{Origin: base}
	credential, err := device.Create(options)
	must(t, err)
	server.want(t, grace, "POST", "/v1/users/me/factors/passkey/_confirm",
		object{"credential": credential, "name": "Key ring"})
	n.Grace.Session = grace.token
}

func (n *notes) fillServices(t *testing.T, server *node) {
	t.Helper()
	made := server.want(t, n.admin(), "POST", "/v1/users/service",
		object{"userName": "robot", "name": "Robot", "description": "Turns the lights on"})
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
	shop := add("Shop", "WEB", object{
		"consentRequired":     true,
		"allOrganizations":    true,
		"refreshTokenSeconds": 7776000,
		"accessTokenSeconds":  86400,
		"grantTypes":          []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN"},
	})
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
	v := &visitor{t: t, server: server, cookies: map[string]string{},
		answers: map[string]string{"loginName": n.Ada.LoginName, "password": password}}
	code := v.goTo("/oauth/authorize?" + url.Values{
		"client_id":             {n.App},
		"response_type":         {"code"},
		"redirect_uri":          {callback},
		"state":                 {"st"},
		"scope":                 {"openid profile email offline_access signet.self"},
		"code_challenge_method": {"S256"},
		"code_challenge":        {oauth2.S256ChallengeFromVerifier(verifier)},
	}.Encode()).Get("code")
	tokens := n.exchange(t, server,
		url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
			"code_verifier": {verifier}})
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
	provider := object{"name": "Partner", "jwtEndpoint": "https://jwt.example/t", "issuer": "https://jwt.example",
		"keysEndpoint": "https://jwt.example/keys", "headerName": "x-token"}
	n.JWT = at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/jwt", provider), "idpId")
	gone := at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/jwt", provider), "idpId")
	server.want(t, n.admin(), "DELETE", "/v1/idps/"+gone, nil)
	n.OIDC = at[string](t, server.want(t, n.admin(), "POST", "/v1/idps/oidc",
		object{"name": "Login", "issuer": "https://oidc.example", "clientId": "fixture", "clientSecret": "not a secret",
			"scopes": []string{"openid"}}), "idpId")
	server.want(t, n.admin(), "POST", "/v1/idps/"+n.OIDC+"/_deactivate", object{})
	// Nothing is sent to it: no event of these types happens.
	hook := object{"name": "Hook", "url": "https://hooks.example/fixture", "types": []string{"signing.*"}}
	n.Webhook = at[string](t, server.want(t, n.admin(), "POST", "/v1/webhooks", hook), "webhookId")
	gone = at[string](t, server.want(t, n.admin(), "POST", "/v1/webhooks", hook), "webhookId")
	server.want(t, n.admin(), "DELETE", "/v1/webhooks/"+gone, nil)
}

// addTo adds somebody to an organization who can sign in.
func (n *notes) addTo(t *testing.T, server *node, org, domain, userName string) person {
	t.Helper()
	made := server.want(t, caller{token: n.Admin, org: org}, "POST", "/v1/users/human", object{
		"userName":         userName,
		"password":         password,
		"noChangeRequired": true,
		"email":            object{"email": userName + "@mail.example", "isEmailVerified": true},
		"profile":          object{"firstName": userName, "lastName": "Example"},
	})
	who := person{ID: at[string](t, made, "userId"), LoginName: userName + "@" + domain}
	who.Session = server.signIn(t, who.LoginName, password).token
	return who
}

// fillGuests has people of another organization in this one: by themselves and in a group, with roles and without.
func (n *notes) fillGuests(t *testing.T, server *node) {
	t.Helper()
	n.Visitor = n.addTo(t, server, n.Partner, "partner.example", "visitor")
	n.Helper = n.addTo(t, server, n.Partner, "partner.example", "helper")
	gone := n.addTo(t, server, n.Partner, "partner.example", "gone")
	members := "/v1/orgs/" + n.Org + "/members/"
	server.want(t, n.admin(), "PUT", members+n.Visitor.ID, object{})
	server.want(t, n.admin(), "PUT", members+n.Helper.ID, object{"roles": []string{"ORG_OWNER_VIEWER"}})
	server.want(t, n.admin(), "PUT", members+gone.ID, object{"roles": []string{"ORG_OWNER_VIEWER"}})
	server.want(t, n.admin(), "DELETE", members+gone.ID, nil)
	n.Group = at[string](t, server.want(t, n.admin(), "POST", "/v1/groups",
		object{"name": "Support", "description": "Helps people"}), "groupId")
	group := "/v1/groups/" + n.Group
	server.want(t, n.admin(), "PUT", group+"/roles", object{"roles": []string{"ORG_USER_MANAGER"}})
	for _, member := range []string{n.Grace.ID, n.Visitor.ID} {
		server.want(t, n.admin(), "PUT", group+"/members/"+member, object{})
	}
	empty := at[string](t, server.want(t, n.admin(), "POST", "/v1/groups", object{"name": "Empty"}), "groupId")
	server.want(t, n.admin(), "PUT", "/v1/groups/"+empty+"/members/"+n.Ada.ID, object{})
	server.want(t, n.admin(), "DELETE", "/v1/groups/"+empty, nil)
}

// fillProjects has roles of applications: of people, guests and groups here, and of people of another organization by a
// grant.
func (n *notes) fillProjects(t *testing.T, server *node) {
	t.Helper()
	partner := caller{token: n.Admin, org: n.Partner}
	n.Project = at[string](t, server.want(t, n.admin(), "POST", "/v1/projects", object{"name": "Ledger"}), "projectId")
	project := "/v1/projects/" + n.Project
	for _, key := range []string{"reader", "writer", "auditor"} {
		server.want(t, n.admin(), "PUT", project+"/roles/"+key, object{"name": key})
	}
	server.want(t, n.admin(), "PUT", "/v1/users/"+n.Ada.ID+"/app_roles/"+n.Project,
		object{"roleKeys": []string{"reader", "writer"}})
	server.want(t, n.admin(), "PUT", "/v1/users/"+n.Visitor.ID+"/app_roles/"+n.Project,
		object{"roleKeys": []string{"auditor"}})
	server.want(t, n.admin(), "PUT", "/v1/groups/"+n.Group+"/app_roles/"+n.Project,
		object{"roleKeys": []string{"reader"}})
	for _, to := range []string{n.Partner, n.idle} {
		n.Grants = append(n.Grants,
			at[string](t, server.want(t, n.admin(), "POST", project+"/grants",
				object{"grantedOrgId": to, "roleKeys": []string{"reader", "auditor"}}), "grantId"))
	}
	server.want(t, partner, "POST", "/v1/granted_projects/"+n.Grants[0]+"/_accept", object{})
	server.want(t, partner, "PUT", "/v1/users/"+n.Helper.ID+"/app_roles/"+n.Project,
		object{"roleKeys": []string{"reader"}})
	gone := at[string](t, server.want(t, n.admin(), "POST", "/v1/projects", object{"name": "Gone"}), "projectId")
	server.want(t, n.admin(), "DELETE", "/v1/projects/"+gone, nil)
}

// fillLinks links people at a portal. One link counts, one is suspended because a manager of settings has changed the
// provider, and one of those an owner has confirmed.
func (n *notes) fillLinks(t *testing.T, server *node) {
	t.Helper()
	site := portal.Start(t)
	n.Portal = at[string](t, server.want(t, n.Owner.caller(), "POST", "/v1/idps/jwt",
		site.Config("Portal", "")), "idpId")
	n.Changed = at[string](t, server.want(t, n.Owner.caller(), "POST", "/v1/idps/jwt",
		site.Config("Changed", "")), "idpId")
	n.Linked, n.Confirmed = n.addHuman(t, server, "linked"), n.addHuman(t, server, "confirmed")
	for _, who := range []*person{&n.Linked, &n.Confirmed} {
		who.Session = server.signIn(t, who.LoginName, password).token
		for _, provider := range []string{n.Portal, n.Changed} {
			n.link(t, server, site, provider, *who)
		}
	}
	manager := n.addHuman(t, server, "settings")
	server.want(t, n.admin(), "PUT", "/v1/orgs/"+n.Org+"/members/"+manager.ID,
		object{"roles": []string{"ORG_SETTINGS_MANAGER"}})
	as := server.signIn(t, manager.LoginName, password)
	config := site.Config("", "")
	delete(config, "name")
	config["issuer"] = "https://changed.example"
	server.want(t, as, "PUT", "/v1/idps/"+n.Changed+"/jwt_config", config)
	for _, l := range at[[]any](t,
		server.want(t, n.admin(), "GET", "/v1/users/"+n.Confirmed.ID+"/links", nil), "links") {
		if l := l.(object); fmt.Sprint(l["idpId"]) == n.Changed {
			server.want(t, n.Owner.caller(), "POST",
				"/v1/users/"+n.Confirmed.ID+"/links/"+at[string](t, l, "linkId")+"/_confirm", object{})
		}
	}
}

// link links somebody at a portal, by the way of an application with a sign-in page of its own.
func (n *notes) link(t *testing.T, server *node, site *portal.Portal, provider string, who person) {
	t.Helper()
	shop := func(more object) object {
		maps.Copy(more, object{"clientId": n.App, "clientSecret": n.AppKey})
		return more
	}
	server.want(t, caller{token: n.Admin, org: n.Org}, "PUT", "/v1/apps/"+n.App+"/own_sign_in", object{"allowed": true})
	started := server.want(t, caller{}, "POST", "/v1/idps/"+provider+"/_start", shop(object{"returnAddress": callback}))
	v := &visitor{t: t, server: server, cookies: map[string]string{}, answers: map[string]string{"do": "allow"}}
	sent := v.goTo(strings.TrimPrefix(at[string](t, started, "address"), base))
	v.header = http.Header{"Authorization": {"Bearer " + site.Token(provider, who.LoginName, nil)}}
	code := v.goTo("/login/idp/" + provider + "/callback?" +
		url.Values{"state": {sent.Get("state")}}.Encode()).Get("code")
	server.want(t, who.caller(), "POST", "/v1/users/me/links",
		shop(object{"attemptToken": started["attemptToken"], "code": code}))
}

// fillInvitations has one that is open, one that somebody has accepted, one of a guest, and one that was withdrawn.
func (n *notes) fillInvitations(t *testing.T, server *node) {
	t.Helper()
	invitations := "/v1/orgs/" + n.Org + "/invitations"
	invite := func(email string) (id, token string) {
		made := server.want(t, n.admin(), "POST", invitations,
			object{"email": email, "roles": []string{"ORG_OWNER_VIEWER"}, "groupIds": []string{n.Group},
				"lifetimeSeconds": 2592000})
		link, err := url.Parse(at[string](t, made, "link"))
		must(t, err)
		return at[string](t, made, "invitationId"), link.Query().Get("token")
	}
	_, n.Invited = invite("open@mail.example")
	_, token := invite("accepted@mail.example")
	server.want(t, caller{}, "POST", "/v1/invitations/_accept",
		object{"invitationToken": token, "userName": "accepted", "firstName": "Ac", "lastName": "Cepted",
			"password": password})
	_, token = invite("helper@mail.example")
	server.want(t, n.Helper.caller(), "POST", "/v1/users/me/invitations/_accept", object{"invitationToken": token})
	withdrawn, _ := invite("withdrawn@mail.example")
	server.want(t, n.admin(), "POST", invitations+"/"+withdrawn+"/_withdraw", object{})
}

// visitor is a person at a browser that runs no script.
type visitor struct {
	t       *testing.T
	server  *node
	cookies map[string]string
	answers map[string]string // what is typed into fields, by their names
	header  http.Header       // of the first request, as a proxy would add it
}

// goTo fills in and sends the first form of each page until one leads elsewhere, and gives what is sent there.
func (v *visitor) goTo(path string) url.Values {
	v.t.Helper()
	method, form := http.MethodGet, url.Values{}
	for range 20 {
		var to string
		form, to = v.send(method, path, form)
		if method = http.MethodPost; len(form) == 0 {
			method = http.MethodGet
			next, err := url.Parse(base + path)
			must(v.t, err)
			next, err = next.Parse(to)
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

// send sends a request, and gives what the page in the answer would send, or where the answer leads.
func (v *visitor) send(method, path string, form url.Values) (next url.Values, to string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, base+path, strings.NewReader(form.Encode()))
	must(v.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", base)
	maps.Copy(r.Header, v.header)
	v.header = nil
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := v.server.http.Do(r)
	must(v.t, err)
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		v.cookies[c.Name] = c.Value
	}
	page, err := html.Parse(resp.Body)
	must(v.t, err)
	next, button := v.read(page)
	return next, cmp.Or(resp.Header.Get("Location"), button)
}

// read gives what the first form of a page sends when its first button is pressed, and where a button leads that is a
// link.
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
