// Package claimset makes the claims of tokens, of the user info and of introspection. The code that decides about a
// claim also gives the reason. So a trial of a sign-in (package trial) can say why a claim is there or missing, and
// what it says is always what was decided.
package claimset

import (
	"crypto/sha256"
	"encoding/base64"
)

// HalfHash is what an ID token says about the access token beside it. ES256 and RS256 both mean SHA-256.
func HalfHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// Source is where a claim comes from.
type Source string

// The sources.
const (
	Always  Source = "always"
	Scope   Source = "scope"
	Request Source = "request" // a parameter of the authorization request
	Setting Source = "setting" // of the application
	SignIn  Source = "sign_in" // how the person signed in
	Size    Source = "size"    // other claims are too large
)

// Why is the reason for a claim.
type Why struct {
	Source Source
	Of     string // the name of the scope, parameter or setting
	Real   any    // the value in a real sign-in, where a trial has another one; nil: the same
}

// Lack is why a claim is missing.
type Lack string

// The reasons.
const (
	NoScope       Lack = "scope" // it was not granted
	NoValue       Lack = "no_value"
	NotSet        Lack = "setting" // of the application
	NotAsked      Lack = "request" // by a parameter of the authorization request
	TooLarge      Lack = "size"
	OtherAudience Lack = "audience" // somebody else reads the token, too

	OtherOrganization Lack = "organization" // it is told only of people of the application's own organization
)

// Missing is the reason why a claim is missing.
type Missing struct {
	Lack Lack
	Of   string // the name of the scope, parameter or setting
}

// Set is the claims of one token or answer.
type Set struct {
	Values    map[string]any
	LoginName string // of whom it is about, with the domain of the organization; empty: nobody wants to know
	Mapped    Mapped // what the application declares for introspection; none: nobody wants to know
	notes     *notes // nil: nobody wants to know why
}

type notes struct {
	why     map[string]Why
	missing map[string]Missing
}

// New makes an empty set. An explained one keeps the reasons.
func New(explained bool) Set {
	s := Set{Values: map[string]any{}}
	if explained {
		s.notes = &notes{map[string]Why{}, map[string]Missing{}}
	}
	return s
}

// Explained tells whether the set keeps the reasons.
func (s Set) Explained() bool { return s.notes != nil }

// Put adds a claim.
func (s Set) Put(name string, value any, why Why) {
	s.Values[name] = value
	if s.notes != nil {
		s.notes.why[name] = why
		delete(s.notes.missing, name)
	}
}

// Lacks notes why claims are missing that are not there.
func (s Set) Lacks(why Missing, names ...string) {
	if s.notes == nil {
		return
	}
	for _, name := range names {
		if _, there := s.Values[name]; !there {
			s.notes.missing[name] = why
		}
	}
}

// Why is the reason for a claim, in an explained set.
func (s Set) Why(name string) Why {
	if s.notes == nil {
		return Why{}
	}
	return s.notes.why[name]
}

// Missing are the claims that are missing, in an explained set.
func (s Set) Missing() map[string]Missing {
	if s.notes == nil {
		return nil
	}
	return s.notes.missing
}

// Take adds the claims of another set that a rule lets in. It gives the reason for each, or why it is left out.
func (s Set) Take(from Set, rule func(name string, why Why) (Why, *Missing)) {
	for name, value := range from.Values {
		if why, out := rule(name, from.Why(name)); out != nil {
			s.Lacks(*out, name)
		} else {
			s.Put(name, value, why)
		}
	}
	for name, why := range from.Missing() {
		s.Lacks(why, name)
	}
}
