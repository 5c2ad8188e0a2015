package hosted

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	kit "github.com/signet-idm/signet/test/browser"
)

// answered counts how the server has answered requests for tokens of the console, by code.
func (w *world) answered(operation string) map[string]int {
	codes := map[string]int{}
	for _, m := range regexp.MustCompile(`operation=`+operation+
		` .*?code=(\d+)`).FindAllStringSubmatch(w.log.String(), -1) {
		codes[m[1]]++
	}
	return codes
}

// What headers, cookies and policies are worth is what a real browser makes of them.
func TestAPageOfAnotherOriginGetsNoTokenOfTheConsole(t *testing.T) {
	chromium := kit.Start(t)
	w := open(t, server.Config{Listen: "localhost:0"})
	jo := w.person(w.org, true)
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/form":
			_, _ = fmt.Fprintf(rw,
				`<!DOCTYPE html><title>x</title><form method="post" enctype="text/plain" action="%s/console/token"><input name='{"returnTo":"' value='"}'><button>Win</button></form>`, w.url)
		default:
			_, _ = rw.Write([]byte("<!DOCTYPE html><title>x</title><h1>evil</h1>"))
		}
	}))
	t.Cleanup(evil.Close)
	_, port, err := net.SplitHostPort(evil.Listener.Addr().String())
	must(t, err)
	tab := chromium.Tab(t)
	tab.Open(w.url + "/login?to=%2Fconsole%2Fusers%3Fx%3Dy")
	tab.Fill("#loginName", jo.name)
	tab.Submit("button.primary")
	tab.Fill("#password", password)
	tab.Submit("button.primary")
	if at := tab.At(); at != w.url+"/console/users?x=y" {
		t.Fatalf("the sign-in led to %s", at)
	}
	// The console itself gets a token, and calls the API with it and not with the cookie.
	var got struct {
		Status      int
		Token       string
		REST, Web   int
		Cookie      int
		Markup, Src string
	}
	tab.Evaluate(`(async () => {
		const r = await fetch('/console/token', {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({returnTo: location.pathname + location.search})});
		const {token} = await r.json();
		const rest = await fetch('/v1/users/me', {headers: {authorization: 'Bearer ' + token}});
		const web = await fetch('/signet.v1.UserService/GetMyUser', {method: 'POST', body: new Uint8Array(5), headers: {authorization: 'Bearer ' + token, 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1'}});
		const cookie = await fetch('/v1/users/me', {credentials: 'include'});
		const refused = (act) => { try { act(); return ''; } catch (e) { return e.name; } };
		return {status: r.status, token, rest: rest.status, web: (await web.arrayBuffer()).byteLength, cookie: cookie.status,
			markup: refused(() => { document.body.innerHTML = '<b>x</b>'; }), src: refused(() => { document.createElement('script').src = '/console/assets/x.js'; })};
	})()`, &got)
	if got.Status != 200 || !strings.HasPrefix(got.Token, "sgn_con_") || got.REST != 200 || got.Web < 50 ||
		got.Cookie != 401 {
		t.Fatalf("the console itself gets %+v", got)
	}
	if got.Markup != "TypeError" || got.Src != "TypeError" {
		t.Errorf("script makes markup of text: %q %q", got.Markup, got.Src)
	}
	good := w.answered("/console/token")["200"]

	// The same site on another port gets the cookie sent along, which is what makes it the harder one of the two.
	for name, origin := range map[string]string{"the same site": "http://localhost:" + port,
		"another site": "http://evil.signet.test:" + port} {
		t.Run(name, func(t *testing.T) {
			tab.Open(origin + "/")
			tab.Complaints()
			var said []string
			tab.Evaluate(fmt.Sprintf(`(async () => {
				const to = %q, out = [];
				for (const path of ['/console/token', '/console/sign_out']) {
					for (const [mode, type] of [['cors', 'application/json'], ['cors', 'text/plain'], ['no-cors', 'text/plain'], ['no-cors', 'application/json'], ['cors', undefined]]) {
						try {
							const r = await fetch(to + path, {method: 'POST', mode, credentials: 'include', body: '{}', headers: type ? {'content-type': type} : {}});
							out.push(r.type + ' ' + r.status + ' ' + await r.text());
						} catch (e) { out.push('refused'); }
					}
					navigator.sendBeacon(to + path, new Blob(['{}'], {type: 'application/json'}));
					try { out.push((await fetch(to + path, {credentials: 'include'})).status + ''); } catch (e) { out.push('refused'); }
				}
				return out;
			})()`, w.url), &said)
			for _, s := range said {
				if s != "refused" && s != "opaque 0 " {
					t.Errorf("it reads %q", s)
				}
			}
			if len(said) != 12 {
				t.Errorf("it says %q", said)
			}
			// Neither the application nor the token can be framed.
			tab.Open(origin + "/frame")
			tab.Complaints()
			var framed string
			tab.Evaluate(fmt.Sprintf(`new Promise((resolve) => {
				const f = document.createElement('iframe');
				f.onload = () => { try { resolve(f.contentDocument === null ? 'closed' : f.contentDocument.body.textContent); } catch (e) { resolve('closed'); } };
				f.src = %q;
				document.body.append(f);
			})`, w.url+"/console/"), &framed)
			if framed != "closed" {
				t.Errorf("framed: %q", framed)
			}
			// it waits for the next one, and fails where there is none
			for !strings.Contains(tab.NextComplaint(), "frame-ancestors") {
				continue
			}
			tab.Open(origin + "/form")
			tab.Submit("button")
			if body := tab.Text("body"); strings.Contains(body, "sgn_con_") ||
				!strings.Contains(body, "NOT_FROM_THE_CONSOLE") {
				t.Errorf("a form gets %s", body)
			}
			tab.Complaints()
		})
	}
	codes := w.answered("/console/token")
	if codes["200"] != good || codes["403"] < 4 {
		t.Errorf("the server has answered %v, %d before", codes, good)
	}
	if w.answered("/console/sign_out")["200"] != 0 {
		t.Error("another origin signed the person out")
	}
	tab.Open(w.url + "/account")
	if title := tab.Text("h1"); title != "Your profile" {
		t.Errorf("the person is at %s", title)
	}
	if w.log.Has("sgn_con_") {
		t.Error("a token is in the log")
	}
}
