package login

import (
	"net/url"

	"github.com/signet-idm/signet/internal/transport/pages"
)

// Wish is what a page of ours wants of the sign-in before it goes on.
type Wish struct {
	To      string // the page to come back to
	Account string // the session that it is about; empty: any
	Again   bool   // a proof that is recent; who has given one is not asked
	Other   bool   // another account than those in the browser
	Request string // the application's, in the place of a page of ours; empty: none
	Way     bool   // skip registration: the user came from there
}

// Link leads to the sign-in.
func (w Wish) Link() pages.Link { return pages.To(Path, w.Parameters()) }

// Parameters are those of the sign-in.
func (w Wish) Parameters() url.Values {
	a := address{request: w.Request, account: w.Account, again: w.Again}
	if w.Request == "" {
		a.to = w.To
	}
	switch {
	case w.Other:
		a.other = otherAccount
	case w.Way:
		a.other = otherWay
	}
	return a.parameters()
}

// Several tells whether the browser has more accounts than the current one.
func (a *Accounts) Several() bool { return len(a.all) > 1 }
