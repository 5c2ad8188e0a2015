package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	webhookInState  = refused(codes.FailedPrecondition, "WEBHOOK_WRONG_STATE")
	webhookElse     = refused(codes.FailedPrecondition, "WEBHOOK_NOT_OF_DEFAULT_ORGANIZATION")
	nothingToReplay = refused(codes.NotFound, "WEBHOOK_EVENT_NOT_FAILED")
)

// addWebhook adds one that could reach nobody: its name is that of this machine, which nobody has allowed.
func addWebhook(name string, types ...string) *signetv1.AddWebhookRequest {
	return &signetv1.AddWebhookRequest{Name: name, Url: "https://localhost:9/hook", Types: types}
}

func modifyWebhook(id string, paths ...string) *signetv1.ModifyWebhookRequest {
	return &signetv1.ModifyWebhookRequest{WebhookId: id, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
}

func webhookStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	added := done[*signetv1.AddWebhookResponse](t, c, s.owner,
		with(addWebhook("Trail", "signing.*"), "personalData", true))
	id := added.GetWebhookId()
	get := func() *signetv1.Webhook {
		t.Helper()
		return done[*signetv1.GetWebhookResponse](t, c, s.owner,
			&signetv1.GetWebhookRequest{WebhookId: id}).GetWebhook()
	}
	same(t, "prefix of the secret", strings.HasPrefix(added.GetSecret(), "whsec_"), true)
	same(t, "as it was added", proto.Equal(get(), &signetv1.Webhook{
		WebhookId:    id,
		Details:      added.GetDetails(),
		State:        signetv1.Webhook_STATE_ACTIVE,
		Name:         "Trail",
		Url:          "https://localhost:9/…",
		Types:        []string{"signing.*"},
		PersonalData: true,
	}), true)

	done[*signetv1.ModifyWebhookResponse](t, c, s.owner,
		with(with(modifyWebhook(id, "name", "types", "personal_data"), "name", "Log"), "types",
			[]string{"signing.*", "app.added.v1"}))
	same(t, "name", get().GetName(), "Log")
	same(t, "types", strings.Join(get().GetTypes(), " "), "signing.* app.added.v1")
	same(t, "personal data", get().GetPersonalData(), false)
	same(t, "url", get().GetUrl(), "https://localhost:9/…")

	rotated := done[*signetv1.RotateWebhookSecretResponse](t, c, s.owner,
		&signetv1.RotateWebhookSecretRequest{WebhookId: id})
	same(t, "another secret", rotated.GetSecret() != added.GetSecret(), true)
	until := get().GetOldSecretExpirationDate().AsTime()
	same(t, "the old one is kept for a day",
		time.Until(until) > 23*time.Hour && time.Until(until) <= 24*time.Hour, true)
	done[*signetv1.RotateWebhookSecretResponse](t, c, s.owner,
		&signetv1.RotateWebhookSecretRequest{WebhookId: id, KeepOldSeconds: proto.Int32(0)})
	same(t, "none is kept", get().GetOldSecretExpirationDate() == nil, true)

	tested := done[*signetv1.TestWebhookResponse](t, c, s.owner, &signetv1.TestWebhookRequest{WebhookId: id})
	same(t, "delivered", tested.GetDelivered(), false)
	same(t, "problem", strings.Contains(tested.GetProblem(), "--outbound-allow"), true)

	done[*signetv1.DeactivateWebhookResponse](t, c, s.owner, &signetv1.DeactivateWebhookRequest{WebhookId: id})
	c.refused(t, webhookInState, s.owner, &signetv1.DeactivateWebhookRequest{WebhookId: id})
	same(t, "state", get().GetState(), signetv1.Webhook_STATE_INACTIVE)
	find := func(name string, state signetv1.Webhook_State) bool {
		found := done[*signetv1.ListWebhooksResponse](t, c, s.owner,
			&signetv1.ListWebhooksRequest{Name: name, State: state, PageSize: 500})
		return slices.ContainsFunc(found.GetWebhooks(),
			func(w *signetv1.Webhook) bool { return w.GetWebhookId() == id })
	}
	same(t, "found by state", find("", signetv1.Webhook_STATE_INACTIVE), true)
	same(t, "not by another state", find("", signetv1.Webhook_STATE_ACTIVE), false)
	same(t, "found by name", find("lo", 0), true)
	same(t, "not by another name", find("tra", 0), false)
	done[*signetv1.ReactivateWebhookResponse](t, c, s.owner, &signetv1.ReactivateWebhookRequest{WebhookId: id})
	c.refused(t, webhookInState, s.owner, &signetv1.ReactivateWebhookRequest{WebhookId: id})

	c.refused(t, nothingToReplay, s.owner, &signetv1.ReplayWebhookEventsRequest{WebhookId: id, EventId: s.app + ".1"})
	c.refused(t, nothingToReplay, s.owner, &signetv1.SkipWebhookEventRequest{WebhookId: id, EventId: s.app + ".1"})
	same(t, "replayed", done[*signetv1.ReplayWebhookEventsResponse](t, c, s.owner,
		&signetv1.ReplayWebhookEventsRequest{WebhookId: id}).GetReplayed(), 0)
	same(t, "failed", len(done[*signetv1.ListWebhookFailuresResponse](t, c, s.owner,
		&signetv1.ListWebhookFailuresRequest{WebhookId: id}).GetFailures()), 0)
	same(t, "held", len(done[*signetv1.ListWebhookHeldEventsResponse](t, c, s.owner,
		&signetv1.ListWebhookHeldEventsRequest{WebhookId: id}).GetEvents()), 0)

	done[*signetv1.RemoveWebhookResponse](t, c, s.owner, &signetv1.RemoveWebhookRequest{WebhookId: id})
	for _, req := range []proto.Message{&signetv1.GetWebhookRequest{WebhookId: id},
		&signetv1.RemoveWebhookRequest{WebhookId: id}, &signetv1.ReactivateWebhookRequest{WebhookId: id},
		&signetv1.TestWebhookRequest{WebhookId: id}, &signetv1.RotateWebhookSecretRequest{WebhookId: id},
		&signetv1.ListWebhookDeliveriesRequest{WebhookId: id}} {
		c.refused(t, noWebhook, s.owner, req)
	}
}

func refusedWebhookCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	id := s.webhook()
	add := func(name string, as *Actor, req proto.Message, want Want) {
		cases = append(cases, Case{Name: name, As: as, Req: req, Want: want})
	}
	for name, url := range map[string]string{
		"no scheme":  "example.org/hook",
		"http":       "http://example.org/hook",
		"a password": "https://ada:pw-in-a-url@example.org/",
		"a fragment": "https://example.org/#x",
		"loopback":   "https://127.0.0.1/",
		"private":    "https://10.1.2.3/",
		"metadata":   "https://169.254.169.254/latest",
		"mapped":     "https://[::ffff:10.0.0.1]/",
		"link-local": "https://[fe80::1]/",
		"ftp":        "ftp://example.org/",
	} {
		add("added with "+name, s.owner, with(addWebhook("n"), "url", url), invalid("url"))
		add("changed to "+name, s.owner, with(modifyWebhook(id, "url"), "url", url), invalid("url"))
	}
	for name, typ := range map[string]string{"a star": "*", "no version": "user.added", "an unknown kind": "house.*",
		"an unknown type": "user.exploded.v1"} {
		add("types: "+name, s.owner, addWebhook("n", "user.*", typ), invalid("types[1]"))
		add("types changed: "+name, s.owner, with(modifyWebhook(id, "types"), "types", []string{"user.*", typ}),
			invalid("types[1]"))
	}
	add("an empty name", s.owner, modifyWebhook(id, "name"), invalid("name"))
	add("an empty address", s.owner, modifyWebhook(id, "url"), invalid("url"))
	add("a mask of what cannot be set", s.owner, modifyWebhook(id, "gone"), invalid("updateMask"))
	add("a value that is not named", s.owner,
		with(with(modifyWebhook(id, "name"), "name", "n"), "url", "https://example.org"), invalid("url"))
	for _, seconds := range []int32{-1, 604801} {
		add("an old secret for ever", s.owner,
			&signetv1.RotateWebhookSecretRequest{WebhookId: id, KeepOldSeconds: proto.Int32(seconds)},
			invalid("keepOldSeconds"))
	}
	add("all organizations, by the owner of one", s.owner, with(addWebhook("n"), "allOrganizations", true),
		permissionDenied)
	add("another organization, by the owner of one", s.owner,
		with(addWebhook("n"), "organizationIds", []string{w.there.org}), permissionDenied)
	add("all organizations, changed by the owner of one", s.owner,
		with(modifyWebhook(id, "all_organizations"), "allOrganizations", true), permissionDenied)
	add("all and some", w.root,
		with(with(addWebhook("n"), "allOrganizations", true), "organizationIds", []string{w.there.org}),
		invalid("organizationIds"))
	add("an organization that is not there", w.root, with(addWebhook("n"), "organizationIds", []string{unknownOrg}),
		invalid("organizationIds[0]"))
	cases = append(cases, Case{Name: "all organizations, in another than the default one", As: w.root,
		Header: header(orgID, s.org), Req: with(addWebhook("n"), "allOrganizations", true), Want: webhookElse})
	return cases
}

// webhooksServed: over the API of a server that may call this machine, from the event to the receiver.
func webhooksServed(t *testing.T, w *World) {
	own := openWorld(t, testdb.New(t, w.db.Engine), func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.1"} })
	c := &Client{own, own.rest}
	s := own.scene(t)
	var mu sync.Mutex
	var key []byte
	types := map[string]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "."))
		mac.Write(body)
		if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("a signature does not fit: %v", r.Header)
		}
		var message struct{ Type string }
		if err := json.Unmarshal(body, &message); err != nil {
			t.Error(err)
		}
		if types[message.Type]++; message.Type == "app.deactivated.v1" {
			out.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(receiver.Close)
	mu.Lock()
	added := done[*signetv1.AddWebhookResponse](t, c, s.owner, with(addWebhook("Here", "app.*"), "url", receiver.URL))
	key, _ = base64.StdEncoding.DecodeString(strings.TrimPrefix(added.GetSecret(), "whsec_"))
	mu.Unlock()
	tested := done[*signetv1.TestWebhookResponse](t, c, s.owner,
		&signetv1.TestWebhookRequest{WebhookId: added.GetWebhookId()})
	same(t, "the test was delivered", tested.GetDelivered() && tested.GetStatus() == 200, true)
	done[*signetv1.DeactivateApplicationResponse](t, c, s.owner, &signetv1.DeactivateApplicationRequest{AppId: s.app})
	done[*signetv1.ReactivateApplicationResponse](t, c, s.owner, &signetv1.ReactivateApplicationRequest{AppId: s.app})
	var failed *signetv1.WebhookFailure
	testkit.Await(t, "one has failed", func() bool {
		list := done[*signetv1.ListWebhookFailuresResponse](t, c, s.owner,
			&signetv1.ListWebhookFailuresRequest{WebhookId: added.GetWebhookId(), Retrying: true}).GetFailures()
		if len(list) > 0 {
			failed = list[0]
		}
		return len(list) == 1
	})
	same(t, "which", strings.HasPrefix(failed.GetEventId(), s.app+"."), true)
	same(t, "status", failed.GetStatus(), int32(http.StatusBadGateway))
	same(t, "it is tried again", failed.GetNextTry() != nil, true)
	waiting := c.status(t, own.root).GetWebhooks()
	same(t, "at a glance", [3]int32{waiting.GetInTrouble(), waiting.GetObjectsRetrying(), waiting.GetObjectsFailed()},
		[3]int32{1, 1, 0})
	deliveries := done[*signetv1.ListWebhookDeliveriesResponse](t, c, s.owner,
		&signetv1.ListWebhookDeliveriesRequest{WebhookId: added.GetWebhookId()}).GetDeliveries()
	same(t, "attempts", len(deliveries) >= 1 && deliveries[0].GetType() == "app.deactivated.v1" &&
		!deliveries[0].GetDelivered(), true)
	mu.Lock()
	defer mu.Unlock()
	same(t, "what comes behind it waits", types["app.reactivated.v1"], 0)
	same(t, "the test message", types["webhook.test.v1"], 1)
}

// failures gives the scene's webhook two events that have failed, and others that wait behind one of them. It is
// switched off, or it would act.
func (l *library) failures(t *testing.T) {
	c := &Client{l.w, l.w.rest}
	l.second = done[*signetv1.AddWebhookResponse](t, c, l.owner, addWebhook("Second", "signing.*")).GetWebhookId()
	done[*signetv1.DeactivateWebhookResponse](t, c, l.owner, &signetv1.DeactivateWebhookRequest{WebhookId: l.webhook()})
	done[*signetv1.ModifyWebhookResponse](t, c, l.owner,
		with(modifyWebhook(l.webhook(), "types"), "types", []string{"app.*"}))
	done[*signetv1.ModifyApplicationResponse](t, c, l.owner, with(modifyApp(l.app, "name"), "name", "Renamed"))
	l.w.command(t, event.Command{Decide: func(tx *event.Tx) error {
		for _, id := range []string{l.app, "app_gone"} {
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Deliveries, Key: l.webhook() + "/o/" + id},
				Value: []byte(`{"sequence":1,"tries":10,"failed":true}`)})
		}
		return nil
	}})
}
