package login

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// secondFactor asks for one of the factors that the person has; again, because the application wants it anew.
type secondFactor struct{ again bool }

func (f secondFactor) promptNoneError() *errs.Error {
	if f.again {
		return oauth.ErrLoginRequired
	}
	return oauth.ErrInteractionRequired
}

// kind of factor that the address asks for, if the person has one; else the one that is the easiest.
func (f secondFactor) kind(v *signIn) pages.FactorKind {
	asked := pages.FactorKind(v.address.with)
	for _, kind := range []pages.FactorKind{asked, pages.Passkey, pages.TOTP, pages.RecoveryCode} {
		if f.has(v, kind) {
			return kind
		}
	}
	return pages.TOTP
}

func (secondFactor) has(v *signIn, kind pages.FactorKind) bool {
	switch h := v.person.Data.Human; kind {
	case pages.TOTP:
		return h.Has(user.TOTP)
	case pages.Passkey:
		return h.Has(user.Passkey)
	case pages.RecoveryCode:
		return h != nil && h.RecoveryCodes > 0
	}
	return false
}

func (f secondFactor) show(v *signIn, frame pages.Frame) error {
	kind := f.kind(v)
	view := pages.SecondFactor{Frame: v.frame(frame), LoginName: v.loginName(), Kind: kind, Other: v.other()}
	for other, link := range map[pages.FactorKind]*pages.Link{
		pages.TOTP: &view.UseTOTP, pages.Passkey: &view.UsePasskey, pages.RecoveryCode: &view.UseRecovery,
	} {
		if other != kind && f.has(v, other) {
			*link = v.withFactor(other)
		}
	}
	if kind == pages.Passkey {
		options, err := v.Sessions.StartProof(v.r.Context(), v.bearer.Caller)
		if err != nil {
			return err
		}
		view.Options = []byte(options)
	}
	var err error
	if kind != pages.RecoveryCode { // who has lost the others
		view.Remember = v.r.PostFormValue(pages.FieldRemember) != ""
		view.RememberDays, err = v.remembered().Days(v.bearer.Caller.OrgID)
	}
	if err != nil {
		return err
	}
	v.render(view, frame.Problems)
	return nil
}

func (f secondFactor) take(v *signIn) error {
	answer := session.Answer{TOTPCode: v.r.PostFormValue(pages.FieldCode),
		RecoveryCode: v.r.PostFormValue(pages.FieldRecoveryCode), Assertion: v.r.PostFormValue(pages.FieldCredential)}
	field, wrong := pages.FieldCode, pages.WrongCode()
	switch {
	case answer.Assertion != "":
		field, wrong = "", pages.PasskeyFailed()
		answer.TOTPCode, answer.RecoveryCode = "", ""
	case answer.RecoveryCode != "":
		field = pages.FieldRecoveryCode
		answer.TOTPCode = ""
	case answer.TOTPCode == "":
		if f.kind(v) == pages.RecoveryCode {
			field = pages.FieldRecoveryCode
		}
		return f.show(v, pages.Frame{Problems: []pages.Problem{{Field: field, Message: pages.Required()}}})
	}
	stepped, err := v.Sessions.Prove(v.r.Context(), v.bearer.Caller, answer, v.from())
	if err != nil {
		problems, err := Problem(field, wrong, err)
		if err != nil {
			return err
		}
		return f.show(v, pages.Frame{Problems: problems})
	}
	if v.r.PostFormValue(pages.FieldRemember) != "" && answer.RecoveryCode == "" {
		if err := f.remember(v, stepped); err != nil {
			return err
		}
	}
	return v.stepped(stepped)
}

// withFactor leads to this page for another kind of factor.
func (v *signIn) withFactor(kind pages.FactorKind) pages.Link {
	at := v.address
	at.account, at.with = v.bearer.Token.ID, string(kind)
	return at.link()
}

// remember remembers the browser for a session that has just proven a second factor.
func (secondFactor) remember(v *signIn, in session.Stepped) error {
	bearer, err := v.Browsers.session(v.r.Context(), in.Token)
	if err != nil || bearer == nil {
		return err
	}
	return v.remembered().Remember(bearer.Caller)
}

// enrol asks for a first factor, because one is required.
type enrol struct{}

func (enrol) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (e enrol) show(v *signIn, frame pages.Frame) error {
	frame = v.frame(frame)
	if e.kind(v) == pages.Passkey {
		view, err := e.enrolment(v).Passkey(pages.EnrolPasskey{Frame: frame, Required: true,
			UseTOTP: v.withFactor(pages.TOTP)})
		if err != nil {
			return err
		}
		v.render(view, frame.Problems)
		return nil
	}
	view := pages.EnrolTOTP{Frame: frame, Required: true}
	if v.Sessions.Factors.Passkeys() {
		view.UsePasskey = v.withFactor(pages.Passkey)
	}
	view, err := e.enrolment(v).TOTP(view)
	if err != nil {
		return err
	}
	v.render(view, frame.Problems)
	return nil
}

// kind of factor that the address asks for.
func (enrol) kind(v *signIn) pages.FactorKind {
	if v.address.with == string(pages.Passkey) {
		return pages.Passkey
	}
	return pages.TOTP
}

func (e enrol) take(v *signIn) error {
	enrolled, problems, err := e.enrolment(v).Take(e.kind(v))
	if err != nil {
		return err
	}
	if problems != nil {
		return e.show(v, pages.Frame{Problems: problems})
	}
	return e.recovery(v, enrolled)
}

func (enrol) enrolment(v *signIn) Enrolment {
	return Enrolment{Sessions: v.Sessions, Caller: v.bearer.Caller, Request: v.r}
}

// recovery shows the codes for the day on which the first factor is lost. The session has just proven that factor.
func (enrol) recovery(v *signIn, enrolled session.Enrolled) error {
	if err := v.accounts.Enter(v.r.Context(), v.w, enrolled.Token); err != nil {
		return err
	}
	bearer := v.accounts.Session(v.bearer.Token.ID)
	codes, err := v.Sessions.MakeRecoveryCodes(v.r.Context(), bearer.Caller)
	if err != nil {
		return err
	}
	v.render(pages.RecoveryCodes{Frame: v.frame(pages.Frame{Done: pages.FactorAdded()}), Codes: codes,
		Next: v.address.about(bearer.Token.ID).link()}, nil)
	return nil
}
