package app_test

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
)

// accepts tells whether an application of a type may have a redirect URI.
func accepts(t app.Type, uri string) bool {
	return len(app.Settings{RedirectURIs: []string{uri}}.Violations(t)) == 0
}

func TestWhichAddressesAnApplicationMayHave(t *testing.T) {
	const (
		nobody  = ""
		all     = "web spa native"
		devices = "native"
	)
	for _, c := range []struct{ uri, who string }{
		{"https://app.example.org/callback", all},
		{"https://app.example.org", all},
		{"https://app.example.org:8443/a/b?tenant=1&x=%20", all},
		{"https://203.0.113.7/cb", all},
		{"https://[2001:db8::1]:8443/cb", all},
		{"HTTPS://App.Example.org/CB", all},
		{"https://under_score.example/cb", all},
		{"http://localhost/cb", all},
		{"http://LOCALHOST:3000/cb", all},
		{"http://127.0.0.1:3000/cb", all},
		{"http://127.255.255.254/cb", all},
		{"http://[::1]:3000/cb", all},

		{"com.example.app:/callback", devices},
		{"com.example.app://callback", devices},
		{"com.example.app:callback", devices},
		{"Com.Example.App:/callback", devices},
		{"com.example.app://callback:8080/x?y=1", devices},

		{"http://app.example.org/cb", nobody},
		{"HTTP://app.example.org/cb", nobody},
		{"http://localhost.example.org/cb", nobody},
		{"http://localhost./cb", nobody},
		{"http://127.0.0.1.example.org/cb", nobody},
		{"http://127.1/cb", nobody},
		{"http://2130706433/cb", nobody},
		{"http://0x7f000001/cb", nobody},
		{"http://0.0.0.0/cb", nobody},
		{"http://128.0.0.1/cb", nobody},
		{"http://[::ffff:127.0.0.1]/cb", nobody},
		{"http://[::1%25lo]/cb", nobody},
		{"http://[::2]/cb", nobody},

		{"https://app.example.org/cb#", nobody},
		{"https://app.example.org/cb#fragment", nobody},
		{"https://app.example.org/*", nobody},
		{"https://*.example.org/cb", nobody},
		{"https://app.example.org/cb?x=*", nobody},
		{"https://user@app.example.org/cb", nobody},
		{"https://user:word@app.example.org/cb", nobody},
		{"https://@app.example.org/cb", nobody},
		{"com.example.app://user@callback", nobody},

		{"", nobody},
		{"/callback", nobody},
		{"//app.example.org/cb", nobody},
		{"app.example.org/cb", nobody},
		{"https:", nobody},
		{"https:app.example.org/cb", nobody},
		{"https:/app.example.org/cb", nobody},
		{"https:///cb", nobody},
		{"https://:443/cb", nobody},
		{"https://app.example.org:/cb", nobody},
		{"https://app.example.org:0/cb", nobody},
		{"https://app.example.org:65536/cb", nobody},
		{"https://app.example.org:a/cb", nobody},
		{"https://[::1/cb", nobody},
		{"https://[127.0.0.1]/cb", nobody},
		{"https://a(b)/cb", nobody},
		{"https://%61pp.example.org/cb", nobody},
		{"https://%C3%A4.example/cb", nobody},
		{"com.example.app:", nobody},
		{"com.example.app://", nobody},
		{"1app:/cb", nobody},
		{"com.example.app:/cb#", nobody},
		{"com.example.app:/*", nobody},

		{"myapp:/cb", nobody},
		{"my+app-1.2:/cb", nobody},
		{"ms-msdt:/id", nobody},
		{"MS-MSDT:/id", nobody},
		{"search-ms:query=x", nobody},
		{"ssh://app.example.org/cb", nobody},
		{"x-apple.systempreferences:com.apple.preference.security", nobody},
		{"microsoft.windows.camera:/cb", nobody},

		{" https://app.example.org/cb", nobody},
		{"https://app.example.org/cb ", nobody},
		{"https://app.example.org/a b", nobody},
		{"https://app.example.org/\tcb", nobody},
		{"https://app.example.org/\ncb", nobody},
		{`https://app.example.org\@evil.example/cb`, nobody},
		{`https:\\app.example.org\cb`, nobody},
		{"https://app.example.org/ä", nobody},
		{"https://äpp.example.org/cb", nobody},
		{"https://app.example.org/%", nobody},
		{"https://app.example.org/%4", nobody},
		{"https://app.example.org/%zz", nobody},
		{"https://app.example.org/cb?%", nobody},
		{"https://app.example.org/cb?%z1", nobody},
		{"https://app.example.org/cb?%1z", nobody},
		{`https://app.example.org/"`, nobody},
		{"https://app.example.org/<a>", nobody},
		{"https://app.example.org/{a}", nobody},

		{"javascript:alert(1)", nobody},
		{"JavaScript://app.example.org/%0aalert(1)", nobody},
		{"data:text/html,x", nobody},
		{"DATA:text/html,x", nobody},
		{"vbscript:x", nobody},
		{"VBScript:x", nobody},
		{"file:///etc/passwd", nobody},
		{"FILE:///etc/passwd", nobody},
		{"blob:https://app.example.org/1", nobody},
		{"filesystem:https://app.example.org/1", nobody},
		{"about:blank", nobody},
		{"view-source:https://app.example.org/", nobody},
		{"intent://cb", nobody},
		{"mailto:jo@example.org", nobody},
		{"tel:1", nobody},
		{"ftp://app.example.org/cb", nobody},
		{"ws://app.example.org/cb", nobody},
		{"urn:ietf:wg:oauth:2.0:oob", nobody},
	} {
		for _, typ := range []app.Type{app.Web, app.SPA, app.Native} {
			if got, want := accepts(typ, c.uri), slices.Contains(strings.Fields(c.who), string(typ)); got != want {
				t.Errorf("%s accepts %q: %t", typ, c.uri, got)
			}
		}
	}
}

func TestOnlyWhatWasRegisteredIsAllowed(t *testing.T) {
	registered := []string{"https://app.example.org/cb", "https://app.example.org/cb?x=1", "http://127.0.0.1/cb",
		"http://localhost:3000/cb", "http://[::1]/cb?y=2",
		"https://127.0.0.1/tls", "com.example.app:/cb", "http://intranet.example/cb",
		// some that nobody could register today
		"myapp:/cb", "ssh://app.example.org/cb", "search-ms:query=x", "javascript:alert(1)"}
	for _, c := range []struct {
		uri          string
		web, devices bool
	}{
		{"https://app.example.org/cb", true, true},
		{"https://app.example.org/cb?x=1", true, true},
		{"http://127.0.0.1/cb", true, true},
		{"com.example.app:/cb", false, true},

		{"http://127.0.0.1:1/cb", false, true},
		{"http://127.0.0.1:65535/cb", false, true},
		{"http://localhost/cb", false, true},
		{"http://localhost:4000/cb", false, true},
		{"http://[::1]:4000/cb?y=2", false, true},

		{"myapp:/cb", false, false},
		{"ssh://app.example.org/cb", false, false},
		{"search-ms:query=x", false, false},
		{"javascript:alert(1)", false, false},
		{"http://intranet.example/cb", false, false},

		{"", false, false},
		{"https://app.example.org/cb/", false, false},
		{"https://app.example.org/CB", false, false},
		{"https://APP.example.org/cb", false, false},
		{"https://app.example.org:443/cb", false, false},
		{"https://app.example.org/cb?x=2", false, false},
		{"https://app.example.org/cb?", false, false},
		{"https://app.example.org/cb#a", false, false},
		{"https://app.example.org/x/../cb", false, false},
		{"https://app.example.org/%63b", false, false},
		{"http://app.example.org/cb", false, false},
		{"https://127.0.0.1:8443/tls", false, false},
		{"http://intranet.example:1/cb", false, false},
		{"http://127.0.0.2:1/cb", false, false},
		{"http://127.0.0.1:1/cb/x", false, false},
		{"http://127.0.0.1:1/cb?x", false, false},
		{"http://127.0.0.1:1/", false, false},
		{"http://127.0.0.1:0/cb", false, false},
		{"http://127.0.0.1:65536/cb", false, false},
		{"http://127.0.0.1:/cb", false, false},
		{"http://127.0.0.1:x/cb", false, false},
		{"http://127.0.0.1:1:2/cb", false, false},
		{"http://127.0.0.1:1/cb#", false, false},
		{"http://127.0.0.1:1@evil.example/cb", false, false},
		{"http://evil.example:1@127.0.0.1/cb", false, false},
		{"http://127.0.0.1.evil.example:1/cb", false, false},
		{`http://127.0.0.1:1\@evil.example/cb`, false, false},
		{"HTTP://127.0.0.1:1/cb", false, false},
		{"https://localhost:3000/cb", false, false},
		{"http://LOCALHOST:3000/cb", false, false},
		{"http://[::1]:4000/cb", false, false},
		{"http://[::2]:4000/cb?y=2", false, false},
		{"com.example.app:/cb/", false, false},
		{"COM.example.app:/cb", false, false},
	} {
		for typ, want := range map[app.Type]bool{app.Web: c.web, app.SPA: c.web, app.Native: c.devices} {
			if got := app.RedirectAllowed(&app.App{Type: typ, Settings: app.Settings{RedirectURIs: registered}},
				c.uri); got != want {
				t.Errorf("%s: people are sent to %q: %t", typ, c.uri, got)
			}
			if got := app.PostLogoutAllowed(&app.App{Type: typ, Settings: app.Settings{PostLogoutURIs: registered}},
				c.uri); got != want {
				t.Errorf("%s: people who sign out are sent to %q: %t", typ, c.uri, got)
			}
			if app.RedirectAllowed(&app.App{Type: typ, Settings: app.Settings{PostLogoutURIs: registered}}, c.uri) ||
				app.PostLogoutAllowed(&app.App{Type: typ, Settings: app.Settings{RedirectURIs: registered}}, c.uri) {
				t.Errorf("%s: the lists are mixed up for %q", typ, c.uri)
			}
		}
	}
}

// FuzzRedirect looks for an address that leads elsewhere than what was registered, in the eyes of another parser.
func FuzzRedirect(f *testing.F) {
	for _, uri := range []string{"https://app.example.org/cb", "http://127.0.0.1:1/cb", "http://[::1]:1/cb",
		"http://localhost/cb?x=%41", "com.example.app:/cb",
		"http://127.0.0.1:1@evil.example/cb", `http://localhost:1\@evil.example/cb`, "javascript:alert(1)",
		"http://127.0.0.1:99999/cb"} {
		f.Add("http://127.0.0.1/cb", uri)
		f.Add(uri, uri)
	}
	f.Fuzz(func(t *testing.T, registered, uri string) {
		native := &app.App{Type: app.Native, Settings: app.Settings{RedirectURIs: []string{registered}}}
		if accepts(app.Native, registered) {
			u, err := url.Parse(registered)
			if err != nil || !u.IsAbs() || u.User != nil || strings.ContainsAny(registered, "#*\\ \t\r\n") {
				t.Fatalf("%q was accepted", registered)
			}
			if u.Scheme != "https" && (u.Scheme != "http" || !loops(u.Hostname())) && !strings.Contains(u.Scheme, ".") {
				t.Fatalf("%q was accepted", registered)
			}
			if web := accepts(app.Web, registered); web != (u.Scheme == "http" || u.Scheme == "https") {
				t.Fatalf("on the web %q: %t", registered, web)
			}
		}
		if registered == uri || !app.RedirectAllowed(native, uri) {
			return
		}
		a, errA := url.Parse(registered)
		b, errB := url.Parse(uri)
		if errA != nil || errB != nil || b.Scheme != "http" || !loops(b.Hostname()) || b.User != nil ||
			b.Fragment != "" || a.Hostname() != b.Hostname() ||
			a.EscapedPath() != b.EscapedPath() || a.RawQuery != b.RawQuery {
			t.Fatalf("%q was registered, and people are sent to %q", registered, uri)
		}
		if app.RedirectAllowed(&app.App{Type: app.Web, Settings: native.Settings}, uri) {
			t.Fatalf("on the web, %q was registered, and people are sent to %q", registered, uri)
		}
	})
}

func loops(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
