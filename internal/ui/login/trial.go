package login

import (
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
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
	has := func(session string) bool { return accounts.Session(session) != nil }
	if err := l.Grants.Trials().Open(r.Context(), id, web.Browser(w, r), has); err != nil {
		return err
	}
	Redirect(w, pages.To(Path, url.Values{paramRequest: {id}}).String())
	return nil
}

// trial tells whether the sign-in is a trial.
func (v *signIn) trial() bool { return v.pending != nil && v.pending.Trial != "" }

// foreign tells whether the sign-in is a trial of somebody else than the account that was chosen.
func (v *signIn) foreign() bool {
	return v.trial() && v.bearer != nil && v.bearer.Caller.UserID != v.pending.Trial
}

// notes are what a trial notes of the sign-in: it observes the steps and decides none. Of a real sign-in, nothing is
// noted.
func (v *signIn) notes() trialNotes { return trialNotes{v} }

type trialNotes struct{ *signIn }

// shown notes that a page of a trial was shown, and why. The end is noted by what ends it.
func (n trialNotes) shown(f facts, page step) error {
	if !n.trial() || nameOf(page) == trial.Result {
		return nil
	}
	return n.note(nameOf(page), trial.Shown, why(n.pending.Request, f, page))
}

// took notes what became of the form of a page. Its answer is written by now.
func (n trialNotes) took(page step) {
	name, outcome := nameOf(page), trial.Done
	if !n.trial() || name == trial.Result {
		return
	}
	if name == trial.LoginName && n.r.PostForm.Has(pages.FieldPassword) {
		name = trial.Password // its form has the name as well
	}
	if n.problem {
		outcome = trial.Failed
	}
	if err := n.note(name, outcome, trial.Why{Because: trial.ByAnswer}); err != nil {
		web.Failed(n.r.Context(), err)
	}
}

// sentTo notes that a trial leads to a provider.
func (n trialNotes) sentTo(provider string) error {
	if !n.trial() {
		return nil
	}
	return n.note(trial.Provider, trial.Shown, trial.Why{Because: trial.ByChoice, Detail: provider})
}

// cameBack notes whether a provider has let the person of a trial in.
func (n trialNotes) cameBack(provider string, in bool) error {
	if !n.trial() {
		return nil
	}
	outcome := trial.Done
	if !in {
		outcome = trial.Failed
	}
	return n.note(trial.Provider, outcome, trial.Why{Because: trial.ByAnswer, Detail: provider})
}

func (n trialNotes) note(page trial.Page, outcome trial.Outcome, why trial.Why) error {
	return n.Grants.Trials().Note(n.r.Context(), n.pending.ID, n.browser, page, outcome, why)
}

// why tells which of the facts asked for a page of a trial. Nobody is brought by a provider in one: it makes no account
// and no link.
func why(asked *oauth.Request, f facts, page step) trial.Why {
	switch page.(type) {
	case chooseAccount:
		if f.mustChoose {
			return trial.Why{Because: trial.ByPrompt, Detail: request.PromptSelect}
		}
		return trial.Why{Because: trial.SeveralAccounts}
	case enrol:
		return trial.Why{Because: trial.ByPolicy}
	case newPassword:
		return trial.Why{Because: trial.OldPassword}
	case notAllowed:
		return trial.Why{Because: trial.NotForThem}
	}
	switch {
	case !f.chosen && f.other:
		return trial.Why{Because: trial.OtherWanted}
	case !f.chosen:
		return trial.Why{Because: trial.NobodyThere}
	case f.mustProve && f.enrolled:
		return trial.Why{Because: trial.HasFactor}
	case f.mustProve:
		return trial.Why{Because: trial.NotRecent}
	}
	return asked.Why(f.unmet)
}

// endTrial sends the person back to the console: the trial cannot go on.
func (v *signIn) endTrial(problem string, why trial.Because) error {
	back, err := v.Grants.EndTrial(v.r.Context(), v.pending, v.browser, problem, trial.Why{Because: why})
	if err != nil {
		return err
	}
	return v.leave(request.Answer{Address: back})
}

// notOwn ends a trial in which another account is used than that of its person. A session that was opened for it ends
// as well: a trial leaves none behind.
type notOwn struct{}

func (notOwn) promptNoneError() *errs.Error { return nil }

func (notOwn) show(v *signIn, _ pages.Frame) error {
	if v.bearer.Token.Created >= v.pending.Created {
		if err := v.accounts.Leave(v.r.Context(), v.w, v.bearer.Token.ID); err != nil {
			return err
		}
	}
	return v.endTrial(trial.OtherAccount, trial.ForeignAccount)
}

func (n notOwn) take(v *signIn) error { return n.show(v, pages.Frame{}) }

// nameOf is what trials call a page; trial.Result for one that asks nothing.
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
	case proveAtProvider:
		return trial.Provider
	}
	return trial.Result
}
