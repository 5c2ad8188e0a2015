package session

import (
	"context"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Ref names a session that a command depends on. The command declares its Reads and its token, and asks Counts.
type Ref struct {
	ID, UserID, OrgID string
	Provider          string // that the session came through; empty: none
}

// RefOf is the session that the caller came by.
func RefOf(caller *access.Caller) Ref {
	r := Ref{ID: caller.TokenID, UserID: caller.UserID, OrgID: caller.OrgID}
	if caller.Session != nil {
		r.Provider = caller.Session.Provider
	}
	return r
}

// Reads are the objects that the command has to declare. A command may write some of them, too.
func (r Ref) Reads() []event.Ref {
	return append([]event.Ref{userRef(r.UserID), org.Kind.Ref(r.OrgID), installation.Ref}, providerRef(r.Provider)...)
}

// Counts gives the session's token and how it was proven, if it counts in full. Errors: access.ErrUnauthenticated when
// the session has ended, or is restricted to changing the password or proving a second factor.
func (r Ref) Counts(tx *event.Tx) (*event.Token, Proof, error) {
	s, err := r.look(tx)
	if err != nil {
		return nil, Proof{}, err
	}
	if s.unproven || s.user.Data.Password.ChangeRequired {
		return nil, Proof{}, access.ErrUnauthenticated
	}
	return s.session, s.proof, nil
}

// look tells what a command sees of a session that counts. Errors: access.ErrUnauthenticated where it does not.
func (r Ref) look(tx *event.Tx) (*InSession, error) {
	t, err := tx.Token(r.ID)
	if err != nil {
		return nil, err
	}
	u, err := user.Kind.Get(tx, r.UserID)
	if err != nil {
		return nil, err
	}
	o, err := org.Kind.Get(tx, r.OrgID)
	if err != nil {
		return nil, err
	}
	i, err := installationStanding(tx)
	if err != nil {
		return nil, err
	}
	p, err := providerIn(tx, r.Provider)
	if err != nil {
		return nil, err
	}
	if t == nil || t.UserID != r.UserID || t.Provider != r.Provider || u == nil || o == nil ||
		!alive(t, secret.Session, &u.Data.Standing, &o.Data.Standing, p, tx.Now()) {
		return nil, access.ErrUnauthenticated
	}
	s := &InSession{tx: tx, user: u, session: t, required: o.Data.SecondFactorRequired || i.SecondFactorRequired,
		passkeys: o.Data.Policy.Allows(policy.WithPasskey)}
	if s.proof, err = ProofOf(t); err != nil {
		return nil, err
	}
	s.unproven, err = unproven(t, &u.Data.Standing, &o.Data.Standing, i)
	return s, err
}

// Over tells which of some sessions of a user do not count any more, whatever ended them.
func (s *Sessions) Over(ctx context.Context, userID string, ids []string) ([]string, error) {
	u, err := user.Kind.Read(ctx, s.Store, userID)
	if err != nil || u == nil {
		return ids, err
	}
	o, err := org.Kind.Read(ctx, s.Store, u.Org)
	if err != nil || o == nil {
		return ids, err
	}
	now, known := event.Micros(s.Clock()), providers{}
	var over []string
	for _, id := range ids {
		t, err := s.Store.TokenByID(ctx, id)
		if err != nil {
			return nil, err
		}
		var p *idp.Standing
		if t != nil {
			if p, err = known.read(ctx, s.Store, t.Provider); err != nil {
				return nil, err
			}
		}
		if t == nil || t.UserID != userID || !alive(t, secret.Session, &u.Data.Standing, &o.Data.Standing, p, now) {
			over = append(over, id)
		}
	}
	return over, nil
}
