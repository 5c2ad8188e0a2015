package oauth

import (
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Need is what is missing before a request can be approved.
type Need string

// The needs, in the order in which they are seen to.
const (
	NeedsNothing      Need = ""
	NeedsOtherAccount Need = "other_account" // the person is not in the organization that the sign-in is bound to
	NeedsOtherPerson  Need = "other_person"  // the application means somebody else
	NeedsRole         Need = "role"          // the application is for people with a role only
	NeedsSignIn       Need = "sign_in"       // the person has to prove again who they are
	NeedsFactorAgain  Need = "factor_again"  // the person has to prove the second factor again, too
	NeedsFactor       Need = "factor"        // the person has to prove a second factor
	NeedsConsent      Need = "consent"       // the person has to be asked
)

// Unmet is the first condition of a request that a sign-in does not meet. What is missing follows from it (Need), and
// so does what a trial says about it (Request.Why).
type Unmet int

// The conditions, in the order in which they are judged.
const (
	NothingUnmet          Unmet = iota
	UnmetSubject                // the application means another person
	UnmetOrg                    // the sign-in is bound to an organization that the person is not in
	UnmetRole                   // the application is for people with a role only
	UnmetPrompt                 // prompt=login: the person proved who they are before the application asked
	UnmetMaxAge                 // max_age: the person proved it too long ago
	UnmetFactorPrompt           // prompt=login: the person proved the second factor before the application asked
	UnmetFactorMaxAge           // max_age: the person proved the second factor too long ago
	UnmetAuthTime               // the application wants to know when the person proved who they are, and nobody knows
	UnmetFactor                 // the application demands a second factor
	UnmetPreferredFactor        // the application prefers a second factor, and the person has one
	UnmetConsentPrompt          // prompt=consent
	UnmetConsentElsewhere       // the application is of another organization, and the person has not consented
	UnmetConsentSetting         // the application requires consent
	UnmetConsentScope           // one of the scopes always needs consent
	UnmetConsentChanged         // the application has changed since the person consented
)

// Need is what the person has to do about a condition.
func (u Unmet) Need() Need {
	switch u {
	case UnmetSubject:
		return NeedsOtherPerson
	case UnmetOrg:
		return NeedsOtherAccount
	case UnmetRole:
		return NeedsRole
	case UnmetPrompt, UnmetMaxAge, UnmetAuthTime:
		return NeedsSignIn
	case UnmetFactorPrompt, UnmetFactorMaxAge:
		return NeedsFactorAgain
	case UnmetFactor, UnmetPreferredFactor:
		return NeedsFactor
	case UnmetConsentPrompt, UnmetConsentElsewhere, UnmetConsentSetting, UnmetConsentScope, UnmetConsentChanged:
		return NeedsConsent
	}
	return NeedsNothing
}

// unmet judges an agreement for a person, with what is known of them at a moment. Errors: ErrUnknownClient;
// ErrAccessDenied.
func (a agreement) unmet(client *event.Object[app.App], who *access.Caller, verdict project.Verdict,
	proof session.Proof, given Consent, now int64) (Unmet, error) {
	if client == nil || client.Data.State != app.Active {
		return NothingUnmet, ErrUnknownClient
	}
	known := proof.Known()
	first, second := known.Proven(who.SecondFactor)
	switch {
	case a.subject != "" && a.subject != who.UserID:
		return UnmetSubject, nil
	case verdict == project.OtherOrg:
		return UnmetOrg, nil
	case verdict == project.NoRole:
		return UnmetRole, nil
	case verdict != project.Admitted:
		return NothingUnmet, ErrAccessDenied
	case a.beforePrompt(first):
		return UnmetPrompt, nil
	case a.beyondMaxAge(first, now):
		return UnmetMaxAge, nil
	case a.beforePrompt(second):
		return UnmetFactorPrompt, nil
	case a.beyondMaxAge(second, now):
		return UnmetFactorMaxAge, nil
	case a.timed && known.At() == 0:
		return UnmetAuthTime, nil
	case a.factor && !known.Factor:
		return UnmetFactor, nil
	case a.prefers && who.SecondFactor && !known.Factor:
		return UnmetPreferredFactor, nil
	case a.asked:
		return NothingUnmet, nil
	}
	covered := given.covers(a.own.leaves(client, slices.Concat(a.scopes, a.told)), client.Data.APIEpoch)
	if asks := a.asks(client, who.OrgID); asks != NothingUnmet && (a.ask || !covered) {
		return asks, nil
	}
	if given.outdated(a.scopes, client.Data.APIEpoch) {
		return UnmetConsentChanged, nil
	}
	return NothingUnmet, nil
}

// beforePrompt tells whether something was proven before the application asked for a new proof by prompt=login.
func (a agreement) beforePrompt(at int64) bool { return at < a.since }

// beyondMaxAge tells whether something was proven longer ago than the application takes. What was proven since it asked
// never is, or nobody could ever be young enough for max_age=0.
func (a agreement) beyondMaxAge(at, now int64) bool {
	return a.maxAge != nil && at < a.begun && now-at > seconds(*a.maxAge).Microseconds()
}

// asks tells why people of an organization have to be asked what an application may have; NothingUnmet where they have
// not. What leaves the organization is theirs to give, whatever those say who set the application up.
func (a agreement) asks(client *event.Object[app.App], userOrg string) Unmet {
	switch {
	case a.ask:
		return UnmetConsentPrompt
	case client.Org != userOrg && (!asksLess(client) || len(a.own.leaves(client, slices.Concat(a.scopes, a.told))) > 0):
		return UnmetConsentElsewhere
	case client.Data.ConsentRequired:
		return UnmetConsentSetting
	case len(alwaysAsked(a.scopes)) > 0:
		return UnmetConsentScope
	}
	return NothingUnmet
}

// usual are the scopes and claims that nobody is asked about where the application is the operator's own, besides those
// of organizations and of audiences that are the operator's own, too.
var usual = []string{claimset.OpenID, claimset.ProfileScope, claimset.EmailScope, claimset.PhoneScope,
	claimset.OfflineAccess, claimset.OrgScope, claimset.Roles, claimset.Groups}

// asksLess tells whether people are not asked about what is usual: the application is the operator's own, and does not
// want them to be asked.
func asksLess(client *event.Object[app.App]) bool {
	return client.Data.FirstParty != nil && !client.Data.ConsentRequired
}

// own are the applications that are the operator's own as one of the same organization is. Tokens for them are usual.
type own []string

// ownOf finds them among the audiences that scopes name.
func ownOf(client *event.Object[app.App], scopes []string,
	find func(id string) (*event.Object[app.App], error)) (found own, err error) {
	if client == nil || !asksLess(client) {
		return nil, nil
	}
	for _, s := range scopes {
		id := audienceOf(s)
		if id == "" {
			continue
		}
		a, err := find(id)
		if err != nil {
			return nil, err
		}
		if a != nil && a.Data.State == app.Active && a.Org == client.Org && a.Data.FirstParty != nil {
			found = append(found, id)
		}
	}
	return found, nil
}

// leaves are those of scopes and claims that people of other organizations have to be asked about.
func (o own) leaves(client *event.Object[app.App], asked []string) []string {
	if !asksLess(client) {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(s string) bool {
		return slices.Contains(usual, s) || slices.Contains(o, audienceOf(s)) ||
			strings.HasPrefix(s, orgByID) || strings.HasPrefix(s, orgByDomain)
	})
}

// audiences are the applications that scopes name, as objects that a command reads.
func audiences(scopes []string) (all []event.Ref) {
	for _, s := range scopes {
		if id := audienceOf(s); id != "" {
			all = append(all, app.Kind.Ref(id))
		}
	}
	return all
}
