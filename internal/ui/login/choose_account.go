package login

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// chooseAccount lets somebody pick one of the accounts of the browser.
type chooseAccount struct{}

func (chooseAccount) promptNoneError() *errs.Error { return oauth.ErrSelectionRequired }

func (chooseAccount) show(v *signIn, with pages.Frame) error {
	view := pages.ChooseAccount{Frame: v.frame(with)}
	for _, bearer := range v.able() {
		known, err := v.known(v.r.Context(), bearer)
		if err != nil {
			return err
		}
		view.Accounts = append(view.Accounts, known)
	}
	v.render(view, with.Problems)
	return nil
}

// known is how an account is shown that is signed in here.
func (l *Login) known(ctx context.Context, bearer *session.Bearer) (pages.KnownAccount, error) {
	u, err := user.Self(ctx, l.Store, bearer.Caller)
	if err != nil {
		return pages.KnownAccount{}, err
	}
	o, err := org.Mine(ctx, l.Store, bearer.Caller)
	if err != nil {
		return pages.KnownAccount{}, err
	}
	known := pages.KnownAccount{ID: bearer.Token.ID, LoginName: o.Data.LoginName(u.Data.UserName),
		Organization: o.Data.Name}
	if u.Data.Human != nil {
		known.Name = u.Data.Human.Profile.DisplayName
	}
	return known, nil
}

func (chooseAccount) take(v *signIn) error {
	id := v.r.PostFormValue(pages.FieldID)
	if v.r.PostFormValue(pages.FieldDo) == pages.DoOther || v.accounts.Session(id) == nil {
		Redirect(v.w, v.other().String())
		return nil
	}
	if !v.trial() { // it leaves nothing behind
		v.accounts.Use(v.w, id)
	}
	return v.on(id)
}
