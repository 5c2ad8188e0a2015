package login

import (
	"net/http"

	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
)

// rules are those of the organization of the person.
func (v *visit) rules() (policy.Settings, error) {
	return org.Settings(v.r.Context(), v.Store, v.person.Org)
}

// rulesFor are those of the organization of a user; those of the default one where there is no such user.
func (l *Login) rulesFor(r *http.Request, userID string) (policy.Settings, error) {
	u, err := user.Kind.Read(r.Context(), l.Store, userID)
	if err != nil {
		return policy.Settings{}, err
	}
	of := l.Sessions.DefaultOrg
	if u != nil {
		of = u.Org
	}
	return org.Settings(r.Context(), l.Store, of)
}
