package login

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

const (
	cookie      = "signet"
	separator   = "~"
	maxAccounts = 8
)

// Browsers knows which sessions a browser has.
type Browsers struct {
	Sessions *session.Sessions
	Clock    func() time.Time
}

// Accounts are the sessions of one browser that count, the one first that was chosen last.
type Accounts struct {
	browsers Browsers
	all      []account
}

// account is a session with the token that the cookie holds of it.
type account struct {
	token  string
	bearer *session.Bearer
}

// Accounts reads the sessions of the browser that a request came from. Those that do not count any more are left out.
func (b Browsers) Accounts(r *http.Request) (*Accounts, error) {
	a := &Accounts{browsers: b}
	tokens := strings.Split(pages.CookieValue(r, cookie), separator)
	for _, token := range tokens[:min(len(tokens), maxAccounts)] {
		if token == "" {
			continue
		}
		bearer, err := b.session(r.Context(), token)
		if err != nil {
			return nil, err
		}
		if bearer != nil && !slices.ContainsFunc(a.all,
			func(has account) bool { return has.bearer.Token.ID == bearer.Token.ID }) {
			a.all = append(a.all, account{token, bearer})
		}
	}
	return a, nil
}

// session reads a token of the cookie; nil where it is not that of a session that counts. Only a session gets in here:
// the cookie must not make a page of what is meant for programs.
func (b Browsers) session(ctx context.Context, token string) (*session.Bearer, error) {
	bearer, err := b.Sessions.Session(ctx, token)
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.Unauthenticated {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bearer.Caller.RequestID = call.From(ctx).RequestID
	return bearer, nil
}

// Current is the session that was opened or chosen last; nil where there is none.
func (a *Accounts) Current() *session.Bearer {
	if len(a.all) == 0 {
		return nil
	}
	return a.all[0].bearer
}

// Session gives one of the sessions by its id; nil where the browser does not have it.
func (a *Accounts) Session(id string) *session.Bearer {
	for _, has := range a.all {
		if has.bearer.Token.ID == id {
			return has.bearer
		}
	}
	return nil
}

// Enter makes a new session the current one. A session of the same person that was here before ends, and so does the
// one that was used the longest ago where there are too many.
func (a *Accounts) Enter(ctx context.Context, w http.ResponseWriter, token string) error {
	bearer, err := a.browsers.session(ctx, token)
	if err != nil {
		return err
	}
	if bearer == nil {
		return access.ErrUnauthenticated
	}
	for _, before := range slices.Clone(a.all) {
		if before.bearer.Caller.UserID != bearer.Caller.UserID {
			continue
		}
		a.forget(before.bearer.Token.ID)
		if before.bearer.Token.ID != bearer.Token.ID {
			if err := a.browsers.end(ctx, before.bearer); err != nil {
				return err
			}
		}
	}
	a.all = slices.Insert(a.all, 0, account{token, bearer})
	for len(a.all) > maxAccounts { // what the browser forgets nobody could end there any more
		last := a.all[len(a.all)-1]
		if err := a.browsers.end(ctx, last.bearer); err != nil {
			return err
		}
		a.forget(last.bearer.Token.ID)
	}
	a.Keep(w)
	return nil
}

// end ends a session, unless somebody else has.
func (b Browsers) end(ctx context.Context, bearer *session.Bearer) error {
	err := b.Sessions.End(ctx, session.Own(bearer.Caller), bearer.Token.ID)
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.NotFound {
		return nil
	}
	return err
}

// Use makes a session the current one, because somebody has sent a form that says so: addresses are opened by others as
// well.
func (a *Accounts) Use(w http.ResponseWriter, id string) {
	i := slices.IndexFunc(a.all, func(has account) bool { return has.bearer.Token.ID == id })
	if i <= 0 {
		return
	}
	used := a.all[i]
	a.all = slices.Insert(slices.Delete(a.all, i, i+1), 0, used)
	a.Keep(w)
}

// Leave ends sessions of the browser. What it does not have is left alone.
func (a *Accounts) Leave(ctx context.Context, w http.ResponseWriter, ids ...string) error {
	defer a.Keep(w)
	for _, id := range ids {
		bearer := a.Session(id)
		if bearer == nil {
			continue
		}
		if err := a.browsers.end(ctx, bearer); err != nil {
			return err
		}
		a.forget(id)
	}
	return nil
}

// Whole is the current session, if it counts in full: neither the password nor a second factor is missing.
func (a *Accounts) Whole() *session.Bearer {
	if b := a.Current(); isWhole(b) {
		return b
	}
	return nil
}

func isWhole(b *session.Bearer) bool {
	return b != nil && !b.Caller.MustChangePassword && !b.Caller.MustProveSecondFactor
}

func (a *Accounts) forget(id string) {
	a.all = slices.DeleteFunc(a.all, func(has account) bool { return has.bearer.Token.ID == id })
}

// Keep writes the cookie. It lives as long as the last of the sessions can.
func (a *Accounts) Keep(w http.ResponseWriter) {
	var tokens []string
	last := int64(0)
	for _, has := range a.all {
		tokens = append(tokens, has.token)
		last = max(last, has.bearer.Ends())
	}
	if len(tokens) == 0 {
		http.SetCookie(w, pages.ForgetCookie(cookie))
		return
	}
	life := time.UnixMicro(last).Sub(a.browsers.Clock())
	http.SetCookie(w, pages.Cookie(cookie, strings.Join(tokens, separator), max(life, time.Second)))
}
