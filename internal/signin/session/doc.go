// Package session lets people and programs in: it signs in with a password, slows down whoever guesses, and tells
// which user a bearer token belongs to.
//
// Tokens are rows, not objects of the log: only their hash is stored, and they hold only while their epoch is that of
// their user and organization. What happened (sign-ins, failures, throttling) is recorded as events of a
// companion object per user, so that a user's own sequence never moves by signing in. The name
// typed in a failed attempt is recorded nowhere: people type passwords there.
package session
