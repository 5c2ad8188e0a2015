// This file says what the use of an application rests on: which organization a sign-in is bound to, and by which access
// to a project it is allowed.

package session

import (
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/project"
)

// Basis is what the use of an application rests on, and what it may be told, as a sign-in settled it.
type Basis struct {
	Bound string   `json:"bound,omitempty"` // the organization that the sign-in is bound to; see BoundTo
	Place string   `json:"place,omitempty"` // of a project, see project.Places.Judge
	Told  []string `json:"told,omitempty"`  // the claims about roles and groups that the person knows of
}

// BoundTo is the organization that a sign-in is bound to; empty for none. Where only the scopes tell that there is one,
// it was bound before guests could sign in, and so to the person's home.
func (b Basis) BoundTo(scopes []string, home string) string {
	if b.Bound == "" && slices.ContainsFunc(scopes, binds) {
		return home
	}
	return b.Bound
}

// The scopes that bind a sign-in to an organization.
const (
	OrgByID     = "urn:signet:org:id:"     // …<id>
	OrgByDomain = "urn:signet:org:domain:" // …<one of its domains>
)

func binds(scope string) bool {
	return strings.HasPrefix(scope, OrgByID) || strings.HasPrefix(scope, OrgByDomain)
}

// Holds tells whether somebody may go on using an application as the basis says.
func (b Basis) Holds(v project.Verdict, place string) bool {
	return v == project.Admitted && (place == "" || place == b.Place)
}
