package login

import (
	"errors"
	"net/http"
	"strings"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// leaving is a request of somebody who wants to sign out, or whom an application wants to be signed out.
type leaving struct {
	*browserRequest
	id   string        // of the wish
	wish *oauth.Logout // of an application; nil: from one of our own pages
	app  string        // its name
}

// signOut ends sessions of the browser and lets people go back to the application. The person is asked first, unless
// the application has shown that it means this very session, which only those know who were given a token in it.
func (l *Login) signOut(w http.ResponseWriter, r *http.Request) error {
	accounts, err := l.Browsers.Accounts(r)
	if err != nil {
		return err
	}
	o := leaving{browserRequest: &browserRequest{Login: l, w: w, r: r, accounts: accounts},
		id: r.URL.Query().Get(paramRequest)}
	if err := o.find(); err != nil {
		return err
	}
	meant, exactly := o.meant()
	if meant == nil {
		return o.over() // nobody is signed in here
	}
	if err := o.as(meant); err != nil {
		return err
	}
	switch do := r.PostFormValue(pages.FieldDo); {
	case r.Method == http.MethodGet && exactly:
		return o.end(meant.Token.ID)
	case r.Method == http.MethodPost && do == pages.DoEnd:
		return o.end(r.PostFormValue(pages.FieldID))
	case r.Method == http.MethodPost && do == pages.DoEndAll:
		return o.end(o.all()...)
	}
	view := pages.SignOut{Frame: o.frame(pages.Frame{}), ID: meant.Token.ID, LoginName: o.loginName(),
		Several: len(accounts.all) > 1}
	if o.wish == nil {
		view.Back = pages.To(pages.PathAccount, nil)
	}
	o.render(view, nil)
	return nil
}

// find reads the logout request of the application. A request that no longer exists counts as none: the user can still
// sign out.
func (o *leaving) find() error {
	if o.id == "" {
		return nil
	}
	wish, err := o.Grants.PendingLogout(o.r.Context(), o.id, web.KnownBrowser(o.r))
	if errors.Is(err, oauth.ErrRequestNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	o.wish = wish
	if wish.Client == "" {
		return nil
	}
	a, err := app.Kind.Read(o.r.Context(), o.Store, wish.Client)
	if a != nil {
		o.app = a.Data.Name
	}
	return err
}

// meant is the session to end: the one that the application names, else one of the person it names, else the current
// one.
func (o *leaving) meant() (bearer *session.Bearer, exactly bool) {
	if o.wish != nil && o.wish.UserID != "" {
		if b := o.accounts.Session(o.wish.SessionID); b != nil && b.Caller.UserID == o.wish.UserID {
			return b, true
		}
		for _, has := range o.accounts.all {
			if has.bearer.Caller.UserID == o.wish.UserID {
				return has.bearer, false
			}
		}
	}
	return o.accounts.Current(), false
}

func (o *leaving) all() []string {
	var ids []string
	for _, has := range o.accounts.all {
		ids = append(ids, has.bearer.Token.ID)
	}
	return ids
}

func (o *leaving) frame(with pages.Frame) pages.Frame {
	if with.Application = o.app; o.wish != nil {
		with.Locales = strings.Join(o.wish.UILocales, " ")
	}
	return o.browserRequest.frame(with)
}

func (o *leaving) end(ids ...string) error {
	if err := o.accounts.Leave(o.r.Context(), o.w, ids...); err != nil {
		return err
	}
	return o.over()
}

// over goes back to the application, to the address that it has registered, or says that it is done.
func (o *leaving) over() error {
	to := ""
	if o.wish != nil {
		var err error
		if to, err = o.Grants.EndLogout(o.r.Context(), o.id, web.KnownBrowser(o.r)); err != nil &&
			!errors.Is(err, oauth.ErrRequestNotFound) {
			return err
		}
	}
	if to == "" {
		o.render(pages.SignedOut{Frame: o.frame(pages.Frame{}), Next: pages.To(Path, nil)}, nil)
		return nil
	}
	if o.r.Method != http.MethodPost {
		Redirect(o.w, to)
		return nil
	}
	link, err := pages.Outward(to)
	if err != nil {
		return err
	}
	o.render(pages.Onward{Frame: o.frame(pages.Frame{}), To: link}, nil)
	return nil
}
