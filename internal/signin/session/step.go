package session

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// From is where a step in a session comes from. Rotate gives the session a new token in place of the one before, as
// pages need it: who knows the token from before the step must not gain by it.
type From struct {
	Peer      netip.Addr
	UserAgent string
	Rotate    bool
	App       string // the application that the person is signing in to; empty: none
}

// Source is where it comes from.
func (f From) Source() RequestSource { return RequestSourceOf(f.Peer, f.UserAgent) }

// Stepped is a session after a step. Token is the new one, shown this once; empty where the token stays.
type Stepped struct {
	Token   string
	Expires time.Time
}

// InSession is what a step in a session sees.
type InSession struct {
	tx       *event.Tx
	user     *event.Object[user.User]
	session  *event.Token
	proof    Proof
	unproven bool // a second factor has to be proven first
	required bool // by the organization or the installation, whether or not one is enrolled
	proved   bool // something, in this step
	passkeys bool // may be all that the person signs in with
}

// prove notes one more proof in the session, and records it.
func (s *InSession) prove(by Method, source RequestSource) error {
	if !slices.Contains(s.proof.Methods, by) {
		s.proof.Methods = append(slices.Clip(s.proof.Methods), by)
	}
	if by == ByPassword {
		s.proof.first(s.tx.Now())
	} else {
		s.proof.second(s.tx.Now())
	}
	s.proved = true
	if by == ByPassword {
		return record(s.tx, s.user.ID, Reauthenticated{SessionID: s.session.ID, Personal: source})
	}
	return record(s.tx, s.user.ID, SecondFactorProven{SessionID: s.session.ID, Method: by, Personal: source})
}

// User is the person of the session, for writing where the step declared that.
func (s *InSession) User() *event.Object[user.User] { return s.user }

// Tx is the command of the step.
func (s *InSession) Tx() *event.Tx { return s.tx }

// Upstream is the provider that the session came through; nil: none.
func (s *InSession) Upstream() *Upstream { return s.proof.Upstream }

// MayLink says who may change how they sign in: in a session that counts in full, with a recent proof. Errors:
// user.ErrNotHuman; access.ErrSecondFactor; access.ErrPasswordChange; ErrNotRecent.
func (s *InSession) MayLink() error {
	if err := s.mayChange(); err != nil {
		return err
	}
	if s.user.Data.Password.ChangeRequired {
		return access.ErrPasswordChange
	}
	return nil
}

// Ends is when the session ends at the latest.
func (s *InSession) Ends() int64 { return max(s.session.Expires, s.proof.Until) }

// Ends is when a session ends at the latest: one that ends by not being used may live on by being used.
func (b *Bearer) Ends() int64 {
	proof, err := ProofOf(&b.Token)
	if err != nil {
		return b.Token.Expires
	}
	return max(b.Token.Expires, proof.Until)
}

// ProveThrough notes that the person proved to a provider at a moment who they are. Like a password it is no second
// factor. sid is the digest of the provider's own session where that is the one that ends ours now; empty: it stays as
// it is.
func (s *InSession) ProveThrough(provider, sid string, at int64, source RequestSource) error {
	if !slices.Contains(s.proof.Methods, ByProvider) {
		s.proof.Methods = append(slices.Clip(s.proof.Methods), ByProvider)
	}
	s.proof.first(min(at, s.tx.Now()))
	if up := s.proof.Upstream; up != nil && sid != "" {
		up.Session = sid // it is a copy, see Proof.known
	}
	s.proved = true
	return record(s.tx, s.user.ID, Reauthenticated{SessionID: s.session.ID, Provider: provider, Personal: source})
}

// Step lets decide act in the caller's session while the session counts, in one command, and keeps what it makes of the
// proof. c declares what deciding needs besides the user, who is declared for writing where writes is set. Errors:
// PermissionDenied without a session; access.ErrUnauthenticated when the session has ended meanwhile.
func (s *Sessions) Step(ctx context.Context, caller *access.Caller, from From, writes bool, c event.Command,
	decide func(*InSession) error) (Stepped, error) {
	if caller.TokenKind != string(secret.Session) {
		return Stepped{}, errSessionOnly
	}
	in := RefOf(caller)
	c.Origin = caller.Origin()
	c.Write = append(slices.Clip(c.Write), Kind.Ref(IDFor(caller.UserID)))
	if c.Read = append(slices.Clip(c.Read), in.Reads()...); writes {
		c.Write = append(c.Write, userRef(caller.UserID))
	}
	c.Tokens = append(slices.Clip(c.Tokens), in.ID)
	token, hash := "", []byte(nil)
	if from.Rotate {
		token, hash = secret.NewToken(secret.Session)
	}
	var out Stepped
	c.Decide = func(tx *event.Tx) error {
		st, err := in.look(tx)
		if err != nil {
			return err
		}
		if err := decide(st); err != nil {
			return err
		}
		out = Stepped{Expires: event.Time(st.session.Expires)}
		if !st.proved {
			return nil
		}
		if out.Token = token; !from.Rotate {
			hash = st.session.Hash
		}
		tx.UpdateToken(st.session.ID, hash, st.proof.text())
		return nil
	}
	if err := s.Store.Do(ctx, c); err != nil {
		return Stepped{}, err
	}
	return out, nil
}
