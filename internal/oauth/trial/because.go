package trial

import "strings"

// Because is the reason for a step, by a stable name.
type Because string

// The reasons.
const (
	ByPrompt   Because = "prompt"     // Detail: the prompt
	ByMaxAge   Because = "max_age"    // Detail: seconds
	ByACR      Because = "acr_values" // preferred
	ByClaims   Because = "acr_claim"  // demanded by the parameter claims
	ByHint     Because = "id_token"   // the application means somebody else
	ByScope    Because = "scope"      // Detail: the scope
	BySetting  Because = "setting"    // of the application; Detail: which
	ByPolicy   Because = "policy"     // a second factor is required
	ByProvider Because = "idp_hint"   // or the only way in
	ByChoice   Because = "provider_chosen"
	ByLink     Because = "provider"    // the person has no password that counts, and is linked
	ByPasskey  Because = "no_password" // the person has no password that counts

	SeveralAccounts Because = "several_accounts"
	NobodyThere     Because = "not_signed_in"
	OtherWanted     Because = "other_account_wanted"
	OtherOrg        Because = "other_organization"
	AppOfOtherOrg   Because = "application_of_other_organization"
	AppChanged      Because = "application_changed"
	NoRole          Because = "role_required"
	NotForThem      Because = "organization_not_allowed"
	HasFactor       Because = "factor_enrolled"
	NoFactor        Because = "factor_not_enrolled"
	OldPassword     Because = "password_change_required"
	NotRecent       Because = "proof_not_recent"

	SignedIn     Because = "signed_in"         // Detail: the methods
	ProvenFactor Because = "factor_proven"     // in this session
	Device       Because = "device_remembered" //
	NotRequired  Because = "factor_not_required"
	OwnOrg       Because = "own_organization"
	ForAll       Because = "all_organizations"
	ByProject    Because = "project_access"
	HasRole      Because = "has_role"
	GivenBefore  Because = "consent_given_before"
	NoConsent    Because = "consent_not_required"

	NothingMissing Because = "nothing_missing"
	SaidNo         Because = "refused" // Detail: the error
	ForeignAccount Because = "foreign_account"
	Newcomer       Because = "new_account"
	ByAnswer       Because = "answered"
	Unstored       Because = "consent_not_stored"
)

// texts say the reasons in English. % stands for the detail.
var texts = map[Because]string{
	ByPrompt:   "The request says prompt=%.",
	ByMaxAge:   "The last proof is older than max_age=% allows.",
	ByACR:      "The request prefers a second factor by acr_values, and the account has one.",
	ByClaims:   "The request demands a second factor by the parameter claims.",
	ByHint:     "The request is about another person, by id_token_hint or the parameter claims.",
	ByScope:    "The scope % always needs consent.",
	BySetting:  "The application has the setting %.",
	ByPolicy:   "The policy requires a second factor, and the account has none yet.",
	ByProvider: "The request names the identity provider by idp_hint, or it is the only way to sign in.",
	ByChoice:   "The person chose the identity provider %.",
	ByLink:     "The account has no password that can be used, and is linked with an identity provider.",
	ByPasskey:  "The account has no password that can be used.",

	SeveralAccounts: "Several accounts are signed in in this browser.",
	NobodyThere:     "No account is signed in in this browser that can be used.",
	OtherWanted:     "The person wanted to use another account.",
	OtherOrg:        "The sign-in is bound to another organization by a scope.",
	AppOfOtherOrg:   "The application belongs to another organization than the account.",
	AppChanged:      "The application was changed since the person let it use the API.",
	NoRole:          "Only people with a role of the project can use the application, and the account has none.",
	NotForThem:      "People of the account's organization cannot use the application.",
	HasFactor:       "The account has a second factor, and this session has not proven it.",
	NoFactor:        "The account has no second factor.",
	OldPassword:     "The password must be changed.",
	NotRecent:       "The last proof is not recent enough.",

	SignedIn:     "The account is signed in already (%), and the request does not ask for a newer proof.",
	ProvenFactor: "This session has proven a second factor.",
	Device:       "The second factor is remembered on this device.",
	NotRequired:  "Neither the policy nor the request requires a second factor, and the account has none.",
	OwnOrg:       "The application belongs to the account's organization.",
	ForAll:       "The application is for all organizations.",
	ByProject:    "An organization of the account can use the application's project.",
	HasRole:      "Only people with a role of the project can use the application, and the account has one.",
	GivenBefore:  "The person has consented before to all that the request asks for.",
	NoConsent:    "The application belongs to the account's organization and does not require consent.",

	NothingMissing: "Nothing is missing: the application would get a code.",
	SaidNo:         "The sign-in ended with the error %.",
	ForeignAccount: "Another account than the one that started the trial was used. A trial shows nothing about other people.",
	Newcomer:       "The person at the identity provider is linked with no account here. A trial makes no account and no link.",
	ByAnswer:       "The form was sent.",
	Unstored:       "The person agreed. A trial does not store the consent.",
}

// Message says a reason in English.
func (w Why) Message() string { return strings.ReplaceAll(texts[w.Because], "%", w.Detail) }
