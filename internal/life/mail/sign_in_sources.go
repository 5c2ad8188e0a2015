package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// mostSources are remembered of a person; the one that was not come back to for the longest goes first.
const mostSources = 20

// signInSource is a browser in a network that a person has signed in from. Only a MAC of it is kept.
type signInSource struct {
	MAC   []byte `json:"mac"`
	First int64  `json:"first"` // position of the sign-in that was the first from there
}

// signedIn tells a person of a sign-in from a source that none came from before. The first source of all is no news.
func (m *Mailer) signedIn(ctx context.Context, e *event.Event) error {
	fact, err := session.Kind.FactOf(ctx, m.Store, m.Master, e)
	if err != nil {
		return err
	}
	from := fact.(session.Succeeded).Personal
	if from == (session.RequestSource{}) { // erased, or unknown from the start
		return nil
	}
	userID := session.UserOf(e.ObjectID)
	mac := m.Master.MAC("sign-in place", []byte(userID), []byte(browser(from.UserAgent)), []byte(network(from.Address)))
	row := user.SignInSourcesRow(userID)
	var news bool
	err = m.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{row},
		// nothing is said about the user, but it must not be removed meanwhile
		Write: []event.Ref{user.Kind.Ref(userID)},
		Decide: func(tx *event.Tx) error {
			news = false
			u, err := user.Kind.Get(tx, userID)
			if err != nil || u == nil || u.Data.State == user.Removed {
				return err
			}
			kept, err := tx.Row(row)
			if err != nil {
				return err
			}
			var known []signInSource
			if kept != nil {
				if err := json.Unmarshal(kept.Value, &known); err != nil {
					return err
				}
			}
			here := signInSource{MAC: mac, First: e.Position}
			at := slices.IndexFunc(known, func(p signInSource) bool { return bytes.Equal(p.MAC, mac) })
			if at >= 0 {
				here = known[at]
				known = slices.Delete(known, at, at+1)
			}
			// A mail that failed comes again: the sign-in is the first from there still.
			news = here.First == e.Position && len(known) > 0
			known = append(known, here)
			value, err := json.Marshal(known[max(0, len(known)-mostSources):])
			if err != nil {
				return err
			}
			tx.PutRow(event.Row{RowKey: row, Value: value})
			return nil
		},
	})
	if err != nil || !news {
		return err
	}
	return m.notice(ctx, e, userID, NewSignIn, content{Browser: browser(from.UserAgent), Address: from.Address})
}

// guessed tells a person that somebody who has the password tries codes.
func (m *Mailer) guessed(ctx context.Context, e *event.Event) error {
	fact, err := session.Kind.FactOf(ctx, m.Store, m.Master, e)
	if err != nil {
		return err
	}
	from := fact.(session.SecondFactorGuessed).Personal
	if from == (session.RequestSource{}) { // erased
		return nil
	}
	return m.notice(ctx, e, session.UserOf(e.ObjectID), FactorGuessed,
		content{Browser: browser(from.UserAgent), Address: from.Address})
}

// families of browsers and systems, by what their user agents hold. The first that fits counts: most claim to be others
// too.
var (
	families = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"},
		{"CriOS/", "Chrome"}, {"FxiOS/", "Firefox"}, {"Safari/", "Safari"}}
	systems = [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// unknownBrowser stands for whatever cannot be named.
const unknownBrowser = "?"

// browser says in a few words of our own what a user agent is. Versions do not matter: they change by themselves.
func browser(userAgent string) string {
	find := func(in [][2]string) string {
		for _, f := range in {
			if strings.Contains(userAgent, f[0]) {
				return f[1]
			}
		}
		return ""
	}
	family, system := find(families), find(systems)
	switch {
	case family != "" && system != "":
		return family + ", " + system
	case family != "" || system != "":
		return family + system
	}
	// A program: its name, if that is a word.
	name, _, _ := strings.Cut(userAgent, "/")
	if len(name) == 0 || len(name) > 30 || strings.IndexFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) >= 0 {
		return unknownBrowser
	}
	return name
}

// network is the neighbourhood of an address: those of people change within it.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	a = a.Unmap()
	bits := 24
	if a.Is6() {
		bits = 48
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p.String()
}
