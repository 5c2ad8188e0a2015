package login

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
)

// Arrival is somebody whom a provider has brought and who is not signed in by that: nobody is linked yet, or the link
// has to be confirmed. It is kept for a while, for the browser that they came by.
type Arrival struct {
	ID        string       `json:"-"`
	Who       idp.Identity `json:"who"`
	Provider  string       `json:"provider"` // its name
	At        int64        `json:"at"`
	Register  bool         `json:"register,omitempty"`  // a new account can be made
	Ask       bool         `json:"ask,omitempty"`       // nobody has chosen to come: they are asked first
	Suspended bool         `json:"suspended,omitempty"` // somebody is linked, and has to confirm it
	Attempt   string       `json:"attempt,omitempty"`   // of an application with its own sign-in page; empty: ours
	Linking   string       `json:"linking,omitempty"`   // the session that wants to link; empty: nobody was signed in
}

const arrivalLife = 15 * time.Minute

// arrivalRows are sealed with what the browser alone holds: they have names of people, whom nobody would find to erase.
var arrivalRows = event.Flow[Arrival]{Prefix: "arrival", Life: arrivalLife, Purpose: "arrival from a provider"}

// Arrivals keeps arrivals.
type Arrivals struct {
	Store  event.Store
	Master secret.MasterKey
}

// Keep stores an arrival and gives its id.
func (l Arrivals) Keep(ctx context.Context, browser string, a Arrival) (string, error) {
	id := rand.Text()
	err := l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		a.At = tx.Now()
		arrivalRows.For(l.Master, browser).Put(tx, id, &a)
		return nil
	}})
	return id, err
}

// Read reads an arrival of this browser. Errors: oauth.ErrRequestNotFound where there is none: it took too long, or was
// finished in another window.
func (l Arrivals) Read(ctx context.Context, browser, id string) (*Arrival, error) {
	if len(arrivalRows.Key(id).Key) > event.MaxID {
		return nil, oauth.ErrRequestNotFound
	}
	a, err := arrivalRows.For(l.Master, browser).Read(ctx, l.Store, id)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, oauth.ErrRequestNotFound
	}
	a.ID = id
	return a, nil
}

// Drop forgets an arrival.
func (l Arrivals) Drop(ctx context.Context, a *Arrival) error {
	return l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		tx.DropRow(arrivalRows.Key(a.ID))
		return nil
	}})
}

// As is what the person is called where they come from.
func (a *Arrival) As() string {
	for _, name := range []string{a.Who.Email, a.Who.UserName, a.Who.Subject} {
		if name != "" {
			return name
		}
	}
	return ""
}
