package login

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/test/testkit"
)

// What nobody has words for is said in one sentence, so a scope without words would not stand out.
func TestEveryScopeThatPeopleAreAskedAboutHasWordsOfItsOwn(t *testing.T) {
	u, err := url.Parse("https://id.example.org")
	testkit.Must(t, err)
	p, err := pages.New(pages.Config{ExternalURL: u, Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	list := func(language string, scopes ...string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Language", language)
		p.Render(w, r, 200, pages.Consent{Access: pages.Access{Scopes: scopes}})
		_, rest, _ := strings.Cut(w.Body.String(), `<ul class="scopes">`)
		words, _, _ := strings.Cut(rest, "</ul>")
		return words
	}
	named := slices.Concat(oauth.Scopes, []string{claimset.Roles, claimset.Groups, claimset.Metadata})
	bound := []string{"urn:signet:org:id:org_1", "urn:signet:org:domain:a.test"}
	for _, language := range pages.Languages {
		said := map[string]string{list(language, "nobody.knows.this"): "an unknown scope"}
		for _, scope := range named {
			words := list(language, scope)
			if words == "" || said[words] != "" {
				t.Errorf("%s in %s has the words of %s: %q", scope, language, said[words], words)
			}
			said[words] = scope
		}
		for _, scope := range bound {
			if words := list(language, scope); said[words] != claimset.OrgScope {
				t.Errorf("%s in %s: %q", scope, language, words)
			}
		}
	}
}
