package oauth

import (
	"context"
	"crypto/rand"
	"net/url"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
)

// Logout is the wish of an application that a person be signed out, on its way to the pages.
type Logout struct {
	Client    string   `json:"client,omitempty"`   // empty: not known
	UserID    string   `json:"userId,omitempty"`   // the user that the application means; empty: any user
	SessionID string   `json:"session,omitempty"`  // likewise
	Redirect  string   `json:"redirect,omitempty"` // where to go in the end, with the state in it; empty: nowhere
	UILocales []string `json:"uiLocales,omitempty"`
}

var logouts = event.Flow[Logout]{Prefix: "logout", Life: requestLife, Purpose: purposeBrowser}

// BeginLogout keeps the wish of an application for the pages. redirectURI has to be one that is registered with it, and
// needs a client. Errors: ErrUnknownClient; ErrRedirectRefused; ResourceExhausted where too much was begun from the
// network.
func (g *Grants) BeginLogout(ctx context.Context, l Logout, browser, redirectURI, state string) (id string, err error) {
	if l.Client != "" {
		client, err := g.active(ctx, l.Client)
		if err != nil {
			return "", err
		}
		if client == nil {
			return "", ErrUnknownClient.Noting("no active application of an active organization has this client_id")
		}
		if redirectURI != "" && !app.PostLogoutAllowed(&client.Data, redirectURI) {
			return "", refusal.OfAddress(refusedRedirect(client.ID, "post_logout_redirect_uri", redirectURI), client.ID,
				refusal.PostLogoutURI, redirectURI)
		}
	} else if redirectURI != "" {
		return "", refusedRedirect("an unnamed application", "post_logout_redirect_uri", redirectURI)
	}
	if err := g.strangers(ctx); err != nil {
		return "", err
	}
	if l.Redirect, err = withState(redirectURI, request.Ask{State: state}.StateBack()); err != nil {
		return "", refusedRedirect(l.Client, "post_logout_redirect_uri", redirectURI).Because(err)
	}
	l.UILocales = request.Locales(l.UILocales)
	id = rand.Text()
	return id, g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Decide: func(tx *event.Tx) error {
			logouts.For(g.Master, browser).Put(tx, id, &l)
			return nil
		},
	})
}

func withState(uri, state string) (string, error) {
	if uri == "" || state == "" {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += url.Values{"state": {state}}.Encode()
	return u.String(), nil
}

// PendingLogout finds a wish to be signed out that came by this browser. Errors: ErrRequestNotFound.
func (g *Grants) PendingLogout(ctx context.Context, id, browser string) (*Logout, error) {
	l, err := logouts.For(g.Master, browser).Read(ctx, g.Store, id)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, ErrRequestNotFound
	}
	return l, nil
}

// EndLogout uses the wish up and gives the address to go to; empty for none. Errors: ErrRequestNotFound.
func (g *Grants) EndLogout(ctx context.Context, id, browser string) (redirect string, err error) {
	err = g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{logouts.Key(id)},
		Decide: func(tx *event.Tx) error {
			l, err := logouts.For(g.Master, browser).Use(tx, id)
			if err != nil {
				return err
			}
			if l == nil {
				return ErrRequestNotFound
			}
			redirect = l.Redirect
			return nil
		},
	})
	return redirect, err
}
