package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// kinds are those of package model, which this one must not import.
var kinds = []event.Definition{installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind, app.Kind, signing.Kind,
	oauth.Kind, Kind}

var must = testkit.Must

// here is where the receivers of the tests listen.
var here = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// nodes share an installation with the organizations org_a, org_b and org_d.
type nodes struct {
	*eventtest.Nodes
	t     testing.TB
	hooks *Webhooks // of the first node
}

func newNodes(t testing.TB, db testdb.Database) *nodes {
	w := &nodes{t: t, Nodes: eventtest.NewNodes(db, kinds...)}
	w.hooks = w.node()
	must(t, w.hooks.Store.Do(t.Context(), event.Command{
		Origin: system,
		Write:  []event.Ref{installation.Ref, org.Kind.Ref("org_a"), org.Kind.Ref("org_b"), org.Kind.Ref("org_d")},
		Decide: func(tx *event.Tx) error {
			for _, id := range []string{"org_a", "org_b", "org_d"} {
				if _, err := org.Kind.Create(tx, id, id, org.Added{Name: id, NameKey: id}); err != nil {
					return err
				}
			}
			_, err := installation.Kind.Create(tx, installation.ID, "org_d", installation.Added{DefaultOrg: "org_d"})
			return err
		},
	}))
	return w
}

// node opens another node on the database.
func (w *nodes) node() *Webhooks {
	w.t.Helper()
	return w.webhooks(w.Open(w.t), outbound.Config{Allow: here})
}

func (w *nodes) webhooks(s *store.Store, c outbound.Config) *Webhooks {
	c.MaxRedirects, c.ConnsPerHost, c.Timeout = -1, 512, 2*testkit.Patience // longer than any test waits
	client := outbound.New(c)
	w.t.Cleanup(client.Close)
	return &Webhooks{Store: s, Root: s.RootKey(), Outbound: client, Clock: w.Clock.Now}
}

// dispatch serves webhooks on a node until the test ends, or stop is called.
func (w *nodes) dispatch(on *Webhooks, alter ...func(*Dispatcher)) (stop func()) {
	w.t.Helper()
	d := &Dispatcher{Webhooks: on, Log: slog.New(slog.NewTextHandler(&w.Log, nil)), poll: 5 * time.Millisecond}
	for _, f := range alter {
		f(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		testkit.Receive(w.t, done, "the dispatcher has stopped")
	})
	w.t.Cleanup(stop)
	return stop
}

// permit is that of somebody who holds a role, in an organization or in the installation.
func permit(t testing.TB, org string, p access.Permission, role access.Role) access.Permit {
	t.Helper()
	scope := org
	if strings.HasPrefix(string(role), "IAM_") {
		scope = access.Installation
	}
	caller := &access.Caller{UserID: "usr_me", RequestID: "req_1", Memberships: access.Memberships{scope: {role}}}
	granted, err := caller.In(org, p)
	must(t, err)
	return granted
}

func (w *nodes) owner(org string) access.Permit {
	return permit(w.t, org, access.WebhookWrite, access.OrgOwner)
}

// add makes a webhook that sends to a receiver.
func (w *nodes) add(r *receiver, org string, alter ...func(*New)) string {
	w.t.Helper()
	n := New{Name: "Test", Settings: Settings{URL: r.URL + "/hook?token=in-the-url"}}
	for _, f := range alter {
		f(&n)
	}
	role := access.OrgOwner
	if n.Wide() {
		role = access.IAMOwner
	}
	created, err := w.hooks.Add(w.t.Context(), permit(w.t, org, access.WebhookWrite, role), n)
	must(w.t, err)
	r.learn(created.Secret)
	return created.ID
}

// happen records n events of each of some applications of an organization, which exist from the first one on.
func (w *nodes) happen(org string, n int, ids ...string) {
	w.t.Helper()
	w.happenOn(w.hooks.Store, org, n, ids...)
}

func (w *nodes) happenOn(s event.Store, org string, n int, ids ...string) {
	w.t.Helper()
	for part := range slices.Chunk(ids, 100) {
		var refs []event.Ref
		for _, id := range part {
			refs = append(refs, app.Kind.Ref(id))
		}
		must(w.t, s.Do(w.t.Context(), event.Command{
			Origin: event.Origin{Actor: "usr_me", RequestID: "req_7"},
			Write:  refs,
			Decide: func(tx *event.Tx) error {
				for i := range n {
					for _, id := range part {
						a, err := app.Kind.Get(tx, id)
						if err != nil {
							return err
						}
						name := fmt.Sprintf("%s %d", id, i)
						if a == nil {
							_, err = app.Kind.Create(tx, id, org, app.Added{Name: name, NameKey: name, Type: app.Web})
						} else {
							err = a.Append(app.SettingsChanged{Name: &name})
						}
						if err != nil {
							return err
						}
					}
				}
				return nil
			},
		}))
	}
}

// isParked waits until something is parked for a webhook, and saved: from then on the clock can go on.
func (w *nodes) isParked(hook string) {
	w.t.Helper()
	testkit.Await(w.t, "something is parked", func() bool {
		all, err := allParked(w.t.Context(), w.hooks.Store, hook)
		must(w.t, err)
		return len(all) > 0
	})
}

// got is a message that a receiver has taken.
type got struct {
	id   string
	body []byte
	message
	shown shown
}

// receiver takes messages, verifies them as any receiver would, and answers what the test says.
type receiver struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	keys    [][]byte
	taken   []got
	asked   int                                         // messages that came, taken or not
	skipped []string                                    // events that are never to come
	loses   func() bool                                 // the answer, after it was taken
	answer  func(id string, w http.ResponseWriter) bool // whether it is taken; nil: it is
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

// learn adds a secret by which messages may be signed.
func (r *receiver) learn(text string) {
	r.t.Helper()
	raw, found := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(raw)
	if !found || err != nil || len(key) < 24 || len(key) > 64 {
		r.t.Fatal("the secret is not one of the specification")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, key)
}

func (r *receiver) says(answer func(id string, w http.ResponseWriter) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender is gone
	}
	g := got{id: q.Header.Get("webhook-id"), body: body}
	seconds, err := strconv.ParseInt(q.Header.Get("webhook-timestamp"), 10, 64)
	r.mu.Lock()
	signed := slices.ContainsFunc(r.keys, func(key []byte) bool {
		return slices.Contains(strings.Fields(q.Header.Get("webhook-signature")), signature(key, g.id, seconds, body))
	})
	answer := r.answer
	r.asked++
	r.mu.Unlock()
	if err != nil || !signed || q.Method != "POST" || q.Header.Get("content-type") != "application/json" ||
		q.UserAgent() != "signet" {
		r.t.Errorf("a message is not as it should be: %s %v", q.Method, q.Header)
	}
	g.Data = &g.shown
	if err := json.Unmarshal(body, &g.message); err != nil {
		r.t.Errorf("%v in %s", err, body)
	}
	if answer == nil || answer(g.id, w) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken = append(r.taken, g)
		if r.loses != nil && r.loses() {
			panic(http.ErrAbortHandler)
		}
	}
}

func (r *receiver) messages() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.taken)
}

func (r *receiver) came() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// ids are those of the messages taken, in order.
func (r *receiver) ids() (ids []string) {
	for _, g := range r.messages() {
		ids = append(ids, g.id)
	}
	return ids
}

// has waits until these were taken, in this order where they are of one object, and no others.
func (r *receiver) has(want ...string) {
	r.t.Helper()
	testkit.Await(r.t, fmt.Sprintf("%d messages are there", len(want)),
		func() bool { return len(r.messages()) >= len(want) })
	r.inOrder()
	if got := slices.Sorted(slices.Values(r.ids())); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		r.t.Errorf("taken: %q, want %q", got, want)
	}
}

// inOrder: an event that comes for the first time follows those of its object that came before it.
func (r *receiver) inOrder() {
	r.t.Helper()
	last := map[string]uint64{}
	for _, g := range r.messages() {
		if g.shown.Sequence > 1 && slices.Contains(r.skipped, journal.IDOf(g.shown.ObjectID, g.shown.Sequence-1)) {
			last[g.shown.ObjectID] = g.shown.Sequence - 1
		}
		if g.shown.Sequence > last[g.shown.ObjectID]+1 {
			r.t.Errorf("%s comes after %d", g.id, last[g.shown.ObjectID])
		}
		last[g.shown.ObjectID] = max(last[g.shown.ObjectID], g.shown.Sequence)
	}
}

// payloads are those of events, one after the other.
func payloads(events []event.Event) (all string) {
	for _, e := range events {
		all += string(e.Payload)
	}
	return all
}

// refused demands a refusal of this kind and reason.
func refused(t testing.TB, err error, want *errs.Error, fields ...string) {
	t.Helper()
	e, ok := err.(*errs.Error)
	if !ok || e.Kind != want.Kind || e.Reason != want.Reason {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	var named []string
	for _, f := range e.Fields {
		named = append(named, f.Field)
	}
	if !slices.Equal(named, fields) {
		t.Errorf("it names %q, want %q", named, fields)
	}
}
