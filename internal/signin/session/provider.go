package session

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Upstream says through which identity provider the person of a session came.
type Upstream struct {
	Provider string `json:"provider"`
	Link     string `json:"link,omitempty"`
	Epoch    int64  `json:"epoch,omitempty"`   // idp.Standing.Epoch of that moment
	Session  string `json:"session,omitempty"` // digest of the provider's own session, by which it can end this one
	// when the person proved to the provider who they are, as it says; zero: it does not, or they have proven it since
	Said int64 `json:"said,omitempty"`
	// the person has proven since who they are, here or there: the times of the proof are those of the first factor
	Fresh bool `json:"fresh,omitempty"`
}

// Of is the identity provider of an upstream; empty for none.
func (u *Upstream) Of() string {
	if u == nil {
		return ""
	}
	return u.Provider
}

// Reads is what a command has to declare that asks Holds.
func (u *Upstream) Reads() []event.Ref { return providerRef(u.Of()) }

// Holds tells inside a command whether what came through the provider for a user counts still. What came through none
// does.
func (u *Upstream) Holds(tx *event.Tx, who *user.Standing) (bool, error) {
	if u == nil {
		return true, nil
	}
	p, err := providerIn(tx, u.Provider)
	return u.holds(who, p), err
}

// holds: the provider is active, and has been ever since, and the user is linked to it by the same link.
func (u *Upstream) holds(who *user.Standing, now *idp.Standing) bool {
	return u != nil && now != nil && now.State == idp.Active && now.Epoch == u.Epoch &&
		slices.Contains(who.Links, u.Link)
}

func providerRef(id string) []event.Ref {
	if id == "" {
		return nil
	}
	return []event.Ref{idp.Kind.Ref(id)}
}

// providerIn reads what decides about tokens that came through a provider, in a command that declared it; nil where
// there is none.
func providerIn(tx *event.Tx, id string) (*idp.Standing, error) {
	if id == "" {
		return nil, nil
	}
	p, err := idp.Kind.Get(tx, id)
	if err != nil || p == nil {
		return nil, err
	}
	return &p.Data.Standing, nil
}

// providers reads the same outside of commands, each once.
type providers map[string]*idp.Standing

func (known providers) read(ctx context.Context, r event.Reader, id string) (*idp.Standing, error) {
	if now, ok := known[id]; ok || id == "" {
		return now, nil
	}
	p, err := idp.Kind.Read(ctx, r, id)
	if err != nil {
		return nil, err
	}
	if known[id] = nil; p != nil {
		known[id] = &p.Data.Standing
	}
	return known[id], nil
}

// provided tells whether a token is valid as far as its provider and link are. They are named in the proof of a
// session, and in that of the sign-in that led to another token.
func provided(t *event.Token, who *user.Standing, now *idp.Standing) bool {
	if t.Provider == "" {
		return true
	}
	var data struct {
		Upstream *Upstream
		Proof    struct{ Upstream *Upstream }
	}
	if json.Unmarshal([]byte(t.Data), &data) != nil {
		return false
	}
	up := data.Upstream
	if up == nil {
		up = data.Proof.Upstream
	}
	return up.Of() == t.Provider && up.holds(who, now)
}
