package oidc

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/oauth/refusal"
)

func TestWhatIsRefusedIsKeptForTheApplication(t *testing.T) {
	p, s := provider(t)
	p.grants.Refusals = refusal.NewBook(s.Now)
	handlers := p.Handlers()
	send := func(method, path string, pairs ...string) {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		address, body := path, io.Reader(strings.NewReader(form.Encode()))
		if method == http.MethodGet {
			address, body = path+"?"+form.Encode(), nil
		}
		r := httptest.NewRequest(method, address, body)
		r.Header.Set("Content-Type", formType)
		w := httptest.NewRecorder()
		if handlers[path].ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("%s %v: %d", path, pairs, w.Code)
		}
	}
	for _, client := range []string{"app_spa", "app_none", "usr_a"} {
		send("GET", authorizePath, "client_id", client, "redirect_uri", "https://me:"+hush+"@x.test/back?code="+hush)
		send("POST", tokenPath, "client_id", client, "grant_type", "authorization_code", "code", hush,
			"redirect_uri", "https://x.test/")
		send("POST", tokenPath, "client_id", client, "client_secret", hush, "grant_type", "authorization_code", "code", hush,
			"redirect_uri", "https://x.test/")
		send("GET", logoutPath, "client_id", client, "post_logout_redirect_uri", "https://y.test/#"+hush)
	}
	send("GET", logoutPath, "post_logout_redirect_uri", "https://y.test/")
	send("POST", revokePath, "client_id", "app_web", "client_secret", hush, "token", hush)
	for client, want := range map[string]string{
		"app_spa": "post_logout_redirect_uri https://y.test/#…, client_method , code_unknown , " +
			"redirect_uri https://x.test/back?…, ",
		"app_web": "client_secret , ",
		"app_tv":  "", "app_none": "", "usr_a": "", "": "",
	} {
		last, _, _ := p.grants.Refusals.Read(client)
		got := ""
		for _, n := range last {
			got += fmt.Sprintf("%s %s, ", n.Cause, n.Address)
		}
		if got != want {
			t.Errorf("%s: kept %q, want %q", client, got, want)
		}
	}
}
