package program

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// hookReceiver takes what a webhook sends, verifies it, and can be killed and started again on its port.
type hookReceiver struct {
	t       *testing.T
	address string
	key     []byte
	server  *http.Server
	stopped chan struct{} // closed when it is killed

	mu      sync.Mutex
	behave  func(n int, stopped <-chan struct{}) bool // whether the answer gets through; nil: it does
	taken   int
	doubles int
	last    map[string]uint64 // of each object
	changed chan struct{}
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{t: t, address: "127.0.0.1:" + testkit.FreePort(t), last: map[string]uint64{},
		changed: make(chan struct{}, 1)}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *hookReceiver) start() {
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address, r.stopped = listener.Addr().String(), make(chan struct{})
	r.server = &http.Server{Handler: r.handler(r.stopped)}
	go func() { _ = r.server.Serve(listener) }()
}

// kill cuts off everything that is on its way.
func (r *hookReceiver) kill() {
	select {
	case <-r.stopped:
	default:
		close(r.stopped)
	}
	_ = r.server.Close()
}

func (r *hookReceiver) handler(stopped <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.verify(q, body)
		r.mu.Lock()
		n, behave := r.taken+1, r.behave
		r.mu.Unlock()
		answers := true
		if behave != nil {
			switch answers = behave(n, stopped); {
			case answers:
			case rand.IntN(2) == 0: // not taken
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
		}
		r.take(body)
		if !answers { // taken, and nobody knows
			panic(http.ErrAbortHandler)
		}
	}
}

func (r *hookReceiver) verify(q *http.Request, body []byte) {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(q.Header.Get("webhook-id") + "." + q.Header.Get("webhook-timestamp") + "."))
	mac.Write(body)
	if got := q.Header.Get("webhook-signature"); got != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		r.t.Errorf("the signature %s does not fit", got)
	}
}

// take notes an event. One that is new must be the next of its object.
func (r *hookReceiver) take(body []byte) {
	var message struct {
		Data struct{ EventID, ObjectID, Sequence string }
	}
	if err := json.Unmarshal(body, &message); err != nil {
		r.t.Error(err)
		return
	}
	sequence, err := strconv.ParseUint(message.Data.Sequence, 10, 64)
	if err != nil || message.Data.EventID != message.Data.ObjectID+"."+message.Data.Sequence {
		r.t.Errorf("not an event: %s", body)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch last := r.last[message.Data.ObjectID]; {
	case sequence <= last:
		r.doubles++
	case sequence == last+1:
		r.last[message.Data.ObjectID] = sequence
		r.taken++
	default:
		r.t.Errorf("%s comes after %d", message.Data.EventID, last)
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *hookReceiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// await waits for so many different events. It is enough that there is always another one within a while.
func (r *hookReceiver) await(n int) {
	r.t.Helper()
	for r.count() < n {
		select {
		case <-r.changed:
		case <-time.After(2 * patience):
			r.t.Fatalf("%d of %d events have come, and no more come", r.count(), n)
		}
	}
}

// applications are objects to which things happen.
type applications struct {
	t   *testing.T
	ids []string
	n   atomic.Int64 // events so far
}

func newApplications(t *testing.T, c *client, n int) *applications {
	a := &applications{t: t}
	for i := range n {
		answer := c.want(t, 200, "POST", "/v1/apps",
			object{"name": fmt.Sprint("App ", i), "type": "APPLICATION_TYPE_WEB",
				"redirectUris": []string{"https://app.example/cb"}})
		a.ids = append(a.ids, at[string](t, answer, "appId"))
		a.n.Add(2) // it, and its secret
	}
	return a
}

// happen makes events until there are so many, over several nodes at once. A node that is gone is left out.
func (a *applications) happen(total int, nodes ...*client) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	var writers sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(total) - a.n.Load())
	for i, c := range nodes {
		for j := range 4 {
			mine := a.ids[(4*i+j)*len(a.ids)/(4*len(nodes)) : (4*i+j+1)*len(a.ids)/(4*len(nodes))]
			writers.Go(func() {
				for n := 0; left.Add(-1) >= 0; n++ {
					status, answer, err := c.do(ctx, "PATCH", "/v1/apps/"+mine[n%len(mine)],
						object{"name": fmt.Sprint("Name ", n), "updateMask": "name"})
					if err != nil || status != 200 {
						a.t.Errorf("status %d, %v, %v", status, answer, err)
						return
					}
					a.n.Add(1)
				}
			})
		}
	}
	writers.Wait()
}

// A receiver that fails at random, stalls, is killed and started again, on two nodes of which one is killed half way:
// every event comes at least once, and those of an object in order. How many come twice is no verdict: that follows from
// how often a busy machine lets a lease of 2 s lapse, and each time what was not noted yet is sent again.
func TestScaleWebhooksOverTwoNodes(t *testing.T) {
	t.Parallel()
	total := scaled(600, 10_000)
	db := testdb.New(t, testdb.Postgres)
	first, second := newSite(t, db), newSite(t, db)
	flags := []string{"--outbound-allow", "127.0.0.1", "--webhook-lease", "2s", "--webhook-retry", "200ms"}
	a := first.start(t, flags...)
	b := second.start(t, append(flags, "--master-key-file", first.path("master.key"))...)
	onA, onB := newClient(t, a, first.admin(t).Token), newClient(t, b, first.admin(t).Token)
	r := newHookReceiver(t)
	added := onA.want(t, 200, "POST", "/v1/webhooks",
		object{"name": "Scale", "url": "http://" + r.address + "/hook", "types": []string{"app.*"}})
	hook := at[string](t, added, "webhookId")
	r.key = decodeSecret(t, at[string](t, added, "secret"))
	var stalls atomic.Int32
	r.behave = func(n int, stopped <-chan struct{}) bool {
		switch rand.IntN(40) {
		case 0, 1, 2:
			return false
		case 3:
			if stalls.Add(1)%2 == 1 { // until it is killed, or the sender gives up
				select {
				case <-stopped:
				case <-time.After(5 * time.Second):
				}
			}
		}
		return true
	}
	began := time.Now()
	apps := newApplications(t, onA, scaled(40, 400))
	var writing sync.WaitGroup
	writing.Go(func() { apps.happen(total/2, onA, onB) })
	r.await(total / 4)
	r.kill()
	r.start()
	writing.Wait()
	a.kill(t)
	killed := r.count()
	apps.happen(total, onB)
	r.await(int(apps.n.Load()))
	took := time.Since(began)

	r.mu.Lock()
	for _, id := range apps.ids {
		if r.last[id] == 0 {
			t.Errorf("nothing of %s has come", id)
		}
	}
	t.Logf("%d events of %d objects in %s, %d doubles, %d stalls; the first node was killed after %d", r.taken,
		len(apps.ids), took.Round(time.Millisecond), r.doubles, stalls.Load(), killed)
	r.mu.Unlock()
	if failed := onB.want(t, 200, "GET", "/v1/webhooks/"+hook+"/failures",
		nil); len(at[[]any](t, failed, "failures")) > 0 {
		t.Errorf("failed: %v", failed)
	}
	second.run(t, "rebuild", "--check", "--master-key-file", first.path("master.key")).fine(t)
}

func decodeSecret(t *testing.T, text string) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// How many events a second reach a receiver that answers at once, on one node.
func TestScaleWebhookThroughput(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, "--outbound-allow", "127.0.0.1")
		c := newClient(t, p, s.admin(t).Token)
		r := newHookReceiver(t)
		added := c.want(t, 200, "POST", "/v1/webhooks",
			object{"name": "Quick", "url": "http://" + r.address, "types": []string{"app.*"}})
		r.key = decodeSecret(t, at[string](t, added, "secret"))
		path := "/v1/webhooks/" + at[string](t, added, "webhookId")
		c.want(t, 200, "POST", path+"/_deactivate", object{})
		apps := newApplications(t, c, 40)
		apps.happen(scaled(400, 10_000), c)
		began := time.Now()
		c.want(t, 200, "POST", path+"/_reactivate", object{})
		r.await(int(apps.n.Load()))
		took := time.Since(began)
		t.Logf("%s: %d events in %s, %.0f a second", s.Engine, r.count(), took.Round(time.Millisecond),
			float64(r.count())/took.Seconds())
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.doubles > 0 && took < webhook.SendTime { // the server has given up none, and its lease lives longer
			t.Errorf("%d doubles", r.doubles)
		}
		if len(r.last) != len(apps.ids) {
			t.Errorf("events of %d objects", len(r.last))
		}
	})
}
