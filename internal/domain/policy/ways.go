package policy

import (
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Way is a way to sign in.
type Way string

// The ways.
const (
	WithPassword Way = "password"
	WithPasskey  Way = "passkey"
	WithProvider Way = "provider" // another identity provider
)

// Ways are all of them.
var Ways = []Way{WithPassword, WithPasskey, WithProvider}

// SignIn is how the people of an organization sign in. Only organizations have it: it counts for their own people,
// wherever those sign in.
type SignIn struct {
	SignInMethods []Way `json:"signInMethods,omitempty"` // that are allowed; none: all of them
	// ids of those that are allowed; none: all that may be used
	Providers []string `json:"providers,omitempty"`
	// where people go straight who type a name with a proven domain of the organization
	DefaultProvider       string   `json:"defaultProvider,omitempty"`
	SecondFactorProviders []string `json:"secondFactorProviders,omitempty"` // whose own second factor counts as one
	// providers of the default organization register people here
	RegistersFromDefault bool `json:"registersFromDefault,omitempty"`
}

// Allows tells whether people may sign in in a way.
func (s SignIn) Allows(w Way) bool {
	return len(s.SignInMethods) == 0 || slices.Contains(s.SignInMethods, w)
}

// AllowsProvider tells whether people may sign in through a provider, as far as the policy goes.
func (s SignIn) AllowsProvider(id string) bool {
	return s.Allows(WithProvider) && (len(s.Providers) == 0 || slices.Contains(s.Providers, id))
}

// Named are the providers that it names, each once.
func (s SignIn) Named() []string {
	all := slices.Concat(s.Providers, s.SecondFactorProviders)
	if s.DefaultProvider != "" {
		all = append(all, s.DefaultProvider)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SignInDiff is what differs between two of them.
type SignInDiff struct {
	SignInMethods         *[]Way    `json:"signInMethods,omitempty"`
	Providers             *[]string `json:"providers,omitempty"`
	DefaultProvider       *string   `json:"defaultProvider,omitempty"`
	SecondFactorProviders *[]string `json:"secondFactorProviders,omitempty"`
	RegistersFromDefault  *bool     `json:"registersFromDefault,omitempty"`
}

func (s SignIn) diffTo(next SignIn) SignInDiff {
	return SignInDiff{
		SignInMethods:         changedList(s.SignInMethods, next.SignInMethods),
		Providers:             changedList(s.Providers, next.Providers),
		DefaultProvider:       changed(s.DefaultProvider, next.DefaultProvider),
		SecondFactorProviders: changedList(s.SecondFactorProviders, next.SecondFactorProviders),
		RegistersFromDefault:  changed(s.RegistersFromDefault, next.RegistersFromDefault),
	}
}

func (d SignInDiff) apply(s *SignIn) {
	setList(&s.SignInMethods, d.SignInMethods)
	setList(&s.Providers, d.Providers)
	set(&s.DefaultProvider, d.DefaultProvider)
	setList(&s.SecondFactorProviders, d.SecondFactorProviders)
	set(&s.RegistersFromDefault, d.RegistersFromDefault)
}

// changedList is changed for lists. None is an empty list: null would read as no change.
func changedList[T comparable](old, value []T) *[]T {
	if slices.Equal(old, value) {
		return nil
	}
	list := append([]T{}, value...)
	return &list
}

func setList[T any](field *[]T, value *[]T) {
	if value == nil {
		return
	}
	if *field = nil; len(*value) > 0 {
		*field = *value
	}
}

// InstallationViolations lists what a policy of the installation must not say: how people sign in and register, and
// what is asked of guests, is for their organizations.
func (p Policy) InstallationViolations(prefix string) (wrong errs.Violations) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"signInMethods", len(p.SignInMethods) > 0}, {"idpIds", len(p.Providers) > 0},
		{"defaultIdpId", p.DefaultProvider != ""},
		{"secondFactorIdpIds", len(p.SecondFactorProviders) > 0}, {"registersFromDefault", p.RegistersFromDefault},
		{"registration", p.Registration != ToNobody}, {"termsUri", p.TermsURI != ""},
		{"privacyUri", p.PrivacyURI != ""},
		{"guestProofSeconds", p.GuestProofSeconds != 0},
	} {
		if f.set {
			wrong.Add(prefix+f.name, errs.Plain("is for organizations only: set it with SetOrganizationPolicy"))
		}
	}
	return wrong
}
