package metrics

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testkit"
)

// A stranger sends what nobody has sent before: methods, paths, hosts, types, names, tokens, ids. Nothing of it gets
// into the metrics, and series that come with the first of each kind are all there are.
func TestAStrangerCannotMakeSeriesGrow(t *testing.T) {
	n := start(t, server.Config{ZitadelV1: true, TrustedProxies: []string{"127.0.0.0/8"}})
	const mark = "stranger"
	round := func() int {
		word := mark + strings.ToLower(rand.Text())
		id := "usr_" + strings.ToLower(rand.Text())
		send := func(change func(*http.Request)) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+n.Addr().String()+"/",
				strings.NewReader("{}"))
			testkit.Must(t, err)
			change(r)
			resp, err := http.DefaultClient.Do(r)
			testkit.Must(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		for _, path := range []string{"/" + word, "/v1/" + word, "/v1/users/" + id, "/v1/users/" + word + "/" + word,
			"/signet.v1.UserService/" + word, "/" + word + ".v1." + word + "/" + word, "/login/" + word,
			"/login/idp/" + word, "/console/" + word + "/" + word + ".js", "/account/" + word, "/oauth/" + word,
			"/oauth/authorize?client_id=" + word, "/.well-known/" + word, "/auth/v1/" + word, "/%2e%2e/" + word,
			"/v1/users/me", "/v1/sessions", "/signet.v1.SessionService/CreateSession", "/oauth/token"} {
			for _, method := range []string{"GET", "POST", "OPTIONS", strings.ToUpper(word)} {
				for _, kind := range []string{"application/json", "application/grpc", "application/grpc-web",
					"application/grpc+" + word, "text/" + word} {
					send(func(r *http.Request) {
						r.Method, r.URL.Path, r.URL.RawQuery = method, path, ""
						if before, query, found := strings.Cut(path, "?"); found {
							r.URL.Path, r.URL.RawQuery = before, query
						}
						r.Host = word + ".example.org"
						r.Header.Set("Content-Type", kind)
						r.Header.Set("Content-Encoding", []string{"identity", word}[len(method)%2])
						r.Header.Set("Accept", "text/html")
						r.Header.Set("X-Request-Id", word)
						r.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", len(path)))
						r.Header.Set("X-Forwarded-Proto", word)
						r.Header.Set("User-Agent", word)
						r.Header.Set("Authorization", "Bearer "+word)
						r.Header.Set("Grpc-Timeout", word)
					})
				}
			}
		}
		s := n.scrape(t)
		for _, one := range s.series {
			if strings.Contains(strings.ToLower(one.text), mark) || strings.Contains(one.text, id) ||
				strings.Contains(one.text, "192.0.2.") {
				t.Fatalf("what a stranger has sent is in %s", one.text)
			}
		}
		return len(slices.DeleteFunc(s.series,
			func(one series) bool { return !strings.HasPrefix(one.name, "signet_") }))
	}
	first := round()
	for range 2 {
		if again := round(); again != first {
			t.Errorf("there are %d series after %d", again, first)
		}
	}
	t.Logf("%d series", first)
	if first < 300 || first > 2500 {
		t.Errorf("there are %d series", first)
	}
}
