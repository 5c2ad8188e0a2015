package session

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/user"
)

// From is where a step in a session comes from. Rotate gives the session a new token in place of the one before, as pages need
// it: who knows the token from before the step must not gain by it.
type From struct {
	Peer      netip.Addr
	UserAgent string
	Rotate    bool
}

func (f From) place() Place { return placeOf(f.Peer, f.UserAgent) }

// Stepped is a session after a step. Token is the new one, shown this once; empty where the token stays.
type Stepped struct {
	Token   string
	Expires time.Time
}

// state is what a step in a session sees.
type state struct {
	tx       *event.Tx
	user     *event.Object[user.User]
	session  *event.Token
	proof    Proof
	unproven bool // a second factor has to be proven first
	required bool // by the organization or the installation, whether or not one is enrolled
	proved   bool // something, in this step
}

// prove notes one more proof in the session, and records it.
func (s *state) prove(by Method, place Place) error {
	if !slices.Contains(s.proof.Methods, by) {
		s.proof.Methods = append(slices.Clip(s.proof.Methods), by)
	}
	if by == ByPassword && s.proof.SecondFactor {
		s.proof.FactorAt = cmp.Or(s.proof.FactorAt, s.proof.At)
	} else {
		s.proof.FactorAt = 0
	}
	s.proof.At, s.proved = s.tx.Now(), true
	if by == ByPassword {
		return record(s.tx, s.user.ID, Reauthenticated{SessionID: s.session.ID, Personal: place})
	}
	s.proof.SecondFactor = true
	return record(s.tx, s.user.ID, SecondFactorProven{SessionID: s.session.ID, Method: by, Personal: place})
}

// step lets decide act in the caller's session while the session counts, in one command, and keeps what it makes of the
// proof. c declares what deciding needs besides the user, who is declared for writing where writes is set. Errors:
// PermissionDenied without a session; access.ErrUnauthenticated when the session has ended meanwhile.
//
// The token is put back in the place of the one before. As in drop, whatever removes a session adds an event to the companion
// or to the user: while neither has moved, there is something to put it back for.
func (s *Sessions) step(ctx context.Context, caller *access.Caller, from From, writes bool, c event.Command, decide func(*state) error) (Stepped, error) {
	if caller.TokenKind != string(secret.Session) {
		return Stepped{}, errSessionOnly
	}
	companion := Kind.Ref(IDFor(caller.UserID))
	c.Origin = caller.Origin()
	c.Write = append(slices.Clip(c.Write), companion)
	c.Read = append(slices.Clip(c.Read), org.Kind.Ref(caller.OrgID), installation.Ref)
	if writes {
		c.Write = append(c.Write, userRef(caller.UserID))
	} else {
		c.Read = append(c.Read, userRef(caller.UserID))
	}
	token, hash := "", []byte(nil)
	if from.Rotate {
		token, hash = secret.NewToken(secret.Session)
	}
	const tries = 10
	died := int64(-1) // the epoch that the session was found dead in, unless it has moved on with the user
	for range tries {
		before, err := Kind.Read(ctx, s.Store, companion.ID)
		if err != nil {
			return Stepped{}, err
		}
		kept, err := s.Store.TokenByID(ctx, caller.TokenID)
		if err != nil {
			return Stepped{}, err
		}
		if kept == nil || kept.UserID != caller.UserID || kept.Epoch == died {
			return Stepped{}, access.ErrUnauthenticated
		}
		var out Stepped
		moved := false
		c.Decide = func(tx *event.Tx) error {
			st, err := inSession(tx, caller, kept)
			if err != nil {
				return err
			}
			if moved = st == nil; moved {
				died = kept.Epoch
				return nil
			}
			now, err := Kind.Get(tx, companion.ID)
			if err != nil {
				return err
			}
			if moved = sequence(now) != sequence(before); moved {
				return nil
			}
			if err := decide(st); err != nil {
				return err
			}
			out = Stepped{Expires: event.Time(kept.Expires)}
			if !st.proved {
				return nil
			}
			out.Token = token
			renewed := *kept
			renewed.Data = st.proof.text()
			if hash != nil {
				renewed.Hash = hash
			}
			tx.DropToken(kept.ID)
			tx.PutToken(renewed)
			return nil
		}
		if err := s.Store.Do(ctx, c); err != nil || !moved {
			return out, err
		}
	}
	return Stepped{}, errBusy
}

// inSession tells what a step sees; nil where the user's sessions were ended since this one was read, which it may have
// survived. Errors: access.ErrUnauthenticated where it does not count.
func inSession(tx *event.Tx, caller *access.Caller, kept *event.Token) (*state, error) {
	u, err := user.Kind.Get(tx, caller.UserID)
	if err != nil {
		return nil, err
	}
	o, err := org.Kind.Get(tx, caller.OrgID)
	if err != nil {
		return nil, err
	}
	i, err := installationStanding(tx)
	if err != nil {
		return nil, err
	}
	switch {
	case u == nil || o == nil:
		return nil, access.ErrUnauthenticated
	case u.State.State == user.Active && kept.Epoch != u.State.SessionEpoch:
		return nil, nil
	case !alive(kept, secret.Session, &u.State.Standing, &o.State.Standing, tx.Now()):
		return nil, access.ErrUnauthenticated
	}
	st := &state{tx: tx, user: u, session: kept, required: o.State.SecondFactorRequired || i.SecondFactorRequired}
	if st.proof, err = ProofOf(kept); err != nil {
		return nil, err
	}
	st.unproven, err = unproven(kept, &u.State.Standing, &o.State.Standing, i)
	return st, err
}
