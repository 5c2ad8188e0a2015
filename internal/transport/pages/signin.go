package pages

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// ChooseAccount lets somebody who has signed in here before pick an account. The answer has FieldID, or DoOther.
type ChooseAccount struct {
	Frame
	Accounts []KnownAccount
}

// KnownAccount is one that was signed in to in this browser.
type KnownAccount struct {
	ID           string
	Name         string
	LoginName    string
	Organization string
	SignedOut    bool // its session is over
}

func (ChooseAccount) about() about {
	return about{template: "choose_account", title: "chooseAccount.title"}
}

// LoginName asks who is there. With Passkey, which holds the options of an assertion, a passkey can answer that, too:
// then the answer has FieldCredential.
type LoginName struct {
	Frame
	LoginName string
	Passkey   []byte
	Providers []Provider
	More      MoreProviders
	Only      bool   // the providers are the only way in
	Other     Link   // to the name all the same: owners may have kept their passwords
	Register  Link   // to making an account; none: people cannot do that here
	Signal    []byte // what to tell the browser about a passkey that was used
}

func (v LoginName) about() about {
	return about{template: "login_name", title: "loginName.title", passkey: len(v.Passkey) > 0 || len(v.Signal) > 0}
}

// Password asks for the password of an account.
type Password struct {
	Frame
	LoginName string
	Again     bool // somebody who is signed in proves it once more
	Forgot    Link // takes FieldLoginName along, with DoForgot
	Other     Link // to choose another account
	Providers []Provider
	More      MoreProviders // leads back to the name
}

func (v Password) about() about {
	if v.Again {
		return about{template: "password", title: "password.again.title", script: true}
	}
	return about{template: "password", title: "password.title", script: true}
}

// ChangePassword asks for a new password before the sign-in goes on. Current asks for the old one, too, which was not
// typed just now.
type ChangePassword struct {
	Frame
	LoginName string
	Current   bool
	Rules     PasswordRules
	EndTokens bool // the box is ticked
}

func (ChangePassword) about() about {
	return about{template: "change_password", title: "changePassword.title", script: true}
}

// SignedIn tells that the page is about somebody who is signed in.
func (v Password) SignedIn() bool { return v.Again }

// SignedIn tells that the page is about somebody who is on the way in.
func (SecondFactor) SignedIn() bool { return false }

// SignedIn tells that the page is about somebody who is signed in.
func (DeviceCode) SignedIn() bool { return true }

// FactorKind is a kind of second factor.
type FactorKind string

// The kinds.
const (
	TOTP         FactorKind = "totp"
	Passkey      FactorKind = "passkey"
	RecoveryCode FactorKind = "recovery"
)

// SecondFactor asks for one factor and links to the others that the person has. The answer has FieldCode,
// FieldRecoveryCode or FieldCredential, and FieldRemember where the box is ticked.
type SecondFactor struct {
	Frame
	LoginName   string
	Kind        FactorKind
	Options     []byte // of the assertion, for a passkey
	UseTOTP     Link
	UsePasskey  Link
	UseRecovery Link
	Other       Link // to choose another account

	RememberDays int  // for how long this device can be remembered; zero: it cannot
	Remember     bool // the box is ticked
}

func (v SecondFactor) about() about {
	a := about{template: "second_factor", title: "secondFactor.title"}
	switch v.Kind {
	case Passkey:
		a.title, a.passkey = "secondFactor.passkey.title", true
	case RecoveryCode:
		a.title = "secondFactor.recovery.title"
	}
	return a
}

// EnrolTOTP shows the key for an app that makes codes, and asks for the first of them in FieldCode. The key comes back
// in FieldKey.
type EnrolTOTP struct {
	Frame
	Required   bool   // the sign-in does not go on without
	URI        string // otpauth://…, for the picture
	Key        string // to type where there is no camera
	UsePasskey Link
	Back       Link
}

func (EnrolTOTP) about() about {
	return about{template: "enrol_totp", title: "enrolTOTP.title", script: true}
}

// EnrolPasskey has the browser make a passkey. The answer has FieldCredential and FieldPasskeyName.
type EnrolPasskey struct {
	Frame
	Required bool
	Options  []byte // of the creation
	Name     string
	UseTOTP  Link
	Back     Link
}

func (EnrolPasskey) about() about {
	return about{template: "enrol_passkey", title: "enrolPasskey.title", passkey: true}
}

// RecoveryCodes shows new codes, this once.
type RecoveryCodes struct {
	Frame
	Codes []string
	Next  Link
}

func (RecoveryCodes) about() about {
	return about{template: "recovery_codes", title: "recoveryCodes.title", script: true}
}

// VerifyEmail asks for the code from a mail to an address. Without Again no other mail can be asked for.
type VerifyEmail struct {
	Frame
	Email string
	Code  string // from the link in the mail
	Again bool
}

func (VerifyEmail) about() about { return about{template: "verify_email", title: "verifyEmail.title"} }

// EmailVerified says that an address is proven.
type EmailVerified struct {
	Frame
	Email string
	Next  Link
}

func (EmailVerified) about() about {
	return about{template: "email_verified", title: "emailVerified.title"}
}

// ForgotPassword asks whose password has been forgotten.
type ForgotPassword struct {
	Frame
	LoginName string
	Back      Link
}

func (ForgotPassword) about() about {
	return about{template: "forgot_password", title: "forgotPassword.title"}
}

// ResetMailSent says the same whether or not there is such an account.
type ResetMailSent struct {
	Frame
	LoginName string
	Back      Link
}

func (ResetMailSent) about() about {
	return about{template: "reset_mail_sent", title: "resetMailSent.title"}
}

// ResetPassword asks for a new password. The code from the mail stays in the address of the page, or in Code.
type ResetPassword struct {
	Frame
	LoginName string
	Code      string
	Rules     PasswordRules
	Factor    bool // a second factor is asked for too: FieldCode
}

func (ResetPassword) about() about {
	return about{template: "reset_password", title: "resetPassword.title", script: true}
}

// RestoreEmail asks whether an e-mail address from before shall be taken back. Its form has nothing but a button.
type RestoreEmail struct{ Frame }

func (RestoreEmail) about() about {
	return about{template: "restore_email", title: "restoreEmail.title"}
}

// PasswordReset says that the new password counts.
type PasswordReset struct {
	Frame
	Next Link
}

func (PasswordReset) about() about {
	return about{template: "password_reset", title: "passwordReset.title"}
}

// Access is what an application may have, in words that people understand: pages show no scope as it is.
type Access struct {
	Scopes    []string // as OAuth names them, without those that stand for applications
	Audiences []string // names of applications that it may use as the person; empty: one that is gone
}

// Consent asks whether an application may have what it asks for: DoAllow or DoDeny.
type Consent struct {
	Frame
	LoginName string
	Publisher string // the organization that the application belongs to
	Elsewhere bool   // it is not the person's own
	Access
}

func (Consent) about() about { return about{template: "consent", title: "consent.title", end: true} }

// NoRole says that the application is for people with a role only. Its form has nothing but a button, which leads back.
type NoRole struct {
	Frame
	LoginName string
	Other     Link // to choose another account
}

// SignedIn tells that the page is about somebody who is signed in.
func (NoRole) SignedIn() bool { return true }

func (NoRole) about() about { return about{template: "no_role", title: "noRole.title", end: true} }

// Onward takes the browser to the application, or to an identity provider, by itself. Browsers hold form-action against
// every redirect that follows a form, also against those that the application makes on its own account: a page in
// between ends that chain.
type Onward struct {
	Frame
	Provider string // its name; empty: it leads to the application
	To       Link
}

func (v Onward) about() about {
	return about{template: "onward", title: "onward.title", end: true, refresh: v.To}
}

// PostBack has the browser post an answer to the application (form_post), by a script, or by its button. It holds
// nothing else: browsers would hold a limit of form-action against the redirects with which the application goes on, so
// this page has none, and gives nobody a form to use.
type PostBack struct {
	Frame
	To     Link
	Hidden []Hidden
}

// Hidden is a field that nobody sees.
type Hidden struct{ name, Value string }

// Name is one that the protocol knows.
func (h Hidden) Name() string { return h.name }

// NewPostBack makes the page. It takes the language alone from the frame.
func NewPostBack(f Frame, to Link, fields url.Values) PostBack {
	return PostBack{Frame: Frame{Language: f.Language, Locales: f.Locales}, To: to, Hidden: hidden(fields)}
}

func hidden(fields url.Values) (all []Hidden) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, Hidden{name: name, Value: fields.Get(name)})
	}
	return all
}

func (PostBack) about() about {
	return about{template: "post_back", title: "onward.title", script: true, end: true, posts: true}
}

// DeviceCode asks for the code that a device shows.
type DeviceCode struct {
	Frame
	LoginName string
	Other     Link // to choose another account
	UserCode  string
}

func (DeviceCode) about() about { return about{template: "device_code", title: "deviceCode.title"} }

// DeviceConfirm asks whether the device is the one in front of the person: DoAllow or DoDeny, with FieldID and
// FieldUserCode.
type DeviceConfirm struct {
	Frame
	ID        string // of the account
	LoginName string
	Other     Link // to choose another account
	UserCode  string
	Publisher string // the organization that the application belongs to, where it is not the person's own
	Access
}

func (DeviceConfirm) about() about {
	return about{template: "device_confirm", title: "deviceConfirm.title", end: true}
}

// DeviceDone says that the device goes on by itself, or that it was refused.
type DeviceDone struct {
	Frame
	Refused bool
}

func (v DeviceDone) about() about {
	if v.Refused {
		return about{template: "device_done", title: "deviceDone.refused.title", end: true}
	}
	return about{template: "device_done", title: "deviceDone.title", end: true}
}

// SignOut asks whether to sign out: DoEnd with FieldID, or DoEndAll.
type SignOut struct {
	Frame
	ID        string // of the account
	LoginName string
	Several   bool // accounts are signed in here
	Back      Link
}

func (SignOut) about() about { return about{template: "sign_out", title: "signOut.title", end: true} }

// SignedOut says that it is done. Next goes back to the application, or to signing in again.
type SignedOut struct {
	Frame
	Next Link
}

func (SignedOut) about() about {
	return about{template: "signed_out", title: "signedOut.title", end: true}
}

// Failure is a way in which a request could not be answered.
type Failure string

// The failures. Each has a title, what happened, and what to do.
const (
	Expired        Failure = "expired"       // the sign-in took too long, or was finished already
	FromElsewhere  Failure = "fromElsewhere" // the form was not one of ours
	NoCookie       Failure = "noCookie"      // the browser that began is not this one, or keeps no cookies
	BadRequest     Failure = "badRequest"    // what the application asked for makes no sense
	BadLink        Failure = "badLink"       // the link in a mail is old, used or broken
	NotActive      Failure = "notActive"     // the account of a link in a mail is locked or switched off
	NotPermitted   Failure = "notPermitted"  // the person may not do that
	NotFound       Failure = "notFound"
	TooMany        Failure = "tooMany"
	ProviderFailed Failure = "providerFailed" // an identity provider did not answer as it should
	ProviderAway   Failure = "providerAway"   // it did not answer at all
	ProviderDenied Failure = "providerDenied" // the person, or the provider, said no
	Unavailable    Failure = "unavailable"
	Broken         Failure = "broken" // a bug

	InvitationUsed      Failure = "invitationUsed"
	InvitationWithdrawn Failure = "invitationWithdrawn"
	InvitationExpired   Failure = "invitationExpired"
	InvitationReplaced  Failure = "invitationReplaced" // it was sent again
	InvitationInvalid   Failure = "invitationInvalid"  // what it promises can no longer be given
)

var failures = []Failure{Expired, FromElsewhere, NoCookie, BadRequest, BadLink, NotActive, NotPermitted, NotFound,
	TooMany, ProviderFailed, ProviderAway, ProviderDenied, Unavailable, Broken,
	InvitationUsed, InvitationWithdrawn, InvitationExpired, InvitationReplaced, InvitationInvalid}

// Failed says that something went wrong, and what to do. Detail is for those who look after the application.
type Failed struct {
	Frame
	What      Failure
	Detail    Message
	Next      Link
	RequestID string
}

func (v Failed) about() about {
	return about{template: "failed", title: "failure." + string(v.What) + ".title", end: true}
}

// scopeTexts says what an application can do with a scope. Those of Signet's own API have their texts under their own
// names.
var scopeTexts = map[string]string{
	"openid":           "scope.openid",
	"profile":          "scope.profile",
	"email":            "scope.email",
	"phone":            "scope.phone",
	"offline_access":   "scope.offline",
	"urn:signet:org":   "scope.organization",
	"urn:signet:roles": "scope.roles",

	"urn:signet:app_roles": "scope.appRoles",
	"urn:signet:groups":    "scope.groups",
	"urn:signet:metadata":  "scope.metadata",
}

// scope gives the key of what a scope means. One that nobody here knows was given on a newer node, or in other times.
func (t texts) scope(name string) string {
	if strings.HasPrefix(name, "urn:signet:org:") {
		return "scope.organization"
	}
	if _, ours := t.entries["scope."+name]; ours && strings.HasPrefix(name, "signet.") {
		return "scope." + name
	}
	if key := scopeTexts[name]; key != "" {
		return key
	}
	return "scope.other"
}
