package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestATokenGoesWhereItWasSentOnly: a redirect to another address, even on the same host, is not followed.
func TestATokenGoesWhereItWasSentOnly(t *testing.T) {
	got := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got++ }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	ctx, header := Server{Token: "secret", Org: "org_1"}.Call(t.Context())
	if header.Get("Authorization") != "Bearer secret" || header.Get("X-Service-Orgid") != "org_1" {
		t.Errorf("the headers are %v", header)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := NewHTTPClient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || got != 0 {
		t.Errorf("%d, and the other server was called %d times", resp.StatusCode, got)
	}
}
