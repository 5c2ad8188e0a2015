package login

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/factor"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// Enrolment is the adding of a second factor, which the sign-in and the account ask for in the same way.
type Enrolment struct {
	Sessions *session.Sessions
	Caller   *access.Caller
	Request  *http.Request
}

// TOTP fills in what the page for an authenticator app shows. A page that is shown again keeps its key: the app has it
// already.
func (e Enrolment) TOTP(view pages.EnrolTOTP) (pages.EnrolTOTP, error) {
	made, err := e.Sessions.ResumeTOTP(e.Request.Context(), e.Caller, e.Request.PostFormValue(pages.FieldKey))
	view.URI, view.Key = made.URI, made.Secret
	return view, err
}

// Passkey fills in what the page for a passkey shows.
func (e Enrolment) Passkey(view pages.EnrolPasskey) (pages.EnrolPasskey, error) {
	options, err := e.Sessions.StartPasskey(e.Request.Context(), e.Caller)
	view.Options, view.Name = []byte(options), e.Request.PostFormValue(pages.FieldPasskeyName)
	return view, err
}

// Take adds the factor that the form of such a page brings, or says what is wrong with it. The session has another
// token afterwards.
func (e Enrolment) Take(kind pages.FactorKind) (session.Enrolled, []pages.Problem, error) {
	if kind == pages.Passkey {
		return e.takePasskey()
	}
	code := e.Request.PostFormValue(pages.FieldCode)
	if code == "" {
		return session.Enrolled{}, []pages.Problem{{Field: pages.FieldCode, Message: pages.Required()}}, nil
	}
	enrolled, err := e.Sessions.ConfirmTOTP(e.Request.Context(), e.Caller, "", code, e.from())
	if err != nil {
		problems, err := Problem(pages.FieldCode, pages.WrongCode(), err)
		return session.Enrolled{}, problems, err
	}
	return enrolled, nil, nil
}

func (e Enrolment) takePasskey() (session.Enrolled, []pages.Problem, error) {
	name := e.Request.PostFormValue(pages.FieldPasskeyName)
	if utf8.RuneCountInString(name) > syntax.MaxName {
		return session.Enrolled{},
			[]pages.Problem{{Field: pages.FieldPasskeyName, Message: pages.TooLong(syntax.MaxName)}}, nil
	}
	enrolled, err := e.Sessions.ConfirmPasskey(e.Request.Context(), e.Caller, name,
		e.Request.PostFormValue(pages.FieldCredential), e.from())
	switch {
	case errors.Is(err, factor.ErrPasskeyExists):
		return session.Enrolled{}, []pages.Problem{{Message: pages.PasskeyFailed()}}, nil
	case err != nil:
		problems, err := Problem("", pages.PasskeyFailed(), err)
		return session.Enrolled{}, problems, err
	}
	return enrolled, nil, nil
}

// from says where the step comes from. The step rotates the session's token, so that an attacker who knew the old one
// gains nothing by it.
func (e Enrolment) from() session.From {
	info := call.From(e.Request.Context())
	return session.From{Peer: info.Peer, UserAgent: info.UserAgent, Rotate: true}
}
