package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/oauth/trial"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Request is an authorization request on its way.
type Request struct {
	ID          string   `json:"-"`
	Client      string   `json:"client"`
	RedirectURI string   `json:"redirectUri"`
	Mode        string   `json:"mode,omitempty"` // response_mode; empty: the default
	State       string   `json:"state,omitempty"`
	Nonce       string   `json:"nonce,omitempty"`
	Scopes      []string `json:"scopes,omitempty"`
	Challenge   string   `json:"challenge,omitempty"` // PKCE, S256
	Key         string   `json:"key,omitempty"`       // thumbprint of the key that the code is for; empty: any
	Prompt      []string `json:"prompt,omitempty"`
	MaxAge      *int64   `json:"maxAge,omitempty"` // seconds
	LoginHint   string   `json:"loginHint,omitempty"`
	UILocales   []string `json:"uiLocales,omitempty"`
	// ProviderHint is the identity provider that the application wants people to be sent to.
	ProviderHint string `json:"providerHint,omitempty"`
	Subject      string `json:"subject,omitempty"` // the user that the application means; empty: any user
	Org          string `json:"org,omitempty"`     // the organization that the sign-in is bound to; empty: any
	// that the application wants in its ID token, as far as the scopes allow
	Claims []string `json:"claims,omitempty"`
	Told   []string `json:"told,omitempty"` // the claims about roles and groups that it is told
	// it takes nobody of whom it is not known when they proved to be there
	Timed   bool  `json:"timed,omitempty"`
	Factor  bool  `json:"factor,omitempty"`  // it takes nobody without a second factor
	Prefers bool  `json:"prefers,omitempty"` // it prefers one, and takes what there is
	Created int64 `json:"created"`

	Trial string `json:"-"` // whose trial it is, see trial.go; empty: it is real
}

// Silent tells that nobody is to be asked anything.
func (r *Request) Silent() bool { return slices.Contains(r.Prompt, request.PromptNone) }

// Creates tells whether the application wants the person to make an account.
func (r *Request) Creates() bool { return slices.Contains(r.Prompt, request.PromptCreate) }

// Began is what became of an authorization request: the id under which the pages find it, or the address to send the
// browser to at once because it is refused.
type Began struct {
	ID      string
	Refused request.Answer // none where there is an ID
	Because error          // of Refused, for the log
}

// purposeBrowser seals what only the browser that it came by may read again.
const purposeBrowser = "sign-in of a browser"

var requests = event.Flow[Request]{Prefix: "request", Life: requestLife, Purpose: purposeBrowser}

// Begin takes an authorization request. Errors, for a page of ours because the address to go back to cannot be trusted:
// ErrUnknownClient, ErrRedirectRefused, ErrRequestURI; ResourceExhausted where too much was begun from the network. All
// other refusals go back to the application.
func (g *Grants) Begin(ctx context.Context, a request.Ask) (Began, error) {
	if isPushed(a.RequestURI) {
		return g.beginPushed(ctx, a)
	}
	client, err := g.asking(ctx, a)
	if err != nil {
		return Began{}, err
	}
	// Before anything that a stranger has written is read: that costs more than it takes to send it.
	if err := g.strangers(ctx); err != nil {
		return Began{}, err
	}
	var r *Request
	if err = ErrNotPushed; !client.Data.PushedRequired {
		r, err = g.read(ctx, client, a)
	}
	if refused, ours := asRefusal(err); ours {
		return Began{Refused: g.answer(a.RedirectURI, a.ModeBack(), a.StateBack(), oauthError(refused)...),
			Because: err}, nil
	}
	if err != nil {
		return Began{}, err
	}
	r.ID = rand.Text()
	err = g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		r.Created = tx.Now()
		requests.For(g.Master, a.Browser).Put(tx, r.ID, r)
		return nil
	}})
	return Began{ID: r.ID}, err
}

// asking finds the application of a request, if the address to go back to is one of its own. Errors: ErrUnknownClient;
// ErrRedirectRefused.
func (g *Grants) asking(ctx context.Context, a request.Ask) (*event.Object[app.App], error) {
	client, err := g.signsInTo(ctx, a.ClientID)
	if err != nil {
		return nil, err
	}
	if !app.RedirectAllowed(&client.Data, a.RedirectURI) {
		return nil, refusal.OfAddress(refusedRedirect(client.ID, "redirect_uri", a.RedirectURI), client.ID,
			refusal.RedirectURI, a.RedirectURI)
	}
	return client, nil
}

// signsInTo finds an application that people sign in to by a browser. Errors: ErrUnknownClient.
func (g *Grants) signsInTo(ctx context.Context, id string) (*event.Object[app.App], error) {
	client, err := g.active(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case client == nil:
		return nil, ErrUnknownClient.Noting("no active application of an active organization has this client_id")
	case !slices.Contains(client.Data.GrantTypes, app.AuthorizationCode):
		return nil, refusal.About(ErrUnknownClient.Noting(client.ID+" does not have the grant type authorization_code"),
			client.ID, refusal.GrantType)
	}
	return client, nil
}

// refusedRedirect is ErrRedirectRefused with what the log says about it.
func refusedRedirect(client, parameter, address string) *errs.Error {
	return ErrRedirectRefused.Noting(fmt.Sprintf("%s sent as %s %s, which is not registered with it", client, parameter,
		syntax.LoggedURL(address)))
}

// read judges a request of an application. Nobody is asked about what cannot be given, and what can be given later on,
// nobody was asked about.
func (g *Grants) read(ctx context.Context, client *event.Object[app.App], a request.Ask) (*Request, error) {
	r, err := read(client, a)
	if err != nil {
		return nil, err
	}
	if r.Org, err = g.boundTo(ctx, client, r.Scopes); err != nil {
		return nil, err
	}
	_, r.Scopes, err = g.meantFor(ctx, client.ID, client.Org, r.Scopes)
	return r, err
}

// asRefusal gives an error that is the application's fault, not ours.
func asRefusal(err error) (*errs.Error, bool) {
	e, ours := errors.AsType[*errs.Error](err)
	return e, ours && e.Kind != errs.Internal && e.Kind != errs.Unavailable && e.Kind != errs.DeadlineExceeded &&
		e.Kind != errs.Cancelled
}

// oauthError renders a refusal as the parameters that go back to the application.
func oauthError(e *errs.Error) []string {
	return []string{"error", strings.ToLower(string(e.Reason)), "error_description", e.Message}
}

// read judges a request whose client and redirect URI are fine.
func read(client *event.Object[app.App], a request.Ask) (*Request, error) {
	if err := a.Parameters(); err != nil {
		return nil, err
	}
	if err := a.Challenge(client.Data.AuthMethod == app.NoAuth); err != nil {
		return nil, err
	}
	r := &Request{
		Client:       client.ID,
		RedirectURI:  a.RedirectURI,
		Mode:         a.ResponseMode,
		State:        a.State,
		Nonce:        a.Nonce,
		Challenge:    a.CodeChallenge,
		Key:          a.Key,
		LoginHint:    a.LoginHint,
		ProviderHint: a.ProviderHint,
		UILocales:    request.Locales(strings.Fields(a.UILocales)),
		Subject:      a.Subject,
	}
	var err error
	if r.Prompt, err = request.Prompt(a.Prompt); err != nil {
		return nil, err
	}
	if r.MaxAge, err = request.MaxAge(a.MaxAge); err != nil {
		return nil, err
	}
	if a.Unknown && r.Silent() {
		return nil, ErrLoginRequired
	}
	scopes := strings.Fields(a.Scope)
	if len(scopes) > maxScopes {
		return nil, ErrInvalidScope
	}
	r.Scopes, r.Told = appScopes(&client.Data, scopes), claimset.RoleClaimsOf(&client.Data)
	return r, r.readClaims(a.Claims, strings.Fields(a.ACRValues))
}

// readClaims notes which claims an ID token is to have, who the person has to be, and whether a second factor is
// demanded. Claims beyond the scopes are left out when there is a token. levels are those of acr_values, the best one
// first. Errors: InvalidArgument; ErrUnmetAuthentication.
func (r *Request) readClaims(text string, levels []string) error {
	claims, problem := request.ReadClaims(text)
	switch {
	case problem != "":
		return errs.Wrong("claims", errs.Plain(problem))
	case claims.Subject != "" && r.Subject != "" && claims.Subject != r.Subject:
		return errs.Wrong("claims", errs.Plain("must name the person of id_token_hint as sub, or nobody"))
	}
	r.Timed = claims.Timed
	r.Claims, r.Subject = both(claimset.People, claims.Names), cmp.Or(claims.Subject, r.Subject)
	if first := both(append(levels, claims.Wished...),
		[]string{claimset.SingleFactor, claimset.MultiFactor}); len(first) > 0 && !r.Silent() {
		r.Prefers = first[0] == claimset.MultiFactor
	}
	if claims.Levels == nil || slices.Contains(claims.Levels, claimset.SingleFactor) {
		return nil
	}
	if r.Factor = slices.Contains(claims.Levels, claimset.MultiFactor); !r.Factor {
		return ErrUnmetAuthentication
	}
	return nil
}

// Pending is a request on its way with what the pages show of it.
type Pending struct {
	*Request
	App *event.Object[app.App]
	Org *event.Object[org.Org] // the one that the sign-in is bound to; nil for any
}

// NameScope tells where login names are looked for, see session.NameScope: in the organization that the sign-in is
// bound to, where a name of somewhere else finds nobody, and else first in that of the application, unless it is for
// all of them. Both are empty where there is no request.
func (p *Pending) NameScope() (bound, ofApplication string) {
	if p == nil {
		return "", ""
	}
	if !p.App.Data.AllOrganizations {
		ofApplication = p.App.Org
	}
	return p.Request.Org, ofApplication
}

// Afresh tells whether the application wants the person to prove anew who they are (prompt=login, max_age=0).
func (r *Request) Afresh() bool {
	return slices.Contains(r.Prompt, request.PromptLogin) || r.MaxAge != nil && *r.MaxAge == 0
}

// Dated tells whether the application wants to know when the person proved who they are.
func (r *Request) Dated() bool { return r.Afresh() || r.MaxAge != nil || r.Timed }

// Asks are the scopes and claims that people are asked about; not nil where there are none.
func (r *Request) Asks() []string { return append(append([]string{}, r.Scopes...), r.Told...) }

// Fits tells whether somebody could sign in to an application in the organization that the sign-in is bound to: their
// home, or one in which they are guests if the application has a project. Whether they may is told by Needs.
func Fits(a *event.Object[app.App], bound string, caller *access.Caller) bool {
	_, guest := caller.Memberships[bound]
	return bound == "" || bound == caller.OrgID || guest && a.Data.RoleSettings.Project != ""
}

// begun is a real request that was begun in this browser; nil where there is none.
func (g *Grants) begun(ctx context.Context, id, browser string) (*Request, error) {
	return requests.For(g.Master, browser).Read(ctx, g.Store, id)
}

// Pending finds a request that was begun in this browser. Errors: ErrRequestNotFound; ErrUnknownClient where the
// application was switched off meanwhile.
func (g *Grants) Pending(ctx context.Context, id, browser string) (*Pending, error) {
	find := g.begun
	if strings.HasPrefix(id, trial.Prefix) {
		find = g.walked
	}
	r, err := find(ctx, id, browser)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, ErrRequestNotFound
	}
	r.ID = id
	p := &Pending{Request: r}
	if p.App, err = g.active(ctx, r.Client); err != nil {
		return nil, err
	}
	if p.App == nil {
		return nil, ErrUnknownClient
	}
	if r.Org != "" {
		p.Org, err = org.Kind.Read(ctx, g.Store, r.Org)
	}
	return p, err
}

// Needs tells which condition of a request a person who is signed in does not meet. Errors: access.ErrUnauthenticated
// for something else than a session that counts in full; ErrAccessDenied where people of the organization may not use
// the application.
func (g *Grants) Needs(ctx context.Context, p *Pending, bearer *session.Bearer) (Unmet, error) {
	if err := unrestricted(bearer); err != nil {
		return NothingUnmet, err
	}
	proof, err := session.ProofOf(&bearer.Token)
	if err != nil {
		return NothingUnmet, err
	}
	c, err := Kind.Read(ctx, g.Store, IDFor(bearer.Caller.UserID))
	if err != nil {
		return NothingUnmet, err
	}
	_, verdict, err := g.look(ctx, p.App, bearer.Caller, p.Request.Org)
	if err != nil {
		return NothingUnmet, err
	}
	a := p.agreement(nil)
	if a.own, err = ownOf(p.App, a.scopes, func(id string) (*event.Object[app.App], error) {
		return app.Kind.Read(ctx, g.Store, id)
	}); err != nil {
		return NothingUnmet, err
	}
	return a.unmet(p.App, bearer.Caller, verdict, proof, givenTo(p.Client, c), g.now())
}

// agreement is what somebody is about to let an application have.
type agreement struct {
	client    string
	scopes    []string // asked for
	told      []string // claims about roles and groups
	org       string   // that the person has to be in; empty: any
	subject   string   // who the person has to be; empty: anybody
	since     int64    // the person must have proven to be who they are at that time or later
	begun     int64    // when the application asked
	timed     bool     // it must be known when the person proved it
	factor    bool     // the person must have proven a second factor
	prefers   bool     // if they have one
	maxAge    *int64   // the person must have proven it since then, or at most so many seconds ago
	ask       bool     // the person has to be asked, whatever was given before
	asked     bool     // the person has been asked
	consented []string // what they agreed to, if they were
	own       own      // audiences that are as much the operator's own as the application
	places    *project.Places
	trial     bool // it is a trial: nothing is recorded
}

func (r *Request) agreement(consented []string) agreement {
	a := agreement{
		client:    r.Client,
		scopes:    r.Scopes,
		told:      r.Told,
		org:       r.Org,
		subject:   r.Subject,
		begun:     r.Created,
		maxAge:    r.MaxAge,
		timed:     r.Timed,
		factor:    r.Factor,
		prefers:   r.Prefers,
		ask:       slices.Contains(r.Prompt, request.PromptConsent),
		asked:     consented != nil,
		consented: consented,
	}
	if slices.Contains(r.Prompt, request.PromptLogin) {
		a.since = r.Created
	}
	return a
}

// answer takes parameters back to the application, in pairs. What the address has in its query stays.
func (g *Grants) answer(redirectURI, mode, state string, parameters ...string) request.Answer {
	add := url.Values{"iss": {g.Issuer}}
	for i := 0; i < len(parameters); i += 2 {
		add.Set(parameters[i], parameters[i+1])
	}
	if state != "" {
		add.Set("state", state)
	}
	return request.AnswerAt(redirectURI, mode, add)
}

// unrestricted refuses what is not a session that counts in full.
func unrestricted(b *session.Bearer) error {
	if b == nil || b.Token.Kind != string(secret.Session) || b.Caller.MustChangePassword ||
		b.Caller.MustProveSecondFactor {
		return errNoSession
	}
	return nil
}
