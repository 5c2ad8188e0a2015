package pages

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
)

// View is what one page shows. The types of this package are all there are.
type View interface {
	frame() Frame
	about() about
}

// about is what the surroundings of a page depend on.
type about struct {
	template string
	title    string // key of the heading
	passkey  bool   // it asks the browser for a passkey
	script   bool   // it has something to show, copy or put in local time; works without as well
	end      bool   // of the way: what the application gets is decided, or asked for, here
	refresh  Link   // where the page leads by itself
	posts    bool   // it posts to an application, see PostBack
	section  string // of the account pages: which one it is
}

// Frame is what every page can have.
type Frame struct {
	Organization string // the one that the person signs in to, where that is known
	Application  string // the one that the person goes on to, where there is one
	Language     string // what the person prefers, where it is known who it is
	Locales      string // ui_locales of the application's request
	RedirectURI  string // where the answer to a form may send the browser, besides our own pages
	// what the page was shown for, where a link in a cookie decides that: another tab may bring another one. Comes back in FieldFor
	For string
	// the account that the forms are about, where the browser may have several; comes back in FieldAccount
	Session  string
	Done     Message
	Problems []Problem
}

func (f Frame) frame() Frame { return f }

// Problem is one thing that is wrong. Field is one of the Field constants; empty where it is about no field.
type Problem struct {
	Field string
	Message
}

// problem finds what is wrong with a field.
func (f Frame) problem(field string) Message {
	for _, p := range f.Problems {
		if p.Field == field {
			return p.Message
		}
	}
	return Message{}
}

// Names of the fields of forms.
const (
	FieldDo = "do" // which button was pressed, one of the Do constants
	// of what the button is about: an account, a factor, a session, a token, an application
	FieldID              = "id"
	FieldAccount         = "account"  // whose page it was, see Frame.Session
	FieldFor             = "for"      // see Frame.For
	FieldSequence        = "sequence" // what was seen of the person, so that nothing is overwritten that was not
	FieldKey             = "key"      // of an authenticator app, so that the page shows the same one again
	FieldLoginName       = "loginName"
	FieldPassword        = "password"
	FieldCurrentPassword = "currentPassword"
	FieldNewPassword     = "newPassword"
	FieldRepeatPassword  = "repeatPassword"
	FieldRemember        = "remember"  // a box that is ticked: the second factor is remembered on this device
	FieldEndTokens       = "endTokens" // a box that is ticked: tokens end with the password
	FieldCode            = "code"
	FieldRecoveryCode    = "recoveryCode"
	FieldUserCode        = "userCode"
	FieldCredential      = "credential" // what the browser says about a passkey, in JSON
	FieldPasskeyName     = "passkeyName"
	FieldFactorName      = "factorName"
	FieldFirstName       = "firstName"
	FieldLastName        = "lastName"
	FieldNickName        = "nickName"
	FieldDisplayName     = "displayName"
	FieldLanguage        = "preferredLanguage"
	FieldGender          = "gender"
	FieldTokenName       = "tokenName"
	FieldTokenDays       = "tokenDays" // how long a personal access token counts, one of TokenDays
	FieldEmail           = "email"
	FieldPhone           = "phone"
	FieldPhoneCode       = "phoneCode"
	FieldUserName        = "userName"
	FieldProvider        = "provider" // what the names of providers begin with that are wanted
	FieldAfter           = "after"    // the provider behind which the next ones are wanted
	FieldRoles           = "roles"    // that were shown
	FieldTerms           = "terms"    // a box that is ticked: the address of the terms that are accepted
)

// Values of FieldDo.
const (
	DoContinue  = "continue"
	DoOther     = "other" // another account
	DoAllow     = "allow"
	DoDeny      = "deny"
	DoPasskey   = "passkey"
	DoResend    = "resend"
	DoEnd       = "end"
	DoEndOthers = "endOthers"
	DoForget    = "forget"
	DoRename    = "rename"
	DoEndAll    = "endAll"
	DoRemove    = "remove"
	DoLeave     = "leave" // FieldID: an organization
	DoAccept    = "accept"
	DoDecline   = "decline"

	DoAcceptRoles = "acceptRoles"
	DoCodes       = "codes" // make recovery codes
	DoCreate      = "create"
	DoForgot      = "forgot"      // the name that was typed goes along, nothing is sent yet
	DoSetEmail    = "setEmail"    // FieldEmail
	DoSetPhone    = "setPhone"    // FieldPhone
	DoNoPhone     = "removePhone" // there is none any more
	DoSendPhone   = "sendPhone"   // a code to the phone
	DoPhoneCode   = "provePhone"  // FieldPhoneCode
	DoUnlink      = "unlink"      // FieldID: an account at a provider
	DoConfirm     = "confirm"     // likewise
)

// TokenDays are the lives of a personal access token that people can choose from.
var TokenDays = []int{30, 90, 365}

// input is one field of a form with everything a browser needs to know of it.
type input struct {
	Name, Label, Hint        string
	Type, Autocomplete, Mode string
	Most                     int
	Literal                  bool // neither capitals nor corrections
	Optional                 bool

	Value   string
	Rules   PasswordRules
	Problem Message
	Focus   bool
}

// inputs holds the fields whose form does not depend on the page.
var inputs = map[string]input{
	FieldLoginName: {Label: "field.loginName", Hint: "field.loginName.hint", Autocomplete: "username",
		Literal: true, Most: 400},
	FieldPassword:        {Label: "field.password", Type: "password", Autocomplete: "current-password"},
	FieldCurrentPassword: {Label: "field.currentPassword", Type: "password", Autocomplete: "current-password"},
	FieldNewPassword:     {Label: "field.newPassword", Type: "password", Autocomplete: "new-password"},
	FieldRepeatPassword:  {Label: "field.repeatPassword", Type: "password", Autocomplete: "new-password"},
	FieldCode: {Label: "field.code", Autocomplete: "one-time-code", Mode: "numeric",
		Literal: true, Most: 20},
	FieldRecoveryCode: {Label: "field.recoveryCode", Autocomplete: "off", Literal: true, Most: 40},
	FieldUserCode:     {Label: "field.userCode", Autocomplete: "off", Literal: true, Most: 20},
	FieldFactorName:   {Label: "renameFactor.name", Autocomplete: "off", Most: 200},
	FieldPasskeyName: {Label: "field.passkeyName", Hint: "field.passkeyName.hint", Autocomplete: "off", Most: 200,
		Optional: true},
	FieldUserName: {Label: "field.loginName", Hint: "field.userName.hint", Autocomplete: "username",
		Literal: true, Most: 200},
	FieldFirstName:   {Label: "field.firstName", Autocomplete: "given-name", Most: 200},
	FieldLastName:    {Label: "field.lastName", Autocomplete: "family-name", Most: 200},
	FieldNickName:    {Label: "field.nickName", Autocomplete: "nickname", Most: 200, Optional: true},
	FieldDisplayName: {Label: "field.displayName", Autocomplete: "name", Most: 200},
	FieldLanguage:    {Label: "field.preferredLanguage"},
	FieldGender:      {Label: "field.gender"},
	FieldTokenDays:   {Label: "field.tokenDays"},
	FieldEmail:       {Label: "field.email", Type: "email", Autocomplete: "email", Literal: true, Most: 200},
	FieldPhone:       {Label: "field.phone", Hint: "field.phone.hint", Type: "tel", Autocomplete: "tel", Most: 50},
	FieldPhoneCode:   {Label: "field.phoneCode", Autocomplete: "one-time-code", Literal: true, Most: 20},
	FieldTokenName: {Label: "field.tokenName", Hint: "field.tokenName.hint", Autocomplete: "off", Most: 200,
		Optional: true},
}

// PasswordRules is what a new password has to keep to, told before it is typed. The zero value tells nothing.
type PasswordRules struct {
	Least     int
	NotCommon bool
}

func (p *Pages) functions(t texts) template.FuncMap {
	newInput := func(v View, name, value string, focus bool) input {
		in := inputs[name]
		in.Name, in.Value, in.Problem = name, value, v.frame().problem(name)
		if in.Type == "" {
			in.Type = "text"
		}
		if problems := v.frame().Problems; len(problems) > 0 { // where to go on is the first field that is wrong
			if i := slices.IndexFunc(problems, func(p Problem) bool { return p.Field != "" }); i >= 0 {
				focus = problems[i].Field == name
			}
		}
		in.Focus = focus
		return in
	}
	return template.FuncMap{
		"t":     t.html,
		"plain": t.plain,
		"say":   t.say,
		"lang":  func() string { return t.tag },
		"asset": p.assets.path,
		"url":   Link.url,
		"there": func(l Link) bool { return !l.IsNone() },
		"said":  func(m Message) bool { return !m.IsNone() },
		"input": func(v View, name, value string) input { return newInput(v, name, value, false) },
		"first": func(v View, name, value string) input { return newInput(v, name, value, true) },
		"with_passkey": func(in input) input {
			in.Autocomplete += " webauthn"
			return in
		},
		"with_letters": func(in input) input {
			in.Mode = ""
			return in
		},
		"labelled": func(label string, in input) input {
			in.Label = label
			return in
		},
		"optional": func(in input) input {
			in.Optional = true
			return in
		},
		"with_rules": func(in input, r PasswordRules) input {
			in.Rules = r
			return in
		},
		"problem": func(v View, name string) Message { return v.frame().problem(name) },
		"about": func(v View, name string) input {
			return newInput(v, name, "", false)
		},
		"label":       func(name string) string { return inputs[name].Label },
		"moment":      t.moment,
		"machine":     func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"scope":       t.scope,
		"role":        t.role,
		"allows":      t.allows,
		"permission":  t.permission,
		"shown":       shown,
		"failure":     func(f Failure, part string) string { return "failure." + string(f) + "." + part },
		"sections":    func() []section { return sections },
		"signOutPath": func() string { return PathSignOut },
		"tokensPath":  func() string { return PathTokens },
		"languages":   t.languageChoices,
		"tokenDays":   func() []int { return TokenDays },
		"qr":          qrCode,
		"grouped":     grouped,
		"lines":       func(all []string) string { return strings.Join(all, "\n") + "\n" },
		"initial":     initial,
		"undirected":  undirected,
		"passkey": func(mode string, options []byte, label, class string, conditional bool) passkey {
			return passkey{mode, string(options), label, class, conditional}
		},
	}
}

// DescribedBy names what belongs to the field besides its label.
func (in input) DescribedBy() string {
	var ids []string
	if in.Hint != "" {
		ids = append(ids, in.Name+"-hint")
	}
	if in.Rules != (PasswordRules{}) {
		ids = append(ids, in.Name+"-rules")
	}
	if !in.Problem.IsNone() {
		ids = append(ids, in.Name+"-problem")
	}
	return strings.Join(ids, " ")
}

// passkey is what the script needs to ask the browser for one. A conditional one is offered among the names that the
// browser suggests for the login name.
type passkey struct {
	Mode, Options, Label, Class string
	Conditional                 bool
}

// quiet is the margin that readers of such codes need, in modules.
const quiet = 4

// module is the width of one in pixels: enough for any camera, and narrow enough for a telephone.
const module = 4

// picture is an image that is part of the page.
type picture struct {
	URL  template.URL
	Size int
}

// qrCode draws a text; nil where it is too long for that. The page shows the key in letters anyway.
func qrCode(text string) *picture {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil
	}
	across := code.Bounds().Dx()
	size := (across + 2*quiet) * module
	drawn := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.White, color.Black})
	for y := range across * module {
		for x := range across * module {
			if r, _, _, _ := code.At(x/module, y/module).RGBA(); r == 0 {
				drawn.SetColorIndex(x+quiet*module, y+quiet*module, 1)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, drawn); err != nil {
		return nil
	}
	return &picture{template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), size}
}
