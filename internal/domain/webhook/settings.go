package webhook

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Settings are what a webhook's administrators choose.
type Settings struct {
	URL              string
	Types            []string
	AllOrganizations bool
	OrganizationIDs  []string
	PersonalData     bool
}

// selection is what is kept of them in the open.
func (s *Settings) selection() Selection {
	return Selection{Types: s.Types, AllOrganizations: s.AllOrganizations, OrganizationIDs: s.OrganizationIDs,
		PersonalData: s.PersonalData}
}

// Wide tells whether the webhook would get more than the events of its own organization.
func (s *Settings) Wide() bool {
	selected := s.selection()
	return selected.Wide()
}

// Selection is which events a webhook gets, and what of them.
type Selection struct {
	Types []string `json:"types,omitempty"` // a type, or all of a kind: user.*; none: all
	// those of every organization, and of the installation itself
	AllOrganizations bool     `json:"allOrganizations,omitempty"`
	OrganizationIDs  []string `json:"organizationIds,omitempty"` // those of these organizations
	PersonalData     bool     `json:"personalData,omitempty"`    // the personal part of events is sent, too
}

// Wide tells whether the webhook gets more than the events of its own organization.
func (s *Selection) Wide() bool { return s.AllOrganizations || len(s.OrganizationIDs) > 0 }

// wants tells whether an event is one for a webhook of an organization.
func (s *Selection) wants(org string, e *event.Event) bool {
	filter := journal.Filter{Types: s.Types}
	switch {
	case s.AllOrganizations:
	case len(s.OrganizationIDs) > 0:
		filter.OrgIDs = s.OrganizationIDs
	default:
		filter.OrgIDs = []string{org}
	}
	return filter.Matches(e)
}

// typePattern is what a wanted type looks like.
var typePattern = regexp.MustCompile(`^[a-z][a-z_]*\.(\*|[a-z][a-z_]*\.v[1-9][0-9]?)$`)

// Violations lists what is wrong with settings, in the names of the API.
func (s *Settings) Violations() (wrong errs.Violations) {
	wrong.Add("url", urlProblem(s.URL))
	for _, list := range []struct {
		field string
		texts []string
	}{{"types", s.Types}, {"organizationIds", s.OrganizationIDs}} {
		if len(list.texts) > maxSelected {
			wrong.Add(list.field, syntax.TooMany(maxSelected, "elements"))
		}
		for i, text := range list.texts {
			wrong.Add(fmt.Sprintf("%s[%d]", list.field, i), syntax.Text(text, maxSelectedText))
		}
	}
	for i, t := range s.Types {
		switch field := fmt.Sprintf("types[%d]", i); {
		case !typePattern.MatchString(t):
			wrong.Add(field, errs.Plain("must be an event type such as user.added.v1, or user.* for all of a kind"))
		case slices.Contains(s.Types[:i], t):
			wrong.Add(field, errs.Plain("is already in the list"))
		}
	}
	for i, id := range s.OrganizationIDs {
		if slices.Contains(s.OrganizationIDs[:i], id) {
			wrong.Add(fmt.Sprintf("organizationIds[%d]", i), errs.Plain("is already in the list"))
		}
	}
	if s.AllOrganizations && len(s.OrganizationIDs) > 0 {
		wrong.Add("organizationIds", errs.Plain("must be left out if allOrganizations is set"))
	}
	return wrong
}

// Bounds of what a webhook selects.
const (
	maxSelected     = 100 // types or organizations
	maxSelectedText = 100 // characters of each
)

const (
	maxURL     = 2000
	badURL     = "must be an absolute URL such as https://app.example.org/hooks/signet"
	badScheme  = "must begin with https://"
	hasUser    = "must not have a user name or password: the receiver checks the signature instead"
	hasTag     = "must not have a fragment (#)"
	needed     = "it must be an https:// URL of a public host, or in a network that the operator allows with --outbound-allow"
	refusedURL = "is not an address that signet calls: " + needed
)

// urlProblem says what is wrong with an address. It does not repeat it: there may be a password in it. Which networks
// may be called is for package outbound to say.
func urlProblem(address string) *errs.Problem {
	if address == "" {
		return syntax.Empty
	}
	if problem := syntax.Text(address, maxURL); problem != nil {
		return problem
	}
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return errs.Plain(badURL)
		}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || !u.IsAbs() || u.Opaque != "":
		return errs.Plain(badURL)
	case u.Scheme != "https" && u.Scheme != "http":
		return errs.Plain(badScheme)
	case u.Hostname() == "":
		return errs.Plain(badURL)
	case u.User != nil:
		return errs.Plain(hasUser)
	case u.Fragment != "" || address[len(address)-1] == '#':
		return errs.Plain(hasTag)
	}
	return nil
}
