package session

import (
	"context"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// Life of a session.
const Life = 12 * time.Hour

// Sessions lets people and programs in.
type Sessions struct {
	Store  event.Store
	Hasher *secret.Hasher
	Master secret.MasterKey
	Clock  func() time.Time
	// DefaultOrg is where names without a domain are looked for.
	DefaultOrg string
	Standings  *Standings
}

// Authenticate tells who holds a bearer token, in one query and with nothing remembered from earlier requests. Errors:
// access.ErrUnauthenticated, whatever is wrong with the token.
func (s *Sessions) Authenticate(ctx context.Context, bearer string) (*access.Caller, error) {
	kind, hash, ok := secret.ParseToken(bearer)
	if !ok || kind != secret.Session && kind != secret.PAT {
		return nil, access.ErrUnauthenticated
	}
	b, err := s.Store.Bearer(ctx, hash)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, access.ErrUnauthenticated
	}
	u, err := s.Standings.users.read(b.UserStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", b.UserID, err)
	}
	o, err := s.Standings.orgs.read(b.OrgStanding)
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", b.OrgID, err)
	}
	if !alive(&b.Token, kind, u, o, event.Micros(s.Clock())) {
		return nil, access.ErrUnauthenticated
	}
	return &access.Caller{
		UserID: b.UserID, OrgID: b.OrgID, Memberships: u.Memberships, TokenID: b.Token.ID, TokenKind: b.Token.Kind, User: b.User, Org: b.Org,
		SessionEpoch: u.SessionEpoch,
		// A token that does not prove the password is not held up by it.
		MustChangePassword: kind == secret.Session && u.Password.ChangeRequired,
	}, nil
}

// alive tells whether a token counts now.
func alive(t *event.Token, kind secret.TokenKind, u *user.Standing, o *org.Standing, now int64) bool {
	epoch := u.SessionEpoch
	if kind == secret.PAT {
		epoch = u.TokenEpoch
	}
	return t.Kind == string(kind) && now < t.Expires && u.State == user.Active && o.State == org.Active &&
		t.Epoch == epoch && t.OrgEpoch == o.Epoch
}
