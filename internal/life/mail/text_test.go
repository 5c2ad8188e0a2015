package mail

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signet-idm/signet/test/testkit"
)

var kinds = []Kind{VerifyEmail, AccountCreated, ResetPassword, PasswordChanged, PasswordSet, NewSignIn, FactorAdded,
	FactorRemoved, FactorGuessed, LinkAdded, LinkedByEmail, LinkConfirmed, LinkRemoved, TokenAdded, PhoneChanged,
	EmailChanged, EmailReplaced, EmailRestored, ResetDelayed, NoPassword, Invitation, RolesOffered, PasswordSetup, OwnerLost,
	Register, Registered}

func TestEveryMailIsThereInEveryLanguageAndSaysTheSame(t *testing.T) {
	placeholder := regexp.MustCompile(`\{\{[^}]*\}\}`)
	said := func(l letter) []string {
		all := placeholder.FindAllString(strings.Join(append(append(slices.Clone(l.Lines), l.After...), l.Subject,
			l.Button), " "), -1)
		slices.Sort(all)
		return all
	}
	c := content{Name: "Jo", Site: "id.example.org", Code: "ABCD2345",
		Link: "https://id.example.org/verify?code=ABCD2345", Browser: "Firefox", Address: "192.0.2.1", Provider: "Corp"}
	for _, tag := range languages {
		b := texts()[tag.String()]
		if len(b.Mails) != len(kinds) {
			t.Errorf("%s has %d mails, not %d", tag, len(b.Mails), len(kinds))
		}
		for _, kind := range kinds {
			l, en := b.Mails[kind], texts()["en"].Mails[kind]
			if l.Subject == "" || len(l.Lines) != len(en.Lines) || len(l.After) != len(en.After) ||
				(l.Button == "") != (en.Button == "") || !slices.Equal(said(l), said(en)) {
				t.Errorf("%s %s is not the English mail: %q %q", tag, kind, said(l), said(en))
			}
			m, err := write(kind, tag.String(), c)
			must(t, err)
			if m.Language != tag.String() || strings.Contains(m.Text+m.HTML+m.Subject, "{{") ||
				strings.Contains(m.Text, "<no value>") {
				t.Errorf("%s %s: %+v", tag, kind, m)
			}
		}
	}
}

func TestTheLanguageOfAMailIsThatOfThePerson(t *testing.T) {
	for preferred, want := range map[string]string{"": "en", "en-GB": "en", "de": "de", "de-CH": "de", "fr-CA": "fr",
		"es-419": "es", "ja": "en", "no language": "en", "-": "en"} {
		m, err := write(PasswordChanged, preferred, content{})
		must(t, err)
		if m.Language != want || m.Subject != texts()[want].Mails[PasswordChanged].Subject {
			t.Errorf("%q is written to in %s", preferred, m.Language)
		}
	}
}

func TestBrowsersInWordsOfOurOwn(t *testing.T) {
	for userAgent, want := range map[string]string{
		firefox: "Firefox, Linux", chrome: "Chrome, Windows", "curl/8.0": "curl", "grpc-go/1.0": "grpc-go", "": "?",
		"<script>": "?", "a b/1": "?",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "Safari, iPhone",
	} {
		if got := browser(userAgent); got != want {
			t.Errorf("%q is %q, want %q", userAgent, got, want)
		}
	}
}

// said is every text of a language.
func (b *book) said() []string {
	all := []string{b.Greeting, b.Hello, b.Unknown, b.Signature, b.Account, b.AccountIn}
	for _, l := range b.Mails {
		all = append(append(append(all, l.Subject), l.Lines...), l.After...)
		if l.Button != "" {
			all = append(all, l.Button)
		}
	}
	return all
}

func TestMailsFollowTheTypographyOfTheirLanguage(t *testing.T) {
	condition := regexp.MustCompile(`\{\{(if|else|end)[^}]*\}\}`)
	for tag, b := range texts() {
		for _, text := range b.said() {
			for _, fault := range testkit.TypographyFaults(tag, condition.ReplaceAllString(text, "")) {
				t.Errorf("%s: %q %s", tag, text, fault)
			}
		}
	}
	// In German a sentence goes on after the comma of the greeting: in small letters, unless it addresses the reader.
	for kind, l := range texts()["de"].Mails {
		if first, _ := utf8.DecodeRuneInString(l.Lines[0]); unicode.IsUpper(first) &&
			!strings.HasPrefix(l.Lines[0], "Ihre ") {
			t.Errorf("%s begins with a capital: %q", kind, l.Lines[0])
		}
	}
}

func TestMailsAddressPeopleFormally(t *testing.T) {
	for tag, words := range map[string]string{"de": "du|dir|dein|deine|deiner|deinem", "fr": "tu|ton|ta|tes",
		"es": "tú|tu|tus"} {
		wrong := regexp.MustCompile(`(?i)(^|[\s,.:])(` + words + `)([\s,.:]|$)`)
		for _, text := range texts()[tag].said() {
			if found := wrong.FindString(text); found != "" {
				t.Errorf("%s: %q in %q", tag, found, text)
			}
		}
	}
}

func TestTimesAndBrowsersAreSaidInTheLanguageOfTheMail(t *testing.T) {
	at := time.Date(2026, 5, 4, 23, 12, 0, 0, time.FixedZone("", -3600))
	for tag, want := range map[string][]string{
		"en": {"5 May 2026, 00:12 UTC", "Unknown browser", "Undo the change:\n"},
		"de": {"05.05.2026, 00:12 UTC", "Unbekannter Browser", "Änderung rückgängig machen:\n"},
		"fr": {"05/05/2026 à 00:12 UTC", "Navigateur inconnu", "Annuler la modification\u202f:\n"},
		"es": {"05/05/2026, 00:12 UTC", "Navegador desconocido", "Deshacer el cambio:\n"},
	} {
		news, err := write(NewSignIn, tag, content{At: at, Browser: browser("<script>"), Address: "192.0.2.1"})
		must(t, err)
		changed, err := write(EmailChanged, tag, content{At: at, Link: "https://id.example.org/restore"})
		must(t, err)
		if !strings.Contains(news.Text, want[1]+" – 192.0.2.1 – "+want[0]) || !strings.Contains(news.HTML, want[1]) ||
			!strings.Contains(changed.Text, want[2]+"https") {
			t.Errorf("%s:\n%s\n%s", tag, news.Text, changed.Text)
		}
	}
}
