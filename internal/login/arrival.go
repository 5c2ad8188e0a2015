package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/idp"
)

// arrival is somebody whom a provider has brought and who is not signed in by that: nobody is linked yet, or the link has to be confirmed. It
// is kept for a while, for the browser that they came by.
type arrival struct {
	ID        string       `json:"-"`
	Who       idp.Identity `json:"who"`
	Provider  string       `json:"provider"` // its name
	At        int64        `json:"at"`
	Register  bool         `json:"register,omitempty"`  // a new account can be made
	Suspended bool         `json:"suspended,omitempty"` // somebody is linked, and has to confirm it
	Linking   string       `json:"linking,omitempty"`   // the session that wants to link; empty: nobody was signed in
}

const arrivalLife = 15 * time.Minute

func arrivalRow(id string) event.RowKey {
	return event.RowKey{Table: event.Flows, Key: "arrival/" + id}
}

const purposeArrival = "arrival from a provider"

// keep stores an arrival and gives its id. It is sealed with what the browser alone holds: it has names of people, whom nobody would find to erase.
func (l *Login) keep(ctx context.Context, browser string, a arrival) (string, error) {
	id := rand.Text()
	key := arrivalRow(id)
	err := l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		a.At = tx.Now()
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		tx.PutRow(event.Row{RowKey: key, Value: l.Master.DataKeyOf(purposeArrival, []byte(browser)).Seal(text, []byte(key.Key)),
			Expires: tx.Now() + arrivalLife.Microseconds()})
		return nil
	}})
	return id, err
}

// arrived reads an arrival of this browser. Errors: grant.ErrRequestNotFound where there is none: it took too long, or was finished in another window.
func (l *Login) arrived(ctx context.Context, browser, id string) (*arrival, error) {
	key := arrivalRow(id)
	if len(key.Key) > event.MaxID || browser == "" {
		return nil, grant.ErrRequestNotFound
	}
	row, err := l.Store.Row(ctx, key)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, grant.ErrRequestNotFound
	}
	text, err := l.Master.DataKeyOf(purposeArrival, []byte(browser)).Open(row.Value, []byte(key.Key))
	if err != nil {
		return nil, grant.ErrRequestNotFound
	}
	a := &arrival{ID: id}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, errs.Recovered(err)
	}
	return a, nil
}

// done forgets an arrival.
func (l *Login) done(ctx context.Context, a *arrival) error {
	return l.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
		tx.DropRow(arrivalRow(a.ID))
		return nil
	}})
}

// as is what the person is called where they come from.
func (a *arrival) as() string {
	for _, name := range []string{a.Who.Email, a.Who.UserName, a.Who.Subject} {
		if name != "" {
			return name
		}
	}
	return ""
}
