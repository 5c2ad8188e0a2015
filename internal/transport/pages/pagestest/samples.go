// Package pagestest renders every page with made-up data: for tests, for developers who look at the pages in a browser
// (make preview), and for the screenshots.
package pagestest

import (
	"net/url"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// Sample is a page with data. Names are those of the screenshots.
type Sample struct {
	Name   string
	Status int
	View   pages.View
	Moves  bool // to another page by itself
}

const (
	organization = "Aldermoor Instruments"
	application  = "Fieldbook"
	loginName    = "mara@aldermoor.example"
	options      = `{"publicKey":{"challenge":"c2FtcGxlIGNoYWxsZW5nZSBmb3IgYSBwYWdl","rpId":"localhost","timeout":60000,"userVerification":"preferred"}}`
	creation     = `{"publicKey":{"challenge":"c2FtcGxlIGNoYWxsZW5nZSBmb3IgYSBwYWdl","rp":{"id":"localhost","name":"Signet"},` +
		`"user":{"id":"dXNyXzAx","name":"mara@aldermoor.example","displayName":"Mara Lindqvist"},` +
		`"pubKeyCredParams":[{"type":"public-key","alg":-7},{"type":"public-key","alg":-257}],"authenticatorSelection":{"residentKey":"required","userVerification":"required"}}}`
)

var (
	morning = time.Date(2026, 5, 4, 8, 12, 0, 0, time.UTC)
	codes   = []string{"7kq2-mxnp-4dht", "r9vw-c3fy-8sjb", "h5zt-2gkn-wq7p", "x8dm-b6rc-jv4s", "n3yf-t9hw-5pkz",
		"c7sj-q4vx-m2gd", "w6bp-8nrk-fz3t", "d2hv-y5cm-9xqs", "p4gt-k7wj-n8fr", "z9mx-s3bd-h6vc"}
	rules     = pages.PasswordRules{Least: 8, NotCommon: true}
	providers = []pages.Provider{{Name: "Google", To: to("/login/idp/idp_1"), Google: true},
		{Name: "Aldermoor Workplace", To: to("/login/idp/idp_2")}}
	usual = pages.Access{Scopes: []string{"offline_access", "email", "profile", "openid"}}
)

func framed(f pages.Frame) pages.Frame {
	f.Organization, f.Application, f.RedirectURI = organization, application, "https://fieldbook.example/callback"
	return f
}

func wrong(field string, m pages.Message) pages.Frame {
	return framed(pages.Frame{Problems: []pages.Problem{{Field: field, Message: m}}})
}

func mine(f pages.Frame) pages.Account {
	f.Organization = organization
	f.Session = "ses_1"
	return pages.Account{Frame: f, Name: "Mara Lindqvist", LoginName: loginName, Switch: to("/login"),
		Console: to(pages.PathConsole)}
}

func to(path string) pages.Link { return pages.To(path, nil) }

func out(address string) pages.Link {
	l, err := pages.Outward(address)
	if err != nil {
		panic(err) // an address of this file
	}
	return l
}

// Samples gives every page at least once, and once more for what it can look like besides.
func Samples() []Sample {
	return append(signIn(), account()...)
}

func signIn() []Sample {
	frame, none := framed(pages.Frame{}), pages.Frame{}
	return []Sample{
		{Name: "choose-account", Status: 200, View: pages.ChooseAccount{Frame: frame, Accounts: []pages.KnownAccount{
			{ID: "1", Name: "Mara Lindqvist", LoginName: loginName, Organization: organization},
			{ID: "2", Name: "Service desk", LoginName: "desk@aldermoor.example", Organization: organization,
				SignedOut: true}}}},
		{Name: "login-name", Status: 200, View: pages.LoginName{Frame: frame, Passkey: []byte(options)}},
		{Name: "login-name-removed", Status: 400,
			View: pages.LoginName{Frame: wrong("", pages.PasskeyRemoved()), Passkey: []byte(options),
				Signal: []byte("{}")}},
		{Name: "login-name-providers", Status: 200,
			View: pages.LoginName{Frame: frame, Passkey: []byte(options), Providers: providers}},
		{Name: "login-name-only", Status: 200,
			View: pages.LoginName{Frame: frame, Providers: providers, Only: true, Other: to("/login")}},
		{Name: "login-name-many", Status: 200,
			View: pages.LoginName{Frame: frame, Passkey: []byte(options), Providers: providers,
				More: pages.NewMoreProviders("A", false, to("/login"), url.Values{"request": {"r"}})}},
		{Name: "login-name-none", Status: 200,
			View: pages.LoginName{Frame: frame, Only: true, Other: to("/login"),
				More: pages.MoreProviders{There: true, Find: "Zz", None: true}}},
		{Name: "login-name-register", Status: 200,
			View: pages.LoginName{Frame: frame, Passkey: []byte(options), Register: to("/login/register")}},
		{Name: "register-email", Status: 200, View: pages.RegisterEmail{Frame: frame, Back: to("/login")}},
		{Name: "register-email-wrong", Status: 422,
			View: pages.RegisterEmail{Frame: framed(pages.Frame{Problems: []pages.Problem{{Field: pages.FieldEmail,
				Message: pages.NotAnEmail()}}}), Email: "mara", Back: to("/login")}},
		{Name: "register-email-none", Status: 422,
			View: pages.RegisterEmail{Frame: framed(pages.Frame{Problems: []pages.Problem{{Message: pages.MailNotConfigured()}}}), Back: to("/login")}},
		{Name: "register-mail-sent", Status: 200,
			View: pages.RegisterMailSent{Frame: frame, Email: loginName, Back: to("/login")}},
		{
			Name:   "register-self",
			Status: 200,
			View: pages.RegisterSelf{
				Frame:    frame,
				Email:    loginName,
				UserName: loginName,
				Password: true,
				Passkey:  true,
				Rules:    rules,
				Terms: pages.Terms{Terms: out("https://aldermoor.example/terms"),
					Privacy: out("https://aldermoor.example/privacy")},
			},
		},
		{Name: "register-self-plain", Status: 200,
			View: pages.RegisterSelf{Frame: frame, Email: loginName, UserName: loginName, Passkey: true,
				Terms: pages.Terms{Privacy: out("https://aldermoor.example/privacy")}}},
		{
			Name:   "register-self-wrong",
			Status: 422,
			View: pages.RegisterSelf{
				Frame: framed(pages.Frame{
					Problems: []pages.Problem{{Field: pages.FieldLastName, Message: pages.Required()},
						{Field: pages.FieldRepeatPassword, Message: pages.PasswordsDiffer()},
						{Field: pages.FieldTerms, Message: pages.TermsRequired()}},
				}),
				Email:     loginName,
				FirstName: "Mara",
				UserName:  loginName,
				Password:  true,
				Rules:     rules,
				Terms:     pages.Terms{Terms: out("https://aldermoor.example/terms")},
			},
		},
		{Name: "register-passkey", Status: 200,
			View: pages.RegisterPasskey{Frame: frame, Email: loginName, FirstName: "Mara", LastName: "Lindqvist",
				UserName: loginName, Options: []byte(creation), Back: to("/register")}},
		{Name: "login-name-plain", Status: 200, View: pages.LoginName{}},
		{
			Name:   "login-name-odd",
			Status: 200,
			View: pages.ChooseAccount{Frame: pages.Frame{Organization: organization}, Accounts: []pages.KnownAccount{
				{ID: "1", Name: "\u202enimdA", LoginName: " bob @aldermoor.example", Organization: organization}}},
		},
		{Name: "login-name-missing", Status: 400,
			View: pages.LoginName{Frame: wrong(pages.FieldLoginName, pages.Required())}},
		{Name: "password", Status: 200,
			View: pages.Password{Frame: frame, LoginName: loginName, Forgot: to("/forgot"), Other: to("/login")}},
		{Name: "password-providers", Status: 200,
			View: pages.Password{Frame: frame, LoginName: loginName, Forgot: to("/forgot"), Other: to("/login"),
				Providers: providers[1:]}},
		{Name: "prove-through", Status: 200,
			View: pages.ProveThrough{Frame: pages.Frame{Organization: organization}, LoginName: loginName,
				Providers: providers[:1]}},
		{
			Name:   "prove-through-wrong",
			Status: 422,
			View: pages.ProveThrough{
				Frame: pages.Frame{Organization: organization,
					Problems: []pages.Problem{{Message: pages.NotProvenThere("Google")}}},
				LoginName: loginName,
				Providers: providers[:1],
			},
		},
		{Name: "register", Status: 200,
			View: pages.Register{Frame: frame, Provider: "Aldermoor Workplace", As: loginName, FirstName: "Mara",
				UserName: "mara", Email: loginName, Existing: to("/login"), Other: to("/login")}},
		{Name: "register-invited", Status: 200,
			View: pages.Register{Frame: frame, Provider: "Aldermoor Workplace", As: loginName, FirstName: "Mara",
				LastName: "Lindqvist", UserName: "mara", Email: loginName, In: organization, Invited: true,
				Existing: to("/login")}},
		{
			Name:   "register-terms",
			Status: 200,
			View: pages.Register{
				Frame:     frame,
				Provider:  "Aldermoor Workplace",
				As:        loginName,
				FirstName: "Mara",
				UserName:  "mara",
				Email:     loginName,
				Terms:     pages.Terms{Terms: out("https://aldermoor.example/terms"), Accepted: true},
				Other:     to("/login"),
			},
		},
		{
			Name:   "register-wrong",
			Status: 422,
			View: pages.Register{
				Frame: framed(pages.Frame{
					Problems: []pages.Problem{{Field: pages.FieldLastName, Message: pages.Required()},
						{Field: pages.FieldUserName, Message: pages.UserNameTaken()}},
				}),
				Provider:  "Aldermoor Workplace",
				As:        loginName,
				FirstName: "Mara",
				UserName:  "mara",
				Email:     loginName,
			},
		},
		{Name: "choose-provider", Status: 200,
			View: pages.ChooseProvider{Frame: frame, Of: organization, Provider: providers[1], Other: to("/login")}},
		{Name: "choose-provider-google", Status: 200,
			View: pages.ChooseProvider{Of: organization, Provider: providers[0]}},
		{Name: "confirm-arrival", Status: 200,
			View: pages.ConfirmArrival{Frame: frame, Of: organization, Provider: "Google",
				As: "mara.lindqvist@gmail.example", LoginName: loginName, Others: "admin@aldermoor.example",
				Other: to("/login")}},
		{Name: "confirm-arrival-new", Status: 200,
			View: pages.ConfirmArrival{Of: organization, Provider: "Google", As: "mara.lindqvist@gmail.example",
				Other: to("/login")}},
		{Name: "unlinked", Status: 200,
			View: pages.Unlinked{Frame: frame, Provider: "Google", As: "mara.lindqvist@gmail.example",
				SignIn: to("/login"), Other: to("/login")}},
		{Name: "unlinked-none", Status: 200,
			View: pages.Unlinked{Frame: frame, Provider: "Google", As: "mara.lindqvist@gmail.example",
				Other: to("/login")}},
		{Name: "unlinked-suspended", Status: 200,
			View: pages.Unlinked{Frame: frame, Provider: "Google", As: "mara.lindqvist@gmail.example", Suspended: true,
				SignIn: to("/login"), Other: to("/login")}},
		{Name: "confirm-link", Status: 200,
			View: pages.ConfirmLink{Frame: frame, LoginName: loginName, Provider: "Google",
				As: "mara.lindqvist@gmail.example"}},
		{Name: "to-application", Status: 200,
			View: pages.ToApplication{Frame: frame, Name: application, Provider: "Google",
				As: "mara.lindqvist@gmail.example", LoginName: loginName}},
		{Name: "to-application-new", Status: 200,
			View: pages.ToApplication{Frame: frame, Name: application, Provider: "Google",
				As: "mara.lindqvist@gmail.example"}},
		{Name: "password-wrong", Status: 400,
			View: pages.Password{Frame: wrong(pages.FieldPassword, pages.WrongPassword()), LoginName: loginName,
				Forgot: to("/forgot"), Other: to("/login")}},
		{Name: "password-throttled", Status: 429,
			View: pages.Password{Frame: wrong("", pages.Throttled(30*time.Second)), LoginName: loginName,
				Forgot: to("/forgot"), Other: to("/login")}},
		{Name: "password-locked", Status: 403,
			View: pages.Password{Frame: wrong("", pages.Locked()), LoginName: loginName, Other: to("/login")}},
		{Name: "password-again", Status: 200,
			View: pages.Password{Frame: pages.Frame{Organization: organization}, LoginName: loginName, Again: true}},
		{Name: "change-password", Status: 200,
			View: pages.ChangePassword{Frame: frame, LoginName: loginName, Rules: rules}},
		{Name: "change-password-current", Status: 200,
			View: pages.ChangePassword{Frame: frame, LoginName: loginName, Current: true, Rules: rules}},
		{
			Name:   "change-password-wrong",
			Status: 400,
			View: pages.ChangePassword{Frame: framed(pages.Frame{Problems: []pages.Problem{
				{Field: pages.FieldNewPassword, Message: pages.PasswordTooShort(8)},
				{Field: pages.FieldRepeatPassword, Message: pages.PasswordsDiffer()}}}),
				LoginName: loginName, Rules: rules},
		},
		{Name: "second-factor", Status: 200,
			View: pages.SecondFactor{Frame: frame, LoginName: loginName, Kind: pages.TOTP, UsePasskey: to("/a"),
				UseRecovery: to("/b"), Other: to("/login")}},
		{Name: "second-factor-remember", Status: 200,
			View: pages.SecondFactor{Frame: frame, LoginName: loginName, Kind: pages.TOTP, UseRecovery: to("/b"),
				Other: to("/login"), RememberDays: 30}},
		{Name: "second-factor-passkey-remember", Status: 200,
			View: pages.SecondFactor{Frame: frame, LoginName: loginName, Kind: pages.Passkey, Options: []byte(options),
				UseTOTP: to("/a"), RememberDays: 1, Remember: true}},
		{Name: "second-factor-wrong", Status: 400,
			View: pages.SecondFactor{Frame: wrong(pages.FieldCode, pages.WrongCode()), LoginName: loginName,
				Kind: pages.TOTP, UseRecovery: to("/b")}},
		{Name: "second-factor-passkey", Status: 200,
			View: pages.SecondFactor{Frame: frame, LoginName: loginName, Kind: pages.Passkey, Options: []byte(options),
				UseTOTP: to("/a"), UseRecovery: to("/b")}},
		{Name: "second-factor-recovery", Status: 200,
			View: pages.SecondFactor{Frame: frame, LoginName: loginName, Kind: pages.RecoveryCode, UseTOTP: to("/a"),
				UsePasskey: to("/b")}},
		{
			Name:   "enrol-totp",
			Status: 200,
			View: pages.EnrolTOTP{
				Frame:      frame,
				Required:   true,
				Key:        "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
				UsePasskey: to("/a"),
				URI:        "otpauth://totp/Aldermoor%20Instruments:mara@aldermoor.example?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Aldermoor%20Instruments",
			},
		},
		{Name: "enrol-passkey", Status: 200,
			View: pages.EnrolPasskey{Frame: frame, Required: true, Options: []byte(creation), UseTOTP: to("/a")}},
		{Name: "recovery-codes", Status: 200, View: pages.RecoveryCodes{Frame: frame, Codes: codes, Next: to("/next")}},
		{Name: "verify-email", Status: 200,
			View: pages.VerifyEmail{Frame: pages.Frame{Organization: organization}, Email: loginName, Again: true}},
		{Name: "email-verified", Status: 200,
			View: pages.EmailVerified{Frame: pages.Frame{Organization: organization}, Email: loginName,
				Next: to("/account")}},
		{Name: "forgot-password", Status: 200,
			View: pages.ForgotPassword{Frame: frame, LoginName: loginName, Back: to("/login")}},
		{Name: "reset-mail-sent", Status: 200,
			View: pages.ResetMailSent{Frame: frame, LoginName: loginName, Back: to("/login")}},
		{Name: "reset-password", Status: 200,
			View: pages.ResetPassword{LoginName: loginName, Code: "123456", Rules: rules}},
		{Name: "reset-password-factor", Status: 422,
			View: pages.ResetPassword{Frame: pages.Frame{Problems: []pages.Problem{{Message: pages.SecondFactorNeeded()}}}, Rules: rules, Factor: true}},
		{Name: "reset-password-restored", Status: 200,
			View: pages.ResetPassword{Frame: pages.Frame{Done: pages.EmailRestored()}, Rules: rules}},
		{Name: "invitation", Status: 200,
			View: pages.Invitation{Frame: pages.Frame{Organization: organization}, Inviter: "Jonas Ek",
				To: organization, Email: loginName, Password: to("/a"), Passkey: to("/b"), Providers: providers[:1],
				SignIn: to("/c")}},
		{Name: "invitation-signed-in", Status: 200,
			View: pages.Invitation{Frame: pages.Frame{Organization: organization}, To: organization, Email: loginName,
				Account: "jonas@fieldbook.example", Accept: to("/d"), Password: to("/a"), SignIn: to("/c")}},
		{Name: "join-password", Status: 200,
			View: pages.JoinPassword{Frame: pages.Frame{Organization: organization}, Email: loginName,
				UserName: loginName, Rules: rules, Back: to("/a")}},
		{
			Name:   "join-password-wrong",
			Status: 422,
			View: pages.JoinPassword{
				Frame: pages.Frame{
					Organization: organization,
					Problems: []pages.Problem{{Field: pages.FieldFirstName, Message: pages.Required()},
						{Field: pages.FieldUserName, Message: pages.UserNameIsAddress()},
						{Field: pages.FieldRepeatPassword, Message: pages.PasswordsDiffer()}},
				},
				Email:    loginName,
				UserName: "boss@aldermoor.example",
				Rules:    rules,
			},
		},
		{Name: "join-passkey", Status: 200,
			View: pages.JoinPasskey{Frame: pages.Frame{Organization: organization}, Email: loginName,
				UserName: loginName, Back: to("/a")}},
		{Name: "join-passkey-create", Status: 200,
			View: pages.JoinPasskey{Frame: pages.Frame{Organization: organization}, Email: loginName, FirstName: "Mara",
				LastName: "Lindqvist", UserName: loginName, Options: []byte(creation), Back: to("/a")}},
		{Name: "join-account", Status: 200,
			View: pages.JoinAccount{Frame: pages.Frame{Organization: organization}, ID: "ses_1", LoginName: loginName,
				To: organization, Email: loginName, Other: to("/a"), Back: to("/b")}},
		{Name: "join-account-roles", Status: 200,
			View: pages.JoinAccount{Frame: pages.Frame{Organization: organization}, ID: "ses_1", LoginName: loginName,
				To: organization, Email: loginName, Roles: []string{string(access.OrgUserManager)},
				Custom: []pages.CustomRole{{Name: "Helpdesk", Allows: []string{"user.read", "user.write"}}},
				Other:  to("/a"), Back: to("/b")}},
		{Name: "join-account-password", Status: 200,
			View: pages.JoinAccount{Frame: pages.Frame{Organization: organization}, ID: "ses_1", LoginName: loginName,
				To: organization, Email: loginName, Roles: []string{string(access.OrgUserManager)},
				Password: to("/account/password"), Other: to("/a"), Back: to("/b")}},
		{Name: "join-account-mismatch", Status: 200,
			View: pages.JoinAccount{Frame: pages.Frame{Organization: organization},
				LoginName: "jonas@fieldbook.example", To: organization, Email: loginName, Mismatch: true,
				Other: to("/a"), Back: to("/b")}},
		{Name: "joined", Status: 200,
			View: pages.Joined{Frame: pages.Frame{Organization: organization}, To: organization, Next: to("/account")}},
		{Name: "joined-product", Status: 200,
			View: pages.Joined{Frame: pages.Frame{Organization: organization}, To: organization, Product: "Fieldbook"}},
		{Name: "set-password", Status: 200, View: pages.SetPassword{LoginName: loginName, Rules: rules}},
		{Name: "restore-email", Status: 200, View: pages.RestoreEmail{}},
		{Name: "password-reset", Status: 200, View: pages.PasswordReset{Next: to("/login")}},
		{Name: "consent", Status: 200,
			View: pages.Consent{Frame: frame, LoginName: loginName, Publisher: "Fieldbook Ltd", Access: usual}},
		{Name: "consent-elsewhere", Status: 200,
			View: pages.Consent{Frame: frame, LoginName: loginName, Publisher: "Fieldbook Ltd", Elsewhere: true,
				Access: usual}},
		{Name: "consent-api", Status: 200,
			View: pages.Consent{Frame: frame, LoginName: loginName, Publisher: "Fieldbook Ltd",
				Access: pages.Access{Scopes: slices.Concat(access.APIScopeNames[3:], access.APIScopeNames[:3],
					[]string{"openid"})}}},
		{Name: "consent-told", Status: 200,
			View: pages.Consent{Frame: frame, LoginName: loginName, Publisher: "Fieldbook Ltd", Elsewhere: true,
				Access: pages.Access{Audiences: []string{"Fieldbook API", ""},
					Scopes: []string{"notes.write", "urn:signet:app_roles", "urn:signet:groups", "urn:signet:metadata",
						"urn:signet:roles", "urn:signet:org:id:org_01", "urn:signet:org:domain:aldermoor.example",
						"urn:signet:org", "phone", "email", "openid"}}}},
		{Name: "no-role", Status: 200, View: pages.NoRole{Frame: frame, LoginName: loginName, Other: to("/login")}},
		{Name: "onward", Status: 200,
			View: pages.Onward{Frame: frame,
				To: out("https://fieldbook.example/callback?code=a&state=b")}, Moves: true},
		{Name: "post-back", Status: 200,
			View: pages.NewPostBack(frame, out("https://fieldbook.example/callback"),
				url.Values{"code": {"a"}, "state": {"b"}}), Moves: true},
		{Name: "device-code", Status: 200, View: pages.DeviceCode{LoginName: loginName, Other: to("/login")}},
		{Name: "device-code-wrong", Status: 400,
			View: pages.DeviceCode{Frame: pages.Frame{Problems: []pages.Problem{{Field: pages.FieldUserCode,
				Message: pages.WrongCode()}}}, UserCode: "WDJB-MJHX"}},
		{Name: "device-confirm", Status: 200,
			View: pages.DeviceConfirm{Frame: frame, ID: "1", LoginName: loginName, Other: to("/login"),
				UserCode: "WDJB-MJHT", Access: usual}},
		{
			Name:   "device-confirm-elsewhere",
			Status: 200,
			View: pages.DeviceConfirm{
				Frame:     frame,
				ID:        "1",
				LoginName: loginName,
				Other:     to("/login"),
				UserCode:  "WDJB-MJHT",
				Publisher: "Fieldbook Ltd",
				Access:    usual,
			},
		},
		{Name: "device-done", Status: 200, View: pages.DeviceDone{Frame: frame}},
		{Name: "device-refused", Status: 200, View: pages.DeviceDone{Frame: frame, Refused: true}},
		{Name: "sign-out", Status: 200,
			View: pages.SignOut{Frame: frame, ID: "1", LoginName: loginName, Several: true, Back: to("/account")}},
		{Name: "signed-out", Status: 200,
			View: pages.SignedOut{Frame: frame, Next: out("com.fieldbook.app:/signed-out")}},
		{Name: "failed-expired", Status: 400,
			View: pages.Failed{Frame: frame, What: pages.Expired, Next: out("https://fieldbook.example/"),
				RequestID: "req_01JTDY3V8Q6M2K"}},
		{Name: "failed-elsewhere", Status: 403,
			View: pages.Failed{Frame: none, What: pages.FromElsewhere, RequestID: "req_01JTDY3V8Q6M2K"}},
		{Name: "failed-cookie", Status: 400,
			View: pages.Failed{Frame: none, What: pages.NoCookie, Next: to("/login"), RequestID: "req_01JTDY3V8Q6M2K"}},
		{Name: "failed-request", Status: 400,
			View: pages.Failed{Frame: frame, What: pages.BadRequest,
				Detail:    pages.Said("redirect_uri is not registered for this application"),
				RequestID: "req_01JTDY3V8Q6M2K"}},
		{Name: "failed-inactive", Status: 400, View: pages.Failed{Frame: none, What: pages.NotActive}},
		{Name: "failed-link", Status: 400, View: pages.Failed{Frame: none, What: pages.BadLink, Next: to("/forgot")}},
		{Name: "failed-permitted", Status: 403, View: pages.Failed{Frame: frame, What: pages.NotPermitted}},
		{Name: "failed-found", Status: 404,
			View: pages.Failed{Frame: none, What: pages.NotFound, Next: to("/account")}},
		{Name: "failed-many", Status: 429, View: pages.Failed{Frame: none, What: pages.TooMany}},
		{Name: "failed-provider", Status: 400,
			View: pages.Failed{Frame: frame, What: pages.ProviderFailed, Next: to("/login"),
				RequestID: "req_01JTDY3V8Q6M2K"}},
		{Name: "failed-provider-away", Status: 503,
			View: pages.Failed{Frame: frame, What: pages.ProviderAway, Next: to("/login")}},
		{Name: "failed-provider-denied", Status: 400,
			View: pages.Failed{Frame: frame, What: pages.ProviderDenied, Next: to("/login")}},
		{Name: "failed-unavailable", Status: 503, View: pages.Failed{Frame: none, What: pages.Unavailable}},
		{Name: "failed-broken", Status: 500,
			View: pages.Failed{Frame: none, What: pages.Broken, RequestID: "req_01JTDY3V8Q6M2K"}},
	}
}

func account() []Sample {
	plain := mine(pages.Frame{})
	saved := mine(pages.Frame{Done: pages.Saved()})
	profile := pages.Profile{
		Account:           saved,
		FirstName:         "Mara",
		LastName:          "Lindqvist",
		DisplayName:       "Mara Lindqvist",
		PreferredLanguage: "it",
		Gender:            "female",
		Email:             loginName,
		EmailProven:       true,
		Phone:             "+442079460018",
		Contact:           to("/account/contact"),
		Terms:             out("https://aldermoor.example/terms"),
		TermsAccepted:     morning,
	}
	refused := profile
	refused.Account = mine(pages.Frame{
		Problems: []pages.Problem{{Field: pages.FieldFirstName, Message: pages.Required()},
			{Field: pages.FieldNickName, Message: pages.TooLong(200)},
			{Field: pages.FieldLanguage, Message: pages.NotValid()},
			{Field: pages.FieldGender, Message: pages.NotValid()}},
	})
	refused.FirstName, refused.EmailProven, refused.ProveEmail = "", false, true
	return []Sample{
		{Name: "account-profile", Status: 200, View: profile},
		{Name: "account-profile-wrong", Status: 400, View: refused},
		{Name: "account-password", Status: 200, View: pages.OwnPassword{Account: plain, Rules: rules}},
		{
			Name:   "account-security",
			Status: 200,
			View: pages.Security{
				Account:       plain,
				RecoveryCodes: 7,
				AddTOTP:       to("/t"),
				AddPasskey:    to("/p"),
				Factors: []pages.Factor{
					{ID: "f1", Kind: pages.Passkey, Name: "Work laptop", Added: morning, Rename: to("/r")},
					{ID: "f2", Kind: pages.TOTP, Added: morning.Add(time.Hour), Rename: to("/r")}},
				Signal: []byte("{}"),
			},
		},
		{Name: "account-rename-factor", Status: 200,
			View: pages.RenameFactor{Account: plain, ID: "f1", Kind: pages.Passkey, Name: "Work laptop",
				Back: to("/account/security")}},
		{Name: "account-rename-factor-wrong", Status: 400,
			View: pages.RenameFactor{Account: mine(pages.Frame{Problems: []pages.Problem{{Field: pages.FieldFactorName,
				Message: pages.Required()}}}), Kind: pages.TOTP, Back: to("/account/security")}},
		{
			Name:   "account-security-linked",
			Status: 200,
			View: pages.Security{
				Account:    mine(pages.Frame{Done: pages.AccountLinked()}),
				AddTOTP:    to("/t"),
				AddPasskey: to("/p"),
				Link:       providers,
				Linked: []pages.LinkedAccount{
					{ID: "1", Provider: "Aldermoor Workplace", As: loginName, Added: morning},
					{ID: "2", Provider: "Google", As: "mara.lindqvist@gmail.example", Added: morning, Suspended: true,
						Confirm: true},
					{ID: "3", Provider: "GitLab", As: "mara", Added: morning, Suspended: true},
					{ID: "4", As: "mara.l", Added: morning}},
			},
		},
		{Name: "account-security-none", Status: 200,
			View: pages.Security{Account: plain, AddTOTP: to("/t"), AddPasskey: to("/p")}},
		{Name: "account-sessions", Status: 200, View: pages.Sessions{Account: plain, Sessions: []pages.Session{
			{ID: "s1", Current: true, Browser: "Firefox (Linux)", Address: "192.0.2.17", Started: morning,
				Ends: morning.Add(12 * time.Hour)},
			{ID: "s2", Browser: "Safari (iPhone)", Address: "2001:db8::7:1", Started: morning.Add(-2 * time.Hour),
				Ends: morning.Add(10 * time.Hour)},
			{ID: "s3", Started: morning.Add(-3 * time.Hour), Ends: morning.Add(9 * time.Hour)}}}},
		{
			Name:   "account-sessions-devices",
			Status: 200,
			View: pages.Sessions{Account: mine(pages.Frame{Done: pages.DeviceForgotten()}), Sessions: []pages.Session{
				{ID: "s1", Current: true, Browser: "Firefox (Linux)", Address: "192.0.2.17", Started: morning,
					Ends: morning.Add(12 * time.Hour)}}, Devices: []pages.Session{
				{ID: "d1", Browser: "Firefox (Linux)", Address: "192.0.2.17", Started: morning,
					Ends: morning.AddDate(0, 0, 30)}, {ID: "d2", Started: morning, Ends: morning.AddDate(0, 0, 1)}}},
		},
		{Name: "account-tokens", Status: 200, View: pages.Tokens{Account: plain, Days: 90, Tokens: []pages.Token{
			{ID: "t1", Name: "Backup script", Created: morning, Expires: morning.AddDate(0, 0, 90)},
			{ID: "t2", Created: morning, Expires: morning.AddDate(0, 0, 30)}}}},
		{
			Name:   "account-tokens-wrong",
			Status: 400,
			View: pages.Tokens{Account: mine(pages.Frame{Problems: []pages.Problem{
				{Field: pages.FieldTokenName, Message: pages.TooLong(200)},
				{Field: pages.FieldTokenDays, Message: pages.NotValid()}}}), Days: 365},
		},
		{Name: "account-new-token", Status: 200,
			View: pages.NewToken{Account: plain, TokenName: "Backup script",
				Secret: "sgn_pat_3mKq8VtY2cZr7LwXb5NfJ4hGd9sPvA6eTuQ1oRiMyBk", Expires: morning.AddDate(0, 0, 90)}},
		{
			Name:   "account-applications",
			Status: 200,
			View: pages.Applications{Account: plain, Applications: []pages.Application{
				{ID: "a1", Name: application, Access: usual, Since: morning},
				{ID: "a2", Name: "Timesheets", Publisher: "Fieldbook Ltd", Operator: true,
					Access: pages.Access{Scopes: []string{"openid"}, Audiences: []string{"Fieldbook API"}},
					Since:  morning},
				{ID: "a3", Access: pages.Access{Scopes: []string{"openid"}}, Since: morning}}},
		},
		{Name: "account-applications-none", Status: 200,
			View: pages.Applications{Account: mine(pages.Frame{Done: pages.Disconnected()})}},
		{
			Name:   "account-organizations",
			Status: 200,
			View: pages.Organizations{Account: plain, Organizations: []pages.Organization{
				{Name: "", Roles: []string{string(access.IAMOwnerViewer)}},
				{ID: "o1", Name: organization, Own: true,
					Roles:  []string{string(access.OrgOwner), string(access.OrgUserManager)},
					Groups: []string{"Engineering", "Night shift"}},
				{ID: "o2", Name: "Fieldbook Ltd", Leave: true}}},
		},
		{
			Name:   "account-organizations-offers",
			Status: 200,
			View: pages.Organizations{
				Account: plain,
				Organizations: []pages.Organization{{ID: "o1", Name: organization, Own: true},
					{ID: "o2", Name: "Fieldbook Ltd", Leave: true, Roles: []string{string(access.OrgOwnerViewer)},
						Waiting: []string{string(access.OrgUserManager)}, Unaccepted: true,
						All: "ORG_OWNER_VIEWER ORG_USER_MANAGER"},
					{ID: "o3", Name: "Harbour Works", Leave: true,
						Custom: []pages.CustomRole{{Name: "Helpdesk", Allows: []string{"user.read"}}},
						WaitingCustom: []pages.CustomRole{{Name: "Helpdesk",
							Allows: []string{"user.credential.write", "user.read"}}},
						All: "role_1:user.read role_1:user.credential.write,user.read"}},
				Offers: []pages.Offer{{ID: "f1", Name: "Harbour Works", Domain: "harbour.example",
					Roles: []string{string(access.OrgOwner), string(access.OrgSettingsManager), "ORG_OTHER"}},
					{ID: "f2", Name: "Quay & Sons"},
					{ID: "f3", Name: "Pier 9", Custom: []pages.CustomRole{{Name: "Lock keepers <of the night>",
						Allows: []string{"domain.release", "event.read", "project.role.write"}}}}},
			},
		},
		{
			Name:   "account-organizations-password",
			Status: 422,
			View: pages.Organizations{
				Account:       mine(pages.Frame{Problems: []pages.Problem{{Message: pages.OwnPasswordFirst()}}}),
				Organizations: []pages.Organization{{ID: "o1", Name: organization, Own: true}},
				Password:      to("/account/password"),
				Offers: []pages.Offer{{ID: "f1", Name: "Harbour Works", Domain: "harbour.example",
					Roles: []string{string(access.OrgUserManager)}}},
			},
		},
		{
			Name:   "account-organizations-left",
			Status: 200,
			View: pages.Organizations{
				Account: mine(pages.Frame{Done: pages.OrganizationLeft()}),
				Organizations: []pages.Organization{
					{ID: "o1", Name: organization, Own: true}},
			},
		},
		{
			Name:   "account-organizations-changed",
			Status: 422,
			View: pages.Organizations{
				Account: mine(pages.Frame{Problems: []pages.Problem{{Message: pages.Changed()}}}),
				Organizations: []pages.Organization{
					{ID: "o1", Name: organization, Own: true},
					{ID: "o2", Name: "Fieldbook Ltd", Leave: true,
						Roles: []string{string(access.OrgOwner), "ORG_OTHER"}}},
			},
		},
		{Name: "account-contact", Status: 200,
			View: pages.Contact{Account: plain, Email: loginName, EmailProven: true, Phone: "+442079460018",
				SendPhone: true, Back: to("/account")}},
		{
			Name:   "account-contact-wrong",
			Status: 422,
			View: pages.Contact{
				Account: mine(pages.Frame{Problems: []pages.Problem{{Field: pages.FieldEmail,
					Message: pages.NotAnEmail()}}}),
				Email:    loginName,
				NewEmail: "mara at aldermoor",
				Back:     to("/account"),
			},
		},
	}
}
