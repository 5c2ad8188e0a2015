package oauth

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
)

// code is an authorization code on its way. It stays for a while after it was used, so that a second use is recognised.
type code struct {
	terms
	RedirectURI string `json:"redirectUri"`
	Challenge   string `json:"challenge,omitempty"`
	For         string `json:"for,omitempty"` // thumbprint of the key that it is exchanged with; empty: any
	Used        bool   `json:"used,omitempty"`
}

var codes = event.Flow[code]{Prefix: "code", Life: codeLife}

// Code is an authorization code that an application wants tokens for.
type Code struct {
	Text        string
	RedirectURI string
	Verifier    string // PKCE
}

// Exchange gives tokens for a code, once. A code that comes a second time ends what it led to. Errors: ErrInvalidGrant;
// ErrUnauthorizedClient.
func (g *Grants) Exchange(ctx context.Context, client *Client, c Code) (*Tokens, error) {
	if err := client.may(app.AuthorizationCode); err != nil {
		return nil, err
	}
	kind, hash, ok := secret.ParseToken(c.Text)
	if !ok || kind != secret.Code {
		return nil, refusedGrant(client, refusal.CodeUnknown, "%s sent something that is not a code of this server",
			client.ID())
	}
	id := hex.EncodeToString(hash)
	read, err := codes.Read(ctx, g.Store, id)
	if err != nil {
		return nil, err
	}
	switch {
	case read == nil:
		return nil, refusedGrant(client, refusal.CodeUnknown, "%s sent a code that has expired, or that there never was",
			client.ID())
	case read.Client != client.ID():
		return nil, refusedGrant(client, refusal.CodeElse, "%s sent a code that was given to %s", client.ID(),
			read.Client)
	case read.Used: // which ends what it led to
	case read.RedirectURI != c.RedirectURI:
		refused := refusedGrant(client, refusal.CodeRedirect,
			"%s sent as redirect_uri %s, but the code was asked for with %s", client.ID(),
			syntax.LoggedURL(c.RedirectURI), syntax.LoggedURL(read.RedirectURI))
		return nil, refusal.OfAddress(refused, client.ID(), refusal.CodeRedirect, c.RedirectURI)
	case !request.Verified(read.Challenge, c.Verifier):
		return nil, refusedGrant(client, refusal.CodeVerifier,
			"%s sent a code_verifier that does not match the code_challenge that the code was asked for with, or only one of the two",
			client.ID())
	case read.For != "" && read.For != client.Key.print():
		return nil, refusedGrant(client, refusal.ProofKey,
			"%s sent a code that was asked for with another key (dpop_jkt), or without a proof", client.ID())
	}
	return g.firstTokens(ctx, client, &read.terms, []event.RowKey{codes.Key(id)},
		func(tx *event.Tx) (reused bool, err error) {
			now, err := codes.Get(tx, id)
			switch {
			case err != nil:
				return false, err
			case now == nil:
				return false, refusedGrant(client, refusal.CodeUnknown, "%s sent a code that has just expired",
					client.ID())
			case now.Used:
				return true, nil
			}
			now.Used = true
			codes.PutUntil(tx, id, now, tx.Now()+usedLife.Microseconds())
			return false, nil
		})
}

// firstTokens makes the first tokens of a family, in one command with use, which uses up what leads to them. Errors:
// ErrInvalidGrant where the terms do not hold any more, or the session that they came from has ended.
func (g *Grants) firstTokens(ctx context.Context, client *Client, t *terms, rows []event.RowKey,
	use func(*event.Tx) (reused bool, err error)) (*Tokens, error) {
	made, err := g.prepare(ctx, client, t, t.Scopes)
	if err != nil {
		return nil, err
	}
	t.RefreshKey = client.refreshesBy("")
	var next *refresh
	if t.offline() && slices.Contains(client.App.Data.GrantTypes, app.RefreshToken) {
		next = newRefresh(client.App, t)
		made.Refresh = next.text
	}
	in := session.Ref{ID: t.Session, UserID: t.UserID, OrgID: t.OrgID, Provider: t.Proof.Upstream.Of()}
	var reused bool
	err = event.Do(ctx, g.Store, event.Command{
		Origin: event.Origin{Actor: t.UserID},
		Read:   refs(append(t.reads(), in.Reads()...)...),
		Rows:   slices.Concat(rows, []event.RowKey{VisitedRow(t.UserID), families.Key(t.Family)}, client.Key.rows()),
		Tokens: []string{in.ID},
		Decide: func(tx *event.Tx) error {
			var err error
			if reused, err = use(tx); err != nil || reused {
				return err
			}
			if err := client.Key.use(tx); err != nil {
				return ofClient(client, err)
			}
			if err := t.holds(tx); err != nil {
				return err
			}
			opened, proof, err := in.Counts(tx)
			if err != nil {
				return refusedOf(t.Client, refusal.CodeSession,
					"the session that %s got its code in has ended, or is restricted", t.Client).Because(err)
			}
			tx.PutToken(made.stored)
			next.put(tx, t)
			return noteVisit(tx, t.UserID, t.Session, t.Client, max(opened.Expires, proof.Until))
		},
	})
	if err != nil {
		return nil, err
	}
	if reused {
		return nil, g.end(ctx, t, "code", rows[0])
	}
	return made, nil
}

// end ends a family: something of it was used twice. marker is the row that goes with it, so that it is ended, and
// recorded, once. It answers with what the second use is refused with.
func (g *Grants) end(ctx context.Context, t *terms, what string, marker event.RowKey) error {
	err := g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: call.From(ctx).RequestID},
		Write:  []event.Ref{session.Kind.Ref(session.IDFor(t.UserID))},
		Read:   []event.Ref{user.Kind.Ref(t.UserID)},
		Rows:   []event.RowKey{marker, families.Key(t.Family)}, // also against tokens that are made at the same moment
		Decide: func(tx *event.Tx) error {
			if there, err := tx.Row(marker); err != nil || there == nil {
				return err
			}
			tx.DropRow(marker)
			tx.DropRow(families.Key(t.Family))
			tx.DropFamily(t.Family)
			u, err := user.Kind.Get(tx, t.UserID)
			if err != nil || u == nil {
				return err
			}
			return session.RecordReuse(tx, t.UserID, session.GrantReused{ClientID: t.Client, What: what})
		},
	})
	if err != nil {
		return err
	}
	cause := refusal.CodeUsed
	if what == "refresh_token" {
		cause = refusal.RefreshUsed
	}
	return refusedOf(t.Client, cause, "%s used a %s again: all tokens that it led to have been ended", t.Client, what)
}

// refusedGrant is ErrInvalidGrant with what the log says about it, and the client's own people read.
func refusedGrant(client *Client, cause refusal.Cause, format string, values ...any) *errs.Error {
	return refusedOf(client.ID(), cause, format, values...)
}

// refusedOf is refusedGrant for a client by its id; empty: nobody else reads of it.
func refusedOf(client string, cause refusal.Cause, format string, values ...any) *errs.Error {
	return refusal.About(ErrInvalidGrant.Noting(fmt.Sprintf(format, values...)), client, cause)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
