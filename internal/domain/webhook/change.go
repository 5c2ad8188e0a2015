package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
)

// maxWebhooks is how many an organization may have: each of them is work that does not end.
const maxWebhooks = 100

// Webhooks is where webhooks are kept, and how messages reach their receivers.
type Webhooks struct {
	Store    event.Log
	Root     secret.MasterKey
	Outbound *outbound.Client
	Calls    *fairqueue.Slots // what organizations share of the messages that Test waits for; nil: all they want
	Clock    func() time.Time // that of the store
}

// New is a webhook to create.
type New struct {
	Name string
	Settings
}

// Created is what a creation answers. The secret is shown this once.
type Created struct {
	ID      string
	Secret  string
	Details event.Details
}

// Add creates a webhook in the permit's organization. It begins with what happens from then on. Errors: InvalidArgument
// with the violations of the settings; access.ErrDenied and ErrNotDefault where it looks into other organizations;
// ErrTooMany; org.ErrNotFound.
func (w *Webhooks) Add(ctx context.Context, permit access.Permit, n New) (Created, error) {
	wrong := n.Violations()
	if wrong.Add("name", syntax.Name(n.Name)); wrong != nil {
		return Created{}, wrong.Err()
	}
	if err := w.callable(n.URL); err != nil {
		return Created{}, err
	}
	selected := n.selection()
	if err := mayLook(permit, &selected); err != nil {
		return Created{}, err
	}
	if selected.Wide() {
		if err := w.canLook(ctx, permit, &selected); err != nil {
			return Created{}, err
		}
	}
	have, _, err := Kind.List(ctx, w.Store, event.Query{Org: permit.Org(), Limit: maxWebhooks})
	if err != nil {
		return Created{}, err
	}
	if len(have) >= maxWebhooks {
		return Created{}, ErrTooMany
	}
	begin, err := w.Store.Position(ctx)
	if err != nil {
		return Created{}, err
	}
	id, owner := Kind.NewID(), permit.Org()
	raw, text := newSecret()
	row, err := secrets{URL: n.URL, Current: raw}.row(w.Root, id)
	if err != nil {
		return Created{}, err
	}
	created := Created{ID: id, Secret: text}
	err = w.Store.Do(ctx, event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{Kind.Ref(id)},
		Read:   []event.Ref{org.Kind.Ref(owner)},
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, owner); err != nil {
				return err
			}
			o, err := Kind.Create(tx, id, owner,
				Added{Name: n.Name, NameKey: syntax.NameKey(n.Name), Address: syntax.ShownURL(n.URL),
					Selection: n.selection()})
			if err != nil {
				return err
			}
			tx.PutRow(row)
			created.Details = o.Details()
			return (&notify.Progress{Position: begin, Begins: true}).Put(tx, progressRow(id))
		},
	})
	if err != nil {
		return Created{}, err
	}
	return created, nil
}

// callable refuses an address that would never be called.
func (w *Webhooks) callable(address string) error {
	if err := w.Outbound.Accepts(address); err != nil {
		return errs.Invalid(errs.Violation{Field: "url", Message: refusedURL})
	}
	return nil
}

// mayLook refuses settings that look into other organizations to who may not look there.
func mayLook(permit access.Permit, s *Selection) error {
	if s.Wide() && !permit.Holds(access.WebhookWrite, access.Installation) {
		return access.ErrDenied
	}
	return nil
}

// canLook refuses to look into other organizations from one that is not the default one, and what is not there to look
// at.
func (w *Webhooks) canLook(ctx context.Context, permit access.Permit, s *Selection) error {
	i, err := installation.Read(ctx, w.Store)
	if err != nil {
		return err
	}
	if i == nil || i.Data.DefaultOrg != permit.Org() {
		return ErrNotDefault
	}
	for n, id := range s.OrganizationIDs {
		err := org.Exists(ctx, w.Store, id)
		if errors.Is(err, org.ErrNotFound) {
			return errs.Invalid(errs.Violation{Field: fmt.Sprintf("organizationIds[%d]", n),
				Message: "is not an organization"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Modification is what to change in a webhook: what is nil stays as it is.
type Modification struct {
	Name             *string
	URL              *string
	Types            *[]string
	AllOrganizations *bool
	OrganizationIDs  *[]string
	PersonalData     *bool
}

// Modify sets parts of a webhook. Errors: ErrNotFound; those of Add about settings; Aborted when match does not hold.
func (w *Webhooks) Modify(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	m Modification) (event.Details, error) {
	set := SettingsChanged{Name: m.Name, Types: m.Types, AllOrganizations: m.AllOrganizations,
		OrganizationIDs: m.OrganizationIDs, PersonalData: m.PersonalData}
	if m.Name != nil {
		key := syntax.NameKey(*m.Name)
		set.NameKey = &key
	}
	if err := w.mayWiden(ctx, permit, id, &m); err != nil {
		return event.Details{}, err
	}
	var needs event.Command
	inLog := ""
	if m.URL != nil {
		needs.Rows = []event.RowKey{event.SecretOf(id)}
		var err error
		if inLog, err = w.urlInLog(ctx, id); err != nil {
			return event.Details{}, err
		}
	}
	return changeable(permit, id).Needs(needs).Change(ctx, w.Store, match,
		func(tx *event.Tx, o *event.Object[Webhook]) error {
			to := o.Data
			set.Apply(&to)
			wanted := Settings{URL: unchanged, Types: to.Types, AllOrganizations: to.AllOrganizations,
				OrganizationIDs: to.OrganizationIDs}
			event.Set(&wanted.URL, m.URL)
			wrong := wanted.Violations()
			if wrong.Add("name", syntax.Name(to.Name)); wrong != nil {
				return wrong.Err()
			}
			fact := difference(&o.Data, &to)
			if m.URL != nil {
				if err := w.callable(*m.URL); err != nil {
					return err
				}
				moved, err := w.move(tx, id, inLog, *m.URL)
				if err != nil {
					return err
				}
				if moved {
					shown := syntax.ShownURL(*m.URL)
					fact.Address = &shown
				}
			}
			return o.Append(fact)
		})
}

// mayWiden refuses a modification that looks into other organizations, as mayLook and canLook do.
func (w *Webhooks) mayWiden(ctx context.Context, permit access.Permit, id string, m *Modification) error {
	var wanted Selection
	event.Set(&wanted.AllOrganizations, m.AllOrganizations)
	event.Set(&wanted.OrganizationIDs, m.OrganizationIDs)
	if err := mayLook(permit, &wanted); err != nil || !wanted.Wide() {
		return err
	}
	if _, err := changeable(permit, id).Read(ctx, w.Store); err != nil {
		return err
	}
	return w.canLook(ctx, permit, &wanted)
}

// unchanged stands for an address that is not looked at again.
const unchanged = "https://unchanged.invalid"

// move sets another address, and tells whether it is another one.
func (w *Webhooks) move(tx *event.Tx, id, inLog, to string) (bool, error) {
	stored, err := tx.Row(event.SecretOf(id))
	if err != nil {
		return false, err
	}
	s, err := secretsIn(w.Root, id, stored)
	if err != nil || to == cmp.Or(s.URL, inLog) {
		return false, err
	}
	s.URL = to
	row, err := s.row(w.Root, id)
	if err != nil {
		return false, err
	}
	tx.PutRow(row)
	return true, nil
}

// Deactivate switches a webhook off: nothing is sent any more. Errors: ErrNotFound; ErrNotActive; Aborted when match
// does not hold.
func (w *Webhooks) Deactivate(ctx context.Context, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return changeable(permit, id).Change(ctx, w.Store, match, func(_ *event.Tx, o *event.Object[Webhook]) error {
		if o.Data.State != Active {
			return ErrNotActive
		}
		return o.Append(Deactivated{})
	})
}

// Reactivate switches a webhook on again. It goes on where it stopped. Errors: ErrNotFound; ErrNotInactive; Aborted
// when match does not hold.
func (w *Webhooks) Reactivate(ctx context.Context, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	return changeable(permit, id).Change(ctx, w.Store, match, func(_ *event.Tx, o *event.Object[Webhook]) error {
		if o.Data.State != Inactive {
			return ErrNotInactive
		}
		return o.Append(Reactivated{})
	})
}

// RotateSecret makes a new secret, which is shown this once. The one before it signs, too, for keepOld. Errors:
// ErrNotFound; Aborted when match does not hold.
func (w *Webhooks) RotateSecret(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	keepOld time.Duration) (event.Details, string, error) {
	raw, text := newSecret()
	key := event.SecretOf(id)
	secretRow := event.Command{Rows: []event.RowKey{key}}
	details, err := changeable(permit, id).Needs(secretRow).Change(ctx, w.Store, match,
		func(tx *event.Tx, o *event.Object[Webhook]) error {
			stored, err := tx.Row(key)
			if err != nil {
				return err
			}
			before, err := secretsIn(w.Root, id, stored)
			if err != nil {
				return err
			}
			next, fact := secrets{URL: before.URL, Current: raw}, SecretSet{}
			if keepOld > 0 {
				fact.OldUntil = tx.Now() + keepOld.Microseconds()
				next.Old, next.OldUntil = before.Current, fact.OldUntil
			}
			row, err := next.row(w.Root, id)
			if err != nil {
				return err
			}
			tx.PutRow(row)
			return o.Append(fact)
		})
	if err != nil {
		return event.Details{}, "", err
	}
	return details, text, nil
}

// Remove ends a webhook for good, with its secrets and what is parked. Errors: ErrNotFound; Aborted when match does not
// hold.
func (w *Webhooks) Remove(ctx context.Context, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	details, err := changeable(permit, id).Change(ctx, w.Store, match,
		func(tx *event.Tx, o *event.Object[Webhook]) error {
			dropRows(tx, id)
			return o.Append(WasRemoved{})
		})
	if err == nil {
		_ = Clear(ctx, w.Store, id) // where it fails, the dispatchers do it
	}
	return details, err
}

// End is Remove inside a command that declared the webhook for writing. Clear comes afterwards.
func End(tx *event.Tx, o *event.Object[Webhook]) error {
	if o.Data.State == Removed {
		return nil
	}
	dropRows(tx, o.ID)
	return o.Append(WasRemoved{})
}

// dropRows removes the secrets, and the row without which no node notes anything about the webhook any more.
func dropRows(tx *event.Tx, id string) {
	tx.DropRow(event.SecretOf(id))
	tx.DropRow(progressRow(id))
}

// Clear removes what is parked for a webhook that was removed.
func Clear(ctx context.Context, s event.Store, id string) error {
	const step = event.MaxObjects
	for {
		rows, err := s.RowsOf(ctx, event.Deliveries, id+"/", "", step)
		if err != nil || len(rows) == 0 {
			return err
		}
		err = s.Do(ctx, event.Command{Origin: system, Decide: func(tx *event.Tx) error {
			for _, r := range rows {
				tx.DropRow(r.RowKey)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
}

// switchOff is what a receiver gets that says that it is gone.
func (w *Webhooks) switchOff(ctx context.Context, id string) error {
	return w.Store.Do(ctx, event.Command{
		Origin: system,
		Write:  []event.Ref{Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			o, err := Kind.Get(tx, id)
			if err != nil || o == nil || o.Data.State != Active {
				return err
			}
			return o.Append(Deactivated{Gone: true})
		},
	})
}

var system = event.Origin{Actor: event.System}

func progressRow(id string) event.RowKey {
	return event.RowKey{Table: event.Followers, Key: "webhook/" + id}
}
