package federation

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

const (
	external = "https://signet.example"
	callback = external + "/login/idp/idp_1/callback"
	browser  = "this browser"
)

type options = map[string]any

// start runs the provider, and gives its address. It ends with the test.
func start(t *testing.T, o options) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat("../clients/node_modules/oidc-provider")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node or oidc-provider is not installed: run this through scripts/with-browser.sh")
		}
		t.Skip("node or oidc-provider is not installed: run this through scripts/with-browser.sh")
	}
	text, err := json.Marshal(o)
	must(t, err)
	for range 3 { // it is not ours, and has hung before it said anything
		if address := try(t, node, string(text)); address != "" {
			return address
		}
	}
	t.Fatal("oidc-provider did not start")
	return ""
}

// startLimit is how long the provider may take to say where it is. Machines that run tests are slow at times.
const startLimit = testkit.Patience

// try starts the provider; empty: it did not say where it is.
func try(t *testing.T, node, options string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, node, "provider.mjs", options)
	run.Stderr = io.Discard // it warns of what is fine in tests
	out, err := run.StdoutPipe()
	must(t, err)
	must(t, run.Start())
	t.Cleanup(func() {
		stop()
		_ = run.Wait()
	})
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	select {
	case address := <-said:
		return address
	case <-time.After(startLimit):
		stop()
		return ""
	}
}

// world is a Federation that can reach a provider on this machine, by a clock that begins with the real time.
type world struct {
	*upstream.Federation
	t    *testing.T
	s    *eventtest.Store
	keys *signing.Keys
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, failure.Kind, signing.Kind)
	s.Advance(time.Since(eventtest.Start))
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	t.Cleanup(client.Close)
	calls := outbound.NewCalls()
	keys := signing.New(s, s.Master, s.Now)
	return &world{
		t:    t,
		s:    s,
		keys: keys,
		Federation: upstream.New(upstream.Config{
			Client:      client,
			Keys:        outbound.NewKeySets(client, s.Now, calls),
			Calls:       calls,
			Master:      s.Master,
			Store:       s,
			Clock:       s.Now,
			ExternalURL: external,
			Signing:     keys,
		}),
	}
}

func (w *world) provider(address string, change func(o *idp.OIDC)) *upstream.Provider {
	o := &idp.OIDC{Issuer: address, ClientID: "signet", HasClientSecret: true}
	if change != nil {
		change(o)
	}
	w.s.GivenRow(event.Row{RowKey: idp.SecretRow("idp_1"),
		Value: w.s.Master.Wrap("idp client secret", []byte("a secret of the client"), []byte("idp_1"))})
	return &upstream.Provider{ID: "idp_1", Org: "org_a",
		Data: idp.Provider{Standing: idp.Standing{State: idp.Active}, OIDC: o, Changer: &idp.Changer{Version: 1}}}
}

// client is Signet as the provider knows it.
func client(more options) []options {
	c := options{"client_id": "signet", "client_secret": "a secret of the client", "redirect_uris": []string{callback}}
	maps.Copy(c, more)
	return []options{c}
}

// person signs in at the provider with a browser, and brings back its answer.
func (w *world) person(jar http.CookieJar, address, form string) upstream.Callback {
	w.t.Helper()
	visitor := &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base, err := url.Parse(address)
	must(w.t, err)
	for range 12 {
		if strings.HasPrefix(address, callback) {
			u, err := url.Parse(address)
			must(w.t, err)
			return upstream.Callback{Provider: "idp_1", Browser: browser, Query: u.Query()}
		}
		var answer *http.Response
		if strings.Contains(address, "/test/interaction/") {
			answer, err = visitor.Post(address, "application/x-www-form-urlencoded", strings.NewReader(form))
		} else {
			answer, err = visitor.Get(address)
		}
		must(w.t, err)
		body, err := io.ReadAll(answer.Body)
		must(w.t, err)
		must(w.t, answer.Body.Close())
		to := answer.Header.Get("Location")
		if to == "" {
			return w.posted(answer, string(body))
		}
		next, err := base.Parse(to)
		must(w.t, err)
		address = next.String()
	}
	w.t.Fatal("the provider redirects for ever")
	return upstream.Callback{}
}

var input = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)

// posted reads the form that a provider has the browser post.
func (w *world) posted(answer *http.Response, body string) upstream.Callback {
	w.t.Helper()
	if !strings.Contains(body, callback) {
		w.t.Fatalf("the provider answered with status %d: %s", answer.StatusCode, body)
	}
	form := url.Values{}
	for _, field := range input.FindAllStringSubmatch(body, -1) {
		form.Set(field[1], field[2])
	}
	return upstream.Callback{Provider: "idp_1", Browser: browser, Form: form}
}

func (w *world) signIn(p *upstream.Provider, again bool, jar http.CookieJar) (upstream.SignedIn, error) {
	w.t.Helper()
	address, err := w.Start(w.t.Context(), p, upstream.Attempt{Browser: browser, Return: "back", Again: again})
	must(w.t, err)
	cb := w.person(jar, address, "login=jo")
	return w.Finish(w.t.Context(), p, cb)
}

func newJar(t *testing.T) http.CookieJar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return jar
}

func TestSigningInThroughAProviderThatNobodyHereWrote(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		client  options
		change  func(o *idp.OIDC)
	}{
		"as it is": {nil, nil, nil},
		"the secret in the body": {nil, options{"token_endpoint_auth_method": "client_secret_post"},
			func(o *idp.OIDC) { o.ClientAuth = idp.SecretInBody }},
		"no secret": {nil, options{"token_endpoint_auth_method": "none", "client_secret": nil},
			func(o *idp.OIDC) { o.HasClientSecret = false }},
		"no userinfo":              {options{"noUserinfo": true}, nil, nil},
		"no iss in the answer":     {options{"issOff": true}, nil, nil},
		"an answer that is posted": {nil, nil, func(o *idp.OIDC) { o.FormPost = true }},
		"posted, and no iss in it": {options{"issOff": true}, nil, func(o *idp.OIDC) { o.FormPost = true }},
		"a key instead of a secret": {nil,
			options{"token_endpoint_auth_method": "private_key_jwt", "client_secret": nil},
			func(o *idp.OIDC) { o.ClientAuth = idp.PrivateKeyJWT }},
		"an e-mail that is not known": {options{"claims": options{"email_verified": false}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			known := maps.Clone(c.client)
			if known["token_endpoint_auth_method"] == "private_key_jwt" {
				set, _, err := w.keys.KeySet(t.Context())
				must(t, err)
				known["jwks"], known["token_endpoint_auth_signing_alg"] = set, "ES256"
			}
			of := client(known)
			maps.DeleteFunc(of[0], func(_ string, v any) bool { return v == nil })
			o := options{"clients": of}
			maps.Copy(o, c.options)
			p := w.provider(start(t, o), c.change)
			if found := w.Check(t.Context(), p); len(found) > 0 {
				t.Errorf("a check of it finds %+v", found)
			}
			got, err := w.signIn(p, false, newJar(t))
			must(t, err)
			who := got.Identity
			if who.Issuer != p.Data.OIDC.Issuer || who.Subject != "jo" || who.UserName != "jo" ||
				who.FirstName != "Jo" || who.LastName != "Doe" || who.Email != "jo@example.org" ||
				who.EmailVerified != (name != "an e-mail that is not known") || got.Return != "back" || who.Fresh {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAProviderIsAskedToProveAgain(t *testing.T) {
	w := newWorld(t)
	p := w.provider(start(t, options{"clients": client(nil)}), nil)
	jar := newJar(t)
	for i, again := range []bool{false, true} {
		got, err := w.signIn(p, again, jar)
		must(t, err)
		if got.Identity.Fresh != again {
			t.Errorf("time %d: got %+v", i+1, got.Identity)
		}
	}
}

func TestKeysThatAProviderRotates(t *testing.T) {
	w := newWorld(t)
	address := start(t, options{"clients": client(nil)})
	p := w.provider(address, nil)
	_, err := w.signIn(p, false, newJar(t))
	must(t, err)
	answer, err := http.Get(address + "/test/rotate")
	must(t, err)
	must(t, answer.Body.Close())
	w.s.Advance(31 * time.Second)
	_, err = w.signIn(p, false, newJar(t))
	must(t, err)
}

func TestWhatGoesWrongAtAProvider(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		client  options
		form    string
		started bool
		check   string
		found   string // by Check
	}{
		"another issuer": {options{"issuer": "https://other.example"}, nil, "login=jo", false, failure.Issuer,
			failure.Issuer},
		"a wrong secret": {nil, options{"client_secret": "another secret of the client"}, "login=jo", true,
			failure.Client, failure.Client},
		"the person says no": {nil, nil, "cancel=1", true, failure.Denied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := options{"clients": client(c.client)}
			maps.Copy(o, c.options)
			p := w.provider(start(t, o), nil)
			found := ""
			for _, problem := range w.Check(t.Context(), p) {
				found = problem.Check
			}
			if found != c.found {
				t.Errorf("a check finds %q, want %q", found, c.found)
			}
			address, err := w.Start(t.Context(), p, upstream.Attempt{Browser: browser})
			if c.started {
				must(t, err)
				cb := w.person(newJar(t), address, c.form)
				_, err = w.Finish(t.Context(), p, cb)
			}
			failed, ok := err.(*upstream.Failure)
			if !ok || failed.Check != c.check {
				t.Errorf("got %v, want %s", err, c.check)
			}
		})
	}
}
