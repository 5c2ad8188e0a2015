package oauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
)

// An application may push an authorization request (RFC 9126): it sends the parameters itself and gives the browser
// only a reference to them.
//
//	Push ──► pushed request ──► Begin with its request_uri ──► request ──► as every other

// pushedLife is how long the browser may take to bring the reference.
const pushedLife = time.Minute

// pushedURI begins every reference; the rest is a secret.
const pushedURI = "urn:ietf:params:oauth:request_uri:"

// pushed are the requests, each sealed with its reference, which is stored nowhere.
var pushed = event.Flow[Request]{Prefix: "pushed", Life: pushedLife, Purpose: "pushed authorization request"}

// pushedAs is the flow for the holder of a reference, and the id of the row there.
func (g *Grants) pushedAs(uri string) (event.Flow[Request], string) {
	return pushed.For(g.Master, uri), secret.Digest(uri)
}

// ErrNotPushed refuses what came by the browser to an application that pushes its requests.
var ErrNotPushed = errs.New(errs.InvalidArgument, errs.InvalidRequest,
	"this application must push its authorization requests: send the parameters to the pushed_authorization_request_endpoint first, and only client_id and request_uri here")

// ErrRequestURI refuses a reference to a pushed request.
var ErrRequestURI = errs.New(errs.InvalidArgument, InvalidRequestURI,
	"this request_uri has expired, has been used, or was given to another application: go back to the application and start again")

// Pushed is the answer to a pushed request.
type Pushed struct {
	URI  string
	Life time.Duration
}

// Push judges an authorization request of a client as Begin does, and keeps it for a browser that brings its reference.
// Errors: ErrUnauthorizedClient for one that nobody signs in to; ResourceExhausted where too much was begun from the
// network of a client without a secret, which anybody can be; whatever Begin sends back to the application.
func (g *Grants) Push(ctx context.Context, client *Client, a request.Ask) (*Pushed, error) {
	if err := client.may(app.AuthorizationCode); err != nil {
		return nil, err
	}
	if client.App.Data.AuthMethod == app.NoAuth {
		if err := g.strangers(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case a.ClientID != "" && a.ClientID != client.ID():
		return nil, errs.New(errs.InvalidArgument, errs.InvalidRequest,
			"client_id is not the client that authenticates: send the same")
	case !app.RedirectAllowed(&client.App.Data, a.RedirectURI):
		refused := errs.New(errs.InvalidArgument, errs.InvalidRequest, ErrRedirectRefused.Message).
			Noting(refusedRedirect(client.ID(), "redirect_uri", a.RedirectURI).Note)
		return nil, refusal.OfAddress(refused, client.ID(), refusal.RedirectURI, a.RedirectURI)
	}
	if key := client.Key.print(); key != "" && a.Key != "" && a.Key != key {
		return nil, invalidProof("is of another key than dpop_jkt")
	} else if key != "" {
		a.Key = key
	}
	r, err := g.read(ctx, client.App, a)
	if err != nil {
		return nil, err
	}
	uri := pushedURI + rand.Text()
	rows, id := g.pushedAs(uri)
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   client.Key.rows(),
		Decide: func(tx *event.Tx) error {
			if err := client.Key.use(tx); err != nil {
				return ofClient(client, err)
			}
			r.Created = tx.Now()
			rows.Put(tx, id, r)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &Pushed{URI: uri, Life: pushedLife}, nil
}

// beginPushed is Begin for the reference to a pushed request, which works once. Nothing else that came with it counts.
// Errors: ErrRequestURI, and those of Begin.
func (g *Grants) beginPushed(ctx context.Context, a request.Ask) (Began, error) {
	client, err := g.signsInTo(ctx, a.ClientID)
	if err != nil {
		return Began{}, err
	}
	if err := g.strangers(ctx); err != nil {
		return Began{}, err
	}
	rows, id := g.pushedAs(a.RequestURI)
	r, err := rows.Read(ctx, g.Store, id)
	if err != nil {
		return Began{}, err
	}
	refused := refusal.About(ErrRequestURI.Noting(fmt.Sprintf("%s sent a request_uri that does not count", client.ID)),
		client.ID, refusal.RequestURI)
	switch {
	case r == nil || r.Client != client.ID:
		return Began{}, refused
	case !app.RedirectAllowed(&client.Data, r.RedirectURI): // not any more
		return Began{}, refusal.OfAddress(refusedRedirect(client.ID, "redirect_uri", r.RedirectURI), client.ID,
			refusal.RedirectURI, r.RedirectURI)
	}
	began := rand.Text()
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{rows.Key(id)},
		Decide: func(tx *event.Tx) error {
			r, err := rows.Use(tx, id)
			if err != nil {
				return err
			}
			if r == nil {
				return refused
			}
			r.Created = tx.Now()
			requests.For(g.Master, a.Browser).Put(tx, began, r)
			return nil
		},
	})
	return Began{ID: began}, err
}

// isPushed tells whether a request_uri looks like a reference that Push gives.
func isPushed(uri string) bool {
	return strings.HasPrefix(uri, pushedURI) && len(uri) <= len(pushedURI)+maxID
}
