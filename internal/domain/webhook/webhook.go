// Package webhook sends the events of the log to addresses that users of the API chose, as the Standard Webhooks
// specification says: signed, at least once, and in order for each object.
//
// A webhook is an object of one organization: which events it wants, and whether it is active. Its secrets and the
// address of its receiver are a row beside the log. Its progress is a row of the side table Followers, with the lease
// of the node that serves it. So nodes share the webhooks, and another node takes over when one dies.
//
// The Dispatcher of a node reads the end of the log once for all webhooks. A webhook that has had nothing to do for a
// while is idle: until an event is wanted, it is only an entry in memory and a row that says so. Each active webhook of
// the node has a notify.Worker, which sends events to the receiver: events of one object in order, those of different
// objects in parallel. An event that fails parks its object: a row of the side table Deliveries says which event of the
// object comes next, and when. The other objects go on. Later events of that object need no rows, because they are in
// the log. After the last try the row says that the event has failed, and the object waits until somebody replays the
// event or skips it.
package webhook

import (
	"context"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// State of a webhook.
type State string

// ACTIVE <-> INACTIVE, any -> REMOVED.
const (
	Active   State = "active"
	Inactive State = "inactive"
	Removed  State = "removed"
)

// Webhook is the state of a webhook.
type Webhook struct {
	State   State  `json:"state"`
	Name    string `json:"name"`
	NameKey string `json:"nameKey"`
	Selection
	Address      string `json:"address"`                // what may be shown of where messages go
	AddressInLog bool   `json:"addressInLog,omitempty"` // all of it stands in an event that an older version wrote
	// until when the secret before it signs, too; 0: there is none
	OldSecretUntil int64 `json:"oldSecretUntil,omitempty"`
	// the receiver said that it is gone, which switched the webhook off
	Gone bool `json:"gone,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Webhook]{
	Name: "webhook", Table: "webhooks", Prefix: "whk", Shape: 2,
	Facts: []event.Fact[Webhook]{Added{}, AddedV1{}, SettingsChanged{}, SettingsChangedV1{}, SecretSet{},
		Deactivated{}, Reactivated{}, Replayed{}, Skipped{}, WasRemoved{}},
	Columns: []string{event.State, "name"},
	Lookup: func(o *event.Object[Webhook]) []string {
		return []string{string(o.Data.State), event.LookupText(o.Data.NameKey)}
	},
	Copy: func(w *Webhook) Webhook {
		c := *w
		c.Types, c.OrganizationIDs = copied(w.Types), copied(w.OrganizationIDs)
		return c
	},
})

// copied is a list as reading it again would give it: an empty one is none.
func copied(list []string) []string { return append([]string(nil), list...) }

// Reasons of this package.
const (
	NotFound       errs.Reason = "WEBHOOK_NOT_FOUND"
	WrongState     errs.Reason = "WEBHOOK_WRONG_STATE"
	TooMany        errs.Reason = "WEBHOOK_TOO_MANY"
	NotDefault     errs.Reason = "WEBHOOK_NOT_OF_DEFAULT_ORGANIZATION"
	EventNotFailed errs.Reason = "WEBHOOK_EVENT_NOT_FAILED"
)

// Errors that the rules of this package refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no webhook with this identifier in that organization: if it belongs to another one, name that one in x-service-orgid")
	ErrNotActive   = errs.New(errs.FailedPrecondition, WrongState, "the webhook is already inactive")
	ErrNotInactive = errs.New(errs.FailedPrecondition, WrongState, "the webhook is already active")
	ErrTooMany     = errs.New(errs.FailedPrecondition, TooMany,
		"this organization already has 100 webhooks: remove one that is no longer needed")
	ErrNotDefault = errs.New(errs.FailedPrecondition, NotDefault,
		"a webhook for events of other organizations must belong to the default organization: name it in x-service-orgid")
	ErrEventNotFailed = errs.New(errs.NotFound, EventNotFailed,
		"no event with this identifier has failed for this webhook: list the failed events to see which can be replayed or skipped")
)

// within is a webhook of the permit's organization. What one that looks into other organizations has sent is for those
// who may look there themselves: with wide, that is checked. Errors: ErrNotFound; access.ErrDenied.
func within(permit access.Permit, id string, wide access.Permission) event.Target[Webhook] {
	return event.Target[Webhook]{
		Kind:   Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(w *event.Object[Webhook]) error {
			switch {
			case w == nil || w.Data.State == Removed || !permit.Reaches(w.Org):
				return ErrNotFound
			case wide != "" && w.Data.Wide() && !permit.Holds(wide, access.Installation):
				return access.ErrDenied
			}
			return nil
		},
	}
}

// changeable is within for operations that change the webhook.
func changeable(permit access.Permit, id string) event.Target[Webhook] {
	return within(permit, id, access.WebhookWrite)
}

// Get reads a webhook of the permit's organization. Errors: ErrNotFound.
func (w *Webhooks) Get(ctx context.Context, permit access.Permit, id string) (*event.Object[Webhook], error) {
	return w.get(ctx, permit, id, "")
}

func (w *Webhooks) get(ctx context.Context, permit access.Permit, id string,
	wide access.Permission) (*event.Object[Webhook], error) {
	return within(permit, id, wide).Read(ctx, w.Store)
}

// Filter says which webhooks to list; empty fields do not restrict.
type Filter struct {
	Name  string // what the name begins with, whatever its case
	State State
}

// List reads a page of the webhooks of the permit's organization: the oldest first, or in the order of names where a
// beginning is given.
func (w *Webhooks) List(ctx context.Context, permit access.Permit, f Filter, after event.Cursor,
	limit int) ([]*event.Object[Webhook], *event.Cursor, error) {
	if permit.Org() == "" {
		return nil, nil, access.ErrDenied // no organization would mean all of them
	}
	q := event.Query{Org: permit.Org(), After: after, Limit: limit, Where: map[string]string{}}
	if f.Name != "" {
		q.By, q.Prefix = "name", event.LookupText(syntax.NameKey(f.Name))
	}
	if f.State != "" {
		q.Where[event.State] = string(f.State)
	}
	return Kind.List(ctx, w.Store, q)
}
