package session

import (
	"net/netip"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestBrowsersArePutInAFewWordsOfOurs(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                     "Firefox (Linux)",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":                            "Chrome (Windows)",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":              "Edge (Windows)",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15":                      "Safari (macOS)",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1":    "Safari (iPhone)",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1":     "Chrome (iPhone)",
		"Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36": "Samsung Internet (Android)",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":                             "Chrome (ChromeOS)",
		"curl/8.5.0":                          "curl",
		"something on Linux":                  "Linux",
		"":                                    "",
		"<script>alert(1)</script>, trust me": "",
	} {
		source := RequestSource{Address: "192.0.2.1", UserAgent: agent}
		address, browser := Shown{Name: nameOf(source)}.OpenedFrom()
		if address != "192.0.2.1" || browser != want {
			t.Errorf("%s: %q from %q", agent, browser, address)
		}
		source.Address = ""
		if address, browser = (Shown{Name: nameOf(source)}).OpenedFrom(); address != "" || browser != want {
			t.Errorf("%s from nowhere: %q from %q", agent, browser, address)
		}
	}
}

func TestASessionSaysWhereItWasOpened(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, usual())
	attempt := try("jo", right, netip.MustParseAddr("2001:db8::7"))
	attempt.UserAgent = "Firefox/140.0 Linux"
	in, err := sessions.SignIn(t.Context(), attempt)
	must(t, err)
	me := as(t, sessions, in.Token)
	// A step elsewhere does not change where it was opened.
	_, err = sessions.Reauthenticate(t.Context(), me, right, From{Peer: away, UserAgent: "curl/8", Rotate: true})
	must(t, err)
	shown, _, err := sessions.List(t.Context(), Own(me), secret.Session, event.Cursor{}, 10)
	must(t, err)
	if address, browser := shown[0].OpenedFrom(); len(shown) != 1 || address != "2001:db8::7" ||
		browser != "Firefox (Linux)" {
		t.Errorf("got %+v", shown)
	}
}
