package oauth

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/domain/user"
)

func (w *world) keeps(who string, pairs map[string]string) {
	w.t.Helper()
	w.change(who, user.MetadataSet{Personal: metadata.Change{Set: pairs}})
}

func TestWhoIsToldMetadata(t *testing.T) {
	const all = `{"metadata":{"team":"blue"}}`
	aud := func(id string) string { return " urn:signet:app:" + id + ":aud" }
	for _, tt := range []struct {
		name   string
		keys   []string
		who    string
		scopes string
		want   string
	}{
		{"no key is allowed", nil, "usr_a", "", `{}`},
		{"the keys that are allowed", []string{"none", "team"}, "usr_a", "", all},
		{"none of them is there", []string{"none"}, "usr_a", "", `{}`},
		{"of another organization", []string{"team"}, "usr_b", "", `{}`},
		{"bound to home", []string{"team"}, "usr_a", " urn:signet:org:id:org_a", all},
		{"bound to another as a guest", []string{"team"}, "usr_a", " urn:signet:org:id:org_b", `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := vendor(t, app.RoleSettings{Metadata: tt.keys})
			for _, who := range []string{"usr_a", "usr_b"} {
				w.keeps(who, map[string]string{"team": "blue", "secret": "x"})
			}
			w.change("usr_a", guest("org_b"))
			for _, client := range []string{"app_spa", "app_jwt"} {
				made := w.agreed(client, tt.who, "openid"+tt.scopes)
				where := map[string]string{"ID token": seen(t, payload(t, made.IDToken)),
					"user info": w.userInfo(made.Access), "introspection": w.introspected(client, made.Access)}
				if client == "app_jwt" {
					where["JWT"] = seen(t, payload(t, made.Access))
				}
				for in, got := range where {
					if got != tt.want {
						t.Errorf("%s, %s: %s", client, in, got)
					}
				}
			}
		})
	}
	t.Run("others of the project have keys of their own", func(t *testing.T) {
		w := vendor(t, app.RoleSettings{Metadata: []string{"team"}})
		w.change("app_web", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p"}})
		w.keeps("usr_a", map[string]string{"team": "blue"})
		made := w.agreed("app_spa", "usr_a", "openid"+aud("app_web"))
		for reader, want := range map[string]string{"app_spa": all, "app_web": `{}`} {
			if got := w.introspected(reader, made.Access); got != want {
				t.Errorf("%s reads %s", reader, got)
			}
		}
		if got := seen(t, payload(t, w.agreed("app_jwt", "usr_a", "openid"+aud("app_web")).Access)); got != `{}` {
			t.Errorf("a JWT for both: %s", got)
		}
	})
	t.Run("without a project", func(t *testing.T) {
		w := newWorld(t)
		w.change("app_spa", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Metadata: []string{"team"}}})
		w.keeps("usr_a", map[string]string{"team": "blue"})
		made := w.agreed("app_spa", "usr_a", "openid")
		if got := w.userInfo(made.Access); got != all {
			t.Errorf("it reads %s", got)
		}
		w.change("usr_a", user.MetadataSet{Personal: metadata.Change{Remove: []string{"team"}}})
		if got := w.userInfo(made.Access); got != `{}` {
			t.Errorf("after the removal it reads %s", got)
		}
	})
}

func TestMetadataCountsTowardTheSizeOfATokensClaims(t *testing.T) {
	w := vendor(t, app.RoleSettings{Roles: true, Metadata: []string{"a", "b", "c", "d", "e"}})
	w.holds("usr_a", "prj_p", "org_a", role("viewer", 2))
	long := map[string]string{}
	for _, key := range strings.Split("abcde", "") {
		long[key] = strings.Repeat("x", 1000)
	}
	w.keeps("usr_a", long)
	made := w.agreed("app_jwt", "usr_a", "openid")
	for _, token := range []string{made.IDToken, made.Access} {
		if got := seen(t, payload(t, token)); got != `{"overflow":["urn:signet:app_roles","urn:signet:metadata"]}` {
			t.Errorf("the token has %s", got)
		}
	}
	if got := w.userInfo(made.Access); !strings.Contains(got, `"viewer"`) || len(got) < 5000 {
		t.Errorf("user info has %s", got)
	}
}
