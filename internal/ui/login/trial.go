package login

import (
	"github.com/signet-idm/signet/internal/oauth/request"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
)

// try opens a trial in the browser in which it was started. From here on it is a sign-in like any other, which leads
// back to the console.
func (l *Login) try(w http.ResponseWriter, r *http.Request) error {
	accounts, err := l.Browsers.Accounts(r)
	if err != nil {
		return err
	}
	id := r.URL.Query().Get(trial.Param)
	if err := l.Grants.Trials().Open(r.Context(), id, web.Browser(w, r), func(session string) bool { return accounts.Session(session) != nil }); err != nil {
		return err
	}
	Redirect(w, pages.To(Path, url.Values{paramRequest: {id}}).String())
	return nil
}

// trial tells whether the sign-in is a trial.
func (v *visit) trial() bool { return v.pending != nil && v.pending.Trial != "" }

// foreign tells whether the sign-in is a trial of somebody else than the account that was chosen.
func (v *visit) foreign() bool {
	return v.trial() && v.bearer != nil && v.bearer.Caller.UserID != v.pending.Trial
}

// note notes a step of a trial. The end is noted by what ends it.
func (v *visit) note(page trial.Page, outcome trial.Outcome, why trial.Why) error {
	if !v.trial() || page == trial.Result {
		return nil
	}
	return v.Grants.Trials().Note(v.r.Context(), v.pending.ID, v.browser, page, outcome, why)
}

// took notes what became of a form. Its answer is written by now.
func (v *visit) took(page trial.Page) {
	if page == trial.LoginName && v.r.PostForm.Has(pages.FieldPassword) {
		page = trial.Password // its form has the name as well
	}
	outcome := trial.Done
	if v.problem {
		outcome = trial.Failed
	}
	if err := v.note(page, outcome, because(trial.ByAnswer)); err != nil {
		web.Failed(v.r.Context(), err)
	}
}

// endTrial sends the person back to the console: the trial cannot go on.
func (v *visit) endTrial(problem string, why trial.Because) error {
	back, err := v.Grants.EndTrial(v.r.Context(), v.pending, v.browser, problem, because(why))
	if err != nil {
		return err
	}
	return v.leave(request.Answer{Address: back})
}

// notOwn ends a trial in which another account is used than that of its person. A session that was opened for it ends
// as well: a trial leaves none behind.
type notOwn struct{}

func (notOwn) promptNoneError() *errs.Error { return nil }

func (notOwn) show(v *visit, _ pages.Frame) error {
	if v.bearer.Token.Created >= v.pending.Created {
		if err := v.accounts.Leave(v.r.Context(), v.w, v.bearer.Token.ID); err != nil {
			return err
		}
	}
	return v.endTrial(trial.OtherAccount, trial.ForeignAccount)
}

func (n notOwn) take(v *visit) error { return n.show(v, pages.Frame{}) }

// nameOf is what trials call a page.
func nameOf(s step) trial.Page {
	switch s.(type) {
	case chooseAccount:
		return trial.ChooseAccount
	case loginName:
		return trial.LoginName
	case password:
		return trial.Password
	case secondFactor:
		return trial.SecondFactor
	case enrol:
		return trial.EnrolFactor
	case newPassword:
		return trial.NewPassword
	case notAllowed, noRole:
		return trial.Account
	case consent:
		return trial.Consent
	case register, unlinked, confirmLink, confirmArrival, proveThrough:
		return trial.Provider
	}
	return trial.Result
}
