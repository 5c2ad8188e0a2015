package oauth

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Visited are the applications that a session led to tokens of: those to tell when it ends.
type Visited struct {
	SessionID string   `json:"session"`
	Clients   []string `json:"clients"`
	Until     int64    `json:"until"` // as long as it is worth knowing
}

const (
	// visitedLife is how long it is remembered after the session could have ended by itself: there may be somebody to
	// tell still.
	visitedLife = 24 * time.Hour
	// maxVisited sessions of a user are remembered, the latest.
	maxVisited = 200
)

// Visits knows them.
type Visits struct {
	Store    event.Store
	Sessions *session.Sessions
}

// visits are rows with those of all sessions of a user.
var visits = event.Flow[[]Visited]{Prefix: "visited"}

// VisitedRow is the key of those of all sessions of a user.
func VisitedRow(userID string) event.RowKey { return visits.Key(userID) }

// noteVisit remembers that a session led to tokens of an application, inside a command that declared the user's row.
func noteVisit(tx *event.Tx, userID, session, client string, expires int64) error {
	read, err := visits.Get(tx, userID)
	if err != nil {
		return err
	}
	var known []Visited
	if read != nil {
		known = slices.DeleteFunc(*read, func(v Visited) bool { return v.Until <= tx.Now() })
	}
	at := slices.IndexFunc(known, func(v Visited) bool { return v.SessionID == session })
	if at < 0 {
		known, at = append(known, Visited{SessionID: session}), len(known)
	}
	v := &known[at]
	v.Until = max(v.Until, expires+visitedLife.Microseconds())
	if !slices.Contains(v.Clients, client) {
		v.Clients = append(v.Clients, client)
	}
	keep(tx, userID, known[max(0, len(known)-maxVisited):])
	return nil
}

func keep(tx *event.Tx, userID string, known []Visited) {
	if len(known) == 0 {
		tx.DropRow(visits.Key(userID))
		return
	}
	until := int64(0)
	for _, v := range known {
		until = max(until, v.Until)
	}
	visits.PutUntil(tx, userID, &known, until)
}

// Known lists the sessions of a user that are remembered.
func (v Visits) Known(ctx context.Context, userID string) ([]Visited, error) {
	known, err := visits.Read(ctx, v.Store, userID)
	if err != nil || known == nil {
		return nil, err
	}
	return *known, nil
}

// Left lists the sessions of a user that have ended, with the applications that have not been told yet.
func (v Visits) Left(ctx context.Context, userID string) ([]Visited, error) {
	known, err := v.Known(ctx, userID)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	ids := make([]string, 0, len(known))
	for _, v := range known {
		ids = append(ids, v.SessionID)
	}
	over, err := v.Sessions.Over(ctx, userID, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(known, func(v Visited) bool { return !slices.Contains(over, v.SessionID) }), nil
}

// Told notes that an application knows that a session has ended, or need not know.
func (v Visits) Told(ctx context.Context, userID, sessionID, client string) error {
	return v.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{visits.Key(userID)},
		Decide: func(tx *event.Tx) error {
			known, err := visits.Get(tx, userID)
			if err != nil || known == nil {
				return err
			}
			for i := range *known {
				if v := &(*known)[i]; v.SessionID == sessionID {
					v.Clients = slices.DeleteFunc(v.Clients, func(c string) bool { return c == client })
				}
			}
			keep(tx, userID, slices.DeleteFunc(*known, func(v Visited) bool { return len(v.Clients) == 0 }))
			return nil
		},
	})
}
