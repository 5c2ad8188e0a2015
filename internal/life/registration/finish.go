package registration

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/newcomer"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Waiting is a registration whose mail was read.
type Waiting struct {
	Email    string
	Language string
	Return   string // the application's request that the person came by; empty: none
	Org      *event.Object[org.Org]

	hash []byte
	row  event.RowKey
}

// Find reads the registration that a link leads to. Nothing is used up: programs that look at the links in mails do no
// harm. Errors: ErrNotFound; ErrNoMail; ErrOff where the organization takes no such address any more.
func (s *Registrations) Find(ctx context.Context, link string) (*Waiting, error) {
	hash, row, ok := parse(link)
	if !ok {
		return nil, ErrNotFound
	}
	kept, err := s.Sessions.Store.Row(ctx, row)
	if err != nil {
		return nil, err
	}
	p, err := s.opens(kept, hash)
	if err != nil {
		return nil, err
	}
	o, known, err := s.judge(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, ErrOff
	case known: // somebody else has made sure that it is theirs meanwhile, or the same person in another way
		return nil, ErrNotFound
	}
	return &Waiting{Email: p.Email, Language: p.Language, Return: p.Return, Org: o, hash: hash, row: row}, nil
}

// Finish is what somebody chooses who has the mail. One of Password and Credential is set.
type Finish struct {
	Link        string
	UserName    string // empty: the e-mail address
	FirstName   string
	LastName    string
	NickName    string
	DisplayName string
	Language    string // empty: that of the mail

	Password    string
	Credential  string // a passkey that answers StartPasskey
	PasskeyName string

	AcceptedTerms string // the address of the terms; empty: none are accepted

	Peer      netip.Addr
	UserAgent string
	RequestID string
}

// Violations lists what is wrong with it before the registration is known.
func (f Finish) Violations() (wrong errs.Violations) {
	if (f.Password == "") == (f.Credential == "") {
		wrong.Add("password", errs.Plain("or credential must be sent: exactly one of the two"))
	}
	return wrong
}

// StartPasskey begins to make the first passkey of the person who opened the link, and gives what the browser needs.
// Errors: those of Find; factor.ErrPasskeysUnavailable; ResourceExhausted where too much was begun from the network.
func (s *Registrations) StartPasskey(ctx context.Context, peer netip.Addr, link string) (options string, err error) {
	w, err := s.Find(ctx, link)
	if err != nil {
		return "", err
	}
	return s.newcomers().StartPasskey(ctx, peer, w.Email, w.Email, w.flow())
}

func (s *Registrations) newcomers() newcomer.Newcomers {
	return newcomer.Newcomers{Sessions: s.Sessions}
}

// flow is what a passkey's ceremony is bound to.
func (w *Waiting) flow() string { return "registration/" + hex.EncodeToString(w.hash) }

// Check refuses what Finish would refuse of the names and the terms, before anybody makes a passkey in vain. Errors: as
// Finish.
func (s *Registrations) Check(ctx context.Context, f Finish) error {
	w, err := s.Find(ctx, f.Link)
	if err != nil {
		return err
	}
	if asked := w.Org.Data.Policy.TermsURI; asked != "" && asked != f.AcceptedTerms {
		return user.TermsNotAccepted(asked)
	}
	p := f.person(w)
	if err := p.Violations().Err(); err != nil {
		return err
	}
	if p.UserName == "" {
		p.UserName = p.Email
	}
	holder, err := s.Sessions.Store.Holder(ctx, user.NameClaim(w.Org.ID, syntax.NameKey(p.UserName)))
	if err == nil && holder != "" {
		err = user.ErrUserNameTaken
	}
	return err
}

// person is who somebody becomes.
func (f Finish) person(w *Waiting) newcomer.Person {
	p := newcomer.Person{
		OrgID:        w.Org.ID,
		UserName:     f.UserName,
		FirstName:    f.FirstName,
		LastName:     f.LastName,
		NickName:     f.NickName,
		DisplayName:  f.DisplayName,
		Language:     f.Language,
		Email:        w.Email,
		Verification: user.Verification{By: user.VerifiedByOwner},
		Password:     f.Password,
		Peer:         f.Peer,
		UserAgent:    f.UserAgent,
		RequestID:    f.RequestID,
	}
	if p.Language == "" {
		p.Language = w.Language
	}
	if f.Credential != "" {
		p.Passkey = &newcomer.Passkey{Credential: f.Credential, Name: f.PasskeyName, Flow: w.flow()}
	}
	return p
}

// Finish makes a user of somebody, with an address that is verified because they have the mail, and opens a session. It
// works once. Whether the organization takes the address, and which terms have to be accepted, is judged at this
// moment. Errors: those of Find; InvalidArgument with violations, on userName, profile.…, password, credential and
// user.TermsField; session.ErrMethodNotAllowed; user.ErrUserNameTaken; Unavailable when too many passwords are being
// hashed; ResourceExhausted where too much was begun from the network.
func (s *Registrations) Finish(ctx context.Context, f Finish) (session.SignedIn, error) {
	if err := f.Violations().Err(); err != nil {
		return session.SignedIn{}, err
	}
	w, err := s.Find(ctx, f.Link)
	if err != nil {
		return session.SignedIn{}, err
	}
	if asked := w.Org.Data.Policy.TermsURI; asked != "" && asked != f.AcceptedTerms { // before any work
		return session.SignedIn{}, user.TermsNotAccepted(asked)
	}
	proven := org.ProvenClaimOf(w.Email)
	in, err := s.newcomers().Create(ctx, f.person(w),
		event.Command{Rows: []event.RowKey{w.row}, Claims: []event.Claim{proven}},
		func(tx *event.Tx, u *event.Object[user.User]) error {
			kept, err := tx.Row(w.row)
			if err != nil {
				return err
			}
			if _, err := s.opens(kept, w.hash); err != nil {
				return err
			}
			tx.DropRow(w.row)
			o, err := org.Kind.Get(tx, w.Org.ID)
			if err != nil {
				return err
			}
			prover, err := tx.Holder(proven)
			if err != nil {
				return err
			}
			if !takes(o, prover) { // nor does one that is closed
				return ErrOff
			}
			return user.AcceptTerms(tx, u, o.Data.Policy.TermsURI, f.AcceptedTerms)
		})
	switch {
	case errors.Is(err, session.ErrSignInFailed): // the organization was switched off meanwhile
		return session.SignedIn{}, ErrOff
	case errors.Is(err, user.ErrUserNameTaken): // by the same person in another window, maybe
		if _, gone := s.Find(ctx, f.Link); errors.Is(gone, ErrNotFound) {
			return session.SignedIn{}, ErrNotFound
		}
	}
	return in, err
}
