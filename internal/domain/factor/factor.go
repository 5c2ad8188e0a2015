// Package factor checks second factors: codes of an authenticator app (TOTP), passkeys (WebAuthn), and recovery codes
// for people who have lost the others.
//
// The list of a person's factors is part of the user's state. The data to check them is one row of a side table: the
// secrets of authenticator apps wrapped by the master key, the public keys of passkeys, and MACs of recovery codes. A
// command that uses something up (a step of an app, a code, a challenge) reads that row or the row of the challenge and
// locks it until the commit. So if many requests try the same one at once, on any node, only one succeeds.
//
// Package session decides who may add, remove or prove a factor, and what that does to a session.
package factor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// startLife is how long there is to finish what was started: a challenge to answer, an app to show its first code.
const startLife = 5 * time.Minute

// Reasons of this package.
const (
	NotFound            errs.Reason = "FACTOR_NOT_FOUND"
	RemovalRequested    errs.Reason = "FACTOR_REMOVAL_REQUESTED"
	TooMany             errs.Reason = "TOO_MANY_FACTORS"
	PasskeyExists       errs.Reason = "PASSKEY_EXISTS"
	NoPasskey           errs.Reason = "NO_PASSKEY"
	NoSecondFactor      errs.Reason = "NO_SECOND_FACTOR"
	PasskeysUnavailable errs.Reason = "PASSKEYS_NOT_AVAILABLE"
)

// Errors that the rules of factors refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound, "this user has no second factor with this identifier")
	// ErrRemovalRequested bounds how often administrators are asked.
	ErrRemovalRequested = errs.New(errs.FailedPrecondition, RemovalRequested,
		"the removal of this second factor was requested already: ask an administrator of the user's organization to confirm it")
	ErrTooMany = errs.New(errs.FailedPrecondition, TooMany,
		"this user already has 20 second factors: remove one that is no longer needed")
	ErrPasskeyExists = errs.New(errs.AlreadyExists, PasskeyExists, "this passkey is already enrolled")
	ErrNoPasskey     = errs.New(errs.FailedPrecondition, NoPasskey,
		"you have no passkey: use another second factor")
	ErrNoSecondFactor = errs.New(errs.FailedPrecondition, NoSecondFactor,
		"recovery codes need a second factor: add an authenticator app or a passkey first")
	ErrPasskeysUnavailable = errs.New(errs.FailedPrecondition, PasskeysUnavailable,
		"passkeys need a host name: the URL of this installation has an IP address")
)

// Factors checks second factors.
type Factors struct {
	master secret.MasterKey
	issuer string             // what authenticator apps show
	party  *webauthn.WebAuthn // nil: there are no passkeys on an address
}

// New makes the factors of an installation that people reach under a URL. Passkeys are bound to its host name.
func New(master secret.MasterKey, externalURL string) (*Factors, error) {
	u, err := url.Parse(externalURL)
	if err != nil {
		return nil, err
	}
	f := &Factors{master: master, issuer: u.Hostname()}
	if protocol.ValidateRPID(u.Hostname()) != nil {
		return f, nil
	}
	yes := true
	f.party, err = webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: u.Hostname(), RPOrigins: []string{origin(u)},
		AttestationPreference: protocol.PreferNoAttestation,
		// so that no login name is needed, and the passkey can be the only factor
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: &yes, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{ // only told to the browser: what holds is the life of the challenge
			Login:        webauthn.TimeoutConfig{Timeout: startLife, TimeoutUVD: startLife},
			Registration: webauthn.TimeoutConfig{Timeout: startLife, TimeoutUVD: startLife},
		},
	})
	return f, err
}

// Passkeys tells whether there can be any: they are bound to a host name.
func (f *Factors) Passkeys() bool { return f.party != nil }

// origin of a URL in the form that browsers send.
func origin(u *url.URL) string {
	host := u.Host
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}

// kept is what the row user.FactorsRow holds.
type kept struct {
	TOTP     []totpKey `json:"totp,omitempty"`
	Passkeys []passkey `json:"passkeys,omitempty"`
	Recovery [][]byte  `json:"recovery,omitempty"` // MACs of the codes that are left
	Removed  []passkey `json:"removed,omitempty"`  // that count no more, see WasRemoved
}

func parseKept(row *event.Row) (*kept, error) {
	k := &kept{}
	if row == nil {
		return k, nil
	}
	if err := json.Unmarshal(row.Value, k); err != nil {
		return nil, fmt.Errorf("factors at %s: %w", row.Key, err)
	}
	return k, nil
}

// load reads what is kept inside a command that declared the row.
func load(tx *event.Tx, userID string) (*kept, error) {
	row, err := tx.Row(user.FactorsRow(userID))
	if err != nil {
		return nil, err
	}
	return parseKept(row)
}

func (k *kept) save(tx *event.Tx, userID string) error {
	if len(k.TOTP) == 0 && len(k.Passkeys) == 0 {
		k.Recovery = nil // alone they are good for nothing
	}
	if len(k.TOTP) == 0 && len(k.Passkeys) == 0 && len(k.Removed) == 0 {
		tx.DropRow(user.FactorsRow(userID))
		return nil
	}
	value, err := json.Marshal(k)
	if err != nil {
		return err
	}
	tx.PutRow(event.Row{RowKey: user.FactorsRow(userID), Value: value})
	return nil
}

// room refuses one factor more than there may be.
func room(u *event.Object[user.User]) error {
	switch {
	case u.Data.Human == nil:
		return user.ErrNotHuman
	case len(u.Data.Human.Factors) >= user.MaxFactors:
		return ErrTooMany
	}
	return nil
}

// Remove takes a factor away inside a command that declared the user for writing and user.FactorsRow. Errors:
// ErrNotFound.
func Remove(tx *event.Tx, u *event.Object[user.User], id string) error {
	if _, ok := u.Data.Human.Factor(id); !ok {
		return ErrNotFound
	}
	k, err := load(tx, u.ID)
	if err != nil {
		return err
	}
	k.TOTP = slices.DeleteFunc(k.TOTP, func(t totpKey) bool { return t.ID == id })
	k.remove(id)
	if err := k.save(tx, u.ID); err != nil {
		return err
	}
	return u.Append(user.FactorRemoved{FactorID: id})
}

// RemoveSince takes away the factors that were added at a moment or later, and all recovery codes: when those were made
// is not known. The command declared the user for writing and user.FactorsRow.
func (f *Factors) RemoveSince(tx *event.Tx, u *event.Object[user.User], at int64) error {
	for _, has := range u.Data.Human.Factors {
		if has.Created >= at {
			if err := Remove(tx, u, has.ID); err != nil {
				return err
			}
		}
	}
	if u.Data.Human.RecoveryCodes == 0 {
		return nil
	}
	return f.PutRecoveryCodes(tx, u, nil)
}

// RequestRemoval asks those who may remove a factor of a user of the permit's organization to do so. Errors:
// user.ErrNotFound; access.ErrTargetHoldsMore; access.ErrNotForSupport; ErrNotFound; ErrRemovalRequested; Aborted when
// match does not hold.
func RequestRemoval(ctx context.Context, s event.Store, permit access.Permit, userID string, match event.IfMatch,
	id string) (event.Details, error) {
	return user.TakesAway(permit, userID).Change(ctx, s, match, func(tx *event.Tx, u *event.Object[user.User]) error {
		f, there := u.Data.Human.Factor(id)
		switch {
		case !there:
			return ErrNotFound
		case f.RemovalAsked(tx.Now()) != nil:
			return ErrRemovalRequested
		}
		return u.Append(user.FactorRemovalRequested{FactorID: id, By: permit.Origin().Actor, At: tx.Now()})
	})
}

// RemoveFor takes a factor away from a user of the permit's organization. Errors: user.ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotFound; Aborted when match does not hold.
func RemoveFor(ctx context.Context, s event.Store, permit access.Permit, userID string, match event.IfMatch,
	id string) (event.Details, error) {
	row := event.Command{Rows: []event.RowKey{user.FactorsRow(userID)}}
	return user.GivesAccess(permit, userID).Needs(row).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[user.User]) error {
			return Remove(tx, u, id)
		})
}
