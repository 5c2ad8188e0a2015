package session

import (
	"strings"

	"github.com/signet-idm/signet/internal/session/useragent"
)

// A session is called by where it was opened, for its owner to recognise it: the address, a space, and the browser, as far as
// they are known. That is personal, so it stands with the session only, and goes with it.

// nameOf is what a session from this place is called.
func nameOf(p Place) string {
	return strings.TrimRight(p.Address+" "+useragent.Name(p.UserAgent), " ")
}

// Place tells where a session was opened; empty where that is not known.
func (s Shown) Place() (address, browser string) {
	address, browser, _ = strings.Cut(s.Name, " ")
	return address, browser
}
