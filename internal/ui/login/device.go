package login

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// paramUserCode of the address that a device shows as a picture.
const paramUserCode = "user_code"

const maxUserCode = 40 // characters of a user code, however it is typed

// atDevice is a request of somebody who has a device before them that shows a code. An address with a code in it saves
// typing the code and nothing else: its page shows the code to be compared, says what to do if somebody else sent it,
// and only its own form allows anything.
type atDevice struct {
	*browserRequest
	typed string
}

// device connects a device with a person.
func (l *Login) device(w http.ResponseWriter, r *http.Request) error {
	typed := r.URL.Query().Get(paramUserCode)
	if r.Method == http.MethodPost {
		typed = r.PostFormValue(pages.FieldUserCode)
	}
	if typed = strings.TrimSpace(strings.ToValidUTF8(typed, "")); len(typed) > maxUserCode {
		typed = ""
	}
	accounts, err := l.Browsers.Accounts(r)
	if err != nil {
		return err
	}
	d := atDevice{browserRequest: &browserRequest{Login: l, w: w, r: r, accounts: accounts}, typed: typed}
	bearer := accounts.Whole()
	if bearer == nil {
		return d.signIn()
	}
	if err := d.as(bearer); err != nil {
		return err
	}
	if r.Method != http.MethodPost && typed == "" {
		return d.ask()
	}
	if err := d.take(); err != nil {
		return err
	}
	d.used()
	return nil
}

// here is the address that leads back.
func (d *atDevice) here() string {
	if d.typed == "" {
		return PathDevice
	}
	return PathDevice + "?" + url.Values{paramUserCode: {d.typed}}.Encode()
}

// signIn lets somebody sign in first.
func (d *atDevice) signIn() error {
	Redirect(d.w, Path+"?"+url.Values{paramTo: {d.here()}}.Encode())
	return nil
}

// other is the link to signing in as somebody else.
func (d *atDevice) other() pages.Link {
	query := url.Values{paramTo: {d.here()}}
	if len(d.accounts.all) == 1 {
		query.Set(paramOther, "1") // there is nobody to choose
	}
	return pages.To(Path, query)
}

// ask asks for the code.
func (d *atDevice) ask(wrong ...pages.Problem) error {
	d.render(pages.DeviceCode{Frame: d.frame(pages.Frame{Problems: wrong}), LoginName: d.loginName(), Other: d.other(),
		UserCode: d.typed}, wrong)
	return nil
}

func (d *atDevice) wrongCode(m pages.Message) error {
	return d.ask(pages.Problem{Field: pages.FieldUserCode, Message: m})
}

// take finds the device, and then does what the person says about it.
func (d *atDevice) take() error {
	if d.typed == "" {
		return d.wrongCode(pages.Required())
	}
	p, err := d.Grants.DeviceByUserCode(d.r.Context(), call.From(d.r.Context()).Peer, d.typed)
	switch e, ours := errors.AsType[*errs.Error](err); {
	case ours && e.Reason == oauth.UserCodeNotFound:
		return d.wrongCode(pages.WrongCode())
	case ours && e.Reason == oauth.UserCodeThrottled:
		return d.wrongCode(pages.Throttled(e.RetryAfter))
	case err != nil:
		return err
	}
	// The account that was shown is the one that answers, whatever has become the current one since.
	if shown := d.accounts.Session(d.r.PostFormValue(pages.FieldID)); isWhole(shown) {
		if err := d.as(shown); err != nil {
			return err
		}
		switch d.r.PostFormValue(pages.FieldDo) {
		case pages.DoAllow:
			return d.allow(p)
		case pages.DoDeny:
			return d.deny(p)
		}
	}
	return d.confirm(p)
}

// confirm shows what is about to be allowed.
func (d *atDevice) confirm(p *oauth.PendingDevice) error {
	fits := func(b *session.Bearer) bool {
		return isWhole(b) && (p.Org == nil || oauth.Fits(p.App, p.Org.ID, b.Caller))
	}
	for i := 0; !fits(d.bearer); i++ {
		if i == len(d.accounts.all) {
			return d.ask(pages.Problem{Message: pages.OtherOrganization(p.Org.Data.Name)})
		}
		if b := d.accounts.all[i].bearer; fits(b) {
			if err := d.as(b); err != nil {
				return err
			}
		}
	}
	d.typed = p.UserCode
	publisher, err := d.Grants.Publisher(d.r.Context(), p.App, d.bearer.Caller)
	if err != nil {
		return err
	}
	told, err := d.Grants.Told(d.r.Context(), p.Asks())
	if err != nil {
		return err
	}
	told.Scopes = slices.DeleteFunc(told.Scopes, func(s string) bool { return s == claimset.OpenID }) // every device asks for it
	d.render(pages.DeviceConfirm{
		Frame:     d.about(p),
		ID:        d.bearer.Token.ID,
		LoginName: d.loginName(),
		Other:     d.other(),
		UserCode:  p.UserCode,
		Publisher: publisher,
		Access:    pages.Access(told),
	}, nil)
	return nil
}

func (d *atDevice) about(p *oauth.PendingDevice) pages.Frame {
	return d.frame(pages.Frame{Application: p.App.Data.Name})
}

func (d *atDevice) allow(p *oauth.PendingDevice) error {
	err := d.Grants.ApproveDevice(d.r.Context(), p, d.bearer, p.Asks())
	if why := whyNotAtDevice(err); why != "" {
		if also := d.refusedAt(d.purpose(p), why); also != nil {
			return errors.Join(err, also)
		}
	}
	switch e, ours := errors.AsType[*errs.Error](err); {
	case err == nil:
		d.render(pages.DeviceDone{Frame: d.about(p)}, nil)
		return nil
	case !ours:
		return err
	case e.Kind == errs.Unauthenticated: // the session ended this moment
		return d.signIn()
	case e.Reason == oauth.WrongOrg && p.Org != nil:
		return d.ask(pages.Problem{Message: pages.OtherOrganization(p.Org.Data.Name)})
	case e.Reason == oauth.WrongOrg, e.Reason == oauth.AccessDenied:
		return d.ask(pages.Problem{Message: pages.NotAllowed(p.App.Data.Name)})
	case e.Reason == oauth.UserCodeNotFound, e.Reason == oauth.UnknownClient:
		return d.wrongCode(pages.WrongCode())
	}
	return err
}

// purpose is what somebody signs in for at a device.
func (d *atDevice) purpose(p *oauth.PendingDevice) session.Purpose {
	at := session.Purpose{Application: p.App.ID}
	if p.Org != nil {
		at.Org = p.Org.ID
	}
	return at
}

// whyNotAtDevice is the reason for a refusal of what somebody has allowed; empty: it was none.
func whyNotAtDevice(err error) session.Reason {
	e, ours := errors.AsType[*errs.Error](err)
	switch {
	case !ours:
		return ""
	case e == oauth.ErrNoRole: //nolint:errorlint // which has the reason of others
		return session.RoleMissing
	case e.Reason == oauth.AccessDenied:
		return session.ApplicationNotTheirs
	case e.Reason == oauth.WrongOrg:
		return session.WrongOrganization
	case e.Reason == oauth.UnmetAuthentication:
		return session.FactorMissing
	}
	return ""
}

func (d *atDevice) deny(p *oauth.PendingDevice) error {
	err := d.Grants.RefuseDevice(d.r.Context(), p)
	if is(err, oauth.UserCodeNotFound) {
		return d.wrongCode(pages.WrongCode())
	}
	if err != nil {
		return err
	}
	if err := d.refusedAt(d.purpose(p), session.ConsentRefused); err != nil {
		return err
	}
	d.render(pages.DeviceDone{Frame: d.about(p), Refused: true}, nil)
	return nil
}
