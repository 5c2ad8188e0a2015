package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/transport/rpc"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/internal/ui/account"
	"github.com/signet-idm/signet/internal/ui/login"
)

// everything is a site with the API, the OpenID Connect provider and the pages. None of them has a store: they refuse
// before they need one.
func everything(t *testing.T, log io.Writer) *web.Site {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	api, err := rpc.New(rpc.Config{
		Services: []rpc.Service{{Name: signetv1connect.SessionServiceName,
			Impl: signetv1connect.UnimplementedSessionServiceHandler{}}},
		Authenticate: func(context.Context, string) (*access.Caller, error) { return nil, access.ErrUnauthenticated },
	})
	must(err)
	shown, err := pages.New(pages.Config{ExternalURL: &url.URL{Scheme: "https", Host: "id.test"},
		Log: slog.New(slog.DiscardHandler)})
	must(err)
	provider, err := oidc.New(oidc.Config{Grants: &oauth.Grants{Issuer: "https://id.test"}, Keys: struct{ oidc.Keys }{},
		ErrorPage: login.ErrorPage(shown)})
	must(err)
	site, err := web.New(web.Config{API: api, Log: slog.New(slog.NewTextHandler(log, nil))})
	must(err)
	for path, handler := range provider.Handlers() {
		site.Handle(path, handler)
	}
	(&login.Login{Pages: shown}).Mount(site)
	for path, handler := range (&account.Account{Pages: shown}).Handlers() {
		site.Handle(path, handler)
	}
	return site
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

const (
	serverError = `500 {"error":"server_error","error_description":"an internal error occurred: give the request id to the operator"}`
	unavailable = `503 {"error":"temporarily_unavailable","error_description":"the server cannot answer at the moment: try again shortly"}`
	tooMany     = `429 {"error":"temporarily_unavailable","error_description":"no"}`

	expired    = "400 This sign-in has expired"
	badRequest = "400 The application sent an invalid request"
	away       = "503 We will be back in a moment"
	broken     = "500 Something went wrong"
)

// answers say how callers see each kind of error: of the API, of OAuth, in a browser that an application sent, and on
// our pages.
var answers = map[errs.Kind]struct {
	grpc, rest             int
	oauth, authorize, page string
}{
	errs.Internal:           {13, 500, serverError, broken, broken},
	errs.InvalidArgument:    {3, 400, serverError, badRequest, expired},
	errs.Unauthenticated:    {16, 401, serverError, badRequest, expired},
	errs.PermissionDenied:   {7, 403, serverError, "403 You do not have access", "403 You do not have access"},
	errs.NotFound:           {5, 404, serverError, "404 This page does not exist", "404 This page does not exist"},
	errs.AlreadyExists:      {6, 409, serverError, badRequest, expired},
	errs.Aborted:            {10, 409, unavailable, away, away},
	errs.FailedPrecondition: {9, 400, serverError, badRequest, expired},
	errs.ResourceExhausted:  {8, 429, tooMany, "429 Too many attempts", "429 Too many attempts"},
	errs.Unimplemented:      {12, 501, serverError, badRequest, expired},
	errs.Unavailable:        {14, 503, unavailable, away, away},
	errs.DeadlineExceeded:   {4, 504, unavailable, away, away},
	errs.Cancelled: {1, 499, strings.Replace(unavailable, "503", "499", 1),
		strings.Replace(away, "503", "499", 1), strings.Replace(away, "503", "499", 1)},
}

const (
	procedure = "/" + signetv1connect.SessionServiceName + "/CreateSession"
	form      = "application/x-www-form-urlencoded"
	authorize = "/oauth/authorize"
)

func send(t *testing.T, site *web.Site, method, path, mediaType string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, body)
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

var title = regexp.MustCompile(`<h1[^>]*>([^<]*)</h1>`)

// checkPage compares the status and the title of a page.
func checkPage(t *testing.T, name string, w *httptest.ResponseRecorder, want string) {
	t.Helper()
	said := title.FindStringSubmatch(w.Body.String())
	if said == nil {
		t.Errorf("%s: %d with no title: %s", name, w.Code, w.Body)
	} else if got := fmt.Sprint(w.Code, " ", said[1]); got != want {
		t.Errorf("%s: got %s, want %s", name, got, want)
	}
}

func TestEveryKindOfErrorHasAnAnswerForEveryCaller(t *testing.T) {
	site := everything(t, io.Discard)
	for kind := range errs.Kinds {
		t.Run(strconv.Itoa(int(kind)), func(t *testing.T) {
			ask := func(path, mediaType string) *httptest.ResponseRecorder {
				t.Helper()
				err := &errs.Error{Kind: kind, Reason: "BECAUSE", Message: "no", RetryAfter: 1200 * time.Millisecond}
				w := send(t, site, http.MethodPost, path, mediaType, failing{err})
				if after := w.Header().Get("Retry-After"); after != "2" && kind != errs.Internal {
					t.Errorf("%s: retry after %q", path, after)
				}
				return w
			}
			want := answers[kind]
			rest := ask("/v1/sessions", "application/json")
			if rest.Code != want.rest || !strings.HasPrefix(rest.Body.String(), fmt.Sprintf(`{"code":%d,`, want.grpc)) {
				t.Errorf("REST: %d %s", rest.Code, rest.Body)
			}
			if challenge := rest.Header().Get("Www-Authenticate"); (challenge == "Bearer") != (kind == errs.Unauthenticated) {
				t.Errorf("REST: the challenge is %q", challenge)
			}
			if got := ask(procedure,
				"application/grpc").Result().Trailer.Get("Grpc-Status"); got != strconv.Itoa(want.grpc) {
				t.Errorf("gRPC: %s", got)
			}
			if got := ask(procedure, "application/grpc-web+proto").Body.String(); !strings.Contains(got,
				fmt.Sprintf("grpc-status: %d\r\n", want.grpc)) {
				t.Errorf("gRPC-Web: %q", got)
			}
			oauth := ask("/oauth/token", form)
			if got := fmt.Sprint(oauth.Code, " ", strings.TrimSpace(oauth.Body.String())); got != want.oauth {
				t.Errorf("OAuth: %s", got)
			}
			checkPage(t, "authorize", ask(authorize, form), want.authorize)
			checkPage(t, "sign-in", ask(login.Path, form), want.page)
			checkPage(t, "account", ask(pages.PathAccount, form), want.page)
		})
	}
}

func TestSomeReasonsHaveAPageOfTheirOwn(t *testing.T) {
	site := everything(t, io.Discard)
	for err, want := range map[*errs.Error][2]string{
		oauth.ErrRequestNotFound: {expired, badRequest},
		oauth.ErrUnknownClient:   {badRequest, badRequest},
		oauth.ErrRedirectRefused: {badRequest, badRequest},
		oauth.ErrRequestURI:      {badRequest, badRequest},
		fairqueue.ErrUsedUp:      {away, away},
	} {
		checkPage(t, string(err.Reason)+" at the sign-in",
			send(t, site, http.MethodPost, login.Path, form, failing{err}), want[0])
		asked := send(t, site, http.MethodPost, authorize, form, failing{err})
		checkPage(t, string(err.Reason)+" at authorize", asked, want[1])
		if detailed := strings.Contains(asked.Body.String(),
			html.EscapeString(err.Message)); detailed != (want[1] == badRequest) {
			t.Errorf("%s: the page says why: %t", err.Reason, detailed)
		}
	}
}

func TestPagesTakeGetHeadAndPostAndText(t *testing.T) {
	site := everything(t, io.Discard)
	for path, want := range map[string]string{
		login.Path:        "The application sent an invalid request",
		pages.PathAccount: "This form was sent from another site",
		authorize:         "This sign-in has expired",
	} {
		w := send(t, site, http.MethodPut, path, form, nil)
		checkPage(t, path, w, "405 "+want)
		if allow := w.Header().Get("Allow"); allow != "GET, HEAD, POST" {
			t.Errorf("%s allows %q", path, allow)
		}
		if path != authorize {
			checkPage(t, path, send(t, site, http.MethodPost, path, form, strings.NewReader("a=%00")), "400 "+want)
			checkPage(t, path, send(t, site, http.MethodPost, path, form, strings.NewReader("a=%zz")), "400 "+want)
		}
	}
}

func TestTheAccountSendsStrangersToTheSignIn(t *testing.T) {
	var log bytes.Buffer
	w := send(t, everything(t, &log), http.MethodGet, pages.PathAccount, "", nil)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != login.Path+"?to=%2Faccount" ||
		!strings.Contains(log.String(), "reason=UNAUTHENTICATED") {
		t.Errorf("%d to %s, logged %s", w.Code, to, &log)
	}
}

func TestAnErrorOfAnotherTypeIsAnsweredAsInternal(t *testing.T) {
	if got := web.AnswerTo(errors.New("disk on fire")); got != web.AnswerTo(&errs.Error{}) {
		t.Errorf("got %+v", got)
	}
}
