package journal

import (
	"context"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Journal reads the log for callers who have the permission. Make one with New.
type Journal struct {
	store event.Log
	root  secret.MasterKey
	tails tails
	pace  pace
}

// New makes the journal of a log.
func New(store event.Log, root secret.MasterKey) *Journal {
	return &Journal{store: store, root: root, pace: usual}
}

// Query is what somebody asks for.
type Query struct {
	Everywhere bool   // in all organizations and the installation, not in that of the permit
	Filter     Filter // OrgIDs follow from the permit
}

// scope limits a query to what the permit is for. Errors: access.ErrDenied.
func (q *Query) scope(permit access.Permit) error {
	switch {
	case permit.Org() == "":
		return access.ErrDenied
	case q.Everywhere && !permit.Holds(access.EventRead, access.Installation):
		return access.ErrDeniedInstallation
	case q.Everywhere:
		q.Filter.OrgIDs = nil
	default:
		q.Filter.OrgIDs = []string{permit.Org()}
	}
	return nil
}

// personal tells whether somebody sees what is personal in events. An auditor does not.
func personal(permit access.Permit) bool {
	switch permit.Uses() {
	case access.EventRead, access.SignInRead, access.UserSupport:
		return true
	}
	return false
}

// List reads a page of events behind a position, the newest first unless oldestFirst; 0 begins. It tells after which
// position to go on, 0 at the end. A page may be short, or empty, and still be followed by another.
func (j *Journal) List(ctx context.Context, permit access.Permit, q Query, oldestFirst bool, after int64,
	limit int) ([]*Entry, int64, error) {
	if err := q.scope(permit); err != nil {
		return nil, 0, err
	}
	asked := q.Filter.query()
	asked.OldestFirst, asked.After, asked.Limit = oldestFirst, after, limit
	page, err := j.store.EventsWhere(ctx, asked)
	if err != nil {
		return nil, 0, err
	}
	keys := keyring{Reader: j.store, rows: map[event.RowKey]*event.Row{}}
	var entries []*Entry
	for i := range page.Events {
		if !q.Filter.Matches(&page.Events[i]) { // the store does not look into events
			continue
		}
		e, err := Show(ctx, keys, j.root, &page.Events[i], personal(permit))
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, e)
	}
	return entries, page.Next, nil
}

// keyring reads each key once for many events.
type keyring struct {
	event.Reader
	rows map[event.RowKey]*event.Row
}

// Row implements event.Reader.
func (k keyring) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	if row, known := k.rows[key]; known {
		return row, nil
	}
	row, err := k.Reader.Row(ctx, key)
	if err == nil {
		k.rows[key] = row
	}
	return row, err
}
