package login

import (
	"errors"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// passkeyToSignIn gives what the browser needs for a sign-in with nothing but a passkey; nothing where there are none.
func (v *visit) passkeyToSignIn() ([]byte, error) {
	options, err := v.Sessions.StartPasskeySignIn()
	if is(err, factor.PasskeysUnavailable) {
		return nil, nil
	}
	return []byte(options), err
}

// is tells whether an error has a reason.
func is(err error, reason errs.Reason) bool {
	e, ours := errors.AsType[*errs.Error](err)
	return ours && e.Reason == reason
}

func (v *visit) signInWithPasskey(credential string) error {
	info := call.From(v.r.Context())
	attempt := session.PasskeyAttempt{Assertion: credential, Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID}
	if v.pending != nil {
		attempt.OrgID = v.pending.Request.Org
	}
	in, err := v.Sessions.SignInWithPasskey(v.r.Context(), attempt)
	if is(err, session.PasskeyRemoved) {
		return loginName{removed: credential}.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.PasskeyRemoved()}}})
	}
	if err != nil {
		problems, err := Problem("", pages.PasskeyFailed(), err)
		if err != nil {
			return err
		}
		return loginName{}.show(v, pages.Frame{Problems: problems})
	}
	return v.enter(in)
}

// secondFactor asks for one of the factors that the person has; again, because the application wants it anew.
type secondFactor struct{ again bool }

func (f secondFactor) promptNoneError() *errs.Error {
	if f.again {
		return oauth.ErrLoginRequired
	}
	return oauth.ErrInteractionRequired
}

// with is the kind of factor that the address asks for, if the person has one; else the one that is the easiest.
func (v *visit) with() pages.FactorKind {
	asked := pages.FactorKind(v.r.URL.Query().Get(paramWith))
	for _, kind := range []pages.FactorKind{asked, pages.Passkey, pages.TOTP, pages.RecoveryCode} {
		if v.has(kind) {
			return kind
		}
	}
	return pages.TOTP
}

func (v *visit) has(kind pages.FactorKind) bool {
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

func (secondFactor) show(v *visit, frame pages.Frame) error {
	kind := v.with()
	view := pages.SecondFactor{Frame: v.frame(frame), LoginName: v.loginName(), Kind: kind,
		Other: v.other()}
	for other, link := range map[pages.FactorKind]*pages.Link{pages.TOTP: &view.UseTOTP, pages.Passkey: &view.UsePasskey, pages.RecoveryCode: &view.UseRecovery} {
		if other != kind && v.has(other) {
			*link = v.link(url.Values{paramWith: {string(other)}, paramAccount: {v.bearer.Token.ID}})
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

// remembered is the browser, in which the second factor may be remembered.
func (v *visit) remembered() RememberedBrowser {
	return RememberedBrowser{Devices: session.Devices{Sessions: v.Sessions}, W: v.w, R: v.r}
}

func (f secondFactor) take(v *visit) error {
	answer := session.Answer{TOTPCode: v.r.PostFormValue(pages.FieldCode), RecoveryCode: v.r.PostFormValue(pages.FieldRecoveryCode),
		Assertion: v.r.PostFormValue(pages.FieldCredential)}
	field, wrong := pages.FieldCode, pages.WrongCode()
	switch {
	case answer.Assertion != "":
		field, wrong = "", pages.PasskeyFailed()
		answer.TOTPCode, answer.RecoveryCode = "", ""
	case answer.RecoveryCode != "":
		field = pages.FieldRecoveryCode
		answer.TOTPCode = ""
	case answer.TOTPCode == "":
		if v.with() == pages.RecoveryCode {
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
		if err := v.remember(stepped); err != nil {
			return err
		}
	}
	return v.stepped(stepped)
}

// remember remembers the browser for a session that has just proven a second factor.
func (v *visit) remember(in session.Stepped) error {
	bearer, err := v.Browsers.session(v.r.Context(), in.Token)
	if err != nil || bearer == nil {
		return err
	}
	return v.remembered().Remember(bearer.Caller)
}

// enrol asks for a first factor, because one is required.
type enrol struct{}

func (enrol) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (e enrol) show(v *visit, frame pages.Frame) error {
	frame = v.frame(frame)
	if e.kind(v) == pages.Passkey {
		view, err := v.enrolment().Passkey(pages.EnrolPasskey{Frame: frame, Required: true,
			UseTOTP: v.link(url.Values{paramWith: {string(pages.TOTP)}, paramAccount: {v.bearer.Token.ID}})})
		if err != nil {
			return err
		}
		v.render(view, frame.Problems)
		return nil
	}
	view := pages.EnrolTOTP{Frame: frame, Required: true}
	if v.Sessions.Factors.Passkeys() {
		view.UsePasskey = v.link(url.Values{paramWith: {string(pages.Passkey)}, paramAccount: {v.bearer.Token.ID}})
	}
	view, err := v.enrolment().TOTP(view)
	if err != nil {
		return err
	}
	v.render(view, frame.Problems)
	return nil
}

// kind of factor that the address asks for.
func (enrol) kind(v *visit) pages.FactorKind {
	if v.r.URL.Query().Get(paramWith) == string(pages.Passkey) {
		return pages.Passkey
	}
	return pages.TOTP
}

func (e enrol) take(v *visit) error {
	enrolled, problems, err := v.enrolment().Take(e.kind(v))
	if err != nil {
		return err
	}
	if problems != nil {
		return e.show(v, pages.Frame{Problems: problems})
	}
	return v.recovery(enrolled)
}

func (v *visit) enrolment() Enrolment {
	return Enrolment{Sessions: v.Sessions, Caller: v.bearer.Caller, Request: v.r}
}

// recovery shows the codes for the day on which the first factor is lost. The session has just proven that factor.
func (v *visit) recovery(enrolled session.Enrolled) error {
	if err := v.accounts.Enter(v.r.Context(), v.w, enrolled.Token); err != nil {
		return err
	}
	bearer := v.accounts.Session(v.bearer.Token.ID)
	codes, err := v.Sessions.MakeRecoveryCodes(v.r.Context(), bearer.Caller)
	if err != nil {
		return err
	}
	v.render(pages.RecoveryCodes{Frame: v.frame(pages.Frame{Done: pages.FactorAdded()}), Codes: codes,
		Next: v.link(url.Values{paramAccount: {bearer.Token.ID}, paramWith: {""}, paramOther: {""}})}, nil)
	return nil
}
