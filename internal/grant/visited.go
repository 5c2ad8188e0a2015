package grant

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/event"
)

// Visited are the applications that a session led to tokens of: those to tell when it ends.
type Visited struct {
	SessionID string   `json:"session"`
	Clients   []string `json:"clients"`
	Until     int64    `json:"until"` // as long as it is worth knowing
}

const (
	// visitedLife is how long it is remembered after the session could have ended by itself: there may be somebody to tell still.
	visitedLife = 24 * time.Hour
	// maxVisited sessions of a user are remembered, the latest.
	maxVisited = 200
)

// visitedRow holds those of all sessions of a user.
func visitedRow(userID string) event.RowKey { return flow("visited", userID) }

// noteClient remembers that a session led to tokens of an application, inside a command that declared the user's row.
func noteClient(tx *event.Tx, t *terms, expires int64) error {
	row := visitedRow(t.UserID)
	read, err := decode[[]Visited](tx.Row(row))
	if err != nil {
		return err
	}
	var known []Visited
	if read != nil {
		known = slices.DeleteFunc(*read, func(v Visited) bool { return v.Until <= tx.Now() })
	}
	at := slices.IndexFunc(known, func(v Visited) bool { return v.SessionID == t.Session })
	if at < 0 {
		known, at = append(known, Visited{SessionID: t.Session}), len(known)
	}
	v := &known[at]
	v.Until = max(v.Until, expires+visitedLife.Microseconds())
	if !slices.Contains(v.Clients, t.Client) {
		v.Clients = append(v.Clients, t.Client)
	}
	putVisited(tx, row, known[max(0, len(known)-maxVisited):])
	return nil
}

func putVisited(tx *event.Tx, row event.RowKey, known []Visited) {
	if len(known) == 0 {
		tx.DropRow(row)
		return
	}
	until := int64(0)
	for _, v := range known {
		until = max(until, v.Until)
	}
	put(tx, row, known, time.Duration(until-tx.Now())*time.Microsecond)
}

func (g *Grants) visits(ctx context.Context, userID string) ([]Visited, error) {
	known, err := decode[[]Visited](g.Store.Row(ctx, visitedRow(userID)))
	if err != nil || known == nil {
		return nil, err
	}
	return *known, nil
}

// Left lists the sessions of a user that have ended, with the applications that have not been told yet.
func (g *Grants) Left(ctx context.Context, userID string) ([]Visited, error) {
	known, err := g.visits(ctx, userID)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	ids := make([]string, 0, len(known))
	for _, v := range known {
		ids = append(ids, v.SessionID)
	}
	over, err := g.Sessions.Over(ctx, userID, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(known, func(v Visited) bool { return !slices.Contains(over, v.SessionID) }), nil
}

// Told notes that an application knows that a session has ended, or need not know.
func (g *Grants) Told(ctx context.Context, userID, sessionID, client string) error {
	row := visitedRow(userID)
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{row}, Decide: func(tx *event.Tx) error {
		known, err := decode[[]Visited](tx.Row(row))
		if err != nil || known == nil {
			return err
		}
		for i := range *known {
			if v := &(*known)[i]; v.SessionID == sessionID {
				v.Clients = slices.DeleteFunc(v.Clients, func(c string) bool { return c == client })
			}
		}
		putVisited(tx, row, slices.DeleteFunc(*known, func(v Visited) bool { return len(v.Clients) == 0 }))
		return nil
	}})
}
