// Package oauth holds the rules of OAuth: what users allow applications, and the tokens that follow from it. It knows
// no HTTP: package oidc serves the endpoints, and the hosted pages ask the users.
//
// The way of a sign-in to an application:
//
//	Begin ──► request ──► pages: Pending, Needs ──► Approve ──► code ──► Exchange ──► access token, ID token
//	                                          └──► Refuse                        └──► refresh token ──► Refresh ──► …
//
// Requests, codes, refresh tokens and device codes are rows of the side table event.Flows that expire. One command
// locks, checks and uses up such a row, so each is used once, however many requests on however many nodes try.
//
// Access tokens are stored like any other token (event.Token), by their hash, whether they are opaque or a JWT. Without
// offline_access they are valid as long as the session that they came from. With it, access tokens and their refresh
// tokens are valid as long as the user's epoch of tokens. All tokens that came from one code are a family. A code or a
// refresh token that is used twice has been stolen, so its second use ends the family. Only a refresh token that was
// replaced a moment ago gets the same answer again (refresh.go).
//
// What a user has allowed is an object beside the user (kind consent). Every command that makes a token reads it, so
// withdrawing a consent ends everything that was given by it, including refresh tokens and codes that are not yet
// exchanged.
package oauth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/dpop"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/session"
)

// How long things on their way count.
const (
	requestLife = 30 * time.Minute
	codeLife    = time.Minute
	deviceLife  = 10 * time.Minute
	usedLife    = 24 * time.Hour // that a code was used is remembered
	serviceLife = time.Hour      // access tokens of service users
)

// The reasons of this package. Those that OAuth has a word for are that word in upper case.
const (
	InvalidClient        errs.Reason = "INVALID_CLIENT"
	InvalidGrant         errs.Reason = "INVALID_GRANT"
	InvalidScope         errs.Reason = "INVALID_SCOPE"
	UnauthorizedClient   errs.Reason = "UNAUTHORIZED_CLIENT"
	AccessDenied         errs.Reason = "ACCESS_DENIED"
	LoginRequired        errs.Reason = "LOGIN_REQUIRED"
	ConsentRequired      errs.Reason = "CONSENT_REQUIRED"
	InteractionRequired  errs.Reason = "INTERACTION_REQUIRED"
	SelectionRequired    errs.Reason = "ACCOUNT_SELECTION_REQUIRED"
	AuthorizationPending errs.Reason = "AUTHORIZATION_PENDING"
	SlowDown             errs.Reason = "SLOW_DOWN"
	ExpiredToken         errs.Reason = "EXPIRED_TOKEN"
	UnmetAuthentication  errs.Reason = "UNMET_AUTHENTICATION_REQUIREMENTS"

	UnknownClient   errs.Reason = "UNKNOWN_CLIENT"
	RedirectRefused errs.Reason = "REDIRECT_REFUSED"
	// of a pushed request, see pushed.go
	InvalidRequestURI errs.Reason = "INVALID_REQUEST_URI"
	RequestNotFound   errs.Reason = "SIGN_IN_REQUEST_NOT_FOUND"
	WrongOrg          errs.Reason = "WRONG_ORGANIZATION"
	ConsentNotFound   errs.Reason = "CONSENT_NOT_FOUND"
	UserCodeNotFound  errs.Reason = "USER_CODE_NOT_FOUND"
)

// Errors that the rules of this package refuse with.
var (
	ErrInvalidClient = errs.New(errs.Unauthenticated, InvalidClient,
		"the client is unknown or its authentication failed: check its id, its credential and its authentication method")
	ErrInvalidGrant = errs.New(errs.FailedPrecondition, InvalidGrant,
		"the code, token or assertion is not valid, has expired, has been used, or was issued to another client: start again")
	ErrInvalidScope       = errs.New(errs.InvalidArgument, InvalidScope, "a requested scope was not granted at first")
	ErrUnauthorizedClient = errs.New(errs.PermissionDenied, UnauthorizedClient,
		"this application does not have this grant type")
	ErrAccessDenied = errs.New(errs.PermissionDenied, AccessDenied,
		"the person or a rule denied this application access")
	ErrNoRole = errs.New(errs.PermissionDenied, AccessDenied,
		"only people with a role in this application can use it: ask an administrator for one")
	ErrLoginRequired       = errs.New(errs.FailedPrecondition, LoginRequired, "the person must sign in again first")
	ErrConsentRequired     = errs.New(errs.FailedPrecondition, ConsentRequired, "the person must consent first")
	ErrInteractionRequired = errs.New(errs.FailedPrecondition, InteractionRequired,
		"the person must complete a step on a page first")
	ErrSelectionRequired = errs.New(errs.FailedPrecondition, SelectionRequired,
		"the person must choose an account first")
	ErrUnmetAuthentication = errs.New(errs.FailedPrecondition, UnmetAuthentication,
		"the person cannot be authenticated as the application demands by the claim acr: a second factor can be set up at the account page")
	ErrAuthorizationPending = errs.New(errs.FailedPrecondition, AuthorizationPending,
		"the person has not answered yet: poll again after the interval")
	ErrSlowDown = errs.New(errs.ResourceExhausted, SlowDown,
		"polling too often: wait five seconds longer between requests from now on")
	ErrExpiredToken = errs.New(errs.FailedPrecondition, ExpiredToken,
		"the device code has expired, or has been used: start again")

	ErrUnknownClient = errs.New(errs.InvalidArgument, UnknownClient,
		"there is no application with this client_id to which people can sign in: check it, and that the application is active")
	ErrRedirectRefused = errs.New(errs.InvalidArgument, RedirectRefused,
		"this redirect_uri is not registered with the application: add exactly this address to its redirectUris")
	ErrRequestNotFound = errs.New(errs.NotFound, RequestNotFound,
		"this browser has no such sign-in, or it has expired: go back to the application and start again")
	ErrWrongOrg = errs.New(errs.PermissionDenied, WrongOrg,
		"this sign-in is for people of another organization: sign in with another account")
	ErrConsentNotFound = errs.New(errs.NotFound, ConsentNotFound, "this application has no access")

	errBusy = errs.New(errs.Aborted, event.Contention, "no free device code was found: try again")
)

// Signer signs tokens.
type Signer interface {
	// Sign makes a JWT out of claims, by the current key of an algorithm.
	Sign(ctx context.Context, algorithm, typ string, claims any) (string, error)
}

// KeySets finds the public keys that applications publish.
type KeySets interface {
	// Find gives the keys at an address of an organization that signatures of this key id can be checked with; of all
	// ids where it is empty.
	Find(ctx context.Context, org, address, keyID string) ([]jose.JSONWebKey, error)
}

// Grants makes tokens.
type Grants struct {
	Store    event.Store
	Sessions *session.Sessions
	Master   secret.MasterKey
	Clock    func() time.Time
	Signer   Signer
	KeySets  KeySets // nil: applications cannot publish keys
	Issuers  Issuers // nil: keys of outside issuers cannot be fetched
	Issuer   string  // the external URL
	// Refusals keeps why applications were refused; nil: nothing does.
	Refusals *refusal.Book

	seen dpop.Seen
}

// TokenEndpoint is the address that assertions may be meant for, besides the issuer.
func (g *Grants) TokenEndpoint() string { return g.Issuer + "/oauth/token" }

// PushEndpoint is the address that assertions for pushed requests may be meant for, too (RFC 9126, section 2).
func (g *Grants) PushEndpoint() string { return g.Issuer + "/oauth/par" }

func (g *Grants) now() int64 { return event.Micros(g.Clock()) }

// strangers bounds what those who have not signed in can have stored, see ratelimit.NetworkLimiter.
func (g *Grants) strangers(ctx context.Context) error {
	return g.Sessions.NetworkLimiter.Take(call.From(ctx).Peer, 1)
}

// Visits knows the applications that sessions led to tokens of.
func (g *Grants) Visits() Visits { return Visits{Store: g.Store, Sessions: g.Sessions} }

// refs lists objects, each once.
func refs(all ...event.Ref) []event.Ref {
	var once []event.Ref
	for _, ref := range all {
		if !slices.Contains(once, ref) {
			once = append(once, ref)
		}
	}
	return once
}

// maxID is longer than any identifier.
const maxID = 100

// active gives an application that people may sign in to, or whose tokens may be asked for, as far as it and its
// organization are in use; nil where there is none.
func (g *Grants) active(ctx context.Context, id string) (*event.Object[app.App], error) {
	if len(id) > maxID {
		return nil, nil
	}
	a, err := app.InUse(ctx, g.Store, id)
	if errors.Is(err, app.ErrNotFound) {
		return nil, nil
	}
	return a, err
}
