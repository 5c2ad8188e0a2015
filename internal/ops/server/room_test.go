package server

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/transport/web"
)

// TestWithoutRoomEveryEntryPointSaysWhenToComeAgain: what reads bodies says that there was no room, and takes it for
// nobody's mistake.
func TestWithoutRoomEveryEntryPointSaysWhenToComeAgain(t *testing.T) {
	s := opened(t, Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "data")}, Listen: "127.0.0.1:0"})
	front := s.Handler().(*web.Front)
	for _, tt := range []struct{ path, contentType string }{
		{"/v1/sessions", "application/json"},
		{"/oauth/token", "application/x-www-form-urlencoded"},
		{"/oauth/introspect", "application/x-www-form-urlencoded"},
		{"/oauth/device_authorization", "application/x-www-form-urlencoded"},
		{"/oauth/par", "application/x-www-form-urlencoded"},
		{"/oauth/authorize", "application/x-www-form-urlencoded"},
		{"/login", "application/x-www-form-urlencoded"},
		{"/forgot", "application/x-www-form-urlencoded"},
		{"/account", "application/x-www-form-urlencoded"},
	} {
		for want, set := range map[int]func(){
			http.StatusServiceUnavailable: func() { front.Budget.Here, front.Budget.OfNetwork = 1, 0 },
			http.StatusTooManyRequests:    func() { front.Budget.Here, front.Budget.OfNetwork = 0, 1 },
		} {
			set()
			r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader("a=b"))
			r.Header.Set("Content-Type", tt.contentType)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if w.Code != want || w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: %d, come again in %q: %.200s", tt.path, w.Code, w.Header().Get("Retry-After"), w.Body)
			}
		}
	}
}
