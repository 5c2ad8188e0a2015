package oauth

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
)

// family is what refresh tokens lead to. Each of them is a row that names its family; the family knows which of them is
// the current one.
type family struct {
	terms
	Current string `json:"current"` // digest of the refresh token that counts
}

var (
	families      = event.Flow[family]{Prefix: "family"}
	refreshTokens = event.Flow[string]{Prefix: "refresh"} // by their digests
)

// refresh is a new refresh token.
type refresh struct {
	text   string
	digest string
	life   time.Duration
}

func newRefresh(client *event.Object[app.App], t *terms) *refresh {
	text, hash := secret.NewToken(secret.Refresh)
	return &refresh{text: text, digest: hex.EncodeToString(hash), life: seconds(client.Data.RefreshTokenSeconds)}
}

// put makes the token the current one of its family. Nil puts nothing.
func (r *refresh) put(tx *event.Tx, t *terms) {
	if r == nil {
		return
	}
	expires := tx.Now() + r.life.Microseconds()
	families.PutUntil(tx, t.Family, &family{terms: *t, Current: r.digest}, expires)
	refreshTokens.PutUntil(tx, r.digest, &t.Family, expires)
}

// shown is a refresh token that a client shows, with the scopes that it asks for and the family as it was read.
type shown struct {
	*family
	text, digest string
	scopes       []string
	key          *Key // that was proven with it
}

// Refresh gives new tokens for a refresh token, which is replaced. One that was just replaced gets the same answer
// again, as long as nobody has used the refresh token in it. One that was replaced before that ends its family, and so
// does one of an application of another organization that the person was never asked about. scopes are those that the
// new access token is for, at most those given at first; none: all of them. Errors: ErrInvalidGrant; ErrInvalidScope;
// ErrUnauthorizedClient.
func (g *Grants) Refresh(ctx context.Context, client *Client, text string, scopes []string) (*Tokens, error) {
	if err := client.may(app.RefreshToken); err != nil {
		return nil, err
	}
	read, digest, err := g.familyOf(ctx, client, text)
	if err != nil {
		return nil, err
	}
	if len(scopes) == 0 {
		scopes = read.Scopes
	}
	if !subset(scopes, read.Scopes) {
		return nil, ErrInvalidScope
	}
	if read.RefreshKey != "" && read.RefreshKey != client.Key.print() {
		return nil, refusedGrant(client, refusal.ProofKey,
			"%s sent a refresh token that is bound to another key, or without a proof", client.ID())
	}
	s := &shown{family: read, text: text, digest: digest, scopes: slices.Clone(scopes), key: client.Key}
	if read.Current != digest {
		return g.again(ctx, client, s)
	}
	return g.replace(ctx, client, s)
}

// replace gives new tokens for the current refresh token of a family.
func (g *Grants) replace(ctx context.Context, client *Client, s *shown) (*Tokens, error) {
	t := &s.terms
	made, err := g.prepare(ctx, client, t, s.scopes)
	if err != nil {
		return nil, err
	}
	t.RefreshKey = client.refreshesBy(t.RefreshKey)
	next := newRefresh(client.App, t)
	made.Refresh = next.text
	var late bool
	var unasked error
	err = event.Do(ctx, g.Store, s.command(func(tx *event.Tx, now *family) error {
		unasked = nil
		if late = now.Current != s.digest; late {
			return nil
		}
		if err := s.key.use(tx); err != nil {
			return ofClient(client, err)
		}
		if err := t.holds(tx); err != nil {
			if !errors.Is(err, errUnasked) {
				return err
			}
			unasked = err
			tx.DropRow(families.Key(t.Family))
			tx.DropFamily(t.Family)
			return nil
		}
		tx.PutToken(made.stored)
		next.put(tx, t)
		g.answersTo(s).Put(tx, s.Family, made)
		return nil
	}))
	switch {
	case err != nil:
		return nil, err
	case unasked != nil:
		return nil, unasked
	case late:
		return g.again(ctx, client, s)
	}
	return made, nil
}

// command is one about the family as it is now. Errors: ErrInvalidGrant where it has ended.
func (s *shown) command(decide func(tx *event.Tx, now *family) error) event.Command {
	return event.Command{
		Origin: event.Origin{Actor: s.UserID}, Read: refs(s.reads()...),
		Rows: append(s.key.rows(), families.Key(s.Family), answers.Key(s.Family)),
		Decide: func(tx *event.Tx) error {
			now, err := families.Get(tx, s.Family)
			if err != nil {
				return err
			}
			if now == nil {
				return refusedOf(s.Client, refusal.RefreshGone, "what the refresh token of %s belongs to has just ended",
					s.Client)
			}
			return decide(tx, now)
		},
	}
}

// refreshGrace is how long a refresh token that was just replaced gets the same answer again: clients refresh in
// parallel, and answers get lost.
const refreshGrace = 10 * time.Second

// answers are the last answers to refresh tokens, one for each family. Each is sealed with the token that it answers,
// which is stored nowhere: what is stored gives nobody tokens.
var answers = event.Flow[Tokens]{Prefix: "answer", Life: refreshGrace, Purpose: "answer to a refresh token"}

// answersTo is the flow for the answer to a refresh token. Other scopes are another question, and so is another key.
func (g *Grants) answersTo(s *shown) event.Flow[Tokens] {
	scopes := slices.Compact(slices.Sorted(slices.Values(s.scopes)))
	about := s.Family + " " + strings.Join(scopes, " ")
	if s.key != nil {
		about += " " + s.key.Thumbprint
	}
	return answers.For(g.Master, s.text).About(about)
}

// again answers a refresh token that was replaced: with the same tokens, or by ending its family. Errors:
// ErrInvalidGrant.
func (g *Grants) again(ctx context.Context, client *Client, s *shown) (*Tokens, error) {
	if _, err := g.whose(ctx, client.App, &s.terms); err != nil {
		return nil, err
	}
	var same *Tokens
	err := event.Do(ctx, g.Store, s.command(func(tx *event.Tx, now *family) (err error) {
		if same, err = g.keptAnswer(tx, s, now); err != nil || same == nil {
			return err
		}
		if err := s.key.use(tx); err != nil {
			return ofClient(client, err)
		}
		return s.holds(tx)
	}))
	if err != nil {
		return nil, err
	}
	if same == nil {
		return nil, g.end(ctx, &s.terms, "refresh_token", families.Key(s.Family))
	}
	return same, nil
}

// keptAnswer is what was answered to this token; nil after the time, and once the refresh token in it was used.
func (g *Grants) keptAnswer(tx *event.Tx, s *shown, now *family) (*Tokens, error) {
	made, err := g.answersTo(s).Get(tx, s.Family)
	if err != nil || made == nil {
		return nil, err
	}
	// A node of the version before uses refresh tokens without keeping the answer.
	if _, hash, _ := secret.ParseToken(made.Refresh); hex.EncodeToString(hash) != now.Current {
		return nil, nil
	}
	return made, nil
}

// familyOf finds the family of a refresh token of a client, also of one that was replaced. Errors: ErrInvalidGrant.
func (g *Grants) familyOf(ctx context.Context, client *Client, text string) (found *family, digest string, err error) {
	kind, hash, ok := secret.ParseToken(text)
	if !ok || kind != secret.Refresh {
		return nil, "", refusedGrant(client, refusal.RefreshGone,
			"%s sent something that is not a refresh token of this server", client.ID())
	}
	digest = hex.EncodeToString(hash)
	id, err := refreshTokens.Read(ctx, g.Store, digest)
	if err != nil {
		return nil, "", err
	}
	if id == nil {
		return nil, "", refusedGrant(client, refusal.RefreshGone,
			"%s sent a refresh token that has expired, or that there never was", client.ID())
	}
	found, err = families.Read(ctx, g.Store, *id)
	switch {
	case err != nil:
		return nil, "", err
	case found == nil:
		return nil, "", refusedGrant(client, refusal.RefreshGone,
			"%s sent a refresh token that has expired, was revoked, or was ended when an older one was used again", client.ID())
	case found.Client != client.ID():
		return nil, "", refusedGrant(client, refusal.RefreshElse, "%s sent a refresh token that was given to %s",
			client.ID(), found.Client)
	}
	return found, digest, nil
}
