package pages

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// Paths that the account pages link to by themselves.
const (
	PathAccount      = "/account"
	PathContact      = "/account/contact"
	PathPassword     = "/account/password"
	PathSecurity     = "/account/security"
	PathSessions     = "/account/sessions"
	PathTokens       = "/account/tokens"
	PathApplications = "/account/applications"
	PathOrgs         = "/account/organizations"
	PathSignOut      = "/logout"
)

// PathConsole is where the web console is, and everything below it.
const PathConsole = "/console/"

type section struct{ Path, Label string }

var sections = []section{
	{PathAccount, "account.profile"},
	{PathPassword, "account.password"},
	{PathSecurity, "account.security"},
	{PathSessions, "account.sessions"},
	{PathTokens, "account.tokens"},
	{PathApplications, "account.applications"},
	{PathOrgs, "account.organizations"},
}

// Account is what all account pages show of whose they are.
type Account struct {
	Frame
	Name      string
	LoginName string
	Switch    Link // to another account
	Console   Link // for those who have something to do there
}

func (a Account) account() Account { return a }

// Profile is the overview of the own account and the form of the profile.
type Profile struct {
	Account
	FirstName         string
	LastName          string
	NickName          string
	DisplayName       string
	PreferredLanguage string
	Gender            string // "", "female", "male" or "diverse"
	Sequence          uint64 // comes back in FieldSequence

	Email       string
	EmailProven bool
	ProveEmail  bool // DoResend sends a code to it
	Phone       string
	PhoneProven bool
	Contact     Link // where both are changed

	Terms         Link // that were accepted; none: nothing was
	TermsAccepted time.Time
	Signal        []byte // what to tell the browser about the names of passkeys
}

func (v Profile) about() about {
	return about{template: "profile", title: "profile.title", section: PathAccount, passkey: len(v.Signal) > 0}
}

// Contact changes the own e-mail address and phone number: DoSetEmail with FieldEmail; DoSetPhone with FieldPhone,
// DoNoPhone; DoSendPhone and DoPhoneCode with FieldPhoneCode prove the number.
type Contact struct {
	Account
	Email       string
	EmailProven bool
	NewEmail    string // as it was typed
	Phone       string
	PhoneProven bool
	SendPhone   bool   // a code can be sent
	NewPhone    string // as it was typed
	Sequence    uint64 // comes back in FieldSequence
	Back        Link
}

func (Contact) about() about {
	return about{template: "contact", title: "contact.title", section: PathAccount}
}

// OwnPassword changes the own password.
type OwnPassword struct {
	Account
	Rules     PasswordRules
	EndTokens bool // the box is ticked
}

func (OwnPassword) about() about {
	return about{template: "own_password", title: "ownPassword.title", section: PathPassword, script: true}
}

// Security lists the own factors, and accounts at identity providers. DoRemove has FieldID; DoCodes makes new recovery
// codes; DoUnlink and DoConfirm have FieldID.
type Security struct {
	Account
	Factors       []Factor
	RecoveryCodes int // how many are left; of interest once there is a factor
	AddTOTP       Link
	AddPasskey    Link

	Linked []LinkedAccount
	Link   []Provider // to link another account
	More   MoreProviders

	Signal []byte // what to tell the browser about passkeys
}

// Factor is one of the own second factors.
type Factor struct {
	ID     string
	Kind   FactorKind
	Name   string
	Added  time.Time
	Rename Link
}

func (v Security) about() about {
	return about{template: "security", title: "security.title", section: PathSecurity, script: true,
		passkey: len(v.Signal) > 0}
}

// RenameFactor asks what a second factor is called from now on, in FieldFactorName.
type RenameFactor struct {
	Account
	ID   string // comes back in FieldID, with DoRename
	Kind FactorKind
	Name string
	Back Link
}

func (RenameFactor) about() about {
	return about{template: "rename_factor", title: "renameFactor.title", section: PathSecurity}
}

// Sessions lists where the person is signed in, and where the second factor is remembered. DoEnd and DoForget have
// FieldID; DoEndOthers ends all but this one.
type Sessions struct {
	Account
	Sessions []Session
	Devices  []Session
}

// Session is one of them. Browser and Address may be unknown.
type Session struct {
	ID      string
	Current bool
	Browser string
	Address string
	Started time.Time
	Ends    time.Time
}

func (Sessions) about() about {
	return about{template: "sessions", title: "sessions.title", section: PathSessions, script: true}
}

// Tokens lists the personal access tokens and makes new ones: DoCreate with FieldTokenName and FieldTokenDays. DoRemove
// has FieldID.
type Tokens struct {
	Account
	Tokens []Token
	Name   string // of the new one, as it was typed
	Days   int    // of the new one, as it was chosen; one of TokenDays
}

// Token is one of them.
type Token struct {
	ID      string
	Name    string
	Created time.Time
	Expires time.Time
}

func (Tokens) about() about {
	return about{template: "tokens", title: "tokens.title", section: PathTokens, script: true}
}

// NewToken shows a personal access token, this once.
type NewToken struct {
	Account
	TokenName string
	Secret    string
	Expires   time.Time
}

func (NewToken) about() about {
	return about{template: "new_token", title: "newToken.title", section: PathTokens, script: true}
}

// Applications lists those that were given access. DoRemove has FieldID.
type Applications struct {
	Account
	Applications []Application
}

// Application is one of them.
type Application struct {
	ID        string
	Name      string // empty: it is gone
	Publisher string // the organization that it belongs to, where it is not the person's own
	Operator  bool   // it is the operator's own: people are not asked about what is usual
	Access
	Since time.Time
}

func (Applications) about() about {
	return about{template: "applications", title: "applications.title", section: PathApplications, script: true}
}

// Organizations lists those that the person is in, and those that would have the person. DoLeave has FieldID; DoAccept
// and DoDecline have that of an offer; DoAcceptRoles has that of an organization, and FieldRoles.
type Organizations struct {
	Account
	Organizations []Organization
	Offers        []Offer
	Password      Link // to a new password, which the person needs before roles can be accepted; none: not needed
}

// Offer is what another organization offers the person.
type Offer struct {
	ID     string
	Name   string   // of the organization
	Domain string   // its primary one
	Roles  []string // as the API names them; neither these nor custom ones: to be a guest
	Custom []CustomRole
}

// CustomRole is a role that an organization, or the installation, has made for itself.
type CustomRole struct {
	Name   string   // that it has there; empty of one that was removed
	Allows []string // permissions
}

// Organization is one of them.
type Organization struct {
	ID     string
	Name   string   // empty: the whole installation
	Own    bool     // the person belongs to it, and cannot leave it
	Leave  bool     // the person can
	Roles  []string // as the API names them
	Custom []CustomRole
	Groups []string // names

	Waiting       []string // roles that count only once the person accepts them
	WaitingCustom []CustomRole
	Unaccepted    bool   // nobody asked the person
	All           string // what FieldRoles says: all roles there, those that wait, too
}

func (Organizations) about() about {
	return about{template: "organizations", title: "organizations.title", section: PathOrgs, script: true}
}

// role is the key of the text for a role of the API; empty where there is none.
func (t texts) role(name string) string {
	if _, known := t.entries["role."+name]; known {
		return "role." + name
	}
	return ""
}

// allows is the key of the text that says what a role of the API allows; empty where there is none.
func (t texts) allows(name string) string {
	if _, known := t.entries["allows."+name]; known {
		return "allows." + name
	}
	return ""
}

// permission are the keys of the texts for what a permission is about, and what it allows there; none where there are
// no such texts.
func (t texts) permission(name string) []string {
	about, act, _ := strings.Cut(name, ".")
	keys := []string{"permission.of." + about, "permission.may." + act}
	for _, key := range keys {
		if _, known := t.entries[key]; !known {
			return nil
		}
	}
	return keys
}

// languageChoice is one language to choose, by its own name.
type languageChoice struct{ Tag, Name string }

var spoken = []languageChoice{{"en", "English"}, {"de", "Deutsch"}, {"fr", "Français"}, {"es", "Español"}}

// languageChoices are those the pages speak, and the one that is set already.
func (t texts) languageChoices(set string) ([]languageChoice, error) {
	if set == "" || slices.ContainsFunc(spoken, func(c languageChoice) bool { return c.Tag == set }) {
		return spoken, nil
	}
	name, err := t.plain("language.other", "tag", set)
	return append(slices.Clone(spoken), languageChoice{set, name}), err
}

// grouped puts a space after every four characters, as people read keys aloud.
func grouped(key string) string {
	var b strings.Builder
	for i, r := range []rune(key) {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// initial is what stands for a name in small: its first letter.
func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return strings.ToUpper(string(r))
		}
	}
	return "·"
}
