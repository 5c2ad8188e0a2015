// Package session lets people and programs in: it signs in with a password, slows down whoever guesses, and tells
// which user a bearer token belongs to.
//
// Tokens are rows, not objects of the log: only their hash is stored, and they hold only while their epoch is that of
// their user and organization. What happened (sign-ins, failures, throttling) is recorded as events of a
// companion object per user, so that a user's own sequence never moves by signing in. The name
// typed in a failed attempt is recorded nowhere: people type passwords there.
package session

import "github.com/signet-idm/signet/internal/signin/session/signins"

// What is recorded of sign-ins, see package signins.
type (
	SignIns                = signins.SignIns
	Place                  = signins.Place
	Method                 = signins.Method
	Succeeded              = signins.Succeeded
	Failed                 = signins.Failed
	Throttled              = signins.Throttled
	Ended                  = signins.Ended
	TokenIssued            = signins.TokenIssued
	TokenRevoked           = signins.TokenRevoked
	SecondFactorProven     = signins.SecondFactorProven
	SecondFactorGuessed    = signins.SecondFactorGuessed
	Reauthenticated        = signins.Reauthenticated
	PasswordResetRequested = signins.PasswordResetRequested
	GrantReused            = signins.GrantReused
	Erased                 = signins.Erased
)

// The methods.
const (
	ByPassword = signins.ByPassword
	ByTOTP     = signins.ByTOTP
	ByPasskey  = signins.ByPasskey
	ByRecovery = signins.ByRecovery
	ByProvider = signins.ByProvider
)

// Kind of the companion objects, and what commands do with them.
var (
	Kind        = signins.Kind
	IDFor       = signins.IDFor
	UserOf      = signins.UserOf
	Companion   = signins.Companion
	Erase       = signins.Erase
	RecordReuse = signins.RecordReuse
	RecordEnd   = signins.RecordEnd
	record      = signins.Record
)
