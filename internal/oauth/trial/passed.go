package trial

import (
	"strings"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Passed says why nothing was missing for somebody of an organization: what let a sign-in pass that was found to need
// nothing. asked: the person was asked for consent; asks: without that, only what they gave before let it pass.
func Passed(client *event.Object[app.App], userOrg string, proof session.Proof, asked, asks bool) []Step {
	step := func(page Page, outcome Outcome, because Because, detail string) Step {
		return Step{Page: page, Outcome: outcome, Why: Why{Because: because, Detail: detail}}
	}
	var methods []string
	for _, m := range proof.Methods {
		methods = append(methods, string(m))
	}
	factor, account, consent := NotRequired, ByProject, step(Consent, Skipped, NoConsent, "")
	switch {
	case proof.SecondFactor:
		factor = ProvenFactor
	case proof.Device != "":
		factor = Device
	}
	switch {
	case client.Data.RoleSettings.Required:
		account = HasRole
	case client.Org == userOrg:
		account = OwnOrg
	case client.Data.AllOrganizations:
		account = ForAll
	}
	switch {
	case asked:
		consent = step(Consent, Done, Unstored, "")
	case asks:
		consent = step(Consent, Skipped, GivenBefore, "")
	}
	return []Step{step(Password, Skipped, SignedIn, strings.Join(methods, ", ")),
		step(SecondFactor, Skipped, factor, ""), step(Account, Done, account, ""), consent}
}
