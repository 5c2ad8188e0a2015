// Package session signs users in and checks bearer tokens: it checks passwords, slows down guessing, and finds the user
// that a token belongs to.
//
// Tokens are rows, not objects of the log. Only their hash is stored, and a token is valid only while its epoch is that
// of its user and organization. Sign-ins, failures and throttling are recorded as events of a companion object per
// user, so that signing in never changes the sequence of the user object. The name typed in a failed attempt is never
// recorded, because people type passwords there.
package session
