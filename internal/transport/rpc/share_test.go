package rpc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

// asked is a request that is under way.
func asked(t *testing.T, l *lab, who, path string, body io.Reader) <-chan outcome {
	t.Helper()
	verb := http.MethodGet
	if body != nil {
		verb = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), verb, l.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = bearerOf(who)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	done := make(chan outcome, 1)
	go func() { done <- l.do(t, l.h2, r) }()
	return done
}

func untilLoad(t *testing.T, p *fairqueue.Slots, held, waiting int) {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("%d slots are held and %d wait", held, waiting), func() bool {
		h, w := p.Load()
		return h == held && w == waiting
	})
}

func TestOperationsThatRunAreSharedByOrganizations(t *testing.T) {
	l := newLab(t)
	calls := fairqueue.New(fairqueue.Bounds{Slots: 4, Waiting: 1, Reserve: true})
	l.handler.shares.calls = calls
	finish := make(chan struct{})
	l.fake.hook = func(context.Context) error { <-finish; return nil }
	first, second := asked(t, l, "owner", "/v1/users/me", nil), asked(t, l, "admin", "/v1/users/me", nil)
	untilLoad(t, calls, 2, 0)
	third := asked(t, l, "owner", "/v1/users/me", nil)
	untilLoad(t, calls, 2, 1)
	if o := testkit.Receive(t, asked(t, l, "owner", "/v1/users/me", nil),
		"an answer"); o.http != 429 || o.code != 8 || o.reason != "ORGANIZATION_SHARE_USED_UP" || o.retry == 0 ||
		o.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %+v", o)
	}
	other := asked(t, l, "neighbour", "/v1/users/me", nil)
	untilLoad(t, calls, 3, 1)
	close(finish)
	for i, done := range []<-chan outcome{first, second, third, other} {
		if o := testkit.Receive(t, done, "an answer"); o.http != 200 {
			t.Errorf("request %d: %+v", i, o)
		}
	}
	untilLoad(t, calls, 0, 0)
}

// TestLargeRequestsAreSharedBeforeTheyAreRead: who sends many of them, and takes its time, keeps no other organization
// from sending one.
func TestLargeRequestsAreSharedBeforeTheyAreRead(t *testing.T) {
	l := newLab(t)
	large := fairqueue.New(fairqueue.Bounds{Slots: 4, Waiting: 1, Reserve: true})
	l.handler.shares.large = large
	const path = "/v1/users/_import"
	user := `{"users": [{"userName": "a", "profile": {"firstName": "A", "lastName": "B"}, "email": {"address": "a@b.example"}}]}`
	var ends []*io.PipeWriter
	var all []<-chan outcome
	slow := func() {
		body, end := io.Pipe()
		all, ends = append(all, asked(t, l, "owner", path, body)), append(ends, end)
	}
	slow()
	slow()
	untilLoad(t, large, 2, 0)
	slow()
	untilLoad(t, large, 2, 1)
	quick := func(who string) outcome {
		body, end := io.Pipe()
		done := asked(t, l, who, path, body)
		go func() {
			_, _ = io.WriteString(end, user)
			_ = end.Close()
		}()
		return testkit.Receive(t, done, "an answer")
	}
	if o := quick("owner"); o.reason != "ORGANIZATION_SHARE_USED_UP" {
		t.Errorf("one too many: %+v", o)
	}
	if o := quick("neighbour"); o.http != 200 {
		t.Errorf("another organization: %+v", o)
	}
	for _, end := range ends {
		go func() {
			_, _ = io.WriteString(end, user)
			_ = end.Close()
		}()
	}
	for i, done := range all {
		if o := testkit.Receive(t, done, "an answer"); o.http != 200 {
			t.Errorf("request %d: %+v", i, o)
		}
	}
	untilLoad(t, large, 0, 0)
}

// An organization has two operations at a time that write many objects, one that is made ready while the other is
// written. Another organization, and what is about one object, does not wait for it.
func TestAnOrganizationHasTwoOperationsAtATimeThatWriteMany(t *testing.T) {
	l := newLab(t)
	slots := l.handler.shares.costly
	var marked atomic.Int64
	l.fake.hook = func(ctx context.Context) error {
		if event.MayWriteMany(ctx) {
			marked.Add(1)
		}
		return nil
	}
	many := func(who string) <-chan outcome {
		return asked(t, l, who, "/v1/users/_import",
			strings.NewReader(`{"users":[{"userName":"a","profile":{"firstName":"A","lastName":"B"},"email":{"address":"a@b.example"}}]}`))
	}
	if err := slots.Enter(t.Context(), fairqueue.Claim{Org: "org_own"}); err != nil { // one is under way
		t.Fatal(err)
	}
	if o := testkit.Receive(t, many("owner"), "an answer"); o.http != 200 || marked.Load() != 1 {
		t.Errorf("a second one: %+v, %d", o, marked.Load())
	}
	if err := slots.Enter(t.Context(), fairqueue.Claim{Org: "org_own"}); err != nil { // two are
		t.Fatal(err)
	}
	third := many("owner")
	untilLoad(t, slots, 2, 1)
	if o := testkit.Receive(t, many("neighbour"), "an answer"); o.http != 200 || marked.Load() != 2 {
		t.Errorf("another organization: %+v, %d", o, marked.Load())
	}
	if o := testkit.Receive(t, asked(t, l, "owner", "/v1/users/me", nil), "an answer"); o.http != 200 ||
		marked.Load() != 2 {
		t.Errorf("about one object: %+v, %d", o, marked.Load())
	}
	untilLoad(t, slots, 2, 1)
	slots.Leave(fairqueue.Claim{Org: "org_own"})
	if o := testkit.Receive(t, third, "an answer"); o.http != 200 || marked.Load() != 3 {
		t.Errorf("its turn has come: %+v, %d", o, marked.Load())
	}
	slots.Leave(fairqueue.Claim{Org: "org_own"})
	untilLoad(t, slots, 0, 0)
}

// The definition says which operations write many objects.
func TestOperationsThatWriteManySaySo(t *testing.T) {
	for path, cost := range map[string]signetv1.Cost{
		"signet.v1.GroupService.SetGroupRoles":             signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.GroupService.RemoveGroup":               signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.ProjectService.RemoveProject":           signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.OrganizationService.RemoveOrganization": signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.UserService.ImportUsers":                signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.WebhookService.RemoveWebhook":           signetv1.Cost_COST_WRITES_MANY,
		"signet.v1.NameService.LookUpNames":                signetv1.Cost_COST_READS_MANY,
		"signet.v1.OrganizationService.RemoveDomain":       signetv1.Cost_COST_READS_MANY,
		"signet.v1.OrganizationService.CountObjects":       signetv1.Cost_COST_READS_MANY,
		"signet.v1.GroupService.AddGroupMember":            signetv1.Cost_COST_UNSPECIFIED,
		"signet.v1.UserService.UpdateMyProfile":            signetv1.Cost_COST_UNSPECIFIED,
		"signet.v1.UserService.SearchUsers":                signetv1.Cost_COST_SEARCHES,
	} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(path))
		if err != nil {
			t.Fatal(err)
		}
		if got := proto.GetExtension(d.Options(), signetv1.E_Rule).(*signetv1.Rule).GetCost(); got != cost {
			t.Errorf("%s: %v", path, got)
		}
	}
	public := &operation{rule: &signetv1.Rule{Who: &signetv1.Rule_Public{Public: true},
		Scope: signetv1.Scope_SCOPE_SELF, Cost: signetv1.Cost_COST_WRITES_MANY}}
	if err := public.checkRule(); err == nil {
		t.Error("strangers have no organization that waits")
	}
}

// Lists wait for each other. What is short goes before them, however many wait.
func TestShortOperationsDoNotWaitForThoseWithManyObjects(t *testing.T) {
	l := newLab(t)
	slots := fairqueue.New(fairqueue.Bounds{Slots: 1, Waiting: 10})
	l.handler.shares.bulk = slots
	if err := slots.Enter(t.Context(), fairqueue.Claim{Org: "org_own"}); err != nil {
		t.Fatal(err)
	}
	waiting := asked(t, l, "owner", "/v1/users", nil)
	untilLoad(t, slots, 1, 1)
	if o := testkit.Receive(t, asked(t, l, "owner", "/v1/users/me", nil), "an answer"); o.http != 200 {
		t.Errorf("a read: %+v", o)
	}
	slots.Leave(fairqueue.Claim{Org: "org_own"})
	testkit.Receive(t, waiting, "an answer")
	for path, want := range map[string]bool{"signet.v1.UserService/ListUsers": true,
		"signet.v1.UserService/SearchUsers": true, "signet.v1.UserService/ImportUsers": false,
		"signet.v1.UserService/GetUser": false, "signet.v1.SessionService/CreateSession": false} {
		ops, err := newOperations(Service{Name: protoreflect.FullName(strings.Split(path, "/")[0]), Impl: l.fake})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			if op.procedure == path && op.bulk != want {
				t.Errorf("%s: %t", path, op.bulk)
			}
		}
	}
}

// However many searches wait, a list does not wait for them.
func TestListsDoNotWaitForSearches(t *testing.T) {
	l := newLab(t)
	searches := fairqueue.New(fairqueue.Bounds{Slots: 1, Waiting: 10})
	l.handler.shares.searches = searches
	if err := searches.Enter(t.Context(), fairqueue.Claim{Org: "org_own"}); err != nil {
		t.Fatal(err)
	}
	waiting := asked(t, l, "owner", "/v1/users/_search?query=a", nil)
	untilLoad(t, searches, 1, 1)
	testkit.Receive(t, asked(t, l, "owner", "/v1/users", nil), "a list") // is answered meanwhile
	untilLoad(t, searches, 1, 1)
	searches.Leave(fairqueue.Claim{Org: "org_own"})
	testkit.Receive(t, waiting, "an answer")
	untilLoad(t, searches, 0, 0)
}

// To encode an answer takes as long as to read what is in it: it does not make room for the next one before that is
// done.
func TestAnAnswerIsEncodedInTheSlotOfItsOperation(t *testing.T) {
	l := newLab(t)
	slots := fairqueue.New(fairqueue.Bounds{Slots: 1, Waiting: 10})
	l.handler.shares.costly = slots
	req, encoded := &signetv1.ImportUsersRequest{}, false
	ops, err := newOperations(Service{Name: "signet.v1.UserService", Impl: l.fake})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if op.procedure != "signet.v1.UserService/ImportUsers" {
			continue
		}
		c := &Call{
			op:       op,
			Exchange: &web.Exchange{Info: call.Info{Caller: &access.Caller{OrgID: "org_own"}}},
			marshal: func(proto.Message) error {
				held, _ := slots.Load()
				encoded = held == 1
				return nil
			},
		}
		if _, err := link(operate, l.handler.queueManyWrites)(t.Context(), c, req); err != nil || !encoded {
			t.Errorf("encoded in its slot: %t, %v", encoded, err)
		}
	}
}

// longStore has no objects. It runs what is not long, and notes the rest.
type longStore struct {
	event.Store
	ran chan bool // whether a command may be long
}

func (s longStore) Do(ctx context.Context, c event.Command) error {
	if event.MayWriteMany(ctx) {
		s.ran <- true
		return nil
	}
	return event.NewBatch(secret.NewMasterKey(), 1, event.Loaded{}).Run(&c)
}

// What turns out to write many objects waits for the same slots as an operation whose definition says so.
func TestWhatTurnsOutToWriteManyWaitsForTheSlotsOfItsOrganization(t *testing.T) {
	l := newLab(t)
	slots, s := l.handler.shares.costly, longStore{ran: make(chan bool, 2)}
	l.fake.hook = func(ctx context.Context) error {
		return event.Do(ctx, s, event.Command{Decide: func(tx *event.Tx) error {
			var all event.Command
			for i := range event.MaxObjects + 1 {
				all.Write = append(all.Write, event.Ref{Kind: "org", ID: fmt.Sprint("org_", i)})
			}
			return tx.Require(all)
		}})
	}
	for range 2 { // are under way
		if err := slots.Enter(t.Context(), fairqueue.Claim{Org: "org_own"}); err != nil {
			t.Fatal(err)
		}
	}
	one := asked(t, l, "owner", "/v1/users/usr_1/password", strings.NewReader(`{"password":"a new password"}`))
	untilLoad(t, slots, 2, 1)
	if len(s.ran) != 0 {
		t.Error("it did not wait")
	}
	slots.Leave(fairqueue.Claim{Org: "org_own"})
	if o := testkit.Receive(t, one, "an answer"); o.http != 200 || len(s.ran) != 1 {
		t.Errorf("its turn has come: %+v, %d", o, len(s.ran))
	}
	slots.Leave(fairqueue.Claim{Org: "org_own"})
	untilLoad(t, slots, 0, 0)
}
