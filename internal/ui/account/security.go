package account

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/login"
)

// security lists the second factors and the accounts at identity providers, and takes them away.
type security struct{}

func (security) show(v *browserRequest, with pages.Frame) error {
	h := v.me.Data.Human
	if id := v.r.URL.Query().Get(paramLink); id != "" && v.r.Method == http.MethodGet {
		return v.link(id)
	}
	if f, ok := h.Factor(v.r.URL.Query().Get(paramRename)); ok && v.r.Method == http.MethodGet {
		return v.rename(f, f.Name, with)
	}
	view := pages.Security{Account: v.account(with), RecoveryCodes: h.RecoveryCodes}
	for _, f := range h.Factors {
		view.Factors = append(view.Factors,
			pages.Factor{ID: f.ID, Kind: kinds[f.Kind], Name: f.Name, Added: event.Time(f.Created),
				Rename: pages.To(pages.PathSecurity, url.Values{paramRename: {f.ID}})})
	}
	if len(h.Factors) < user.MaxFactors {
		view.AddTOTP = pages.To(PathTOTP, nil)
		if v.Sessions.Factors.Passkeys() {
			view.AddPasskey = pages.To(PathPasskey, nil)
		}
	}
	var err error
	if view.Linked, err = v.linked(); err != nil {
		return err
	}
	if view.Link, view.More, err = v.linkable(); err != nil {
		return err
	}
	if view.Signal, err = v.Sessions.Factors.Signal(v.r.Context(), v.Store, v.me); err != nil {
		return err
	}
	return v.render(view, with.Problems)
}

var kinds = map[user.FactorKind]pages.FactorKind{user.TOTP: pages.TOTP, user.Passkey: pages.Passkey}

func (s security) take(v *browserRequest) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoRemove:
		if _, err := v.Sessions.RemoveFactor(v.r.Context(), v.bearer.Caller, event.IfMatch{},
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSecurity, factorRemoved)
	case pages.DoRename:
		return s.takeName(v)
	case pages.DoUnlink:
		if _, err := v.Federated.RemoveLink(v.r.Context(), v.bearer.Caller, event.IfMatch{},
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSecurity, accountUnlinked)
	case pages.DoConfirm:
		if _, err := v.Federated.ConfirmLink(v.r.Context(), v.bearer.Caller, event.IfMatch{},
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSecurity, accountLinked)
	case pages.DoCodes:
		if err := v.showCodes(pages.Message{}); err != nil {
			return v.back(s, err)
		}
		return nil
	}
	return s.show(v, pages.Frame{})
}

// showCodes makes new recovery codes and shows them, this once.
func (v *browserRequest) showCodes(done pages.Message) error {
	codes, err := v.Sessions.MakeRecoveryCodes(v.r.Context(), v.bearer.Caller)
	if err != nil {
		return err
	}
	return v.render(pages.RecoveryCodes{Frame: v.frame(pages.Frame{Done: done}), Codes: codes,
		Next: pages.To(pages.PathSecurity, nil)}, nil)
}

func (v *browserRequest) enrolment() login.Enrolment {
	return login.Enrolment{Sessions: v.Sessions, Caller: v.bearer.Caller, Request: v.r}
}

// enrolled goes on in the session, which has another token now. With the first factor come recovery codes.
func (v *browserRequest) enrolled(e session.Enrolled) error {
	if err := v.accounts.Enter(v.r.Context(), v.w, e.Token); err != nil {
		return err
	}
	v.bearer = v.accounts.Current()
	if v.me.Data.Human.RecoveryCodes == 0 {
		return v.showCodes(pages.FactorAdded())
	}
	return v.on(pages.PathSecurity, factorAdded)
}

// enrolTOTP adds an authenticator app.
type enrolTOTP struct{}

func (enrolTOTP) show(v *browserRequest, with pages.Frame) error {
	view, err := v.enrolment().TOTP(pages.EnrolTOTP{Frame: v.frame(with), Back: pages.To(pages.PathSecurity, nil)})
	if err != nil {
		return v.stuck(err)
	}
	return v.render(view, with.Problems)
}

func (e enrolTOTP) take(v *browserRequest) error { return v.takeFactor(pages.TOTP, e) }

// enrolPasskey adds a passkey.
type enrolPasskey struct{}

func (enrolPasskey) show(v *browserRequest, with pages.Frame) error {
	view, err := v.enrolment().Passkey(pages.EnrolPasskey{Frame: v.frame(with),
		Back: pages.To(pages.PathSecurity, nil)})
	if err != nil {
		return v.stuck(err)
	}
	return v.render(view, with.Problems)
}

func (e enrolPasskey) take(v *browserRequest) error { return v.takeFactor(pages.Passkey, e) }

// takeFactor adds the factor that was sent, or shows its page again.
func (v *browserRequest) takeFactor(kind pages.FactorKind, again page) error {
	added, problems, err := v.enrolment().Take(kind)
	switch {
	case err != nil:
		return v.stuck(err)
	case problems != nil:
		return again.show(v, pages.Frame{Problems: problems})
	}
	return v.enrolled(added)
}

// stuck leads back to the list of factors where none can be added. Other errors are given back.
func (v *browserRequest) stuck(err error) error {
	switch {
	case errors.Is(err, factor.ErrPasskeysUnavailable):
		v.redirect(pages.To(pages.PathSecurity, nil))
	case errors.Is(err, factor.ErrTooMany):
		v.redirect(pages.To(pages.PathSecurity, url.Values{paramFull: {"1"}}))
	default:
		return err
	}
	return nil
}

// paramRename is the parameter of the address that says which second factor is to have another name.
const paramRename = "rename"

// rename shows the form for another name, with what was typed in it.
func (v *browserRequest) rename(f user.Factor, typed string, with pages.Frame) error {
	v.to = v.r.URL.RequestURI()
	if !session.Recent(v.bearer.Caller, v.Clock()) {
		return session.ErrNotRecent // before somebody types
	}
	return v.render(pages.RenameFactor{Account: v.account(with), ID: f.ID, Kind: kinds[f.Kind], Name: typed,
		Back: pages.To(pages.PathSecurity, nil)}, with.Problems)
}

// takeName gives a second factor another name.
func (s security) takeName(v *browserRequest) error {
	f, ok := v.me.Data.Human.Factor(v.r.PostFormValue(pages.FieldID))
	if !ok {
		return v.back(s, factor.ErrNotFound)
	}
	name := strings.TrimSpace(v.r.PostFormValue(pages.FieldFactorName))
	wrong := pages.Message{}
	if name == "" {
		wrong = pages.Required()
	} else if utf8.RuneCountInString(name) > syntax.MaxName {
		wrong = pages.TooLong(syntax.MaxName)
	}
	if !wrong.IsNone() {
		return v.rename(f, name, pages.Frame{Problems: []pages.Problem{{Field: pages.FieldFactorName, Message: wrong}}})
	}
	v.to = pages.To(pages.PathSecurity, url.Values{paramRename: {f.ID}}).String()
	if _, err := v.Sessions.RenameFactor(v.r.Context(), v.bearer.Caller, event.IfMatch{}, f.ID, name); err != nil {
		return v.back(s, err)
	}
	return v.on(pages.PathSecurity, profileSaved)
}
