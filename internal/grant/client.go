package grant

import (
	"context"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// Client is who asks for tokens: an application, or a service user for itself. Exactly one is set.
type Client struct {
	App     *event.Object[app.App]
	Service *event.Object[user.User]
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
	if c.App == nil || !slices.Contains(c.App.State.GrantTypes, g) {
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

// Credentials are what a client says about itself.
type Credentials struct {
	Method    app.AuthMethod // the way in which it is said
	ClientID  string         // may be left out beside an assertion
	Secret    string
	Assertion string
}

// Authenticate tells which client asks. It has to use exactly the method it is registered with. Service users may use
// either way to send a secret, or an assertion. Errors: ErrInvalidClient, whatever is wrong.
func (g *Grants) Authenticate(ctx context.Context, c Credentials) (*Client, error) {
	var said *assertion
	if c.Method == app.PrivateKeyJWT {
		var err error
		if said, err = readAssertion(c.Assertion); err != nil {
			return nil, ErrInvalidClient.Because(err)
		}
		if c.ClientID != "" && c.ClientID != said.Issuer {
			return nil, ErrInvalidClient
		}
		c.ClientID = said.Issuer
	}
	if user.IsID(c.ClientID) {
		return g.authenticateService(ctx, c, said)
	}
	if len(c.ClientID) > maxID {
		return nil, ErrInvalidClient
	}
	read, err := g.Store.Prover(ctx, app.Kind.Ref(c.ClientID))
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, ErrInvalidClient
	}
	a, err := app.Kind.Open(read.Object)
	if err != nil {
		return nil, err
	}
	owner, err := org.Kind.Open(read.Org)
	if err != nil {
		return nil, err
	}
	if a.State.State != app.Active || a.State.AuthMethod != c.Method || owner.State.State != org.Active {
		return nil, ErrInvalidClient
	}
	switch c.Method {
	case app.NoAuth:
		// It says who it is and cannot prove it: everything it is given is bound to PKCE or a device code.
	case app.SecretBasic, app.SecretPost:
		if !app.SecretMatches(&a.State, read.Secret, c.Secret, g.Clock()) {
			return nil, ErrInvalidClient
		}
	case app.PrivateKeyJWT:
		keys, err := g.appKeys(ctx, a.Org, &a.State, said.keyID())
		if err != nil {
			return nil, ErrInvalidClient.Because(err)
		}
		if err := g.verify(ctx, said, a.ID, keys, ErrInvalidClient); err != nil {
			return nil, err
		}
	default:
		return nil, ErrInvalidClient
	}
	return &Client{App: a}, nil
}

func (g *Grants) authenticateService(ctx context.Context, c Credentials, said *assertion) (*Client, error) {
	u, stored, err := g.service(ctx, c.ClientID)
	if err != nil {
		return nil, err
	}
	if said != nil {
		if err := g.verify(ctx, said, c.ClientID, g.serviceKeys(u), ErrInvalidClient); err != nil {
			return nil, err
		}
		return &Client{Service: u}, nil
	}
	var state *user.User
	if u != nil {
		state = &u.State
	}
	if c.Method == app.NoAuth || !user.SecretMatches(state, stored, c.Secret) {
		return nil, ErrInvalidClient
	}
	return &Client{Service: u}, nil
}

// service reads an active service user of an active organization, with the row of its secret; nil where there is none.
func (g *Grants) service(ctx context.Context, id string) (*event.Object[user.User], *event.Row, error) {
	if len(id) > maxID {
		return nil, nil, nil
	}
	read, err := g.Store.Prover(ctx, user.Kind.Ref(id))
	if err != nil || read == nil {
		return nil, nil, err
	}
	u, err := user.Kind.Open(read.Object)
	if err != nil || u.State.Service == nil || u.State.State != user.Active {
		return nil, nil, err
	}
	o, err := org.Kind.Open(read.Org)
	if err != nil || o.State.State != org.Active {
		return nil, nil, err
	}
	return u, read.Secret, nil
}

// appKeys are the public keys of an application: those registered with it, or those that it publishes.
func (g *Grants) appKeys(ctx context.Context, org string, a *app.App, keyID string) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey
	for _, k := range a.KeysAt(g.Clock()) {
		keys = append(keys, publicKey(k.ID, k.Public)...)
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
	for _, k := range u.State.Service.Keys {
		if k.Expires == 0 || now < k.Expires {
			keys = append(keys, publicKey(k.ID, k.PublicKey)...)
		}
	}
	return keys
}
