package pages

import (
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

func TestTextsFollowTheTypographyOfTheirLanguage(t *testing.T) {
	for _, tag := range Languages {
		for key, text := range catalogue(t, tag).entries {
			if key == "problem.colon" || key == "time.layout" {
				continue // a piece of a sentence, and a pattern
			}
			for _, fault := range testkit.TypographyFaults(tag, text) {
				t.Errorf("%s: %s %s: %q", tag, key, fault, text)
			}
		}
	}
}

// Voice control presses what people read: the name of a button for a screen reader holds the words that are seen on it
// (WCAG 2.5.3).
func TestTheNameOfAButtonHoldsWhatIsSeenOnIt(t *testing.T) {
	for _, tag := range Languages {
		c := catalogue(t, tag)
		for named, seen := range map[string]string{
			"action.removeNamed":           "action.remove",
			"security.removeTOTP":          "action.remove",
			"security.removePasskey":       "action.remove",
			"action.revokeNamed":           "action.revoke",
			"sessions.endNamed":            "sessions.end",
			"applications.disconnectNamed": "applications.disconnect",
		} {
			if !strings.Contains(strings.ToLower(c.entries[named]), strings.ToLower(c.entries[seen])) {
				t.Errorf("%s: %q does not hold %q", tag, c.entries[named], c.entries[seen])
			}
		}
	}
}

func TestNamesAreQuotedAsTheLanguageQuotes(t *testing.T) {
	for tag, want := range map[string]string{"en": "Remove “{n} x”", "de": "„{n} x“ entfernen",
		"fr": "Supprimer «\u202f{n} x\u202f»", "es": "Eliminar «{n} x»"} {
		if got, err := catalogue(t, tag).plain("action.removeNamed", "name", "{n} \u202ex"); err != nil || got != want {
			t.Errorf("%s: %q (%v) instead of %q", tag, got, err, want)
		}
	}
}

// Words that were in the texts once, and are not what people of that language call the thing.
func TestOneThingHasOneName(t *testing.T) {
	for tag, words := range map[string]string{
		"en": `sign-in name|log in |user name|recogni[s]e|installation`,
		"de": `(^| )(du|dein\w*) |Login|einloggen|Benutzername|Applikation|freiwillig`,
		"fr": `(^| )(tu|ton|ta|tes) |nom de connexion|nom d’utilisateur|deuxième facteur|passkey|administration`,
		"es": `(^| )(tú|tu|tus) |nombres? de inicio|clave de acceso|passkey|terminar sesión|administración`,
	} {
		wrong := regexp.MustCompile(`(?i)` + words)
		for key, text := range catalogue(t, tag).entries {
			if found := wrong.FindString(text); found != "" {
				t.Errorf("%s: %s says %q: %q", tag, key, found, text)
			}
		}
	}
}
