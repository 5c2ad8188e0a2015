package login

import (
	"net/http"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

const (
	rememberedCookie = "signet-device"

	maxRemembered = 8 // people in one browser
)

// RememberedBrowser is one that a request came from.
type RememberedBrowser struct {
	Devices session.Devices
	W       http.ResponseWriter
	R       *http.Request
}

// tokens of the cookie, which anybody can send.
func (b RememberedBrowser) tokens() []string {
	all := strings.SplitN(pages.CookieValue(b.R, rememberedCookie), separator, maxRemembered+1)
	return all[:min(len(all), maxRemembered)]
}

func (b RememberedBrowser) from() session.From {
	info := call.From(b.R.Context())
	return session.From{Peer: info.Peer, UserAgent: info.UserAgent, Rotate: true}
}

// Days tells for how many days the browser can be remembered for people of an organization; zero: it cannot.
func (b RememberedBrowser) Days(orgID string) (int, error) {
	life, err := b.Devices.Life(b.R.Context(), orgID)
	return int(life.Hours() / 24), err
}

// Remember remembers the browser for a caller who has just proven a second factor, where the policy lets it.
func (b RememberedBrowser) Remember(caller *access.Caller) error {
	all, err := b.Devices.Remember(b.R.Context(), caller, b.tokens(), b.from())
	if err != nil || len(all) == 0 {
		return err
	}
	http.SetCookie(b.W, pages.Cookie(rememberedCookie, strings.Join(all[:min(len(all), maxRemembered)], separator),
		policy.MaxRememberDevice))
	return nil
}

// Enter gives the token of a session that was just opened: another one, which is not restricted, where the browser is
// remembered for its person.
func (b RememberedBrowser) Enter(in session.SignedIn) (token string, err error) {
	if !in.SecondFactorRequired || pages.CookieValue(b.R, rememberedCookie) == "" {
		return in.Token, nil
	}
	bearer, err := b.Devices.Session(b.R.Context(), in.Token)
	if err != nil {
		return "", err
	}
	bearer.Caller.RequestID = call.From(b.R.Context()).RequestID
	stepped, ok, err := b.Devices.Recognize(b.R.Context(), bearer.Caller, b.tokens(), b.from())
	if err != nil || !ok {
		return in.Token, err
	}
	return stepped.Token, nil
}
