package login

import (
	"net/http"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// password asks somebody who is signed in to prove it once more.
type password struct{}

func (password) promptNoneError() *errs.Error { return oauth.ErrLoginRequired }

func (password) show(v *signIn, with pages.Frame) error {
	v.render(pages.Password{Frame: v.frame(with), LoginName: v.loginName(), Again: true, Other: v.other()},
		with.Problems)
	return nil
}

func (p password) take(v *signIn) error {
	secret := v.r.PostFormValue(pages.FieldPassword)
	if secret == "" {
		missing := []pages.Problem{{Field: pages.FieldPassword, Message: pages.Required()}}
		return p.show(v, pages.Frame{Problems: missing})
	}
	stepped, err := v.Sessions.Reauthenticate(v.r.Context(), v.bearer.Caller, secret, v.from())
	if err != nil {
		problems, err := Problem(pages.FieldPassword, pages.WrongCurrentPassword(), err)
		if err != nil {
			return err
		}
		return p.show(v, pages.Frame{Problems: problems})
	}
	return v.stepped(stepped)
}

// newPassword asks for another password, because somebody else chose the one there is.
type newPassword struct{}

func (newPassword) promptNoneError() *errs.Error { return oauth.ErrInteractionRequired }

func (n newPassword) show(v *signIn, with pages.Frame) error {
	rules, err := n.rules(v)
	if err != nil {
		return err
	}
	v.render(pages.ChangePassword{Frame: v.frame(with), LoginName: v.loginName(), Current: !n.typedJustNow(v),
		Rules: PasswordRules(rules), EndTokens: v.r.PostFormValue(pages.FieldEndTokens) != ""}, with.Problems)
	return nil
}

// rules are those of the organization of the person.
func (newPassword) rules(v *signIn) (policy.Settings, error) {
	return org.Settings(v.r.Context(), v.Store, v.person.Org)
}

// typedJustNow tells whether the old password has just been typed, so that nobody is asked for it a second time.
func (newPassword) typedJustNow(v *signIn) bool {
	return session.ReplacesWithoutCurrent(v.bearer.Caller, v.Clock())
}

func (n newPassword) take(v *signIn) error {
	rules, err := n.rules(v)
	if err != nil {
		return err
	}
	change, problems := ChangedPassword(v.r, rules, !n.typedJustNow(v))
	if problems == nil {
		info := call.From(v.r.Context())
		change.Peer, change.UserAgent = info.Peer, info.UserAgent
		stepped, err := v.Sessions.ChangePasswordHere(v.r.Context(), v.bearer.Caller, change)
		if err == nil {
			return v.stepped(stepped)
		}
		if problems, err = PasswordProblems(err); err != nil {
			return err
		}
	}
	return n.show(v, pages.Frame{Problems: problems})
}

// rulesFor are those of the organization of a user; those of the default one where there is no such user.
func (l *Login) rulesFor(r *http.Request, userID string) (policy.Settings, error) {
	u, err := user.Kind.Read(r.Context(), l.Store, userID)
	if err != nil {
		return policy.Settings{}, err
	}
	of := l.Sessions.DefaultOrg
	if u != nil {
		of = u.Org
	}
	return org.Settings(r.Context(), l.Store, of)
}
