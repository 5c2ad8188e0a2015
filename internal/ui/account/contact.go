package account

import (
	"errors"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/login"
)

// proveEmail sends a code to the own address and leads to where it is typed. again is the page that is shown if that
// fails.
func (v *browserRequest) proveEmail(again page) error {
	if !v.Mail {
		return again.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.MailNotConfigured()}}})
	}
	_, err := user.RequestMyEmailCode(v.r.Context(), v.Store, v.Master, v.bearer.Caller)
	if err != nil && !errors.Is(err, user.ErrAlreadyVerified) {
		problems, err := login.Problem("", pages.NotValid(), err)
		if err != nil {
			return err
		}
		return again.show(v, pages.Frame{Problems: problems})
	}
	v.redirect(pages.To(mail.VerifyPath, url.Values{login.ParamSent: {"1"}}))
	return nil
}

// contact changes the user's own e-mail address and phone number. To see the page, the user has to have authenticated a
// short while ago, as the API asks of every caller who changes them.
type contact struct{}

func (c contact) show(v *browserRequest, with pages.Frame) error {
	return c.view(v, with, "", "")
}

func (contact) view(v *browserRequest, with pages.Frame, email, phone string) error {
	if err := v.Sessions.Proven(v.r.Context(), v.bearer.Caller, true, false); err != nil {
		return err
	}
	h := v.me.Data.Human
	view := pages.Contact{
		Account:     v.account(with),
		Email:       h.Email.Address,
		EmailProven: h.Email.Verified,
		NewEmail:    email,
		NewPhone:    phone,
		Sequence:    v.me.Sequence,
		SendPhone:   v.Deliver != nil,
		Back:        pages.To(pages.PathAccount, nil),
	}
	if h.Phone != nil {
		view.Phone, view.PhoneProven = h.Phone.Number, h.Phone.Verified
	}
	return v.render(view, with.Problems)
}

func (c contact) take(v *browserRequest) error {
	if err := v.Sessions.Proven(v.r.Context(), v.bearer.Caller, true, false); err != nil {
		return err
	}
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoSetEmail:
		return c.setEmail(v)
	case pages.DoSetPhone, pages.DoNoPhone:
		return c.setPhone(v)
	case pages.DoSendPhone:
		return c.sendPhone(v)
	case pages.DoPhoneCode:
		return c.provePhone(v)
	}
	return c.show(v, pages.Frame{})
}

// refused shows the form again with what is wrong with a field.
func (c contact) refused(v *browserRequest, field, email, phone string, m pages.Message) error {
	return c.view(v, pages.Frame{Problems: []pages.Problem{{Field: field, Message: m}}}, email, phone)
}

func (c contact) setEmail(v *browserRequest) error {
	address := strings.TrimSpace(v.r.PostFormValue(pages.FieldEmail))
	if address == "" {
		return c.refused(v, pages.FieldEmail, "", "", pages.Required())
	}
	_, err := user.SetMyEmail(v.r.Context(), v.Store, v.bearer.Caller, v.seen(), address)
	switch e, ours := errors.AsType[*errs.Error](err); {
	case ours && e.Kind == errs.InvalidArgument:
		return c.refused(v, pages.FieldEmail, address, "", pages.NotAnEmail())
	case err != nil:
		return v.back(c, err)
	}
	if v.me, err = user.Self(v.r.Context(), v.Store, v.bearer.Caller); err != nil {
		return err
	}
	if !v.Mail || v.me.Data.Human.Email.Verified {
		return v.on(pages.PathAccount, profileSaved)
	}
	return v.proveEmail(profile{})
}

// phoneNumber leaves out the spaces that people write numbers with.
func phoneNumber(typed string) string { return strings.Join(strings.Fields(typed), "") }

func (c contact) setPhone(v *browserRequest) error {
	typed := strings.TrimSpace(v.r.PostFormValue(pages.FieldPhone))
	var err error
	switch {
	case v.r.PostFormValue(pages.FieldDo) == pages.DoNoPhone:
		_, err = user.RemoveMyPhone(v.r.Context(), v.Store, v.bearer.Caller, v.seen())
	case typed == "":
		return c.refused(v, pages.FieldPhone, "", "", pages.Required())
	default:
		_, err = user.SetMyPhone(v.r.Context(), v.Store, v.bearer.Caller, v.seen(), phoneNumber(typed))
	}
	switch e, ours := errors.AsType[*errs.Error](err); {
	case ours && e.Kind == errs.InvalidArgument:
		return c.refused(v, pages.FieldPhone, "", typed, pages.NotAPhone())
	case err != nil:
		return v.back(c, err)
	}
	return v.on(pages.PathContact, profileSaved)
}

func (c contact) sendPhone(v *browserRequest) error {
	if _, err := user.SendMyCode(v.r.Context(), v.Store, v.Master, v.bearer.Caller, user.ByPhone,
		v.Deliver); err != nil {
		problems, err := login.Problem("", pages.NotValid(), err)
		if err != nil {
			return err
		}
		return c.show(v, pages.Frame{Problems: problems})
	}
	return c.show(v, pages.Frame{Done: pages.CodeSent(v.me.Data.Human.Phone.Number)})
}

func (c contact) provePhone(v *browserRequest) error {
	code := strings.TrimSpace(v.r.PostFormValue(pages.FieldPhoneCode))
	if code == "" {
		return c.refused(v, pages.FieldPhoneCode, "", "", pages.Required())
	}
	_, err := user.VerifyMine(v.r.Context(), v.Store, v.Master, v.bearer.Caller, user.ByPhone, event.IfMatch{}, code)
	if err != nil {
		problems, err := login.Problem(pages.FieldPhoneCode, pages.WrongCode(), err)
		if err != nil {
			return err
		}
		return c.show(v, pages.Frame{Problems: problems})
	}
	return v.on(pages.PathContact, phoneProven)
}
