package login

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// Parameters of the address.
const (
	paramRequest = "request" // the application's
	paramTo      = "to"      // the page of ours to go to, where there is no application
	paramAccount = "account" // the session that was chosen
	paramWith    = "with"    // the kind of factor to prove or to add
	paramOther   = "other"   // another account than those in the browser, or another way than a provider
	paramAgain   = "again"   // the page to go to needs a proof that is recent
	paramArrival = "arrival" // somebody whom a provider has brought
	paramLink    = "link"    // an account at a provider is to be linked
	paramTried   = "tried"   // a provider was asked for the proof that the application wants
	paramHint    = "hint"    // the name that was typed, for the provider; only on the way there
)

// Values of paramOther. Where somebody has come back from a provider, nobody is sent there again without asking; and
// who wants to type a name can do so, also where providers are the only way in: an owner may have kept the password.
const (
	otherAccount = "1"
	otherWay     = "way"
	otherName    = "name"
)

// address is what the address of the sign-in says. Links from page to page keep it, and so does the way to a provider
// and back.
type address struct {
	request string
	to      string // as it was sent, see ownPage
	account string
	with    string
	other   string
	again   bool
	arrival string
	linking bool
	tried   bool

	part idp.Part // which of the providers the page shows; links do not keep it
}

func readAddress(query url.Values) address {
	return address{
		request: query.Get(paramRequest), to: query.Get(paramTo), account: query.Get(paramAccount),
		with: query.Get(paramWith), other: query.Get(paramOther), again: query.Get(paramAgain) != "",
		arrival: query.Get(paramArrival), linking: query.Get(paramLink) != "", tried: query.Get(paramTried) != "",
		part: partIn(query),
	}
}

// partIn reads which part of the providers a page is to show.
func partIn(query url.Values) idp.Part {
	part := idp.Part{Begins: strings.TrimSpace(query.Get(pages.FieldProvider)), After: query.Get(pages.FieldAfter)}
	if utf8.RuneCountInString(part.Begins) > syntax.MaxName || len(part.After) > event.MaxID {
		return idp.Part{} // no page leads there
	}
	return part
}

// parameters are what readAddress reads, but for the part of the providers.
func (a address) parameters() url.Values {
	flag := map[bool]string{true: "1"}
	query := url.Values{}
	for name, value := range map[string]string{
		paramRequest: a.request, paramTo: a.to, paramAccount: a.account, paramWith: a.with, paramOther: a.other,
		paramAgain: flag[a.again], paramArrival: a.arrival, paramLink: flag[a.linking], paramTried: flag[a.tried],
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// link leads to the sign-in.
func (a address) link() pages.Link { return pages.To(Path, a.parameters()) }

// about is the address for an account.
func (a address) about(account string) address {
	a.account, a.with, a.other = account, "", ""
	return a
}

// forOther is the address for another account than those in the browser.
func (a address) forOther() address {
	a.other, a.account, a.tried = otherAccount, "", false
	return a
}

// without is the address without a provider, and without anybody whom it has brought.
func (a address) without() address {
	a.arrival, a.linking, a.account, a.other = "", false, "", otherWay
	return a
}
