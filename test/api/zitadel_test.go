package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// The names of ZITADEL's API are served where the operator wants it. That its client works is tried by make clients.
func TestTheNamesOfZITADEL(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := openWorld(t, testdb.New(t, testdb.SQLite), func(c *server.Config) { c.ZitadelV1 = on })
		for _, request := range []string{
			"PUT /auth/v1/users/me/profile", "PUT /management/v1/idps/idp_1/jwt_config",
			"POST /management/v1/users/usr_1/password", "POST /admin/v1/orgs/_setup", "PUT /admin/v1/idps/idp_1",
			"GET /management/v1/users/me", "POST /zitadel.management.v1.ManagementService/GetUserByID",
		} {
			verb, path, _ := strings.Cut(request, " ")
			r, err := http.NewRequestWithContext(t.Context(), verb, w.rest.base+path, strings.NewReader("{}"))
			testkit.Must(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+w.root.Token)
			resp, err := w.rest.client.Do(r)
			testkit.Must(t, err)
			defer resp.Body.Close()
			said, err := io.ReadAll(resp.Body)
			testkit.Must(t, err)
			want := "INVALID_REQUEST"
			switch {
			case !on:
				want = "UNKNOWN_PATH"
			case verb == "GET" || strings.Contains(path, "GetUserByID"):
				want = "NOT_SERVED_HERE"
			}
			if !strings.Contains(string(said), want) {
				t.Errorf("served %v: %s: %s, not %s", on, request, said, want)
			}
		}
	}
}
