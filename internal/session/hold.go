package session

import (
	"context"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// Held is a session that was looked at, for a command that depends on it: Reads go into the command, and Counts asks
// inside it whether the session counts still.
type Held struct {
	Token     *event.Token
	userID    string
	orgID     string
	companion uint64 // sequence of the companion when the token was read
}

// Hold looks at a session of the caller's. Errors: ErrNotFound where there is none of that id.
func (s *Sessions) Hold(ctx context.Context, caller *access.Caller, sessionID string) (*Held, error) {
	companion, err := Kind.Read(ctx, s.Store, IDFor(caller.UserID))
	if err != nil {
		return nil, err
	}
	t, err := s.Store.TokenByID(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	if t == nil || t.Kind != string(secret.Session) || t.UserID != caller.UserID {
		return nil, ErrNotFound
	}
	return &Held{Token: t, userID: caller.UserID, orgID: caller.OrgID, companion: sequence(companion)}, nil
}

// Reads are the objects that a command has to declare in order to ask Counts. The user is among them; a command that
// writes one of them declares that instead.
func (h *Held) Reads() []event.Ref {
	return []event.Ref{user.Kind.Ref(h.userID), org.Kind.Ref(h.orgID), installation.Ref, Kind.Ref(IDFor(h.userID))}
}

// Counts tells, inside a command, how the session was proven, if it counts in full. Whatever ends a single session adds an
// event to the companion: where that has moved since Hold, moved asks for another try. Errors: access.ErrUnauthenticated
// when the session has ended, or is restricted to changing the password or proving a second factor.
func (h *Held) Counts(tx *event.Tx) (proof Proof, moved bool, err error) {
	u, err := user.Kind.Get(tx, h.userID)
	if err != nil {
		return Proof{}, false, err
	}
	o, err := org.Kind.Get(tx, h.orgID)
	if err != nil {
		return Proof{}, false, err
	}
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return Proof{}, false, err
	}
	companion, err := Kind.Get(tx, IDFor(h.userID))
	if err != nil {
		return Proof{}, false, err
	}
	var whole installation.Standing
	if i != nil {
		whole = i.State.Standing
	}
	if u == nil || o == nil || !alive(h.Token, secret.Session, &u.State.Standing, &o.State.Standing, tx.Now()) || u.State.Password.ChangeRequired {
		return Proof{}, false, access.ErrUnauthenticated
	}
	restricted, err := unproven(h.Token, &u.State.Standing, &o.State.Standing, &whole)
	if err != nil {
		return Proof{}, false, err
	}
	if restricted {
		return Proof{}, false, access.ErrUnauthenticated
	}
	if sequence(companion) != h.companion {
		return Proof{}, true, nil
	}
	proof, err = ProofOf(h.Token)
	return proof, false, err
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
	now := event.Micros(s.Clock())
	var over []string
	for _, id := range ids {
		t, err := s.Store.TokenByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if t == nil || t.UserID != userID || !alive(t, secret.Session, &u.State.Standing, &o.State.Standing, now) {
			over = append(over, id)
		}
	}
	return over, nil
}
