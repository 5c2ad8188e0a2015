package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// logoutEvent is what makes a token a logout token (OpenID Connect Back-Channel Logout 1.0, 2.4).
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

const maxTokenID = 255 // characters of a jti

// SignedOut says who has signed out at a provider: a person, one session of theirs, or a session of whomever. Subject
// or Session is set.
type SignedOut struct {
	Provider string
	Issuer   string
	Subject  string
	Session  string // sid
}

// SignOut checks the logout token that a provider sends, and has what it names ended. Each token counts once; where end
// fails, the provider may send it again. Errors: *Failure, which is recorded; those of event.Store and of end.
func (f *Federation) SignOut(ctx context.Context, p *Provider, text, requestID string,
	end func(ctx context.Context, out SignedOut) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := f.signOut(ctx, p, text, end)
	if failed, ok := errors.AsType[*Failure](err); ok {
		// Administrators are to see that nobody failed to sign in by it.
		return f.record(ctx, p, source{requestID: requestID},
			&Failure{Check: failure.LogoutPrefix + failed.Check, Hint: failed.Hint, Cause: failed.Cause})
	}
	return err
}

func (f *Federation) signOut(ctx context.Context, p *Provider, text string,
	end func(ctx context.Context, out SignedOut) error) error {
	if err := usable(p); err != nil {
		return err
	}
	if p.Data.Type() != idp.IsOIDC {
		return failure.New(failure.Configuration,
			"only OpenID Connect providers end sessions: remove the logout address at this one")
	}
	m, err := f.discovered(ctx, p)
	if err != nil {
		return err
	}
	token, err := readToken(text, advertised(m.IDTokenAlgorithms))
	if err != nil {
		return err
	}
	if err := f.verify(ctx, p, m.KeySet, token); err != nil {
		return err
	}
	out, err := f.logoutToken(p, m, token.Claims)
	if err != nil {
		return err
	}
	key, until := tokenUse(p, token.Claims)
	if err := f.once(ctx, key, until,
		failure.New(failure.Replayed,
			"this logout token was sent before: make a new one for every logout")); err != nil {
		return err
	}
	if err := end(ctx, out); err != nil {
		return errors.Join(err, f.again(ctx, key))
	}
	return nil
}

// logoutToken judges the claims of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6). Errors: *Failure.
func (f *Federation) logoutToken(p *Provider, m *metadata, c tokenClaims) (SignedOut, error) {
	o := p.Data.OIDC
	ofTenant, _ := c.Text("tid")
	out := SignedOut{Provider: p.ID, Issuer: m.issuerFor(o, ofTenant)}
	if out.Issuer == "" {
		return SignedOut{}, failure.New(failure.Issuer, "the token names no tenant (tid) that its issuer could be of")
	}
	_, hasSubject := c["sub"]
	if err := c.Check(expectedClaims{Issuer: out.Issuer, Audience: o.ClientID, Now: f.Clock(),
		NoSubject: !hasSubject}); err != nil {
		return SignedOut{}, err
	}
	if id, _ := c.Text("jti"); !plain(id, maxTokenID) {
		return SignedOut{}, failure.New(failure.TokenID,
			"the logout token has no identifier (jti) of 1 to 255 characters")
	}
	if !isLogout(c) {
		return SignedOut{}, failure.New(failure.Event,
			"the token is no logout token: its events must have "+logoutEvent)
	}
	if _, there := c["nonce"]; there { // an ID token must never pass for one
		return SignedOut{}, failure.New(failure.Nonce, "a logout token must not have a nonce")
	}
	if hasSubject {
		out.Subject, _ = c.Subject()
	}
	if _, there := c["sid"]; there {
		if out.Session, _ = c.Text("sid"); !plain(out.Session, maxSession) {
			return SignedOut{},
				failure.New(failure.Session,
					"the session (sid) of the logout token is not a text of 1 to 255 characters")
		}
	}
	if out.Subject == "" && out.Session == "" {
		return SignedOut{}, failure.New(failure.Session,
			"the logout token names neither a person (sub) nor a session (sid)")
	}
	return out, nil
}

// isLogout tells whether the event of a logout is among those of a token.
func isLogout(c tokenClaims) bool {
	var events map[string]json.RawMessage
	if json.Unmarshal(c["events"], &events) != nil {
		return false
	}
	about := bytes.TrimSpace(events[logoutEvent])
	return len(about) > 0 && about[0] == '{'
}

// tokenUse is what the use of a logout token is remembered by, and how long: after that it is too old.
func tokenUse(p *Provider, c tokenClaims) (key string, until time.Time) {
	issuer, _ := c.Text("iss")
	id, _ := c.Text("jti")
	issued, _ := c.Time("iat")
	return "idp_logout/" + p.ID + "/" + secret.Digest(issuer+"\x00"+id), issued.Add(maxTokenAge + 2*clockSkew)
}

// again lets something happen that once has refused since.
func (f *Federation) again(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return f.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		tx.DropRow(event.RowKey{Table: event.Flows, Key: key})
		return nil
	}})
}
