package upstream

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	stateLife = 10 * time.Minute
	maxReturn = 4 << 10 // bytes
	maxState  = 8 << 10 // bytes
	statePurp = "idp sign-in state"
)

// state is what a browser carries to a provider and back, sealed. Nobody else can make one, and it is good for one
// provider and one browser.
type state struct {
	Provider string `json:"p"`
	Version  int64  `json:"v"` // of the provider's Changer
	Attempt  []byte `json:"a"` // random
	Browser  []byte `json:"b"` // a digest
	Started  int64  `json:"t"` // microseconds
	Return   string `json:"r,omitempty"`
	Again    bool   `json:"g,omitempty"`
	MaxAge   *int64 `json:"m,omitempty"`
	Chosen   bool   `json:"c,omitempty"`
	App      string `json:"app,omitempty"`
}

// proof asks a provider for the proof that the sign-in needs.
func (s *state) proof(q url.Values, prompt string) {
	switch {
	case s.Again:
		q.Set("prompt", prompt)
		q.Set("max_age", "0")
	case s.MaxAge != nil:
		q.Set("max_age", strconv.FormatInt(*s.MaxAge, 10))
	}
}

func (f *Federation) newState(p *Provider, a Attempt) (*state, string, error) {
	if a.Browser == "" || len(a.Return) > maxReturn {
		return nil, "", errors.New("federation: an attempt needs a browser, and has a limit for what it gives back")
	}
	s := &state{
		Provider: p.ID,
		Version:  p.Data.Changer.Version,
		Attempt:  make([]byte, 16),
		Browser:  f.browser(a.Browser),
		Started:  event.Micros(f.Clock()),
		Return:   a.Return,
		Again:    a.Again || a.MaxAge != nil && *a.MaxAge == 0,
		MaxAge:   a.MaxAge,
		Chosen:   a.Chosen,
		App:      a.App,
	}
	_, _ = rand.Read(s.Attempt) // it never fails: crypto/rand ends the program instead
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, "", err
	}
	return s, base64.RawURLEncoding.EncodeToString(f.Master.Wrap(statePurp, plain, nil)), nil
}

// browser is what a state holds of a browser.
func (f *Federation) browser(id string) []byte {
	return f.Master.MAC("idp sign-in browser", []byte(id))
}

// openState reads a state and judges whether it belongs here. With an error the state is one of ours that has come back
// in its own browser, or nil. Errors: *Failure.
func (f *Federation) openState(text string, p *Provider, c Callback) (*state, error) {
	s := f.readState(text)
	switch {
	case s == nil:
		return nil, failure.New(failure.State,
			"the answer carries no state, or one that this server did not make: sign-ins must begin on the sign-in page, and the provider must send the state back unchanged")
	case c.Browser == "" || !hmac.Equal(s.Browser, f.browser(c.Browser)):
		return nil, failure.New(failure.Browser,
			"the sign-in was started in another browser, or cookies are switched off")
	}
	return s, f.belongs(s, p, c)
}

// belongs judges whether a state of ours belongs to an answer. Errors: *Failure.
func (f *Federation) belongs(s *state, p *Provider, c Callback) error {
	if err := usable(p); err != nil {
		return err
	}
	now := f.Clock()
	switch {
	case s.Provider != p.ID || c.Provider != p.ID:
		return failure.New(failure.Provider,
			"the sign-in was started with another provider: register each callback address at its own provider only")
	case !now.Before(event.Time(s.Started).Add(stateLife)), event.Time(s.Started).After(now.Add(time.Minute)):
		return failure.New(failure.StateExpired, "the sign-in took more than 10 minutes: start again")
	case s.Version != p.Data.Changer.Version:
		return failure.New(failure.Changed, "the provider was changed while somebody signed in: start again")
	}
	return nil
}

// readState opens a state; nil if it is not ours.
func (f *Federation) readState(text string) *state {
	if text == "" || len(text) > maxState {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	plain, err := f.Master.Unwrap(statePurp, sealed, nil)
	if err != nil {
		return nil
	}
	s := new(state)
	if json.Unmarshal(plain, s) != nil || len(s.Attempt) == 0 {
		return nil
	}
	return s
}

// useUp lets an attempt count once. Errors: *Failure; those of event.Store.
func (f *Federation) useUp(ctx context.Context, s *state) error {
	return f.once(ctx, "idp_state/"+hex.EncodeToString(s.Attempt), event.Time(s.Started).Add(stateLife+time.Minute),
		failure.New(failure.StateUsed, "this answer was brought here before: start again"))
}

// once lets something happen once until a time. Its row is no event.Flow: only its presence counts.
func (f *Federation) once(ctx context.Context, key string, until time.Time, again *Failure) error {
	row := event.RowKey{Table: event.Flows, Key: key}
	return f.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{row},
		Decide: func(tx *event.Tx) error {
			used, err := tx.Row(row)
			if err != nil {
				return err
			}
			if used != nil {
				return again
			}
			tx.PutRow(event.Row{RowKey: row, Value: []byte{1}, Expires: event.Micros(until)})
			return nil
		},
	})
}

// nonce and verifier follow from the attempt, so that nothing is stored while somebody is away.
func (f *Federation) nonce(s *state) string { return f.derived("idp sign-in nonce", s) }

func (f *Federation) verifier(s *state) string { return f.derived("idp sign-in code verifier", s) }

func (f *Federation) derived(purpose string, s *state) string {
	return base64.RawURLEncoding.EncodeToString(f.Master.MAC(purpose, []byte(s.Provider), s.Attempt))
}

// challenge is what PKCE sends ahead of the verifier.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
