package oauth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/assertion"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Client is who asks for tokens: an application, or a service user for itself. Exactly one is set.
type Client struct {
	App     *event.Object[app.App]
	Service *event.Object[user.User]
	// until is when the assertion of an outside issuer expires that Service has shown; zero: it has shown something else.
	until time.Time

	Key *Key // that its tokens are going to be bound to; nil: to none
}

// ID is the client_id.
func (c *Client) ID() string {
	if c.App != nil {
		return c.App.ID
	}
	return c.Service.ID
}

// Org is the organization it belongs to.
func (c *Client) Org() string {
	if c.App != nil {
		return c.App.Org
	}
	return c.Service.Org
}

// may refuses a way to tokens that is not the client's. Errors: ErrUnauthorizedClient.
func (c *Client) may(g app.GrantType) error {
	if c.App == nil || !slices.Contains(c.App.Data.GrantTypes, g) {
		return ErrUnauthorizedClient
	}
	return nil
}

// owns tells whether a token was given to the client.
func (c *Client) owns(t *event.Token) bool {
	if c.App != nil {
		return t.Client == c.App.ID
	}
	return t.Client == "" && t.UserID == c.Service.ID
}

// reads tells whether the client may know about a token: its own, or one that is meant for it. An application of
// another organization may have taken its approval back since.
func (c *Client) reads(b *session.Bearer) bool {
	return c.owns(&b.Token) ||
		c.App != nil && slices.Contains(b.Given.Audience, c.App.ID) &&
			app.Takes(c.App, cmp.Or(b.Token.Client, b.Token.UserID), b.ClientOrg)
}

// Credentials are what a client says about itself.
type Credentials struct {
	Method    app.AuthMethod // the way in which it is said
	ClientID  string         // may be left out beside an assertion
	Secret    string
	Assertion string
}

// ways names what a client sent, for the log.
var ways = map[app.AuthMethod]string{app.NoAuth: "no credential", app.SecretBasic: "a secret in the header",
	app.SecretPost: "a secret in the body", app.PrivateKeyJWT: "an assertion"}

// Authenticate tells which client asks. It has to use a method that its settings accept. Service users may use
// either way to send a secret, or an assertion. Errors: ErrInvalidClient, whatever is wrong; only the log says what.
func (g *Grants) Authenticate(ctx context.Context, c Credentials) (*Client, error) {
	var said *assertion.Assertion
	if c.Method == app.PrivateKeyJWT {
		var err error
		if said, err = assertion.Read(c.Assertion); err != nil {
			return nil, refusedClient("", "", "the assertion cannot be read").Because(err)
		}
		if ofWorkload(c.ClientID, said.Issuer) {
			u, until, err := g.workload(ctx, c.ClientID, c.Assertion, ofService)
			if err != nil {
				return nil, err
			}
			return &Client{Service: u, until: until}, nil
		}
		if c.ClientID != "" && c.ClientID != said.Issuer {
			return nil, refusedClient("", "", "client_id is not the issuer of the assertion")
		}
		c.ClientID = said.Issuer
	}
	if user.IsID(c.ClientID) {
		return g.authenticateService(ctx, c, said)
	}
	return g.authenticateApp(ctx, c, said)
}

func (g *Grants) authenticateApp(ctx context.Context, c Credentials, said *assertion.Assertion) (*Client, error) {
	a, stored, err := credentialOf(ctx, g, app.Kind, c.ClientID)
	if err != nil {
		return nil, err
	}
	if a == nil || a.Data.State != app.Active {
		return nil, refusedClient(idOf(a), refusal.Inactive,
			"no active application of an active organization has this client_id")
	}
	if !a.Data.Accepts(c.Method) {
		return nil, refusedClient(a.ID, refusal.Method, "%s sent %s, but its authentication method is %s", a.ID,
			ways[c.Method], a.Data.AuthMethod)
	}
	switch c.Method {
	case app.NoAuth:
		// It says who it is and cannot prove it: everything it is given is bound to PKCE or a device code.
	case app.SecretBasic, app.SecretPost:
		if !app.SecretMatches(&a.Data, stored, c.Secret, g.Clock()) {
			return nil, refusedClient(a.ID, refusal.Secret, "%s sent a secret that is not its own, or not any more", a.ID)
		}
	case app.PrivateKeyJWT:
		keys, err := g.appKeys(ctx, a.Org, &a.Data, said.KeyID())
		if err != nil {
			return nil, refusedClient(a.ID, refusal.Keys, "the keys of %s cannot be fetched", a.ID).Because(err)
		}
		refused := func(why string) *errs.Error {
			return refusedClient(a.ID, refusal.Assertion, "%s sent an assertion that %s", a.ID, why)
		}
		if err := g.verify(ctx, said, a.ID, keys, needsID, refused); err != nil {
			return nil, err
		}
	default:
		return nil, ErrInvalidClient
	}
	return &Client{App: a}, nil
}

// idOf is the id of an application; empty for none.
func idOf(a *event.Object[app.App]) string {
	if a == nil {
		return ""
	}
	return a.ID
}

// refusedClient is ErrInvalidClient with what the log says about it, and the people of the application read; it is empty
// where none is known.
func refusedClient(application string, cause refusal.Cause, format string, values ...any) *errs.Error {
	return refusal.About(ErrInvalidClient.Noting(fmt.Sprintf(format, values...)), application, cause)
}

// ofService is refusedClient about a service user.
func ofService(format string, values ...any) *errs.Error {
	return refusedClient("", "", format, values...)
}

// grantOfService is refusedGrant about a service user.
func grantOfService(format string, values ...any) *errs.Error {
	return refusedOf("", "", format, values...)
}

// serviceRefused refuses the assertion of a service user; nil where there is no such user.
func serviceRefused(u *event.Object[user.User],
	refused func(format string, values ...any) *errs.Error) func(why string) *errs.Error {
	return func(why string) *errs.Error {
		if u == nil {
			return refused("no active service user of an active organization is the issuer of the assertion")
		}
		return refused("%s sent an assertion that %s", u.ID, why)
	}
}

func (g *Grants) authenticateService(ctx context.Context, c Credentials, said *assertion.Assertion) (*Client, error) {
	u, stored, err := g.service(ctx, c.ClientID)
	if err != nil {
		return nil, err
	}
	if said != nil {
		if err := g.verify(ctx, said, c.ClientID, g.serviceKeys(u), needsID, serviceRefused(u, ofService)); err != nil {
			return nil, err
		}
		return &Client{Service: u}, nil
	}
	var state *user.User
	if u != nil {
		state = &u.Data
	}
	if c.Method == app.NoAuth || !user.SecretMatches(state, stored, c.Secret) {
		return nil, ofService("no active service user has this client_id and secret")
	}
	return &Client{Service: u}, nil
}

// service reads an active service user of an active organization, with the row of its secret; nil where there is none.
func (g *Grants) service(ctx context.Context, id string) (*event.Object[user.User], *event.Row, error) {
	u, stored, err := credentialOf(ctx, g, user.Kind, id)
	if err != nil || u == nil || u.Data.Service == nil || u.Data.State != user.Active {
		return nil, nil, err
	}
	return u, stored, nil
}

// credentialOf reads an object of an active organization, with the row of its secret; nil where there is none.
func credentialOf[S any](ctx context.Context, g *Grants, kind *event.Objects[S],
	id string) (*event.Object[S], *event.Row, error) {
	if len(id) > maxID {
		return nil, nil, nil
	}
	read, err := g.Store.ClientCredential(ctx, kind.Ref(id))
	if err != nil || read == nil {
		return nil, nil, err
	}
	owner, err := org.Kind.Open(read.Org)
	if err != nil || owner.Data.State != org.Active {
		return nil, nil, err
	}
	object, err := kind.Open(read.Object)
	return object, read.Secret, err
}

// appKeys are the public keys of an application: those registered with it, or those that it publishes.
func (g *Grants) appKeys(ctx context.Context, org string, a *app.App, keyID string) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey
	for _, k := range a.KeysAt(g.Clock()) {
		keys = append(keys, assertion.PublicKey(k.ID, k.Public)...)
	}
	if a.KeySetURI == "" || g.KeySets == nil {
		return keys, nil
	}
	published, err := g.KeySets.Find(ctx, org, a.KeySetURI, keyID)
	return append(keys, published...), err
}

// serviceKeys are those of a service user that have not expired; none for nobody.
func (g *Grants) serviceKeys(u *event.Object[user.User]) []jose.JSONWebKey {
	var keys []jose.JSONWebKey
	if u == nil {
		return nil
	}
	now := g.now()
	for _, k := range u.Data.Service.Keys {
		if k.Expires == 0 || now < k.Expires {
			keys = append(keys, assertion.PublicKey(k.ID, k.PublicKey)...)
		}
	}
	return keys
}
