package rpc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
)

func TestWhatAReadIsAboutIsKnownBeforeTheCredential(t *testing.T) {
	type begun struct{}
	var told []string
	l := newLab(t, func(c *Config) {
		c.Ahead = func(ctx context.Context, ids []string) context.Context {
			told = slices.Clone(ids)
			return context.WithValue(ctx, begun{}, true)
		}
		c.Authenticate = func(ctx context.Context, token string) (*access.Caller, error) {
			if len(told) > 0 && ctx.Value(begun{}) == nil {
				t.Error("the credential is looked for without what was begun")
			}
			return lookup(ctx, token)
		}
	})
	for _, tt := range []struct {
		name, verb, path, token, body string
		want                          []string
	}{
		{"a read", "GET", "/v1/users/usr_1", "owner", "", []string{"usr_1"}},
		{"a read with a credential that does not count", "GET", "/v1/users/usr_1", "wrong", "", []string{"usr_1"}},
		{"a read that names nothing", "GET", "/v1/users/me", "owner", "", nil},
		{"a read without a credential", "GET", "/v1/users/usr_1", "", "", nil},
		{"a read with what cannot be a credential", "GET", "/v1/users/usr_1", "a b", "", nil},
		{"a change", "PUT", "/v1/users/usr_1/password", "owner", "{}", nil},
		{"a removal", "DELETE", "/v1/users/usr_1", "owner", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told = nil
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, tt.verb, l.url+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			resp, err := l.h1.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusNotFound {
				t.Fatal("there is no such path")
			}
			if !slices.Equal(told, tt.want) {
				t.Errorf("told %v, want %v", told, tt.want)
			}
		})
	}
}
