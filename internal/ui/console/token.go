package console

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/login"
)

// FromElsewhere is the reason of a refusal to whatever is not the console of this server.
const FromElsewhere errs.Reason = "NOT_FROM_THE_CONSOLE"

var (
	errFromElsewhere = errs.New(errs.PermissionDenied, FromElsewhere,
		"only the console of this server gets a token here: programs use a token of their own")
	errMalformed = errs.New(errs.InvalidArgument, errs.InvalidRequest,
		"the body must be a JSON object with sessionId and returnTo, or empty")
	errNotJSON = errs.New(errs.InvalidArgument, errs.InvalidRequest,
		"the body must be JSON: send content-type: application/json").WithStatus(http.StatusUnsupportedMediaType)
	errNotPosted = errs.New(errs.InvalidArgument, errs.InvalidRequest,
		"send this with POST").WithStatus(http.StatusMethodNotAllowed)
)

// ask is what the application sends.
type ask struct {
	SessionID string `json:"sessionId"` // one of the browser's; empty: the one used last
	// where the person is, a path below /console/; everything else is the start page
	ReturnTo string `json:"returnTo"`
}

// answer is what the application gets. What does not apply is left out.
type answer struct {
	Token     string `json:"token,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"`
	ExpiresIn int    `json:"expiresIn,omitempty"` // seconds, for clocks that are wrong
	SessionID string `json:"sessionId,omitempty"`
	UserID    string `json:"userId,omitempty"`
	Name      string `json:"name,omitempty"` // of the user, for the header

	// Pages that lead back to where the person is: to prove afresh in this session, to use another account, to sign in,
	// or to do what has to be done first.
	Prove         string `json:"prove,omitempty"`
	SwitchAccount string `json:"switchAccount,omitempty"`
	SignIn        string `json:"signIn,omitempty"`
	Next          string `json:"next,omitempty"`

	Reason    errs.Reason `json:"reason,omitempty"`
	Message   string      `json:"message,omitempty"`
	RequestID string      `json:"requestId,omitempty"`
}

// browserRequest is one request of the application, with what is read for it.
type browserRequest struct {
	*Console
	w        http.ResponseWriter
	r        *http.Request
	ask      ask
	accounts *login.Accounts
	bearer   *session.Bearer // of the session that it is about; nil: there is none
}

// asked guards what the application asks for. Nothing is read for a request that a page of another origin may have
// made: browsers name the origin, and ask before they send JSON elsewhere, which nobody here allows.
func (c *Console) asked(serve func(v *browserRequest) error) http.Handler {
	return web.Entry{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &browserRequest{Console: c, w: w, r: r}
		err := v.enter()
		if err == nil {
			err = serve(v)
		}
		if err != nil {
			v.refuse(err)
		}
	}), Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
		(&browserRequest{Console: c, w: w, r: r}).refuse(err)
	}}
}

func (v *browserRequest) enter() error {
	media, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	switch {
	case v.r.Method != http.MethodPost:
		v.w.Header().Set("Allow", http.MethodPost)
		return errNotPosted
	case !v.Pages.FromOurPage(v.r):
		return errFromElsewhere
	case err != nil || media != "application/json":
		return errNotJSON
	}
	if err := v.Limiter.Take(call.From(v.r.Context()).Peer, 1); err != nil {
		return err
	}
	if err := v.read(); err != nil {
		return err
	}
	if v.accounts, err = v.Browsers.Accounts(v.r); err != nil {
		return err
	}
	if v.bearer = v.accounts.Current(); v.ask.SessionID != "" {
		v.bearer = v.accounts.Session(v.ask.SessionID)
	}
	if v.bearer != nil {
		call.From(v.r.Context()).Caller = v.bearer.Caller
	}
	return nil
}

func (v *browserRequest) read() error {
	d := json.NewDecoder(v.r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&v.ask)
	if _, ours := errors.AsType[*errs.Error](err); ours {
		return err // there is no room for it, see web.Budget
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil || d.More() {
		return errMalformed
	}
	return nil
}

// to is where the person comes back to.
func (v *browserRequest) to() string {
	if to := pages.ConsolePage(v.ask.ReturnTo); to != "" {
		return to
	}
	return pages.PathConsole
}

// token gives the application a token of the session.
func (v *browserRequest) token() error {
	if v.bearer == nil {
		// Where one session was meant, another one of this browser does not take its place unasked.
		wish := login.Wish{To: v.to(), Other: v.ask.SessionID != "" && v.accounts.Current() != nil}
		v.elsewhere(access.ErrUnauthenticated, answer{SignIn: wish.Link().String()})
		return nil
	}
	here := login.Wish{To: v.to(), Account: v.bearer.Token.ID}
	if caller := v.bearer.Caller; caller.MustProveSecondFactor || caller.MustChangePassword {
		why := access.ErrSecondFactor
		if !caller.MustProveSecondFactor {
			why = access.ErrPasswordChange
		}
		v.elsewhere(why, answer{Next: here.Link().String(), SessionID: v.bearer.Token.ID})
		return nil
	}
	name := ""
	if r := v.bearer.Caller.User; r != nil {
		who, err := user.Kind.Open(r)
		if err != nil {
			return err
		}
		name = who.Data.ShownName()
	}
	token, expires := v.Tokens.New(v.bearer)
	prove := here
	prove.Again = true
	v.answer(http.StatusOK, answer{
		Token: token, ExpiresAt: expires.Format(time.RFC3339),
		ExpiresIn: int(math.Floor(expires.Sub(v.Browsers.Clock()).Seconds())),
		SessionID: v.bearer.Token.ID, UserID: v.bearer.Caller.UserID, Name: name,
		Prove:         prove.Link().String(),
		SwitchAccount: login.Wish{To: pages.PathConsole, Other: !v.accounts.Several()}.Link().String(),
	})
	return nil
}

// signOut ends the session. One that has ended already is as good.
func (v *browserRequest) signOut() error {
	if v.bearer != nil {
		if err := v.accounts.Leave(v.r.Context(), v.w, v.bearer.Token.ID); err != nil {
			return err
		}
	}
	v.answer(http.StatusOK, answer{SignIn: login.Wish{To: v.to()}.Link().String()})
	return nil
}

// elsewhere sends the person to a page of the server first. The application expects that, so the status is 200:
// browsers report others as errors.
func (v *browserRequest) elsewhere(why *errs.Error, to answer) {
	to.RequestID, to.Reason, to.Message = call.From(v.r.Context()).RequestID, why.Reason, why.Message
	v.answer(http.StatusOK, to)
}

// refuse says what is wrong, in the words of the API.
func (v *browserRequest) refuse(err error) {
	web.Failed(v.r.Context(), err)
	a := answer{RequestID: call.From(v.r.Context()).RequestID,
		Message: "an internal error occurred: give the request id to the operator"}
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind != errs.Internal {
		a.Reason, a.Message = e.Reason, e.Message
	}
	v.answer(web.AnswerTo(err).REST, a)
}

func (v *browserRequest) answer(status int, a answer) {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // plain fields of ours
	}
	h := v.w.Header()
	v.Pages.Harden(h)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(text) // the browser has gone: nobody is left to tell
}
