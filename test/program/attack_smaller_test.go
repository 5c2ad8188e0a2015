package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const hisPassword, herPassword = "his-very-own-words", "her-very-own-words"

// organization sets one up, with the owner "owner", and gives its id, the owner's id and the domain.
func (c *client) organization(t *testing.T, name, email string) (id, owner, domain string) {
	t.Helper()
	in := newOrg(name, herPassword)
	in["human"].(object)["email"] = object{"email": email, "isEmailVerified": true}
	made := c.want(t, 200, "POST", "/v1/orgs/_setup", in)
	id, owner = at[string](t, made, "orgId"), at[string](t, made, "userId")
	return id, owner, at[string](t, c.want(t, 200, "GET", "/v1/orgs/"+id, nil), "org", "primaryDomain")
}

// person adds somebody to the client's organization, and gives the id.
func (c *client) person(t *testing.T, name, email string, verified bool) string {
	t.Helper()
	return at[string](t, c.want(t, 200, "POST", "/v1/users/human", object{
		"userName":         name,
		"password":         hisPassword,
		"noChangeRequired": true,
		"profile":          object{"firstName": "Tim", "lastName": "Twin"},
		"email":            object{"email": email, "isEmailVerified": verified},
	}), "userId")
}

// reasonOf digs out why a request was refused.
func reasonOf(t *testing.T, answer object) string {
	t.Helper()
	return at[string](t, at[[]any](t, answer, "details")[0].(object), "reason")
}

func TestATwinWithTheOwnersEmailDoesNotKeepTheOwnerOut(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		org, owner, domain := root.organization(t, "Acme", "olga@mail.example")
		root.org = org
		root.want(t, 200, "PUT", "/v1/orgs/"+org+"/members/"+root.person(t, "manager", "m@mail.example", false),
			object{"roles": []string{"ORG_USER_MANAGER"}})
		manager := newClient(t, p, "")
		manager.token = manager.signIn(t, "manager@"+domain, hisPassword)

		// Everything a manager of users can do for a twin: add it verified, import it, set it, and prove it by a code
		// that the manager was shown.
		manager.person(t, "twin1", "OLGA@mail.example", true)
		imported := manager.want(t, 200, "POST", "/v1/users/_import", object{
			"users": []object{{"userName": "twin2", "profile": object{"firstName": "Tim", "lastName": "Twin"},
				"email": object{"address": "olga@mail.example", "verified": true}}},
		})
		if len(at[[]any](t, imported, "results")) != 1 {
			t.Fatalf("got %v", imported)
		}
		manager.want(t, 200, "PUT", "/v1/users/"+manager.person(t, "twin3", "other@mail.example", false)+"/email",
			object{"email": "olga@mail.example", "isEmailVerified": true})
		code := manager.want(t, 200, "POST",
			"/v1/users/"+manager.person(t, "twin4", "olga@mail.example", false)+"/email/_create_code", object{})
		manager.with(manager.signIn(t, "twin4@"+domain, hisPassword)).want(t, 200, "POST", "/v1/users/me/email/_verify",
			object{"code": code["code"]})

		who := object{"loginName": "Olga@Mail.example", "orgId": org, "password": herPassword}
		if in := manager.with("").want(t, 200, "POST", "/v1/sessions", who); in["userId"] != owner {
			t.Errorf("the address leads to %v, not to the owner %s", in, owner)
		}
		who["password"] = hisPassword
		manager.with("").want(t, 401, "POST", "/v1/sessions", who)
		p.stop(t)
		if r := s.run(t, "rebuild", "--check"); r.code != 0 {
			t.Errorf("rebuild --check: %d %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

func TestAVerifiedDomainIsNotMovedOverTheHeadOfItsOrganization(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		losing, owner, _ := root.organization(t, "Losing", "olga@mail.example")
		gaining, other, _ := root.organization(t, "Gaining", "otto@mail.example")
		root.want(t, 200, "PUT", "/v1/members/"+root.person(t, "manager", "m@mail.example", false),
			object{"roles": []string{"IAM_ORG_MANAGER"}})
		manager := newClient(t, p, "")
		manager.token = manager.signIn(t, "manager", hisPassword)
		theirs, new := "/v1/orgs/"+losing+"/domains", object{"domain": "moving.example", "isVerified": true}
		manager.want(t, 200, "POST", theirs, new)
		leadsTo := func(want string) string {
			t.Helper()
			in := manager.with("").want(t, 200, "POST", "/v1/sessions",
				object{"loginName": "owner@moving.example", "password": herPassword})
			if in["userId"] != want {
				t.Fatalf("the login name leads to %v, not to %s", in, want)
			}
			return at[string](t, in, "token")
		}
		leadsTo(owner)

		refusal := manager.want(t, 403, "DELETE", theirs+"/MOVING.example", nil)
		if text := at[string](t, refusal, "message"); reasonOf(t, refusal) != "DOMAIN_RELEASE_DENIED" ||
			!strings.Contains(text, "1 person") || strings.Contains(text, "owner@") {
			t.Errorf("got %v", refusal)
		}
		manager.want(t, 409, "POST", "/v1/orgs/"+gaining+"/domains", new)
		in := newOrg("Another", herPassword)
		in["org"].(object)["domain"] = "moving.example"
		manager.want(t, 409, "POST", "/v1/orgs/_setup", in)
		token := leadsTo(owner)

		// The losing organization may, and learns whose login names end.
		gone := manager.with(token).want(t, 200, "DELETE", theirs+"/moving.example", nil)
		if names := at[[]any](t, gone, "loginNames"); gone["affectedUsers"] != 1.0 ||
			!slices.Equal(names, []any{"owner@moving.example"}) {
			t.Errorf("got %v", gone)
		}
		manager.want(t, 200, "POST", "/v1/orgs/"+gaining+"/domains", new)
		leadsTo(other)
	})
}

func TestNobodyIsSentIntoAnotherProgram(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		native := func(address string) object {
			return object{"name": "Phone", "type": "APPLICATION_TYPE_NATIVE", "redirectUris": []string{address},
				"postLogoutUris": []string{address}}
		}
		for _, address := range []string{"ms-msdt:/id%20PCWDiagnostic", "MS-MSDT:/x", "search-ms:query=x",
			"ssh://host/x", "steam://run/1", "javascript:alert(1)", "myapp:/cb",
			"x-apple.systempreferences:x", "microsoft.windows.camera:/x", "com.example.app:/cb#x"} {
			root.want(t, 400, "POST", "/v1/apps", native(address))
		}
		app := at[string](t, root.want(t, 200, "POST", "/v1/apps", native("com.example.app:/cb")), "appId")
		ask := func(address string) *http.Response {
			browser := &http.Client{Transport: root.http.Transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			q := url.Values{
				"client_id":             {app},
				"redirect_uri":          {address},
				"response_type":         {"code"},
				"scope":                 {"openid"},
				"code_challenge":        {strings.Repeat("x", 43)},
				"code_challenge_method": {"S256"},
			}
			return answer(t, browser, newRequest(t, "GET", p.url+"/oauth/authorize?"+q.Encode()))
		}
		if r := ask("com.example.app:/cb"); r.StatusCode != http.StatusSeeOther {
			t.Errorf("%d to %q", r.StatusCode, r.Header.Get("Location"))
		}

		// As an earlier version would have left it behind.
		p.stop(t)
		s.tamper(t, "UPDATE apps SET doc = REPLACE(doc, 'com.example.app:/cb', 'ssh://host/cb') WHERE id = '"+app+"'")
		p = s.start(t)
		root.base = p.url
		if r := ask("ssh://host/cb"); r.StatusCode != 400 || r.Header.Get("Location") != "" {
			t.Errorf("%d to %q", r.StatusCode, r.Header.Get("Location"))
		}
		root.want(t, 200, "PATCH", "/v1/apps/"+app, object{"name": "Telephone", "updateMask": "name"})
		root.want(t, 400, "PATCH", "/v1/apps/"+app,
			object{"redirectUris": []string{"ssh://host/cb"}, "updateMask": "redirectUris"})
	})
}

func TestAnAssertionWorksOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		root := newClient(t, p, s.admin(t).Token)
		robot := at[string](t,
			root.want(t, 200, "POST", "/v1/users/service", object{"userName": "robot", "name": "Robot"}), "userId")
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		root.want(t, 200, "POST", "/v1/users/"+robot+"/keys",
			object{"publicKey": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
		endpoint := at[string](t, root.want(t, 200, "GET", "/.well-known/openid-configuration", nil), "token_endpoint")
		assertion := func(id string) string {
			now := time.Now()
			claims := object{"iss": robot, "sub": robot, "aud": endpoint, "iat": now.Unix(),
				"exp": now.Add(time.Hour).Unix()}
			if id != "" {
				claims["jti"] = id
			}
			text, err := json.Marshal(claims)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := signer.Sign(text)
			if err != nil {
				t.Fatal(err)
			}
			compact, err := signed.CompactSerialize()
			if err != nil {
				t.Fatal(err)
			}
			return compact
		}
		asGrant := func(text string) url.Values {
			return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {text},
				"scope": {"openid"}}
		}
		asClient := func(text string) url.Values {
			return url.Values{
				"grant_type":            {"client_credentials"},
				"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
				"client_assertion":      {text},
				"scope":                 {"openid"},
			}
		}
		post := func(form url.Values) (status int, said string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/oauth/token",
				strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp := answer(t, root.http, r)
			var got object
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			said, _ = got["error_description"].(string)
			return resp.StatusCode, said
		}
		for i, use := range []func(string) url.Values{asGrant, asClient} {
			once := assertion("id-" + string(rune('a'+i)))
			if status, said := post(use(once)); status != 200 {
				t.Errorf("the first time: %d %s", status, said)
			}
			for _, again := range []url.Values{asGrant(once), asClient(once)} {
				if status, said := post(again); status == 200 || !strings.Contains(said, "already been used") {
					t.Errorf("again: %d %s", status, said)
				}
			}
		}
		// Without an identifier only the grant takes it, and a client's proof of itself never is one that could be used
		// again.
		open := assertion("")
		for range 2 {
			if status, said := post(asGrant(open)); status != 200 {
				t.Errorf("without jti: %d %s", status, said)
			}
			if status, said := post(asClient(open)); status != 401 || !strings.Contains(said, "jti") {
				t.Errorf("one that could be used again: %d %s", status, said)
			}
		}
	})
}
