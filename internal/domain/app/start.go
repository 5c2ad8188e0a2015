package app

import (
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Serves tells whether people of an organization can be sent to an application: one of their own, one that is for all
// organizations, or one whose project the organization was granted.
func Serves(a *event.Object[App], orgID string, granted bool) bool {
	return a != nil && a.Data.State == Active && a.Data.Type.signsIn() &&
		(a.Org == orgID || a.Data.AllOrganizations || granted)
}

// TargetProblem says what is wrong with a page of the application that somebody is to end at after Start: it has to be
// of the origin of the start address.
func (a *App) TargetProblem(target string) *errs.Problem {
	if problem := syntax.Text(target, MaxURI); problem != nil {
		return problem
	}
	if a.InitiateLoginURI == "" {
		return errs.Plain("must be left out: the application has no initiateLoginUri")
	}
	if problem := uriProblem(Web, target); problem != "" {
		return errs.Plain(problem)
	}
	if origin(target) != origin(a.InitiateLoginURI) {
		return errs.Plain("must be of the same origin as the initiateLoginUri of the application")
	}
	return nil
}

// Start is where somebody begins to sign in who has not come from the application (OpenID Connect Core, section 4):
// its start address, with who asks, the name to sign in with and the page to end at. Empty: it has none. The addresses
// are judged once more: today's rules, and today's start address.
func (a *App) Start(issuer, loginName, target string) string {
	if a.InitiateLoginURI == "" || uriProblem(Web, a.InitiateLoginURI) != "" {
		return ""
	}
	with := url.Values{"iss": {issuer}, "login_hint": {loginName}}
	if target != "" && a.TargetProblem(target) == nil {
		with.Set("target_link_uri", target)
	}
	before := "?"
	if strings.Contains(a.InitiateLoginURI, "?") {
		before = "&"
	}
	return a.InitiateLoginURI + before + with.Encode()
}

// origin is that of an address that uriProblem finds nothing wrong with.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme { // url.Parse has made it lower-case
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}
