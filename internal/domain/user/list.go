package user

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Filter says which users to list. Of the three beginnings at most one is looked at; empty fields ask for nothing.
type Filter struct {
	UserName string // what the user name begins with, whatever its case
	Name     string // what the display name of a person or the name of a service user begins with, likewise
	Email    string // what the e-mail address begins with, likewise
	State    State
	Type     Type
}

// List reads a page of the users of the permit's organization: the oldest first, or in the order of the value that has
// a beginning to look for.
func List(ctx context.Context, r event.Reader, permit access.Permit, f Filter, after event.Cursor,
	limit int) ([]*event.Object[User], *event.Cursor, error) {
	if permit.Org() == "" { // would be a query over all organizations
		return nil, nil, access.ErrDenied
	}
	column, prefix := f.prefix()
	q := event.Query{Org: permit.Org(), By: column, Prefix: event.LookupText(prefix),
		Where: event.Where(event.State, string(f.State), byType, string(f.Type)), After: after, Limit: limit}
	found, next, err := Kind.List(ctx, r, q)
	if prefix != q.Prefix { // more was asked for than the column holds
		found = slices.DeleteFunc(found,
			func(o *event.Object[User]) bool { return !strings.HasPrefix(o.Data.key(column), prefix) })
	}
	return found, next, err
}

func (f Filter) prefix() (column, key string) {
	switch {
	case f.UserName != "":
		return byUserName, syntax.NameKey(f.UserName)
	case f.Name != "":
		return byName, syntax.NameKey(f.Name)
	case f.Email != "":
		return byEmail, syntax.PlainKey(f.Email) // addresses are ASCII
	}
	return "", ""
}

// Services is what to count for the service users of an organization.
func Services() event.Counted {
	return event.Counted{Kind: Kind.Name(), Column: byType, Value: string(IsService)}
}
