// Package upstream is the protocol side of signing in through other identity providers: OpenID Connect, plain OAuth
// 2.0, and portals that issue JWTs. It sends a browser to a provider, checks everything that comes back, and returns
// the identity that the provider vouches for (idp.Identity). Package session decides which account that is, and whether
// it may be used.
//
// Start stores nothing: the state that the browser carries is sealed, and the nonce and the PKCE verifier are derived
// from it. Finish uses up a state before it sends anything, so an answer counts once, however often it is sent and to
// whichever node. What a provider sends is not trusted until the last check has passed. It never becomes part of an
// error, and the provider's tokens are not kept.
package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/breaker"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	deadline  = 10 * time.Second // over all calls of one sign-in
	maxAnswer = 64 << 10         // bytes of what an endpoint answers
)

// Failure is a sign-in that a check refused.
type Failure = failure.Failure

// Provider is a provider as it was read for a request.
type Provider = event.Object[idp.Provider]

// Signer signs with the keys of this installation. *signing.Keys is one.
type Signer interface {
	Sign(ctx context.Context, alg, typ string, claims any) (string, error)
}

// Config is what a Federation needs.
type Config struct {
	Client      *outbound.Client
	Keys        *outbound.KeySets
	Calls       *fairqueue.Slots // what organizations share of calls that are waited for
	Master      secret.MasterKey
	Store       event.Store
	Clock       func() time.Time
	ExternalURL string // without a slash at the end
	Signing     Signer // for private_key_jwt
	// Failed is told the organization of a provider through which a sign-in failed; nil: nobody is.
	Failed func(org string)
	// Failing is told of failures that could not be recorded; nil: nobody is.
	Failing func(error)
}

// Federation signs people in through providers. It is safe for concurrent use.
type Federation struct {
	Config
	metadata *outbound.Kept[*metadata]
	breakers *breaker.Breakers
	failures *failure.Recorder
}

// New makes a Federation.
func New(c Config) *Federation {
	f := &Federation{Config: c, breakers: breaker.New(c.Clock), failures: failure.NewRecorder(c.Store, c.Clock)}
	f.metadata = outbound.NewKept(c.Clock, c.Calls, f.askMetadata)
	return f
}

// Attempt is a sign-in that begins.
type Attempt struct {
	Browser   string // what only this browser knows; never empty
	Return    string // what Finish gives back
	Again     bool   // the person has to prove again who they are, although the provider may know them
	MaxAge    *int64 // how many seconds ago the person may have proven it at most; nil: any number
	Chosen    bool   // somebody pressed a button of ours in this browser to get there
	Hint      string // the name that was typed; may be empty
	App       string // the application that it is for; empty: none
	RequestID string
}

// Callback is what a browser brings back from a provider.
type Callback struct {
	Provider  string // whose callback address was called
	Browser   string
	Query     url.Values
	Form      url.Values // of a POST
	Header    http.Header
	Peer      netip.Addr
	RequestID string
}

// SignedIn is who has signed in at a provider, and what for.
type SignedIn struct {
	Identity idp.Identity
	Return   string
	Again    bool
	Chosen   bool // see Attempt
}

// CallbackAddress is where a provider sends people back to. It is registered there.
func (f *Federation) CallbackAddress(id string) string {
	return f.ExternalURL + "/login/idp/" + url.PathEscape(id) + "/callback"
}

// Start gives the address that a browser is sent to. Errors: *Failure, which is recorded; those of event.Reader.
func (f *Federation) Start(ctx context.Context, p *Provider, a Attempt) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	address, err := f.start(ctx, p, a)
	return address, f.record(ctx, p, source{a.App, a.RequestID}, err)
}

func (f *Federation) start(ctx context.Context, p *Provider, a Attempt) (string, error) {
	if err := usable(p); err != nil {
		return "", err
	}
	s, text, err := f.newState(p, a)
	if err != nil {
		return "", err
	}
	switch p.Data.Type() {
	case idp.IsJWT:
		return f.startJWT(p, s, text)
	case idp.IsOIDC:
		return f.startOIDC(ctx, p, s, text, a.Hint)
	case idp.IsOAuth:
		return f.startOAuth(p, s, text, a.Hint)
	}
	return "", errNoType
}

// Finish checks what a browser brings back. Errors: *Failure; those of event.Store. With an error, Return is what it is
// where the state says so, and there is no Identity. A failure is recorded if the state is one of ours and came back in
// its own browser; others are only counted, because anybody can cause them from anywhere.
func (f *Federation) Finish(ctx context.Context, p *Provider, c Callback) (SignedIn, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	s, answer, err := f.readAnswer(p, c)
	if s == nil {
		f.count(p, err)
		return SignedIn{}, err
	}
	in, err := f.finish(ctx, p, c, s, answer, err)
	return in, f.record(ctx, p, source{s.App, c.RequestID}, err)
}

// readAnswer reads an answer with its state, as openState does.
func (f *Federation) readAnswer(p *Provider, c Callback) (*state, url.Values, error) {
	answer, err := c.values()
	if err != nil {
		return nil, nil, err
	}
	s, err := f.openState(answer.Get("state"), p, c)
	return s, answer, err
}

// finish goes on with an answer whose state is ours. wrong is what is wrong with that state.
func (f *Federation) finish(ctx context.Context, p *Provider, c Callback, s *state, answer url.Values,
	wrong error) (SignedIn, error) {
	if wrong != nil {
		return SignedIn{}, wrong
	}
	back := SignedIn{Return: s.Return, Again: s.Again, Chosen: s.Chosen}
	if err := f.useUp(ctx, s); err != nil {
		return back, err
	}
	var who *idp.Identity
	var err error
	switch p.Data.Type() {
	case idp.IsJWT:
		who, err = f.finishJWT(ctx, p, s, c.Header, answer)
	case idp.IsOIDC:
		who, err = f.finishOIDC(ctx, p, s, answer)
	case idp.IsOAuth:
		who, err = f.finishOAuth(ctx, p, s, answer)
	default:
		err = errNoType
	}
	if err != nil {
		return back, err
	}
	who.Provider, who.Org, who.Epoch, who.Version = p.ID, p.Org, p.Data.Epoch, p.Data.Changer.Version
	back.Identity = *who
	return back, nil
}

var errNoType = failure.New(failure.Configuration,
	"the provider has no configuration: remove it and create another one")

// usable tells whether a provider signs anybody in.
func usable(p *Provider) error {
	switch {
	case p.Data.State == idp.Draft:
		return failure.New(failure.Inactive,
			"the provider is a draft: check it, or offer it without a check, if people should sign in through it")
	case p.Data.State != idp.Active:
		return failure.New(failure.Inactive,
			"the provider is switched off: reactivate it if people should sign in through it")
	case p.Data.Changer == nil:
		return failure.New(failure.Inactive,
			"nobody has confirmed this provider since it can be used: check it, or change its configuration")
	}
	return nil
}

// values are the parameters of an answer: those of the form where it was posted. Who sends one twice means two things
// at once.
func (c *Callback) values() (url.Values, error) {
	values := c.Query
	if len(c.Form) > 0 {
		values = c.Form
	}
	for _, name := range []string{"state", "code", "error", "iss", "user"} {
		if len(values[name]) > 1 {
			return nil, failure.New(failure.State, "a parameter of the answer was sent more than once")
		}
	}
	return values, nil
}

// sayEvery is how often failures are recorded that had to wait for a minute to end.
const sayEvery = 10 * time.Second

// KeepSayingFailures records them until ctx ends.
func (f *Federation) KeepSayingFailures(ctx context.Context) {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := f.failures.Say(ctx); err != nil && ctx.Err() == nil && f.Failing != nil {
				f.Failing(err)
			}
		}
	}
}

// source is where a failure comes from.
type source struct{ application, requestID string }

// count counts err if it is a failure, and gives that; nil where it is none.
func (f *Federation) count(p *Provider, err error) *Failure {
	failed, _ := errors.AsType[*Failure](err)
	if failed != nil && f.Failed != nil {
		f.Failed(p.Org)
	}
	return failed
}

// record counts a failure and writes it down, whether or not who caused it is still there, and gives it back.
func (f *Federation) record(ctx context.Context, p *Provider, of source, err error) error {
	failed := f.count(p, err)
	if failed == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	defer cancel()
	if problem := f.failures.Record(ctx, failure.Refusal{Provider: p.ID, Org: p.Org, Application: of.application,
		Check: failed.Check, RequestID: of.requestID}); problem != nil && f.Failing != nil {
		f.Failing(problem)
	}
	return failed
}
