package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// tenant is an organization with its owner, who is signed in.
type tenant struct {
	*client
	id    string
	owner string
}

const tenantPassword = "a password of the owner"

func newTenant(t *testing.T, admin *client, name string) *tenant {
	t.Helper()
	made := admin.want(t, 200, "POST", "/v1/orgs/_setup", newOrg(name, tenantPassword))
	o := &tenant{client: admin, id: at[string](t, made, "orgId"), owner: at[string](t, made, "userId")}
	signedIn := admin.with("").want(t, 200, "POST", "/v1/sessions",
		object{"loginName": "owner", "password": tenantPassword, "orgId": o.id})
	o.client = admin.with(at[string](t, signedIn, "token"))
	return o
}

// person adds somebody to the organization, and gives the id.
func (o *tenant) person(t *testing.T, name string) string {
	t.Helper()
	return at[string](t, o.want(t, 200, "POST", "/v1/users/human", object{
		"userName": name,
		"profile":  object{"firstName": "Jo", "lastName": "Doe"},
		"email":    object{"email": name + "@example.com", "isEmailVerified": true},
	}), "userId")
}

// flood sends n requests of one organization at once, and counts those that were answered. Refusals as too many are
// answers, too, and so is that the time is over, on a slow machine. stop gives up the others.
func (o *tenant) flood(t *testing.T, n int,
	send func(i int) (method, path string, body object)) (answered *atomic.Int64, stop func()) {
	answered = &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			method, path, body := send(i)
			status, answer, err := o.do(ctx, method, path, body)
			if ctx.Err() != nil {
				return
			}
			if err != nil || status != 200 && status != 401 && status != 429 && status != 503 && status != 504 {
				t.Errorf("%s %s: %d %v %v", method, path, status, answer, err)
			}
			answered.Add(1)
		})
	}
	return answered, func() {
		cancel()
		all.Wait()
	}
}

// awaitCount waits until something was counted so often.
func awaitCount(t *testing.T, n *atomic.Int64, atLeast int64) {
	t.Helper()
	testkit.Await(t, fmt.Sprint("it happens ", atLeast, " times"), func() bool { return n.Load() >= atLeast })
}

// One organization with many service users opens streams until it is refused. Another one still opens one.
func TestAttackAnOrganizationTakesAllStreams(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		const most, perUser = 250, 10 // of the 500 of a server
		admin := newClient(t, s.start(t), s.admin(t).Token)
		a, b := newTenant(t, admin, "A"), newTenant(t, admin, "B")
		ctx, end := context.WithCancel(t.Context())
		defer end()
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		open := func(token string) int {
			r, err := http.NewRequestWithContext(ctx, "GET",
				admin.base+"/v1/events/_stream?from=2020-01-01T00:00:00Z", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return 0
			}
			if resp.StatusCode != 200 {
				resp.Body.Close()
			}
			return resp.StatusCode // the stream goes on until ctx ends
		}
		var tokens []string
		for i := range most/perUser + 2 {
			user := at[string](t,
				a.want(t, 200, "POST", "/v1/users/service",
					object{"userName": fmt.Sprint("robot", i), "name": "Robot"}), "userId")
			a.want(t, 200, "PUT", "/v1/orgs/"+a.id+"/members/"+user, object{"roles": []string{"ORG_OWNER"}})
			tokens = append(tokens,
				at[string](t, a.want(t, 200, "POST", "/v1/users/"+user+"/tokens", object{}), "token"))
		}
		var opened, refused atomic.Int64
		var all sync.WaitGroup
		for _, token := range tokens {
			for range perUser {
				all.Go(func() {
					switch status := open(token); status {
					case 200:
						opened.Add(1)
					case 429:
						refused.Add(1)
					default:
						t.Errorf("status %d", status)
					}
				})
			}
		}
		all.Wait()
		if opened.Load() != most || refused.Load() != 2*perUser {
			t.Errorf("%d streams are open, %d were refused", opened.Load(), refused.Load())
		}
		if status, answer, err := a.with(tokens[0]).do(ctx, "GET", "/v1/events/_stream", nil); err == nil &&
			(status != 429 || at[[]any](t, answer, "details") == nil) {
			t.Errorf("one more: %d %v", status, answer)
		}
		if status := open(b.token); status != 200 {
			t.Errorf("another organization: %d", status)
		}
	})
}

// One organization sets passwords, or is signed in to, more often than can be done. Another one has its turn all the
// same, and at once. The server runs in the process of the test, which holds all slots for hashing until everybody
// waits: the order of the turns depends on nothing else.
func TestAttackAnOrganizationTakesAllHashing(t *testing.T) {
	const many = 20
	type request func(i int, o *tenant, user string) (token, path string, body object)
	setPassword := func(_ int, o *tenant, user string) (string, string, object) {
		return o.token, "/v1/users/" + user + "/password",
			object{"password": "another password", "noChangeRequired": true}
	}
	signIn := func(i int, o *tenant, _ string) (string, string, object) {
		return "", "/v1/sessions", object{"loginName": fmt.Sprint("nobody", i), "password": "wrong", "orgId": o.id}
	}
	t.Parallel()
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		var mu sync.Mutex
		var turns []string
		hasher := secret.NewCheapHasher().Turns(func(org string) {
			mu.Lock()
			defer mu.Unlock()
			turns = append(turns, org)
		})
		slots, _ := hasher.Slots()
		n := slots.Bounds().Slots
		config := server.Config{Hasher: hasher}
		if db.Engine == testdb.Postgres {
			config.Database = db.URL
		}
		running := servertest.Start(t, config, io.Discard)
		admin := newClient(t, &process{url: "http://" + running.Addr().String()}, running.FirstAdmin.Token)
		a, b := newTenant(t, admin, "A"), newTenant(t, admin, "B")
		ofA, ofB := a.person(t, "target"), b.person(t, "other")
		for name, flood := range map[string]request{"setting passwords": setPassword, "signing in": signIn} {
			for what, ask := range map[string]request{"sets a password": setPassword, "signs in": signIn} {
				held := fairqueue.Claim{Org: a.id}
				for range n {
					testkit.Must(t, slots.Enter(t.Context(), held))
				}
				var all sync.WaitGroup
				send := func(token, path string, body object) {
					all.Go(func() {
						if status, answer, err := admin.with(token).do(t.Context(), "POST", path, body); err != nil ||
							status != 200 && status != 401 {
							t.Errorf("%s: %d %v %v", path, status, answer, err)
						}
					})
				}
				wait := func(n int) {
					t.Helper()
					testkit.Await(t, fmt.Sprint(n, " wait"),
						func() bool { _, waiting := slots.Load(); return waiting == n })
				}
				for i := range many {
					send(flood(i, a, ofA))
				}
				wait(many)
				send(ask(many, b, ofB))
				wait(many + 1)
				mu.Lock()
				turns = nil
				mu.Unlock()
				slots.Leave(held) // the others stay, so there is one turn at a time
				all.Wait()
				for range n - 1 {
					slots.Leave(held)
				}
				mu.Lock()
				// With one slot, nobody holds any when it becomes free, and who came first goes first.
				if before := slices.Index(turns, b.id); before < 0 || before > 1 || before == 1 && n > 1 {
					t.Errorf("while %s: of %d turns with %d slots, that of another organization, which %s, is number %d", name, len(turns), n, what, before)
				}
				mu.Unlock()
			}
		}
	})
}

// One organization begins imports and does not send what is to be imported. It holds half of the places for large
// requests, and another one's import is done while nothing of that moves.
func TestAttackAnOrganizationTakesAllImports(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		const many, most = 24, 8 // of the 16 places of a server
		p := s.start(t, "--metrics-listen", "localhost:0")
		admin := newClient(t, p, s.admin(t).Token)
		a, b := newTenant(t, admin, "A"), newTenant(t, admin, "B")
		imported := func(i int) string {
			return fmt.Sprintf(`{"users":[{"userName":"user%d","profile":{"firstName":"Jo","lastName":"Doe"},"email":{"address":"u%d@example.com"}}]}`, i, i)
		}
		var answered atomic.Int64
		var all sync.WaitGroup
		var ends []*io.PipeWriter
		for i := range many {
			body, end := io.Pipe()
			ends = append(ends, end)
			r, err := http.NewRequestWithContext(t.Context(), "POST", a.base+"/v1/users/_import", body)
			testkit.Must(t, err)
			r.Header.Set("Authorization", "Bearer "+a.token)
			r.Header.Set("Content-Type", "application/json")
			all.Go(func() {
				resp, err := a.http.Do(r)
				answered.Add(1)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
					t.Errorf("import %d: %d %s %v", i, resp.StatusCode, text, err)
				}
			})
		}
		testkit.Await(t, "all have come", func() bool {
			return p.places(t, "in_use", "large_requests")+p.places(t, "waiting", "large_requests") == many
		})
		if n := p.places(t, "in_use", "large_requests"); n != most {
			t.Fatalf("it holds %d places", n)
		}
		b.want(t, 200, "POST", "/v1/users/_import",
			object{"users": []object{{"userName": "user", "profile": object{"firstName": "Jo", "lastName": "Doe"},
				"email": object{"address": "u@example.com"}}}})
		if n := answered.Load(); n > 0 {
			t.Errorf("another organization's import was done when %d were over", n)
		}
		for i, end := range ends {
			go func() {
				_, _ = io.WriteString(end, imported(i))
				_ = end.Close()
			}()
		}
		all.Wait()
	})
}

// places is what the metrics say about a resource that organizations share.
func (p *process) places(t *testing.T, what, resource string) (n int) {
	t.Helper()
	text, err := io.ReadAll(answer(t, http.DefaultClient, newRequest(t, "GET", "http://"+p.metrics+"/metrics")).Body)
	testkit.Must(t, err)
	name := fmt.Sprintf("signet_places_%s{resource=%q} ", what, resource)
	_, rest, found := strings.Cut(string(text), "\n"+name)
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatalf("the metrics have no %s", name)
	}
	return n
}

// One organization changes the roles of a large group without a pause. It has two such changes at a time, whenever
// somebody looks, and others write and list meanwhile. In which order commands run that wait for the writer is tested
// in package store.
func TestAttackAnOrganizationChangesRolesOfManyWithoutAPause(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		const many, people = 40, 120
		p := s.start(t, "--metrics-listen", "localhost:0")
		admin := newClient(t, p, s.admin(t).Token)
		a, b := newTenant(t, admin, "A"), newTenant(t, admin, "B")
		users := make([]object, people)
		for i := range users {
			users[i] = object{"userName": fmt.Sprint("user", i),
				"profile": object{"firstName": "Jo", "lastName": "Doe"},
				"email":   object{"address": fmt.Sprintf("u%d@example.com", i)}}
		}
		imported := a.want(t, 200, "POST", "/v1/users/_import", object{"users": users})
		group := at[string](t, a.want(t, 200, "POST", "/v1/groups", object{"name": "large"}), "groupId")
		for _, r := range at[[]any](t, imported, "results") {
			a.want(t, 200, "PUT", "/v1/groups/"+group+"/members/"+at[string](t, r.(object), "userId"), object{})
		}
		answered, stop := a.flood(t, many, func(i int) (string, string, object) {
			return "PUT", "/v1/groups/" + group + "/roles",
				object{"roles": []string{[]string{"ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER"}[i%2]}}
		})
		for i := 0; answered.Load() < many; i++ {
			if n := p.places(t, "in_use", "many_writes"); n > 2 {
				t.Fatalf("it has %d at a time", n)
			}
			b.want(t, 200, "PUT", "/v1/users/me/profile",
				object{"firstName": "Jo", "lastName": fmt.Sprint("Doe", i), "displayName": "Jo"})
			b.want(t, 200, "GET", "/v1/users", nil)
		}
		stop()
		// What the group gives in the end, all of its members hold.
		a.want(t, 200, "PUT", "/v1/groups/"+group+"/roles", object{"roles": []string{"ORG_OWNER_VIEWER"}})
		if n := len(at[[]any](t, a.want(t, 200, "GET", "/v1/orgs/"+a.id+"/members?pageSize=200", nil),
			"members")); n != people+1 {
			t.Errorf("%d hold roles, not %d", n, people+1)
		}
	})
}

// deadReceiver takes connections and never answers, until the test ends.
func deadReceiver(t *testing.T) (url string, came *atomic.Int64) {
	t.Helper()
	came = &atomic.Int64{}
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came.Add(1)
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(released)
		server.Close()
	})
	return server.URL, came
}

// One organization has webhooks whose receivers never answer, as many as it may, and tries them. Another one's messages
// are sent at once.
func TestAttackAnOrganizationTakesAllCallsToOthers(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		const hooks, objects = 80, 8
		admin := newClient(t, s.start(t, "--outbound-allow", "127.0.0.1"), s.admin(t).Token)
		a, b := newTenant(t, admin, "A"), newTenant(t, admin, "B")
		dead, came := deadReceiver(t)
		var paths []string
		for i := range hooks {
			paths = append(paths,
				at[string](t, a.want(t, 200, "POST", "/v1/webhooks",
					object{"name": fmt.Sprint("Dead ", i), "url": dead, "types": []string{"app.*"}}), "webhookId"))
		}
		began := time.Now()
		newApplications(t, a.client, objects)
		awaitCount(t, came, 256) // half of what a server sends at once
		r := newHookReceiver(t)
		added := b.want(t, 200, "POST", "/v1/webhooks",
			object{"name": "Quick", "url": "http://" + r.address, "types": []string{"app.*"}})
		r.key = decodeSecret(t, at[string](t, added, "secret"))
		newApplications(t, b.client, 1)
		r.await(2)
		// And of what it sends to those that do not answer. On a slow machine it may have given up some.
		if n := came.Load(); n > 256+64 && time.Since(began) < webhook.SendTime {
			t.Errorf("%d messages are on their way to one organization", n)
		}

		// The same for messages that somebody waits for.
		before := came.Load()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, id := range paths {
			all.Go(func() {
				if _, _, err := a.do(ctx, "POST", "/v1/webhooks/"+id+"/_test", object{}); err != nil &&
					!errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		awaitCount(t, came, before+32)
		fine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer fine.Close()
		added = b.want(t, 200, "POST", "/v1/webhooks",
			object{"name": "Fine", "url": fine.URL, "types": []string{"idp.*"}})
		if out := b.want(t, 200, "POST", "/v1/webhooks/"+at[string](t, added, "webhookId")+"/_test",
			object{}); out["delivered"] != true {
			t.Errorf("another organization: %v", out)
		}
		cancel()
		all.Wait()
	})
}
