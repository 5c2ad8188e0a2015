package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
)

func catalogue(t *testing.T, tag string) texts {
	t.Helper()
	c, err := loadTexts(tag)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryTextExistsInEveryLanguageWithTheSamePlaceholders(t *testing.T) {
	english := catalogue(t, "en")
	for _, tag := range Languages {
		other := catalogue(t, tag)
		for key, text := range english.entries {
			translated, ok := other.entries[key]
			if !ok || strings.TrimSpace(translated) == "" {
				t.Errorf("%s: %s is missing", tag, key)
				continue
			}
			a, b := placeholder.FindAllString(text, -1), placeholder.FindAllString(translated, -1)
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				t.Errorf("%s: %s has the placeholders %q, in English %q", tag, key, b, a)
			}
		}
		for key := range other.entries {
			if _, ok := english.entries[key]; !ok {
				t.Errorf("%s: %s is not in English", tag, key)
			}
		}
	}
}

var literal = regexp.MustCompile(`"([a-z][A-Za-z]*(?:\.[A-Za-z]+)+)"`)

func TestEveryTextIsUsedAndEveryUsedTextExists(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"*.go", "templates/*.html"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range literal.FindAllStringSubmatch(string(content), -1) {
				used[m[1]] = true
			}
		}
	}
	for _, f := range failures {
		for _, part := range []string{"title", "what", "todo"} {
			used["failure."+string(f)+"."+part] = true
		}
	}
	for _, name := range access.APIScopeNames {
		used["scope."+name] = true
	}
	for _, role := range append(access.RolesOf(access.Installation), access.RolesOf("")...) {
		used["role."+string(role)] = true
	}
	for _, permission := range access.Permissions() {
		about, act, _ := strings.Cut(string(permission), ".")
		used["permission.of."+about], used["permission.may."+act] = true, true
	}
	for _, role := range access.RolesOf("") {
		used["allows."+string(role)] = true
	}
	entries := catalogue(t, "en").entries
	for key := range entries {
		if !used[key] && !used[strings.TrimSuffix(strings.TrimSuffix(key, ".one"), ".other")] {
			t.Errorf("nothing uses %s", key)
		}
	}
	for key := range used {
		_, plain := entries[key]
		_, counted := entries[key+".other"]
		first, _, _ := strings.Cut(key, ".")
		if !plain && !counted && !slices.Contains([]string{"style", "mark", "google", "passkey", "page"}, first) &&
			first != "signet" {
			t.Errorf("there is no text %s", key)
		}
	}
}

func TestLanguageIsThePersonsThenTheApplicationsThenTheBrowsers(t *testing.T) {
	for _, c := range []struct{ about, preferred, locales, accepted, expected string }{
		{"nothing is known", "", "", "", "en"},
		{"the person has chosen", "fr", "de", "es", "fr"},
		{"a region does not matter", "de-CH", "", "", "de"},
		{"the application asks", "", "es de", "fr", "es"},
		{"the application asks for something unknown first", "", "xx-nonsense-!! ja es", "fr", "es"},
		{"the browser asks", "", "", "ja;q=0.9, de;q=0.8, en;q=0.1", "de"},
		{"the person prefers a language that is not spoken here", "ja", "", "fr", "fr"},
		{"what the person has set cannot be read", "!!!", "de", "", "de"},
		{"only unknown languages", "ja", "zh", "ko", "en"},
		{"English is a choice, too", "en-GB", "de", "fr", "en"},
		{"a header without end", "", "", "de," + strings.Repeat("fr,", 10000), "de"},
		{"broken headers", "", "\x00 \xff", ";;;q=,", "en"},
	} {
		if got := chooseLanguage(c.preferred, c.locales, c.accepted); got != c.expected {
			t.Errorf("%s: %s instead of %s", c.about, got, c.expected)
		}
	}
}

func TestNumbersAndTimesAreSaidAsPeopleSayThem(t *testing.T) {
	for _, c := range []struct {
		tag      string
		message  Message
		expected string
	}{
		{"en", Throttled(30 * time.Second), "Too many attempts. Try again in 30 seconds."},
		{"en", Throttled(time.Second), "Too many attempts. Try again in 1 second."},
		{"en", Throttled(0), "Too many attempts. Try again in 1 second."},
		{"en", Throttled(61 * time.Second), "Too many attempts. Try again in 2 minutes."},
		{"de", Throttled(90 * time.Minute), "Zu viele Versuche. Versuchen Sie es in 2 Stunden noch einmal."},
		{"fr", Message{key: "security.left", args: []any{"n", 0}}, "Il vous reste 0 code."},
		{"es", Message{key: "security.left", args: []any{"n", 0}}, "Le quedan 0 códigos."},
		{"en", OtherOrganization("<b>{n}"),
			"This sign-in is for members of <bdi>&lt;b&gt;{n}</bdi>. Use an account of this organization."},
		{"en", Said("<i>"), "<bdi>&lt;i&gt;</bdi>"},
	} {
		if got, err := catalogue(t, c.tag).say(c.message); err != nil || string(got) != c.expected {
			t.Errorf("%q (%v) instead of %q", got, err, c.expected)
		}
	}
	at := time.Date(2026, 5, 4, 23, 12, 0, 0, time.FixedZone("", -3600))
	for tag, expected := range map[string]string{"en": "5 May 2026, 00:12 UTC", "de": "05.05.2026, 00:12 UTC"} {
		if got, err := catalogue(t, tag).moment(at); err != nil || got != expected {
			t.Errorf("%s: %q (%v) instead of %q", tag, got, err, expected)
		}
	}
}

func TestATextThatIsMissingIsNotPassedOverInSilence(t *testing.T) {
	c := catalogue(t, "en")
	if _, err := c.html("no.such.text"); err == nil {
		t.Error("a key that does not exist gives a text")
	}
	if _, err := c.html("frame.application"); err == nil {
		t.Error("a placeholder without a value gives a text")
	}
}

func TestWhatAScopeMeansIsSaidInWords(t *testing.T) {
	c := catalogue(t, "en")
	for name, want := range map[string]string{
		"email": "scope.email", "urn:signet:org": "scope.organization", "urn:signet:org:org_1": "scope.organization",
		"signet.read": "scope.signet.read", "email.read": "scope.other", "notes.write": "scope.other",
		"offline": "scope.other", "": "scope.other", "other": "scope.other", "audience": "scope.other",
	} {
		if got := c.scope(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
