package mail

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var kinds = []Kind{VerifyEmail, ResetPassword, PasswordChanged, NewSignIn, FactorAdded, FactorRemoved, FactorGuessed, TokenAdded, PhoneChanged, EmailChanged, EmailReplaced, EmailRestored, ResetHeld}

func TestEveryMailIsThereInEveryLanguageAndSaysTheSame(t *testing.T) {
	placeholder := regexp.MustCompile(`\{\{[^}]*\}\}`)
	said := func(l letter) []string {
		all := placeholder.FindAllString(strings.Join(append(append(slices.Clone(l.Lines), l.After...), l.Subject, l.Button), " "), -1)
		slices.Sort(all)
		return all
	}
	c := content{Name: "Jo", Site: "id.example.org", Code: "ABCD2345", Link: "https://id.example.org/verify?code=ABCD2345", When: "now", Browser: "Firefox", Address: "192.0.2.1"}
	for _, tag := range languages {
		b := texts[tag.String()]
		if len(b.Mails) != len(kinds) {
			t.Errorf("%s has %d mails, not %d", tag, len(b.Mails), len(kinds))
		}
		for _, kind := range kinds {
			l, en := b.Mails[kind], texts["en"].Mails[kind]
			if l.Subject == "" || len(l.Lines) != len(en.Lines) || len(l.After) != len(en.After) || (l.Button == "") != (en.Button == "") || !slices.Equal(said(l), said(en)) {
				t.Errorf("%s %s is not the English mail: %q %q", tag, kind, said(l), said(en))
			}
			m, err := write(kind, tag.String(), c)
			must(t, err)
			if m.Language != tag.String() || strings.Contains(m.Text+m.HTML+m.Subject, "{{") || strings.Contains(m.Text, "<no value>") {
				t.Errorf("%s %s: %+v", tag, kind, m)
			}
		}
	}
}

func TestTheLanguageOfAMailIsThatOfThePerson(t *testing.T) {
	for preferred, want := range map[string]string{"": "en", "en-GB": "en", "de": "de", "de-CH": "de", "fr-CA": "fr", "es-419": "es", "ja": "en", "no language": "en", "-": "en"} {
		m, err := write(PasswordChanged, preferred, content{})
		must(t, err)
		if m.Language != want || m.Subject != texts[want].Mails[PasswordChanged].Subject {
			t.Errorf("%q is written to in %s", preferred, m.Language)
		}
	}
}

func TestBrowsersInWordsOfOurOwn(t *testing.T) {
	for userAgent, want := range map[string]string{
		firefox: "Firefox, Linux", chrome: "Chrome, Windows", "curl/8.0": "curl", "grpc-go/1.0": "grpc-go", "": "?", "<script>": "?", "a b/1": "?",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "Safari, iPhone",
	} {
		if got := browser(userAgent); got != want {
			t.Errorf("%q is %q, want %q", userAgent, got, want)
		}
	}
}
