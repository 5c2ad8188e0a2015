package session

import (
	"cmp"
	"context"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// How long a personal access token counts: as long as asked for, within bounds.
const (
	DefaultTokenLife = 90 * 24 * time.Hour
	MaxTokenLife     = 366 * 24 * time.Hour
)

// Reasons why no token is made.
const (
	SessionRequired errs.Reason = "SESSION_REQUIRED"
	UserNotActive   errs.Reason = "USER_NOT_ACTIVE"
	OrgNotActive    errs.Reason = "ORGANIZATION_NOT_ACTIVE"
)

// Errors that the rules of new tokens refuse with.
var (
	ErrSessionRequired = errs.New(errs.PermissionDenied, SessionRequired,
		"a token cannot create other tokens: sign in and use the session's token")
	ErrUserNotActive = errs.New(errs.FailedPrecondition, UserNotActive,
		"this user is not active: reactivate or unlock the user first")
	ErrOrgNotActive = errs.New(errs.FailedPrecondition, OrgNotActive,
		"the user's organization is not active: reactivate it first")

	errNotAPerson = errs.New(errs.FailedPrecondition, user.NotHuman,
		"this is a service user: an administrator must create its tokens")
)

// NewToken is a personal access token to make.
type NewToken struct {
	Name    string     // what it is for; kept with the token only, since people write names there
	Expires *time.Time // nil: after DefaultTokenLife
}

// Violations lists what is wrong with it at a moment, in the names of the API.
func (n NewToken) Violations(now time.Time) (wrong errs.Violations) {
	wrong.Add("name", syntax.Text(n.Name, syntax.MaxName))
	switch e, now := n.expires(event.Micros(now)), event.Micros(now); {
	case e <= now:
		wrong.Add("expirationDate", errs.Plain("must be in the future"))
	case e > now+MaxTokenLife.Microseconds():
		wrong.Add("expirationDate", errs.Plain("must be at most 366 days ahead"))
	}
	return wrong
}

func (n NewToken) expires(now int64) int64 {
	if n.Expires == nil {
		return now + DefaultTokenLife.Microseconds()
	}
	return event.Micros(*n.Expires)
}

// Issued is a new token. Token is shown this once.
type Issued struct {
	TokenID string
	Token   string
	Expires time.Time
}

// IssueOwn makes a personal access token for the caller. Errors: FailedPrecondition for a service user;
// ErrSessionRequired, so that a token that leaked does not outlive itself; ErrNotRecent; InvalidArgument with the
// violations of n; Aborted when the caller's sessions were ended meanwhile.
func (s *Sessions) IssueOwn(ctx context.Context, caller *access.Caller, n NewToken) (Issued, error) {
	me, err := user.Self(ctx, s.Store, caller)
	if err != nil {
		return Issued{}, err
	}
	if me.Data.Human == nil {
		return Issued{}, errNotAPerson
	}
	if caller.TokenKind != string(secret.Session) {
		return Issued{}, ErrSessionRequired
	}
	if !Recent(caller, s.Clock()) {
		return Issued{}, ErrNotRecent
	}
	proof, err := ProofOf(caller.Session)
	if err != nil {
		return Issued{}, err
	}
	if proof.Upstream.Of() != caller.Session.Provider {
		return Issued{}, access.ErrUnauthenticated
	}
	return s.issue(ctx, caller.Origin(), caller.UserID, caller.OrgID, n, proof.Upstream,
		func(u *event.Object[user.User]) error {
			if u == nil || u.Data.State == user.Removed {
				return user.ErrNotFound
			}
			if u.Data.SessionEpoch != caller.SessionEpoch {
				return errSessionsMoved
			}
			return nil
		})
}

// IssueFor makes a personal access token for a service user of the permit's organization. Errors: user.ErrNotFound;
// access.ErrTargetHoldsMore; user.ErrNotService, since people make their own; ErrUserNotActive and ErrOrgNotActive;
// InvalidArgument with the violations of n.
func (s *Sessions) IssueFor(ctx context.Context, permit access.Permit, userID string, n NewToken) (Issued, error) {
	return s.issue(ctx, permit.Origin(), userID, permit.Org(), n, nil,
		user.GivesAccess(permit, userID).And(user.MustBeService).Reach)
}

func (s *Sessions) issue(ctx context.Context, origin event.Origin, userID, orgID string, n NewToken, upstream *Upstream,
	may func(*event.Object[user.User]) error) (Issued, error) {
	token, hash := secret.NewToken(secret.PAT)
	out := Issued{Token: token}
	err := event.Do(ctx, s.Store, event.Command{
		Origin: origin,
		Write:  []event.Ref{Kind.Ref(IDFor(userID))},
		Read:   append([]event.Ref{userRef(userID), org.Kind.Ref(orgID)}, upstream.Reads()...),
		Decide: func(tx *event.Tx) error {
			if wrong := n.Violations(event.Time(tx.Now())); len(wrong) > 0 {
				return errs.Invalid(wrong...)
			}
			u, err := user.Kind.Get(tx, userID)
			if err != nil {
				return err
			}
			if err := may(u); err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, orgID)
			if err != nil {
				return err
			}
			if u.Data.State != user.Active {
				return ErrUserNotActive
			}
			if o == nil || o.Data.State != org.Active {
				return ErrOrgNotActive
			}
			if counts, err := upstream.Holds(tx, &u.Data.Standing); err != nil || !counts {
				return cmp.Or(err, error(access.ErrUnauthenticated))
			}
			pat := PAT{Upstream: upstream, Hash: hash, Name: n.Name, Expires: n.expires(tx.Now())}
			out.Expires = event.Time(pat.Expires)
			if out.TokenID, err = IssuePAT(tx, u, o.Data.Epoch, pat); err != nil || origin.Actor == userID {
				return err
			}
			return user.TellHosts(tx, u, TokenIssued{}.EventType())
		},
	})
	if err != nil {
		return Issued{}, err
	}
	return out, nil
}

// PAT is a personal access token to store.
type PAT struct {
	Hash     []byte
	Name     string
	Expires  int64
	Upstream *Upstream // the provider that its person came through: it ends with it; nil: none
}

// IssuePAT stores a personal access token for a user inside a command that declared the user for reading or writing and
// its companion for writing. orgEpoch is that of the user's organization.
func IssuePAT(tx *event.Tx, u *event.Object[user.User], orgEpoch int64, p PAT) (id string, err error) {
	id = event.NewID("pat")
	t := event.Token{ID: id, Hash: p.Hash, Kind: string(secret.PAT), Name: p.Name, UserID: u.ID,
		Epoch: u.Data.TokenEpoch, OrgEpoch: orgEpoch, Created: tx.Now(), Expires: p.Expires}
	if p.Upstream != nil {
		t.Provider, t.Data = p.Upstream.Provider, Proof{Upstream: p.Upstream}.text()
	}
	tx.PutToken(t)
	return id, record(tx, u.ID, TokenIssued{TokenID: id, Expires: p.Expires})
}
