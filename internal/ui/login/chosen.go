package login

import (
	"crypto/hmac"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// A browser remembers the providers that somebody has chosen in it, on a page of ours. Any site can have a browser open
// an address here; only where somebody has chosen a provider before does an address lead there, and back, without
// asking.
const (
	cookieChosen = "signet-chosen"
	chosenLife   = 90 * 24 * time.Hour
	maxChosen    = 8 // the last ones count
)

// choice is a provider that was chosen, as the cookie has it: its id, when, and that we wrote it.
func (l *Login) choice(p *event.Object[idp.Provider], at string) string {
	sum := l.Master.MAC("chosen provider", []byte(p.Org), []byte(p.ID), []byte(at))
	return strings.Join([]string{p.ID, at, base64.RawURLEncoding.EncodeToString(sum[:16])}, ".")
}

func choices(r *http.Request) []string {
	all := strings.Split(pages.CookieValue(r, cookieChosen), separator)
	return all[:min(len(all), maxChosen)]
}

// hasChosen tells whether somebody has chosen a provider in this browser, not too long ago.
func (l *Login) hasChosen(r *http.Request, p *event.Object[idp.Provider]) bool {
	for _, c := range choices(r) {
		id, rest, _ := strings.Cut(c, ".")
		at, _, _ := strings.Cut(rest, ".")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if id != p.ID || err != nil || !hmac.Equal([]byte(c), []byte(l.choice(p, at))) {
			continue
		}
		return l.Clock().Before(time.Unix(seconds, 0).Add(chosenLife))
	}
	return false
}

// keepChoice remembers that somebody has chosen a provider.
func (l *Login) keepChoice(w http.ResponseWriter, r *http.Request, p *event.Object[idp.Provider]) {
	kept := []string{l.choice(p, strconv.FormatInt(l.Clock().Unix(), 10))}
	for _, c := range choices(r) {
		if id, _, _ := strings.Cut(c, "."); id != "" && id != p.ID && len(c) < 200 && len(kept) < maxChosen {
			kept = append(kept, c)
		}
	}
	http.SetCookie(w, pages.Cookie(cookieChosen, strings.Join(kept, separator), chosenLife))
}
