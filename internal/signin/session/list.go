package session

import (
	"context"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Shown is what lists show of a session or a token.
type Shown struct {
	ID      string
	Name    string
	Created time.Time
	Expires time.Time
}

// List gives a page of the sessions or tokens of a user that count, the oldest first. Errors: user.ErrNotFound.
func (s *Sessions) List(ctx context.Context, w Whose, kind secret.TokenKind, after event.Cursor,
	limit int) ([]Shown, *event.Cursor, error) {
	if w.userID == "" {
		return nil, nil, user.ErrNotFound
	}
	u, err := w.within.Read(ctx, s.Store)
	if err != nil {
		return nil, nil, err
	}
	o, err := org.Kind.Read(ctx, s.Store, w.orgID)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := s.Store.TokensOf(ctx, w.userID, string(kind), after.ID, limit+1)
	if err != nil {
		return nil, nil, err
	}
	var next *event.Cursor
	if len(tokens) > limit {
		tokens = tokens[:limit]
		next = &event.Cursor{ID: tokens[limit-1].ID}
	}
	var shown []Shown
	now, known := event.Micros(s.Clock()), providers{}
	for _, t := range tokens {
		p, err := known.read(ctx, s.Store, t.Provider)
		if err != nil {
			return nil, nil, err
		}
		if o != nil && alive(&t, kind, &u.Data.Standing, &o.Data.Standing, p, now) &&
			(kind != secret.Device || deviceOf(&t).Holds(&u.Data)) {
			shown = append(shown,
				Shown{ID: t.ID, Name: t.Name, Created: event.Time(t.Created), Expires: event.Time(t.Expires)})
		}
	}
	return shown, next, nil
}

// A session is called by where it was opened, for its owner to recognise it: the address, a space, and the browser, as
// far as they are known. That is personal, so it stands with the session only, and goes with it.

// nameOf is what a session is called that was opened from there.
func nameOf(p RequestSource) string {
	return strings.TrimRight(p.Address+" "+browserName(p.UserAgent), " ")
}

// OpenedFrom tells where a session was opened; empty where that is not known.
func (s Shown) OpenedFrom() (address, browser string) {
	address, browser, _ = strings.Cut(s.Name, " ")
	return address, browser
}
