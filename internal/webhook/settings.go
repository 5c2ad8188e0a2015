package webhook

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/journal"
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
	return Selection{Types: s.Types, AllOrganizations: s.AllOrganizations, OrganizationIDs: s.OrganizationIDs, PersonalData: s.PersonalData}
}

// Wide tells whether the webhook would get more than the events of its own organization.
func (s *Settings) Wide() bool {
	selected := s.selection()
	return selected.Wide()
}

// Selection is which events a webhook gets, and what of them.
type Selection struct {
	Types            []string `json:"types,omitempty"`            // a type, or all of a kind: user.*; none: all
	AllOrganizations bool     `json:"allOrganizations,omitempty"` // those of every organization, and of the installation itself
	OrganizationIDs  []string `json:"organizationIds,omitempty"`  // those of these organizations
	PersonalData     bool     `json:"personalData,omitempty"`     // the personal part of events is sent, too
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
func (s *Settings) Violations() []errs.Violation {
	var wrong []errs.Violation
	add := func(field, problem string) {
		if problem != "" {
			wrong = append(wrong, errs.Violation{Field: field, Message: problem})
		}
	}
	add("url", urlProblem(s.URL))
	for i, t := range s.Types {
		switch field := fmt.Sprintf("types[%d]", i); {
		case !typePattern.MatchString(t):
			add(field, "must be a type of events such as user.added.v1, or all of a kind such as user.*")
		case slices.Contains(s.Types[:i], t):
			add(field, "is in the list already")
		}
	}
	for i, id := range s.OrganizationIDs {
		if slices.Contains(s.OrganizationIDs[:i], id) {
			add(fmt.Sprintf("organizationIds[%d]", i), "is in the list already")
		}
	}
	if s.AllOrganizations && len(s.OrganizationIDs) > 0 {
		add("organizationIds", "must be left out where allOrganizations is set")
	}
	return wrong
}

const (
	maxURL     = 2000
	badURL     = "must be an absolute URL such as https://app.example.org/hooks/signet"
	badScheme  = "must begin with https://"
	hasUser    = "must not have a user name or password: the signature tells the receiver who sends"
	hasTag     = "must not have a fragment (#)"
	longURL    = "must not have more than 2000 characters"
	needed     = "it has to be an https:// URL of a public host, or lie in a network that the operator allows with --outbound-allow"
	refusedURL = "is not an address that signet calls: " + needed
)

// urlProblem says what is wrong with an address. It does not repeat it: there may be a password in it. Which networks may be
// called is for package outbound to say.
func urlProblem(address string) string {
	if len(address) > maxURL {
		return longURL
	}
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return badURL
		}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || !u.IsAbs() || u.Opaque != "":
		return badURL
	case u.Scheme != "https" && u.Scheme != "http":
		return badScheme
	case u.Hostname() == "":
		return badURL
	case u.User != nil:
		return hasUser
	case u.Fragment != "" || address[len(address)-1] == '#':
		return hasTag
	}
	return ""
}
