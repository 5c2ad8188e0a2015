package rpc

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
)

// other is another API, which has names for two of our operations.
func other(c *Config) {
	c.Alias = &Alias{Packages: []string{"other.v1"}, Prefixes: []string{"/other/"}, Header: "X-Other-Org",
		Methods: []AliasMethod{
			{"other.v1.Users/Password", "POST", "/other/users/{user_id}/secret",
				"signet.v1.UserService/SetUserPassword"},
			{"other.v1.Users/Profile", "PUT", "/other/me", "signet.v1.UserService/UpdateMyProfile"},
		},
		Unserved: errs.New(errs.Unimplemented, "ELSEWHERE", "that is elsewhere")}
}

func TestOtherNamesOfOperations(t *testing.T) {
	l := newLab(t, other)
	raw, err := proto.Marshal(&signetv1.SetUserPasswordRequest{UserId: "usr_9", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	type sent func(header http.Header) outcome
	over := map[string]sent{
		"REST": func(h http.Header) outcome {
			return l.rest(t, l.h1, "POST", "/other/users/usr_9/secret", `{"password":"secret"}`, h)
		},
		"gRPC": func(h http.Header) outcome {
			return l.frameAt(t, l.h2, "application/grpc", "other.v1.Users/Password", frameOf(0, raw), h)
		},
		"gRPC-Web text": func(h http.Header) outcome {
			return l.frameAt(t, l.h1, "application/grpc-web-text", "other.v1.Users/Password", frameOf(0, raw), h)
		},
	}
	for name, send := range over {
		t.Run(name, func(t *testing.T) {
			o := send(bearerOf("owner"))
			if got := l.fake.req.(*signetv1.SetUserPasswordRequest); o.code != 0 || got.GetUserId() != "usr_9" ||
				got.GetPassword() != "secret" {
				t.Errorf("got %+v, %v", o, got)
			}
			for what, h := range map[string]http.Header{
				"nobody": {}, "one without the permission": bearerOf("nobody"),
				"another organization": bearerOf("owner", "x-other-org", "org_other"),
			} {
				want := map[string]int32{"nobody": 16}[what]
				if want == 0 {
					want = 7
				}
				if o := send(h); o.code != want {
					t.Errorf("%s: got %d %s", what, o.code, o.message)
				}
			}
			if o := send(bearerOf("owner", "x-other-org", "org_own", "x-service-orgid", "org_own")); o.code != 3 ||
				o.violations[orgHeader] == "" {
				t.Errorf("both headers: got %+v", o)
			}
			if o := send(bearerOf("owner", "x-other-org", "org_own")); o.code != 0 {
				t.Errorf("its own organization: got %+v", o)
			}
		})
	}
	t.Run("everything else", func(t *testing.T) {
		for _, o := range []outcome{
			l.frameAt(t, l.h2, "application/grpc", "other.v1.Users/List", frameOf(0, nil), bearerOf("owner")),
			l.frameAt(t, l.h1, "application/grpc-web+proto", "other.v1.Anything/Get", frameOf(0, nil), nil),
			l.rest(t, l.h1, "GET", "/other/users", "", bearerOf("owner")),
		} {
			if o.code != 12 || o.reason != "ELSEWHERE" || o.http != 0 && o.http != 501 {
				t.Errorf("got %+v", o)
			}
		}
		for _, path := range []string{"/others", "/v1/other/", "/other.v2.Users/List"} {
			if o := l.rest(t, l.h1, "GET", path, "", bearerOf("owner")); o.http != 404 {
				t.Errorf("%s: got %+v", path, o)
			}
		}
	})
	t.Run("our own paths do not know its header", func(t *testing.T) {
		if o := l.rest(t, l.h1, "POST", "/v1/users/usr_9/password", `{"password":"secret"}`,
			bearerOf("owner", "x-other-org", "org_other")); o.code != 0 {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("off", func(t *testing.T) {
		if off := newLab(t); off.rest(t, off.h1, "PUT", "/other/me", "{}", bearerOf("owner")).reason != "UNKNOWN_PATH" {
			t.Error("it is served although nobody asked for it")
		}
	})
}

func TestAliasesThatMakeNoSense(t *testing.T) {
	for name, m := range map[string]AliasMethod{
		"which there is not": {"other.v1.Users/A", "PUT", "/other/a", "signet.v1.UserService/Nothing"},
		"not a string field": {"other.v1.Users/A", "PUT", "/other/{nothing}", "signet.v1.UserService/UpdateMyProfile"},
		"already taken": {"signet.v1.UserService/GetUser", "PUT", "/other/a",
			"signet.v1.UserService/UpdateMyProfile"},
	} {
		_, err := New(Config{Authenticate: lookup, Services: (&fake{}).services(),
			Alias: &Alias{Methods: []AliasMethod{m}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
