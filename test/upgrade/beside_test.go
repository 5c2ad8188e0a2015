package upgrade

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// beside runs a node of the version before and one of this version on one database. The older one started before the
// migration.
func beside(t *testing.T) (s *site, n *notes, before, now *node) {
	t.Helper()
	s, n = openFixture(t, testdb.New(t, testdb.Postgres))
	before = s.start(t, theVersionBefore(t))
	other := &site{s.Database, t.TempDir()}
	key, err := os.ReadFile(filepath.Join(s.dir, "master.key"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(other.dir, "master.key"), key, 0o600))
	return s, n, before, other.start(t, thisVersion(t))
}

// TestTheVersionBeforeWorksBesideThisOne: what either writes, the other reads at once, and neither undoes it.
func TestTheVersionBeforeWorksBesideThisOne(t *testing.T) {
	t.Parallel()
	s, n, before, now := beside(t)
	grown := map[string]bool{}
	for _, table := range []string{"orgs", "users", "idps", "apps", "webhooks"} {
		grown[table] = s.grown(t, table)
	}
	n.wantSameViews(t, before)
	n.wantSameViews(t, now)
	for i, way := range [][2]*node{{before, now}, {now, before}, {before, now}} {
		n.wantWritesToCross(t, way[0], way[1], i)
		n.wantOrganizationsToCross(t, before, now, grown["orgs"], i)
		n.wantProvidersToCross(t, before, now, grown["idps"], i)
		n.wantGroupsToCross(t, way[0], way[1], i)
	}
	n.wantSessionsToCross(t, before, now)
	n.wantSessionsToCross(t, now, before)
	n.wantNewShapesToStay(t, before, now, grown)
	n.wantOldUsersToBeFound(t, before, now)
	n.wantPasswordsToCross(t, before, now)
	// The version before could not read sealed hashes.
	if plain, all := s.plainHashes(t),
		s.count(t, "SELECT count(*) FROM secrets WHERE key LIKE '%/password'"); plain != all {
		t.Errorf("of %d password hashes %d can be read by the version before", all, plain)
	}

	s.run(t, theVersionBefore(t), "verify", "--expect", n.Head)
	s.run(t, thisVersion(t), "verify", "--expect", n.Head)
	before.stop(t)
	testkit.Await(t, "every password hash is sealed", func() bool { return s.plainHashes(t) == 0 })
	now.signIn(t, n.Owner.LoginName, password)
	now.stop(t)
	s.start(t, thisVersion(t)).stop(t) // what the version before wrote last is folded anew
	s.run(t, thisVersion(t), "rebuild", "--check")
	s.run(t, thisVersion(t), "verify", "--expect", n.Head)
}

// grown tells whether this version has given objects of a table a new shape: then the version before reads them, and
// does not change them.
func (s *site) grown(t *testing.T, table string) bool {
	t.Helper()
	db := s.open(t)
	defer db.Close()
	var before int
	must(t, db.QueryRow("SELECT min(shape) FROM "+table).Scan(&before))
	for _, k := range model.Kinds {
		if k.Table() == table {
			return k.Shape() > before
		}
	}
	t.Fatalf("there is no table %s", table)
	return false
}

// wantWritesToCross writes what both versions write alike on one node and reads it on the other.
func (n *notes) wantWritesToCross(t *testing.T, writer, reader *node, round int) {
	t.Helper()
	name := fmt.Sprint("Round ", round)
	writer.want(t, caller{token: n.Admin}, "PUT", "/v1/policy",
		object{"policy": object{"passwordMinLength": 11 + round}})
	added := at[string](t, writer.want(t, n.admin(), "POST", "/v1/apps",
		object{"name": name, "type": "APPLICATION_TYPE_API"}), "appId")
	human := n.addHuman(t, writer, fmt.Sprint("round", round))
	for path, want := range map[string]string{
		"/v1/apps/" + added: name, "/v1/users/" + human.ID: fmt.Sprint("round", round, "@mail.example"),
	} {
		if got := fmt.Sprint(reader.want(t, n.admin(), "GET", path, nil)); !strings.Contains(got, want) {
			t.Errorf("round %d: %s does not tell of %s: %s", round, path, want, got)
		}
	}
	reader.signIn(t, human.LoginName, password)
	reader.signInTo(t, n.Org, fmt.Sprint("round", round, "@mail.example"), password)
}

// wantProvidersToCross: what this version writes of identity providers the version before reads, and leaves as it is
// where they have grown.
func (n *notes) wantProvidersToCross(t *testing.T, before, now *node, grown bool, round int) {
	t.Helper()
	name, path := fmt.Sprint("Round ", round), "/v1/idps/"+n.JWT
	now.want(t, n.admin(), "PUT", path, object{"name": name})
	now.want(t, n.admin(), "PUT", path+"/jwt_config",
		object{"jwtEndpoint": "https://other.example", "issuer": name, "keysEndpoint": "https://other.example/keys"})
	if got := before.want(t, n.admin(), "GET", path, nil); at[string](t, got, "idp", "name") != name ||
		at[string](t, got, "idp", "jwt", "issuer") != name {
		t.Errorf("round %d: %s does not tell of %s: %s", round, path, name, got)
	}
	n.wantChange(t, before, grown, "PUT", path, object{"name": "Changed"})
}

// wantOrganizationsToCross: what this version writes of organizations the version before reads, and leaves as it is
// where they have grown.
func (n *notes) wantOrganizationsToCross(t *testing.T, before, now *node, grown bool, round int) {
	t.Helper()
	name, org := fmt.Sprint("Round ", round), "/v1/orgs/"+n.Org
	now.want(t, n.admin(), "PUT", org, object{"name": name})
	now.want(t, n.admin(), "POST", org+"/domains",
		object{"domain": fmt.Sprint("round", round, ".example"), "isVerified": true})
	now.want(t, n.admin(), "PUT", org+"/policy", object{"policy": object{"passwordMinLength": 11 + round}})
	for path, want := range map[string]string{org: name, org + "/domains": fmt.Sprint("round", round, ".example")} {
		if got := fmt.Sprint(before.want(t, n.admin(), "GET", path, nil)); !strings.Contains(got, want) {
			t.Errorf("round %d: %s does not tell of %s: %s", round, path, want, got)
		}
	}
	n.wantChange(t, before, grown, "PUT", org, object{"name": fmt.Sprint("Changed ", round)})
	n.wantChange(t, before, grown, "POST", org+"/domains", object{"domain": fmt.Sprint("changed", round, ".example")})
}

// wantGroupsToCross: groups and guests that one version writes the other reads, and who is in them has their roles on
// both.
func (n *notes) wantGroupsToCross(t *testing.T, writer, reader *node, round int) {
	t.Helper()
	group := at[string](t, writer.want(t, n.admin(), "POST", "/v1/groups",
		object{"name": fmt.Sprint("Round ", round)}), "groupId")
	// whom the writer has written, so that it may change them
	joins := n.addHuman(t, writer, fmt.Sprint("joins", round))
	writer.want(t, n.admin(), "PUT", "/v1/groups/"+group+"/members/"+joins.ID, object{})
	if got := fmt.Sprint(reader.want(t, n.admin(), "GET", "/v1/groups/"+group+"/members",
		nil)); !strings.Contains(got, joins.ID) {
		t.Errorf("round %d: the group has %s", round, got)
	}
	for _, server := range []*node{writer, reader} {
		server.want(t, caller{token: n.Visitor.Session, org: n.Org}, "GET", "/v1/users/"+n.Ada.ID, nil)
		server.want(t, caller{token: n.Helper.Session, org: n.Org}, "GET", "/v1/users/"+n.Ada.ID, nil)
	}
}

// wantSessionsToCross opens and ends sessions and tokens on one node and uses them on the other.
func (n *notes) wantSessionsToCross(t *testing.T, one, other *node) {
	t.Helper()
	session := one.signIn(t, n.Owner.LoginName, password)
	other.want(t, session, "GET", "/v1/users/me", nil)
	token := one.want(t, n.admin(), "POST", "/v1/users/"+n.Robot+"/tokens", object{"name": "Crossing"})
	robot := caller{token: at[string](t, token, "token")}
	other.want(t, robot, "GET", "/v1/users/me", nil)
	other.want(t, n.admin(), "DELETE", "/v1/users/"+n.Robot+"/tokens/"+at[string](t, token, "tokenId"), nil)
	wantStatus(t, one, robot, "GET", "/v1/users/me", nil, http.StatusUnauthorized)
	sessions := at[[]any](t, other.want(t, session, "GET", "/v1/users/me/sessions", nil), "sessions")
	for _, s := range sessions {
		if s := s.(object); s["current"] == true || s["isCurrent"] == true {
			other.want(t, session, "DELETE", "/v1/sessions/"+at[string](t, s, "sessionId"), nil)
		}
	}
	wantStatus(t, one, session, "GET", "/v1/users/me", nil, http.StatusUnauthorized)
}

func wantStatus(t *testing.T, server *node, c caller, method, path string, body any, want int) object {
	t.Helper()
	status, answer := server.call(t, c, method, path, body)
	if status != want {
		t.Errorf("%s %s: %d, want %d: %v", method, path, status, want, answer)
	}
	return answer
}

// wantChange: the version before changes what has not grown.
func (n *notes) wantChange(t *testing.T, before *node, grown bool, method, path string, body any) {
	t.Helper()
	if grown {
		n.wantUpgrade(t, before, method, path, body)
	} else {
		before.want(t, n.admin(), method, path, body)
	}
}

// wantUpgrade: the version before does not change what it does not wholly understand, and says what to do.
func (n *notes) wantUpgrade(t *testing.T, before *node, method, path string, body any) {
	t.Helper()
	if answer := wantStatus(t, before, n.admin(), method, path, body,
		http.StatusServiceUnavailable); !strings.Contains(fmt.Sprint(answer), "upgrade this node") {
		t.Errorf("%s %s: %v", method, path, answer)
	}
}

// wantNewShapesToStay: the version before reads users, applications and webhooks that this one writes, signs people in
// with them, and leaves them as they are where they have grown.
func (n *notes) wantNewShapesToStay(t *testing.T, before, now *node, grown map[string]bool) {
	t.Helper()
	user, app, webhook := "/v1/users/"+n.Ada.ID, "/v1/apps/"+n.App, "/v1/webhooks/"+n.Webhook
	now.want(t, n.Ada.caller(), "PUT", "/v1/users/me/profile",
		object{"firstName": "Ada", "lastName": "Byron", "displayName": "Ada B."})
	now.want(t, n.admin(), "PUT", user+"/email", object{"email": "byron@mail.example", "isEmailVerified": true})
	client := at[string](t, now.want(t, caller{token: n.Admin}, "GET", "/v1/users/me", nil), "user", "userId")
	now.want(t, n.admin(), "POST", app+"/audience_approvals", object{"clientId": client})
	now.want(t, n.admin(), "PATCH", webhook, object{"name": "Renamed", "updateMask": "name"})
	for path, want := range map[string]string{user: "byron@mail.example", app: "Shop", webhook: "Renamed"} {
		if got := fmt.Sprint(before.want(t, n.admin(), "GET", path, nil)); !strings.Contains(got, want) {
			t.Errorf("%s does not tell of %s: %s", path, want, got)
		}
	}
	n.wantChange(t, before, grown["users"], "PUT", user+"/profile",
		object{"firstName": "Ada", "lastName": "Byron", "displayName": "Ada B."})
	n.wantChange(t, before, grown["apps"], "PATCH", app, object{"name": "Shop!", "updateMask": "name"})
	n.wantChange(t, before, grown["webhooks"], "POST", webhook+"/_deactivate", object{})

	before.want(t, before.signInTo(t, n.Org, "byron@mail.example", password), "GET", "/v1/users/me", nil)
	n.allow(t, before)
	approvals := now.want(t, n.admin(), "GET", "/v1/audience_approvals", nil)
	if !strings.Contains(fmt.Sprint(approvals), client) {
		t.Errorf("the approval is gone: %v", approvals)
	}
	if got := at[string](t, now.want(t, n.admin(), "GET", user, nil), "user", "human", "profile",
		"displayName"); got != "Ada B." {
		t.Errorf("the profile says %s", got)
	}
}

// wantOldUsersToBeFound: somebody whom the version before adds is found by the e-mail address, also when this version
// adds a twin.
func (n *notes) wantOldUsersToBeFound(t *testing.T, before, now *node) {
	t.Helper()
	first := n.addHuman(t, before, "twin")
	now.signInTo(t, n.Org, "twin@mail.example", password)
	second := at[string](t, now.want(t, n.admin(), "POST", "/v1/users/human", object{
		"userName":         "second",
		"password":         "another " + password,
		"noChangeRequired": true,
		"email":            object{"email": "twin@mail.example", "isEmailVerified": true},
		"profile":          object{"firstName": "Second", "lastName": "Twin"},
	}), "userId")
	me := at[string](t, now.want(t, now.signInTo(t, n.Org, "twin@mail.example", password), "GET", "/v1/users/me", nil),
		"user", "userId")
	if me != first.ID || me == second {
		t.Errorf("the address leads to %s, not to %s", me, first.ID)
	}
}

// wantPasswordsToCross: a password that either sets is the one that counts on both, and ends the sessions of before.
func (n *notes) wantPasswordsToCross(t *testing.T, before, now *node) {
	t.Helper()
	for name, way := range map[string][2]*node{"before": {before, now}, "now": {now, before}} {
		writer, reader := way[0], way[1]
		human := n.addHuman(t, writer, "password-"+name)
		session := writer.signIn(t, human.LoginName, password)
		writer.want(t, n.admin(), "POST", "/v1/users/"+human.ID+"/password",
			object{"password": "another " + password, "noChangeRequired": true})
		for _, server := range way {
			wantStatus(t, server, session, "GET", "/v1/users/me", nil, http.StatusUnauthorized)
			wantStatus(t, server, caller{}, "POST", "/v1/sessions",
				object{"loginName": human.LoginName, "password": password}, http.StatusUnauthorized)
		}
		writer.want(t, reader.signIn(t, human.LoginName, "another "+password), "GET", "/v1/users/me", nil)
	}
}

// TestNoEventIsLostWhileVersionsWorkBesideEachOther: the version before does not find the address of a webhook that
// this one has changed. What it could not send is sent when it has stopped.
func TestNoEventIsLostWhileVersionsWorkBesideEachOther(t *testing.T) {
	t.Parallel()
	received := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get("Webhook-Id")
	}))
	defer receiver.Close()
	_, n, before, now := beside(t)
	webhook := at[string](t, before.want(t, n.admin(), "POST", "/v1/webhooks",
		object{"name": "Hook", "url": receiver.URL + "/hook", "types": []string{"idp.*"}}), "webhookId")
	now.want(t, n.admin(), "PATCH", "/v1/webhooks/"+webhook, object{"name": "Renamed", "updateMask": "name"})
	const events = 6
	for i := range events {
		now.want(t, n.admin(), "PUT", "/v1/idps/"+n.JWT, object{"name": fmt.Sprint("Event ", i)})
	}
	before.stop(t)
	got := map[string]bool{}
	for deadline := time.After(patience); len(got) < events; {
		select {
		case id := <-received:
			got[id] = true
		case <-deadline:
			t.Fatalf("%d of %d events came", len(got), events)
		}
	}
}
