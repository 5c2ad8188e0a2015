package session

import (
	"context"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// Life of a session.
const Life = 12 * time.Hour

// NotFound is the reason when there is no such session of the caller.
const NotFound errs.Reason = "SESSION_NOT_FOUND"

// ErrNotFound: the caller has no session with this id.
var ErrNotFound = errs.New(errs.NotFound, NotFound, "you have no session with this identifier")

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
	if !ok {
		return nil, access.ErrUnauthenticated
	}
	b, err := s.Store.Bearer(ctx, hash)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, access.ErrUnauthenticated
	}
	u, err := s.Standings.users.read(user.Kind.Column(b.User, event.Standing))
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", b.User.ID, err)
	}
	o, err := s.Standings.orgs.read(org.Kind.Column(b.Org, event.Standing))
	if err != nil {
		return nil, fmt.Errorf("standing of %s: %w", b.Org.ID, err)
	}
	if !alive(&b.Token, kind, u, o, event.Micros(s.Clock())) {
		return nil, access.ErrUnauthenticated
	}
	return &access.Caller{
		UserID: b.User.ID, OrgID: b.Org.ID, Memberships: u.Memberships, TokenID: b.Token.ID, TokenKind: b.Token.Kind, User: b.User, Org: b.Org,
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

// IssuePAT stores a personal access token for a user inside a command that declared the user and its companion for
// writing. orgEpoch is that of the user's organization.
func IssuePAT(tx *event.Tx, u *event.Object[user.User], orgEpoch int64, hash []byte, life time.Duration) error {
	t := event.Token{ID: event.NewID("pat"), Hash: hash, Kind: string(secret.PAT), UserID: u.ID,
		Epoch: u.State.TokenEpoch, OrgEpoch: orgEpoch, Created: tx.Now(), Expires: tx.Now() + life.Microseconds()}
	tx.PutToken(t)
	return record(tx, u.ID, TokenIssued{TokenID: t.ID, Expires: t.Expires})
}

// End ends a session of the caller. Errors: ErrNotFound, also for somebody else's.
func (s *Sessions) End(ctx context.Context, caller *access.Caller, id string) error {
	t, err := s.Store.TokenByID(ctx, id)
	if err != nil {
		return err
	}
	if t == nil || t.UserID != caller.UserID || t.Kind != string(secret.Session) {
		return ErrNotFound
	}
	return s.Store.Do(ctx, event.Command{
		Origin: caller.Origin(),
		Write:  []event.Ref{Kind.Ref(IDFor(caller.UserID))},
		Read:   []event.Ref{user.Kind.Ref(caller.UserID)},
		Decide: func(tx *event.Tx) error {
			tx.DropToken(id)
			return record(tx, caller.UserID, Ended{SessionID: id})
		},
	})
}
