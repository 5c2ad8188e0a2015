package login

import (
	"net/http"
	"strings"

	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// browserRequest is one request of a browser to a page, with the account that it is about.
type browserRequest struct {
	*Login
	w http.ResponseWriter
	r *http.Request

	accounts *Accounts
	pending  *oauth.Pending // the application's request that the page belongs to; nil: none

	// Of the account; nil where there is none.
	bearer *session.Bearer
	person *event.Object[user.User]
	home   *event.Object[org.Org]

	problem bool // the page that was shown says what is wrong with a form
}

// as makes it a request about an account; nil for none.
func (v *browserRequest) as(bearer *session.Bearer) (err error) {
	if v.bearer = bearer; bearer == nil {
		return nil
	}
	if v.person, err = user.Self(v.r.Context(), v.Store, v.bearer.Caller); err != nil {
		return err
	}
	v.home, err = org.Mine(v.r.Context(), v.Store, v.bearer.Caller)
	return err
}

// used lets a session that ends when it is not used live on.
func (v *browserRequest) used() {
	if v.bearer != nil && v.bearer.Caller.Used != nil {
		v.bearer.Caller.Used()
	}
}

// from is where a step comes from. A token that was stolen before is worth nothing after it.
func (v *browserRequest) from() session.From {
	info := call.From(v.r.Context())
	return session.From{Peer: info.Peer, UserAgent: info.UserAgent, Rotate: true, App: v.application()}
}

// application is the one that the person is on the way to; empty: none.
func (v *browserRequest) application() string {
	if v.pending == nil {
		return ""
	}
	return v.pending.App.ID
}

// turnedAway records why somebody who is signed in does not get to the application. A trial has its notes instead, and
// an application that wants nobody to be asked may look again every minute.
func (v *browserRequest) turnedAway(why session.Reason) error {
	if v.pending.Trial != "" || v.pending.Silent() {
		return nil
	}
	return v.refusedAt(session.Purpose{Application: v.pending.App.ID, Org: v.pending.Request.Org}, why)
}

// refusedAt records why somebody who is signed in does not get to an application.
func (v *browserRequest) refusedAt(at session.Purpose, why session.Reason) error {
	proof, err := session.ProofOf(&v.bearer.Token)
	if err != nil {
		return err
	}
	info := call.From(v.r.Context())
	return v.Sessions.Refused(v.r.Context(), session.Refused{UserID: v.bearer.Caller.UserID, Method: proof.Way(),
		Reason: why, Purpose: at, Peer: info.Peer, UserAgent: info.UserAgent, RequestID: info.RequestID})
}

// frame is what every page shows that answers this request.
func (v *browserRequest) frame(with pages.Frame) pages.Frame {
	if p := v.pending; p != nil {
		with.Application, with.RedirectURI = p.App.Data.Name, p.RedirectURI
		with.Locales = strings.Join(p.UILocales, " ")
		if p.Org != nil {
			with.Organization = p.Org.Data.Name
		}
	}
	if v.person != nil && v.person.Data.Human != nil {
		with.Language = v.person.Data.Human.Profile.PreferredLanguage
	}
	if v.home != nil && with.Organization == "" {
		with.Organization = v.home.Data.Name
	}
	return with
}

// render shows a page, with the status that fits what is wrong.
func (v *browserRequest) render(view pages.View, problems []pages.Problem) {
	status := http.StatusOK
	if v.problem = len(problems) > 0; v.problem {
		status = http.StatusUnprocessableEntity
	}
	v.Pages.Render(v.w, v.r, status, view)
}

// loginName of the person, as others would write it.
func (v *browserRequest) loginName() string {
	if v.person == nil {
		return ""
	}
	if v.home == nil {
		return v.person.Data.UserName
	}
	return v.home.Data.LoginName(v.person.Data.UserName)
}
