package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
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
	Ask       bool         `json:"ask,omitempty"`       // nobody has chosen to come: they are asked before anything else
	Suspended bool         `json:"suspended,omitempty"` // somebody is linked, and has to confirm it
	Attempt   string       `json:"attempt,omitempty"`   // of an application with a sign-in page of its own; empty: they came by our pages
	Linking   string       `json:"linking,omitempty"`   // the session that wants to link; empty: nobody was signed in
}

const arrivalLife = 15 * time.Minute

// arrivalRow is where an arrival is.
func arrivalRow(id string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "arrival/" + id}
}

const arrivalPurpose = "arrival from a provider"

// Arrivals keeps arrivals.
type Arrivals struct {
	Store  event.Store
	Master secret.MasterKey
}

// Keep stores an arrival and gives its id. It is sealed with what the browser alone holds: it has names of people, whom
// nobody would find to erase.
func (l Arrivals) Keep(ctx context.Context, browser string, a Arrival) (string, error) {
	id := rand.Text()
	key := arrivalRow(id)
	err := l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		a.At = tx.Now()
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		tx.PutRow(event.Row{RowKey: key, Value: l.Master.DataKeyOf(arrivalPurpose, []byte(browser)).Seal(text, []byte(key.Key)),
			Expires: tx.Now() + arrivalLife.Microseconds()})
		return nil
	}})
	return id, err
}

// Read reads an arrival of this browser. Errors: oauth.ErrRequestNotFound where there is none: it took too long, or was
// finished in another window.
func (l Arrivals) Read(ctx context.Context, browser, id string) (*Arrival, error) {
	key := arrivalRow(id)
	if len(key.Key) > event.MaxID || browser == "" {
		return nil, oauth.ErrRequestNotFound
	}
	row, err := l.Store.Row(ctx, key)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, oauth.ErrRequestNotFound
	}
	text, err := l.Master.DataKeyOf(arrivalPurpose, []byte(browser)).Open(row.Value, []byte(key.Key))
	if err != nil {
		return nil, oauth.ErrRequestNotFound
	}
	a := &Arrival{ID: id}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, errs.Recovered(err)
	}
	return a, nil
}

// Drop forgets an arrival.
func (l Arrivals) Drop(ctx context.Context, a *Arrival) error {
	return l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		tx.DropRow(arrivalRow(a.ID))
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
