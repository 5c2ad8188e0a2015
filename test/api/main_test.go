package api_test

import (
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// tables are sent over all content types, case by case.
var tables = []struct {
	name  string
	cases func(t *testing.T, w *World) []Case
}{
	{"bounds", boundCases},
	{"presence", presenceCases},
	{"enums", enumCases},
	{"text that is refused", badTextCases},
	{"permission matrix", matrixCases},
	{"credentials", credentialCases},
	{"protected users", protectedUserCases},
	{"scopes", scopeCases},
	{"applications that hold less", lesserApplicationCases},
	{"organization header", orgHeaderCases},
	{"order of answers", orderCases},
	{"request before permission", requestOrderCases},
	{"unknown targets", unknownTargetCases},
	{"targets of another kind", kindCases},
	{"if-match", ifMatchCases},
	{"idempotency key", idempotencyKeyCases},
	{"addresses refused", refusedAddressCases},
	{"addresses taken", acceptedAddressCases},
	{"roles", roleCases},
	{"who holds more", holdsMoreCases},
	{"proof of who one is", proofCases},
	{"failed sign-in", failedSignInCases},
	{"domains refused", refusedDomainCases},
	{"parts of a provider refused", refusedModificationCases},
	{"grants", grantCases},
	{"expiry of tokens and keys", expiryCases},
	{"public keys refused", publicKeyCases},
	{"workload rules refused", workloadRuleCases},
	{"whose credentials", whoseCredentialCases},
	{"bounds of a policy", policyBoundCases},
	{"applications refused", refusedAppCases},
	{"events", eventCases},
	{"webhooks refused", refusedWebhookCases},
	{"powers of groups", groupPowerCases},
	{"home and host", homeCases},
}

// stories are told once per content type.
var stories = []struct {
	name string
	tell func(t *testing.T, c *Client)
}{
	{"profile is replaced", profileStory},
	{"the operator's own application", firstPartyStory},
	{"why an application was refused", refusalStory},
	{"home answers for its people", homeStory},
	{"custom roles", customRoleStory},
	{"provider is replaced", providerStory},
	{"sequence and dates", detailsStory},
	{"text is kept as sent", textStory},
	{"protected fields", protectedStory},
	{"set-up as read back", setupStory},
	{"set-up with an invitation", setupInvitedStory},
	{"domains", domainStory},
	{"idempotency", idempotencyStory},
	{"password must be changed", changeRequiredStory},
	{"password set by somebody else", setPasswordStory},
	{"password changed by oneself", changePasswordStory},
	{"whether there is a password or a secret", hasPasswordStory},
	{"every character of a password counts", longPasswordStory},
	{"ending sessions", endSessionStory},
	{"sign-in names", signInNameStory},
	{"disabled user", disabledUserStory},
	{"disabled organization", disabledOrgStory},
	{"states of a provider", providerStateStory},
	{"organizations are renamed and listed", organizationStory},
	{"domains of an organization", orgDomainStory},
	{"domain names that are long or odd", oddDomainStory},
	{"OpenID Connect provider", oidcStory},
	{"OAuth 2.0 provider", oauthStory},
	{"presets of providers", presetStory},
	{"parts of a provider", modifyStory},
	{"providers are switched off, listed and removed", providerAdminStory},
	{"provider of a removed organization", orphanProviderStory},
	{"members of an organization", memberStory},
	{"members of the installation", installationMemberStory},
	{"group", groupStory},
	{"guest", guestStory},
	{"what organizations ask of guests", guestPolicyStory},
	{"new person", newPersonStory},
	{"people imported together", importTogetherStory},
	{"people imported each alone", importEachStory},
	{"an import that is repeated", importAgainStory},
	{"organization that is gone gets no users", goneOrgStory},
	{"user changed by somebody else", changedUserStory},
	{"list of users", listUsersStory},
	{"search for users", searchUsersStory},
	{"names of many", namesStory},
	{"addresses of a person", contactStory},
	{"codes", codeStory},
	{"tokens of one's own", myTokenStory},
	{"tokens of a service user", userTokenStory},
	{"secret of a service user", serviceSecretStory},
	{"keys of a service user", serviceKeyStory},
	{"workload rules of a service user", workloadRuleStory},
	{"application", appStory},
	{"parts of an application", modifyAppStory},
	{"applications are switched off, listed and removed", appAdminStory},
	{"secrets of an application", appSecretStory},
	{"keys of an application", appKeyStory},
	{"API access of an application", appAccessStory},
	{"clients of others are approved", audienceStory},
	{"webhook", webhookStory},
	{"project", projectStory},
	{"project granted to another organization", grantStory},
	{"roles of applications", appRoleStory},
	{"nothing is revived", revivalStory},
	{"role settings of an application", roleSettingsStory},
	{"claims of an application", claimMappingsStory},
	{"metadata", metadataStory},
	{"sessions of one's own", mySessionStory},
	{"sessions of a user", userSessionStory},
	{"policy of an organization", organizationPolicyStory},
	{"preview of a policy", policyPreviewStory},
	{"second factor by policy", secondFactorPolicyStory},
	{"authenticator app and recovery codes", factorStory},
	{"passkeys", passkeyStory},
	{"second factor that is missing", missingFactorStory},
	{"factors need a recent proof", recentStory},
	{"factors removed by an administrator", factorAdminStory},
	{"invitations", invitationStory},
	{"an account elsewhere accepts an invitation", guestInvitationStory},
	{"roles elsewhere are offered", offerStory},
	{"a link to set a password", passwordSetupStory},
	{"events are listed", eventStory},
	{"events are followed", streamStory},
	{"streams end with the right to them", streamEndStory},
	{"what callers may do", accessStory},
	{"support helps", supportStory},
	{"support asks for the removal of a factor", lostFactorStory},
	{"auditors read nothing personal", auditorStory},
	{"sign-ins of managed users", managedSignInsStory},
	{"status", statusStory},
	{"sign-ins are counted", countStory},
	{"objects are counted", countObjectsStory},
}

// checks run once per engine.
var checks = []struct {
	name string
	run  func(t *testing.T, w *World)
}{
	{"JSON types", jsonTypes},
	{"JSON bodies", jsonBodies},
	{"HTTP", httpCases},
	{"odd paths", oddPaths},
	{"request size", requestSize},
	{"size of an import", importSize},
	{"imported hashes", importedHashes},
	{"damaged messages", damagedMessages},
	{"every operation is covered", everythingCovered},
	{"if-match comes last", sequenceComesLast},
	{"page tokens", pageTokens},
	{"lists stay inside", listsStayInside},
	{"a second server", secondServer},
	{"an ended session sets no password", endedMeanwhile},
	{"idempotency over content types", idempotencyAcross},
	{"idempotency of twins", idempotencyTwins},
	{"throttle", throttled},
	{"throttle counts parallel guesses", throttleParallel},
	{"throttle counts changes of a password", throttleChange},
	{"throttle is cleared by a new password", throttleCleared},
	{"one domain, many organizations", domainRace},
	{"most domains of an organization", mostDomains},
	{"the last owner stays", lastOwnerStays},
	{"removing an organization survives a restart", removalSurvivesRestart},
	{"one name for many", oneNameForMany},
	{"codes at once", codeAtOnce},
	{"codes on a developer's machine", developmentCodes},
	{"mail", mails},
	{"a password is reset by mail", resets},
	{"a code resets a password once", resetOnce},
	{"invitations by mail", mailedInvitations},
	{"people register themselves", registrations},
	{"a token is revoked once", revokedOnce},
	{"two secrets at once", appSecretsAtOnce},
	{"a grant accepted and withdrawn at once", grantRace},
	{"grants that wait are bounded", grantsBounded},
	{"a session is ended once", endedOnce},
	{"sessions that end each other", endingEachOther},
	{"policy of the installation", installationPolicy},
	{"sessions that are used live on", sessionsLiveOn},
	{"throttle by policy", throttlePolicy},
	{"webhooks are served", webhooksServed},
	{"factors count once", factorsOnce},
	{"passkeys of nobody", strangePasskeys},
	{"throttle counts second factors", throttleFactors},
	{"events of the installation", installationEvents},
	{"groups on every node", groupsOnEveryNode},
	{"custom roles on every node", rolesOnEveryNode},
	{"a stream of a session that is restricted", restrictedStream},
	{"callers may do what they are told", accessMatches},
	{"roles are listed", rolesListed},
	{"access to many organizations", manyOrganizations},
	{"what narrow permissions open", narrowOperations},
	{"support sends mails", supportSends},
	{"troubles at a glance", troubles},
	{"sign-ins are counted on every node", countsOnEveryNode},
}

func TestAPI(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := openWorld(t, db)
		t.Run("api", func(t *testing.T) {
			for _, table := range tables {
				t.Run(table.name, func(t *testing.T) {
					t.Parallel()
					for _, c := range table.cases(t, w) {
						t.Run(c.Name, func(t *testing.T) { w.run(t, c) })
					}
				})
			}
			for _, story := range stories {
				for _, wire := range w.wires {
					t.Run(story.name+"/"+wire.name(), func(t *testing.T) {
						t.Parallel()
						story.tell(t, &Client{w: w, wire: wire})
					})
				}
			}
			for _, check := range checks {
				t.Run(check.name, func(t *testing.T) {
					t.Parallel()
					check.run(t, w)
				})
			}
		})
		if w.requests.Load() == 0 {
			return // a filter on the command line has left nothing to look at
		}
		// a rotation changes what others are told about the keys
		t.Run("signing keys", func(t *testing.T) { signingKeys(t, w) })
		t.Run("no secret is left anywhere", w.noSecretsLeft)
		t.Run("state follows from the log", w.rebuildsEqual)
		t.Logf("%d requests, %d answers of operations", w.requests.Load(), w.verified.Load())
	})
}
