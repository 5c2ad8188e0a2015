// Package policy says how strict an installation and its organizations are about passwords, second factors, guessing
// and the life of sessions.
//
// The installation sets what counts for everybody. An organization can only be stricter: of each value the stricter one
// counts (Effective). All values are optional.
package policy

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// DefaultSessionLife is how long a session lives where nobody says otherwise.
const DefaultSessionLife = 12 * time.Hour

// Policy is what an installation or an organization asks for. A zero value asks for nothing. The definition of the API
// bounds each of them.
type Policy struct {
	SecondFactorRequired   bool  `json:"secondFactorRequired,omitempty"`
	PasswordMinLength      int64 `json:"passwordMinLength,omitempty"` // in characters
	CommonPasswordsRefused bool  `json:"commonPasswordsRefused,omitempty"`
	PasswordsOf            Whose `json:"passwordsOf,omitempty"`

	// How guessing is slowed down: how many attempts are free, and how long the next one waits at most. An account is
	// counted together with the network that the attempts come from, and alone.
	NetworkAttempts    int64 `json:"networkAttempts,omitempty"`
	NetworkWaitSeconds int64 `json:"networkWaitSeconds,omitempty"`
	AccountAttempts    int64 `json:"accountAttempts,omitempty"`
	AccountWaitSeconds int64 `json:"accountWaitSeconds,omitempty"`

	SessionSeconds     int64 `json:"sessionSeconds,omitempty"`     // from sign-in to the end
	SessionIdleSeconds int64 `json:"sessionIdleSeconds,omitempty"` // from the last use to the end

	SignIn
	Guests
	Registering
	Devices
}

// Whose passwords the rules about passwords are for.
type Whose string

// What was set before there was a choice says nothing about it: the rules that it sets are for everybody.
const (
	People    Whose = "people"    // passwords that people choose for themselves
	Everybody Whose = "everybody" // also those that administrators give to others
)

// BindsAdministrators tells whether a policy has rules for passwords that administrators give to others.
func (p Policy) BindsAdministrators() bool {
	return p.PasswordsOf == Everybody || p.PasswordsOf == "" && (p.PasswordMinLength > 0 || p.CommonPasswordsRefused)
}

// defaults are what counts where the installation sets nothing. A session that is not used lives as long as any other.
var defaults = Policy{
	PasswordMinLength: 8, CommonPasswordsRefused: true, PasswordsOf: People,
	NetworkAttempts: 5, NetworkWaitSeconds: 15 * 60,
	AccountAttempts: 50, AccountWaitSeconds: 10,
	SessionSeconds: int64(DefaultSessionLife / time.Second),
}

// Settings is what counts: a policy in which every value has been decided.
type Settings struct {
	Policy
	given PasswordRules
}

// Effective takes the stricter one of each value. A default counts as the installation's, so that it is the
// installation alone that can ask for less than that.
func Effective(installation, org Policy) Settings {
	i, d := installation, defaults
	s := Settings{Policy: Policy{
		SecondFactorRequired:   i.SecondFactorRequired || org.SecondFactorRequired,
		PasswordMinLength:      max(cmp.Or(i.PasswordMinLength, d.PasswordMinLength), org.PasswordMinLength),
		CommonPasswordsRefused: d.CommonPasswordsRefused || i.CommonPasswordsRefused || org.CommonPasswordsRefused,
		PasswordsOf:            d.PasswordsOf,
		NetworkAttempts:        least(cmp.Or(i.NetworkAttempts, d.NetworkAttempts), org.NetworkAttempts),
		NetworkWaitSeconds:     max(cmp.Or(i.NetworkWaitSeconds, d.NetworkWaitSeconds), org.NetworkWaitSeconds),
		AccountAttempts:        least(cmp.Or(i.AccountAttempts, d.AccountAttempts), org.AccountAttempts),
		AccountWaitSeconds:     max(cmp.Or(i.AccountWaitSeconds, d.AccountWaitSeconds), org.AccountWaitSeconds),
		SessionSeconds:         least(cmp.Or(i.SessionSeconds, d.SessionSeconds), org.SessionSeconds),
		SessionIdleSeconds:     least(i.SessionIdleSeconds, org.SessionIdleSeconds),
		SignIn:                 org.SignIn,
		Guests:                 org.Guests,
		Registering:            org.Registering,
		Devices:                effectiveDevices(i.Devices, org.Devices),
	}}
	if i.BindsAdministrators() || org.BindsAdministrators() {
		s.PasswordsOf = Everybody
	}
	s.given = s.rulesForAdministrators(i, org)
	return s
}

// rulesForAdministrators are those of people where a policy says so. Of one from before the choice, only what it sets
// itself counts: the defaults of today are not what its author meant.
func (s Settings) rulesForAdministrators(policies ...Policy) PasswordRules {
	given := PasswordRules{MinLength: 1}
	for _, p := range policies {
		switch p.PasswordsOf {
		case Everybody:
			return s.Chosen()
		case "":
			given.MinLength = max(given.MinLength, p.PasswordMinLength)
			given.NotCommon = given.NotCommon || p.CommonPasswordsRefused
		}
	}
	return given
}

// least is the smaller one of those that are set.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// SessionLife is how long a session lives.
func (s Settings) SessionLife() time.Duration { return seconds(s.SessionSeconds) }

// SessionIdle is how long a session lives without being used; zero: as long as it lives.
func (s Settings) SessionIdle() time.Duration { return seconds(s.SessionIdleSeconds) }

// NetworkWait is how long an account waits at most for attempts from one network.
func (s Settings) NetworkWait() time.Duration { return seconds(s.NetworkWaitSeconds) }

// AccountWait is how long an account waits at most for attempts from anywhere.
func (s Settings) AccountWait() time.Duration { return seconds(s.AccountWaitSeconds) }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// PasswordRules is what a new password has to keep to, besides the bounds that hold for every password.
type PasswordRules struct {
	MinLength int64
	NotCommon bool
}

// Chosen are the rules for passwords that people choose for themselves.
func (s Settings) Chosen() PasswordRules {
	return PasswordRules{s.PasswordMinLength, s.CommonPasswordsRefused}
}

// Given are the rules for passwords that administrators give to others.
func (s Settings) Given() PasswordRules { return s.given }

// Violations lists what is wrong with a new password, as a violation of the field that it came in. Every path that
// takes a new password asks here before it is hashed.
func (r PasswordRules) Violations(field, password string) (wrong errs.Violations) {
	if wrong.Add(field, syntax.Text(password, syntax.MaxPassword)); wrong != nil {
		return wrong
	}
	return r.InitialViolations(field, password)
}

// InitialViolations is Violations for the first password of a new organization, which may be of any length.
func (r PasswordRules) InitialViolations(field, password string) (wrong errs.Violations) {
	if password == "" {
		wrong.Add(field, syntax.Empty)
	} else if int64(utf8.RuneCountInString(password)) < r.MinLength {
		wrong.Add(field, errs.Plain(fmt.Sprintf("must have at least %d characters", r.MinLength)))
	} else if r.NotCommon && Common(password) {
		wrong.Add(field, errs.Plain("is too common: choose a password that is harder to guess"))
	}
	return wrong
}

// Diff is what differs between two policies. The installation or organization that has the policy records it as a fact.
type Diff struct {
	SecondFactorRequired   *bool  `json:"secondFactorRequired,omitempty"`
	PasswordMinLength      *int64 `json:"passwordMinLength,omitempty"`
	CommonPasswordsRefused *bool  `json:"commonPasswordsRefused,omitempty"`
	PasswordsOf            *Whose `json:"passwordsOf,omitempty"`
	NetworkAttempts        *int64 `json:"networkAttempts,omitempty"`
	NetworkWaitSeconds     *int64 `json:"networkWaitSeconds,omitempty"`
	AccountAttempts        *int64 `json:"accountAttempts,omitempty"`
	AccountWaitSeconds     *int64 `json:"accountWaitSeconds,omitempty"`
	SessionSeconds         *int64 `json:"sessionSeconds,omitempty"`
	SessionIdleSeconds     *int64 `json:"sessionIdleSeconds,omitempty"`
	SignInDiff
	GuestsDiff
	RegisteringDiff
	DevicesDiff
}

// Since implements event.Gated: a node that does not know whose passwords are meant, how people may sign in, or who may
// register, would forget it with the next change of its object, and let in who may not.
func (c Diff) Since() int {
	if c.GuestsDiff != (GuestsDiff{}) {
		return guestsVersion
	}
	if c.RegisteringDiff != (RegisteringDiff{}) || c.DevicesDiff != (DevicesDiff{}) {
		return 4
	}
	if c.SignInDiff != (SignInDiff{}) {
		return 3
	}
	if c.PasswordsOf != nil {
		return 2
	}
	return 0
}

// DiffTo tells what has to change for p to become another policy.
func (p Policy) DiffTo(next Policy) Diff {
	return Diff{
		SecondFactorRequired:   changed(p.SecondFactorRequired, next.SecondFactorRequired),
		PasswordMinLength:      changed(p.PasswordMinLength, next.PasswordMinLength),
		CommonPasswordsRefused: changed(p.CommonPasswordsRefused, next.CommonPasswordsRefused),
		PasswordsOf:            changed(p.PasswordsOf, next.PasswordsOf),
		NetworkAttempts:        changed(p.NetworkAttempts, next.NetworkAttempts),
		NetworkWaitSeconds:     changed(p.NetworkWaitSeconds, next.NetworkWaitSeconds),
		AccountAttempts:        changed(p.AccountAttempts, next.AccountAttempts),
		AccountWaitSeconds:     changed(p.AccountWaitSeconds, next.AccountWaitSeconds),
		SessionSeconds:         changed(p.SessionSeconds, next.SessionSeconds),
		SessionIdleSeconds:     changed(p.SessionIdleSeconds, next.SessionIdleSeconds),
		SignInDiff:             p.SignIn.diffTo(next.SignIn),
		GuestsDiff:             p.Guests.diffTo(next.Guests),
		RegisteringDiff:        p.Registering.diffTo(next.Registering),
		DevicesDiff:            p.Devices.diffTo(next.Devices),
	}
}

// Apply carries the change out.
func (c Diff) Apply(p *Policy) {
	set(&p.SecondFactorRequired, c.SecondFactorRequired)
	set(&p.PasswordMinLength, c.PasswordMinLength)
	set(&p.CommonPasswordsRefused, c.CommonPasswordsRefused)
	set(&p.PasswordsOf, c.PasswordsOf)
	set(&p.NetworkAttempts, c.NetworkAttempts)
	set(&p.NetworkWaitSeconds, c.NetworkWaitSeconds)
	set(&p.AccountAttempts, c.AccountAttempts)
	set(&p.AccountWaitSeconds, c.AccountWaitSeconds)
	set(&p.SessionSeconds, c.SessionSeconds)
	set(&p.SessionIdleSeconds, c.SessionIdleSeconds)
	c.SignInDiff.apply(&p.SignIn)
	c.GuestsDiff.apply(&p.Guests)
	c.RegisteringDiff.apply(&p.Registering)
	c.DevicesDiff.apply(&p.Devices)
}

// changed and set do what event.Changed and event.Set do, which are out of reach from down here.
func changed[T comparable](old, value T) *T {
	if old == value {
		return nil
	}
	return &value
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
