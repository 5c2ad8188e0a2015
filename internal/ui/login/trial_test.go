package login

import (
	"testing"

	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/trial"
)

// A trial says why a page came by looking at the facts that have decided it.
func TestWhyAPageOfATrialCame(t *testing.T) {
	seconds := int64(60)
	asked := &oauth.Request{MaxAge: &seconds, Org: "org_b", Scopes: []string{"openid", "signet.passwords"}}
	because := func(b trial.Because) trial.Why { return trial.Why{Because: b} }
	for name, tt := range map[string]struct {
		facts facts
		page  trial.Page
		want  trial.Why
	}{
		"nobody is signed in": {facts{}, trial.LoginName, because(trial.NobodyThere)},
		"another account is wanted": {
			facts{able: true, other: true}, trial.LoginName,
			because(trial.OtherWanted),
		},
		"several are signed in": {
			facts{able: true}, trial.ChooseAccount,
			because(trial.SeveralAccounts),
		},
		"the application wants a choice": {
			facts{able: true, mustChoose: true}, trial.ChooseAccount,
			trial.Why{Because: trial.ByPrompt, Detail: "select_account"},
		},
		"a factor has to be added": {
			facts{chosen: true, mustProve: true, recent: true}, trial.EnrolFactor,
			because(trial.ByPolicy),
		},
		"a factor has to be added later": {
			facts{chosen: true, mustProve: true}, trial.Password,
			because(trial.NotRecent),
		},
		"a factor is missing": {
			facts{chosen: true, mustProve: true, enrolled: true}, trial.SecondFactor,
			because(trial.HasFactor),
		},
		"the password has to be changed": {
			facts{chosen: true, mustChangePassword: true}, trial.NewPassword,
			because(trial.OldPassword),
		},
		"it is not for the organization": {
			facts{chosen: true, denied: true}, trial.Account,
			because(trial.NotForThem),
		},
		"it wants a role": {
			facts{chosen: true, unmet: oauth.UnmetRole}, trial.Account,
			because(trial.NoRole),
		},
		"it is for another organization": {
			facts{chosen: true, unmet: oauth.UnmetOrg}, trial.LoginName,
			trial.Why{Because: trial.OtherOrg, Detail: "org_b"},
		},
		"it wants a proof": {
			facts{chosen: true, unmet: oauth.UnmetPrompt}, trial.Password,
			trial.Why{Because: trial.ByPrompt, Detail: "login"},
		},
		"it wants a proof by a provider": {
			facts{chosen: true, passwordless: true, linked: true, unmet: oauth.UnmetPrompt}, trial.Provider,
			trial.Why{Because: trial.ByPrompt, Detail: "login"},
		},
		"it wants a recent factor": {
			facts{chosen: true, enrolled: true, unmet: oauth.UnmetFactorMaxAge}, trial.SecondFactor,
			trial.Why{Because: trial.ByMaxAge, Detail: "60"},
		},
		"it prefers a factor": {
			facts{chosen: true, enrolled: true, unmet: oauth.UnmetPreferredFactor}, trial.SecondFactor,
			because(trial.ByACR),
		},
		"it wants a scope": {
			facts{chosen: true, unmet: oauth.UnmetConsentScope}, trial.Consent,
			trial.Why{Because: trial.ByScope, Detail: "signet.passwords"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.facts.application = true
			page := tt.facts.next()
			if got := why(asked, tt.facts, page); nameOf(page) != tt.page || got != tt.want {
				t.Errorf("%s came because of %v", nameOf(page), got)
			}
		})
	}
}
