package upgrade

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestDataOfTheVersionBeforeGoesOn: this version opens it, finds nothing wrong with it, shows the same, lets the same
// people in, and writes on.
func TestDataOfTheVersionBeforeGoesOn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		s, n := openFixture(t, db)
		binary := thisVersion(t)
		server := s.start(t, binary)
		s.run(t, binary, "verify", "--expect", n.Head)
		s.run(t, binary, "rebuild", "--check")
		n.wantSameViews(t, server)
		testkit.Await(t, "every password hash is sealed", func() bool { return s.plainHashes(t) == 0 })
		s.wantDoctorToFind(t, "every password hash is sealed")
		n.wantCredentialsToWork(t, server)
		n.wantGuestsToHoldWhatTheyHeld(t, server)
		n.wantLinksToWork(t, server)
		n.wantCoreOperationsToWork(t, server)
		s.wantDoctorToFind(t, "every object has its shape")
		server.stop(t)
		s.wantNoHashes(t)
		s.run(t, binary, "verify", "--expect", n.Head)
		s.run(t, binary, "rebuild", "--check")
		if s.head(t, binary) == n.Head {
			t.Error("the log does not go on")
		}
		s.wantNothingPersonal(t, "erased@mail.example")
	})
}

// wantSameViews compares what is shown with what the version before showed. There may be more.
func (n *notes) wantSameViews(t *testing.T, server *node) {
	t.Helper()
	now := n.see(t, server)
	for view, before := range n.Views {
		wantIncluded(t, view, before, now[view])
	}
}

// wantIncluded finds what is missing in a value or differs.
func wantIncluded(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case object:
		within, _ := got.(object)
		for name, value := range want {
			wantIncluded(t, path+" "+name, value, within[name])
		}
	case []any:
		within, _ := got.([]any)
		if strings.HasSuffix(path, "ermissions") { // roles may have got more
			for _, permission := range want {
				if !slices.Contains(within, permission) {
					t.Errorf("%s: %v is missing", path, permission)
				}
			}
			return
		}
		if len(within) != len(want) {
			t.Errorf("%s: %d elements, and there were %d", path, len(within), len(want))
			return
		}
		for i := range want {
			wantIncluded(t, fmt.Sprint(path, " ", i), want[i], within[i])
		}
	default:
		if got != want {
			t.Errorf("%s: %v, and it was %v", path, got, want)
		}
	}
}

func (n *notes) wantCredentialsToWork(t *testing.T, server *node) {
	t.Helper()
	for name, c := range map[string]caller{
		"the administrator's token": {token: n.Admin}, "a service user's token": {token: n.Token},
		"an application's token": {token: n.Access},
		"a session":              n.Ada.caller(), "a session with a second factor": n.Grace.caller(),
	} {
		if status, answer := server.call(t, c, "GET", "/v1/users/me", nil); status != 200 {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	for _, who := range append([]person{n.Ada, n.Owner, n.Visitor, n.Helper}, n.Imported...) {
		for range 2 { // with the hash of before, and with the one that has taken its place
			server.want(t, server.signIn(t, who.LoginName, password), "GET", "/v1/users/me", nil)
		}
	}
	server.want(t, server.signInTo(t, n.Org, n.AdaEmail, password), "GET", "/v1/users/me", nil)
	for _, proof := range []object{{"totpCode": factortest.Code(n.TOTP, time.Now())}, {"recoveryCode": n.Recovery}} {
		grace := server.signIn(t, n.Grace.LoginName, password)
		if status, _ := server.call(t, grace, "GET", "/v1/users/me", nil); status == 200 {
			t.Error("a session works before its second factor is proven")
		}
		proven := server.want(t, grace, "POST", "/v1/sessions/_prove", proof)
		if token, renewed := proven["token"].(string); renewed {
			grace.token = token
		}
		server.want(t, grace, "GET", "/v1/users/me", nil)
	}
	for name, body := range map[string]object{
		"a wrong password": {"loginName": n.Ada.LoginName, "password": "wrong password"},
		"a locked user":    {"loginName": n.Locked.LoginName, "password": password},
		"an erased user":   {"loginName": "erased@fixture.example", "password": password},
	} {
		if status, _ := server.call(t, caller{}, "POST", "/v1/sessions", body); status == 200 {
			t.Errorf("%s signs in", name)
		}
	}
	server.tokens(t, n.Robot, n.Secret, url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}})
	n.exchange(t, server, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {n.Refresh}})
}

// wantDoctorToFind: signet doctor says so. It also warns of what tests do not have, such as backups.
func (s *site) wantDoctorToFind(t *testing.T, what string) {
	t.Helper()
	said, _ := testkit.Command(thisVersion(t), s.args("doctor")...).CombinedOutput()
	if !strings.Contains(string(said), what) {
		t.Errorf("signet doctor does not say %q:\n%s", what, said)
	}
}

// plainHashes is how many hashes of passwords are as the version before has written them.
func (s *site) plainHashes(t *testing.T) (n int) {
	t.Helper()
	return s.count(t, "SELECT count(*) FROM secrets WHERE key LIKE '%/password' AND length(value) > 0 AND "+
		map[string]string{testdb.SQLite: "substr(value, 1, 1) = x'24'",
			testdb.Postgres: `substr(value, 1, 1) = '\x24'`}[s.Engine])
}

// wantNoHashes: the files of the embedded database have no hash of a password any more as the version before has
// written it.
func (s *site) wantNoHashes(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "signet.db*"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if hash := testkit.PasswordHash.Find(text); hash != nil {
			t.Errorf("%s has a hash that begins with %s", filepath.Base(file), hash)
		}
	}
}

// wantGuestsToHoldWhatTheyHeld: by themselves and by their group, and no more than that.
func (n *notes) wantGuestsToHoldWhatTheyHeld(t *testing.T, server *node) {
	t.Helper()
	for _, who := range []person{n.Visitor, n.Helper} {
		here := caller{token: server.signIn(t, who.LoginName, password).token, org: n.Org}
		server.want(t, here, "GET", "/v1/users/"+n.Ada.ID, nil)
		wantStatus(t, server, here, "POST", "/v1/projects", object{"name": "Mine"}, http.StatusForbidden)
	}
	visitor := caller{token: n.Visitor.Session, org: n.Org}
	server.want(t, visitor, "PUT", "/v1/users/"+n.Linked.ID+"/profile",
		object{"firstName": "Lin", "lastName": "Ked", "displayName": "Linked"})
	helper := caller{token: n.Helper.Session, org: n.Partner}
	wantStatus(t, server, helper, "GET", "/v1/users", nil, http.StatusForbidden)
}

// wantLinksToWork: those that were sent before the upgrade, which come back after it.
func (n *notes) wantLinksToWork(t *testing.T, server *node) {
	t.Helper()
	server.want(t, caller{}, "POST", "/v1/invitations/_accept",
		object{"invitationToken": n.Invited, "userName": "open", "firstName": "O", "lastName": "Pen",
			"password": password})
	server.signIn(t, "open@fixture.example", password)
	link, err := url.Parse(n.SetupLink)
	must(t, err)
	v := &visitor{t: t, server: server, cookies: map[string]string{},
		answers: map[string]string{"newPassword": password, "repeatPassword": password}}
	v.send(http.MethodGet, link.RequestURI(), nil) // the token goes into a cookie
	form, _ := v.send(http.MethodGet, link.Path, nil)
	v.send(http.MethodPost, link.Path, form)
	server.signIn(t, n.Setup.LoginName, password)
}

// wantCoreOperationsToWork changes what is there with each of the five core operations.
func (n *notes) wantCoreOperationsToWork(t *testing.T, server *node) {
	t.Helper()
	server.want(t, n.Ada.caller(), "PUT", "/v1/users/me/profile",
		object{"firstName": "Ada", "lastName": "King", "displayName": "Ada K.", "nickName": "Enchantress"})
	setUp := server.want(t, caller{token: n.Admin}, "POST", "/v1/orgs/_setup", object{
		"org": object{"name": "Next"},
		"human": object{"userName": "next", "password": password,
			"email": object{"email": "next@mail.example"}, "profile": object{"firstName": "Next", "lastName": "Owner"}},
	})
	next := "next " + password
	server.want(t, n.admin(), "POST", "/v1/users/"+n.Grace.ID+"/password",
		object{"password": next, "noChangeRequired": true})
	server.want(t, n.admin(), "PUT", "/v1/idps/"+n.JWT+"/jwt_config",
		object{"jwtEndpoint": "https://next.example/t", "issuer": "https://next.example",
			"keysEndpoint": "https://next.example/keys"})
	server.want(t, n.admin(), "PUT", "/v1/idps/"+n.JWT, object{"name": "Next"})

	user := server.want(t, n.admin(), "GET", "/v1/users/"+n.Ada.ID, nil)
	if got := at[string](t, user, "user", "human", "profile", "nickName"); got != "Enchantress" {
		t.Errorf("the profile says %s", got)
	}
	server.want(t, caller{token: n.Admin}, "GET", "/v1/orgs/"+at[string](t, setUp, "orgId"), nil)
	server.signIn(t, n.Grace.LoginName, next)
	provider := server.want(t, n.admin(), "GET", "/v1/idps/"+n.JWT, nil)
	if at[string](t, provider, "idp", "name") != "Next" ||
		!strings.Contains(fmt.Sprint(provider), "https://next.example/keys") {
		t.Errorf("the provider is %v", provider)
	}
}

// wantNothingPersonal: what was erased stays so.
func (s *site) wantNothingPersonal(t *testing.T, of string) {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	for _, column := range []string{"events.payload", "users.doc", "users.email", "users.user_name", "users.name"} {
		table, name, _ := strings.Cut(column, ".")
		var found int
		must(t, db.QueryRow("SELECT count(*) FROM "+table+" WHERE "+name+" LIKE '%"+of+"%'").Scan(&found))
		if found > 0 {
			t.Errorf("%s: %d rows name somebody who was erased", column, found)
		}
	}
}
