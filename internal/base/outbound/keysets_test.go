package outbound

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/test/testkit"
)

// publisher is a server with a key set that the test changes.
type publisher struct {
	*side
	sets *KeySets

	mu      sync.Mutex
	now     time.Time
	body    string
	cache   string
	status  int
	fetched int
	hold    chan struct{} // answers wait for it; nil: they do not
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), status: http.StatusOK}
	p.side = newSide(t, func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		p.fetched++
		body, cache, status, hold := p.body, p.cache, p.status, p.hold
		p.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.Header().Set("Cache-Control", cache)
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	p.sets = NewKeySets(p.client(t, func(c *Config) { c.Timeout = time.Hour }), func() time.Time {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.now
	}, NewCalls())
	return p
}

func (p *publisher) publish(keys ...any) {
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	p.set(func() { p.body, p.status = string(text), http.StatusOK })
}

func (p *publisher) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *publisher) after(d time.Duration) { p.set(func() { p.now = p.now.Add(d) }) }

// find counts the keys under an id, and the questions the server has been asked so far.
func (p *publisher) find(t *testing.T, keyID string, want, wantFetched int) {
	t.Helper()
	keys, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", "/keys"), keyID)
	if err != nil {
		t.Errorf("looking for %q: %v", keyID, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(keys) != want || p.fetched != wantFetched {
		t.Errorf("found %d keys of %q after %d questions, want %d after %d", len(keys), keyID, p.fetched,
			want, wantFetched)
	}
}

func ecKey(id string) jose.JSONWebKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return jose.JSONWebKey{Key: k.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"}
}

func TestAKeySetIsAskedForOnceInItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		cache string
		fresh time.Duration
	}{
		"said nothing":        {"", defSetAge},
		"said how long":       {"public, max-age=1800", 30 * time.Minute},
		"said very short":     {"max-age=1", minSetAge},
		"said not to keep it": {"no-store", minSetAge},
		"said very long":      {"max-age=99999999", maxSetAge - staleFor},
		"said nonsense":       {"max-age=soon", defSetAge},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			p.cache = c.cache
			p.publish(ecKey("a"))
			p.find(t, "a", 1, 1)
			p.after(c.fresh - time.Second)
			p.find(t, "a", 1, 1)
			p.after(time.Second)
			p.find(t, "a", 1, 2)
		})
	}
}

func TestAnUnknownKeyMakesItAskAgainButNotAllTheTime(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	p.find(t, "a", 1, 1)
	p.publish(ecKey("a"), ecKey("b"))
	p.find(t, "b", 0, 1)
	p.after(refetchAfter)
	p.find(t, "b", 1, 2)
	p.find(t, "", 2, 2)
	for i := range 20 {
		p.find(t, fmt.Sprint("made up ", i), 0, 2)
	}
	p.after(refetchAfter)
	for i := range 20 {
		p.find(t, fmt.Sprint("made up ", i), 0, 3)
	}
}

func TestAServerThatIsAwayIsForgivenForAWhile(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	p.find(t, "a", 1, 1)
	p.set(func() { p.status = http.StatusBadGateway })
	p.after(defSetAge)
	p.find(t, "a", 1, 2)
	p.find(t, "a", 1, 2) // it is not asked all the time
	p.after(maxSetAge - defSetAge)
	for range 3 {
		if keys, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", "/keys"),
			"a"); !errors.Is(err, ErrFailed) || keys != nil {
			t.Errorf("keys that nobody has confirmed for too long still count: %v, %v", keys, err)
		}
	}
	if p.fetched != 3 {
		t.Errorf("it was asked %d times", p.fetched)
	}
	p.publish(ecKey("a"))
	p.after(refetchAfter)
	p.find(t, "a", 1, 4)
}

// TestASetThatMayBeKeptLongIsThereForAWhileWithoutItsServer: however long it may be kept, there is time to bring the
// server back.
func TestASetThatMayBeKeptLongIsThereForAWhileWithoutItsServer(t *testing.T) {
	p := newPublisher(t)
	p.cache = "max-age=99999999"
	p.publish(ecKey("a"))
	p.find(t, "a", 1, 1)
	p.set(func() { p.status = http.StatusBadGateway })
	p.after(maxSetAge - staleFor)
	p.find(t, "a", 1, 2)
	p.after(staleFor - time.Second)
	p.find(t, "a", 1, 3)
	p.after(time.Second)
	if _, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", "/keys"), "a"); !errors.Is(err, ErrFailed) {
		t.Errorf("got %v", err)
	}
}

func TestAKeyThatWasTakenOutIsGone(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"), ecKey("b"))
	p.find(t, "a", 1, 1)
	p.publish(ecKey("b"))
	p.after(defSetAge)
	p.find(t, "b", 1, 2)
	p.find(t, "a", 0, 2)
}

func TestManyWhoAskAtOnceMakeOneQuestion(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	p.hold = make(chan struct{})
	address := p.at("example.com", "/keys")
	gone, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := p.sets.Find(gone, "org_a", address, "a")
		first <- err
	}()
	leave()
	if err := testkit.Receive(t, first, "who left has an answer"); !errors.Is(err, ErrFailed) && err != nil {
		t.Errorf("who left got %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if keys, err := p.sets.Find(t.Context(), "org_a", address, "a"); err != nil || len(keys) != 1 {
				t.Errorf("got %v, %v", keys, err)
			}
		})
	}
	close(p.hold)
	all.Wait()
	p.find(t, "a", 1, 1)
}

func TestWhatIsInAKeySet(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak := map[string]any{"kty": "RSA", "kid": "a", "e": "AQAB", "n": strings.Repeat("x", 170)}
	costly := map[string]any{"kty": "RSA", "kid": "a", "e": "AQAB", "n": strings.Repeat("x", 2*maxRSA/6)}
	strong, err := rsa.GenerateKey(rand.Reader, minRSA)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  any
		want int
	}{
		"a key for signatures":      {ecKey("a"), 1},
		"one that is long enough":   {jose.JSONWebKey{Key: strong.Public(), KeyID: "a"}, 1},
		"a private one":             {jose.JSONWebKey{Key: private, KeyID: "a"}, 0},
		"a symmetric one":           {jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "a"}, 0},
		"one for encryption":        {jose.JSONWebKey{Key: private.Public(), KeyID: "a", Use: "enc"}, 0},
		"one that is too short":     {weak, 0},
		"one that is too long":      {costly, 0},
		"one of an unknown kind":    {map[string]any{"kty": "XYZ", "kid": "a"}, 0},
		"one that is no key at all": {17, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			p.publish(c.key, ecKey("b"))
			p.find(t, "b", 1, 1)
			p.find(t, "a", c.want, 1)
		})
	}
	for name, body := range map[string]string{"nothing": "", "no JSON": "<html>secret</html>",
		"something else": `{"secret": 1}`, "no list": `{"keys": "secret"}`} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			p.body = body
			_, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", "/"), "a")
			if !errors.Is(err, ErrFailed) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
	p := newPublisher(t)
	var many []any
	for range maxSetKeys + 5 {
		many = append(many, ecKey("a"))
	}
	p.publish(many...)
	p.find(t, "a", maxSetKeys, 1)
}

func TestOnlySoManySetsAreKept(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	find := func(i int) {
		t.Helper()
		if _, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", fmt.Sprint("/", i)), "a"); err != nil {
			t.Fatal(err)
		}
		p.after(time.Millisecond)
	}
	for i := range maxSets {
		find(i)
	}
	find(0) // used again, so it is not the oldest
	find(maxSets)
	if len(p.sets.sets) != maxSets {
		t.Errorf("%d are kept", len(p.sets.sets))
	}
	before := p.fetched
	if find(0); p.fetched != before {
		t.Error("the one that was used last was dropped")
	}
	if find(1); p.fetched != before+1 {
		t.Error("the one that was not used the longest is still there")
	}
}

// stall lets calls that come now wait until resume is called.
func (p *publisher) stall() (resume func()) {
	stalled := make(chan struct{})
	p.set(func() { p.hold = stalled })
	return func() { close(stalled) }
}

// awaitCalls waits until so many calls are under way or wait.
func (p *publisher) awaitCalls(t *testing.T, n int) {
	t.Helper()
	testkit.Await(t, fmt.Sprint(n, " calls"), func() bool {
		held, waiting := p.sets.calls.Load()
		return held+waiting >= n
	})
}

// TestAnOrganizationWhoseKeySetsStallKeepsNobodyElseWaiting: it has half of the calls at most.
func TestAnOrganizationWhoseKeySetsStallKeepsNobodyElseWaiting(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	resume := p.stall()
	var all sync.WaitGroup
	for i := range maxCalls {
		all.Go(func() {
			if _, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", fmt.Sprint("/a", i)), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	p.awaitCalls(t, maxCalls)
	if held, _ := p.sets.calls.Load(); held != maxCalls/2 {
		t.Errorf("%d calls are under way", held)
	}
	p.set(func() { p.hold = nil })
	if keys, err := p.sets.Find(t.Context(), "org_b", p.at("example.com", "/b"), "a"); err != nil || len(keys) != 1 {
		t.Errorf("another organization: %v, %v", keys, err)
	}
	resume()
	all.Wait()
}

// TestWhoNamesTheKeySetOfAnotherOrganizationKeepsItWaitingForNothing: it fetches the set within its own share.
func TestWhoNamesTheKeySetOfAnotherOrganizationKeepsItWaitingForNothing(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	resume := p.stall()
	var all sync.WaitGroup
	ask := func(path, keyID string) {
		all.Go(func() {
			if _, err := p.sets.Find(t.Context(), "org_a", p.at("example.com", path), keyID); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range maxCalls / 2 {
		ask(fmt.Sprint("/a", i), "a")
	}
	p.awaitCalls(t, maxCalls/2)
	ask("/b", "made up")
	p.awaitCalls(t, maxCalls/2+1)
	p.set(func() { p.hold = nil })
	soon, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, keyID := range []string{"a", "made up", "a"} { // at first, and while its own has been fetched
		if _, err := p.sets.Find(soon, "org_b", p.at("example.com", "/b"), keyID); err != nil {
			t.Errorf("the key %q of another organization: %v", keyID, err)
		}
	}
	resume()
	all.Wait()
}

// TestKeysThatAreKnownAreThereWhileOthersAreAskedFor: whoever makes up the name of a key makes nobody wait.
func TestKeysThatAreKnownAreThereWhileOthersAreAskedFor(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	p.find(t, "a", 1, 1)
	p.after(refetchAfter)
	resume := p.stall()
	var all sync.WaitGroup
	all.Go(func() { p.find(t, "made up", 0, 2) })
	p.awaitCalls(t, 1)
	soon, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if keys, err := p.sets.Find(soon, "org_a", p.at("example.com", "/keys"), "a"); err != nil || len(keys) != 1 {
		t.Errorf("got %v, %v", keys, err)
	}
	resume()
	all.Wait()
}

func TestAnOrganizationWithManyKeySetsPushesOutItsOwn(t *testing.T) {
	p := newPublisher(t)
	p.publish(ecKey("a"))
	find := func(org string, i int) {
		t.Helper()
		if _, err := p.sets.Find(t.Context(), org, p.at("example.com", fmt.Sprint("/", org, i)), "a"); err != nil {
			t.Fatal(err)
		}
		p.after(time.Millisecond)
	}
	find("org_b", 0)
	for i := range maxSets + 10 {
		find("org_a", i)
	}
	before := p.fetched
	if find("org_b", 0); p.fetched != before {
		t.Error("what another organization uses was dropped")
	}
}

func TestAKeySetInsideIsRefused(t *testing.T) {
	p := newPublisher(t)
	if _, err := p.sets.Find(t.Context(), "org_a", p.at("inside.example.com", "/"), "a"); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}
