// An import creates many people at once who come from another system.

package user

import (
	"context"
	"errors"
	"strconv"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// importPart is how many people are imported by one command. A command that holds the writer for longer would be in the
// way of everybody else.
const importPart = 100

// Import is people to be created in the permit's organization.
type Import []Imported

// Together creates all of them, or none. Errors: InvalidArgument with violations; access.ErrDenied when there are
// hashes and the caller may not set passwords; org.ErrNotFound; ErrUserNameTaken with the names that are; those of
// once.
func (p Import) Together(ctx context.Context, s event.Store, permit access.Permit, once event.Once) ([]Added, error) {
	if err := p.allowed(permit); err != nil {
		return nil, err
	}
	return p.run(ctx, s, permit, once, allFree)
}

// allFree refuses where names are taken.
func allFree(taken []int) error {
	if len(taken) == 0 {
		return nil
	}
	const named = 20
	message := "no user was imported, because user names are taken in this organization or given twice: choose others for "
	for i, n := range taken[:min(len(taken), named)] {
		message += [...]string{"", ", "}[min(i, 1)] + "users[" + strconv.Itoa(n) + "]"
	}
	if more := len(taken) - named; more > 0 {
		message += " and " + strconv.Itoa(more) + " more"
	}
	return errs.New(errs.AlreadyExists, UserNameTaken, message)
}

// errTried keeps an import from being carried out that would have been.
var errTried = errors.New("importing: the import was only tried")

// Try finds out what Together or Each would do, and creates nobody. Errors: as theirs.
func (p Import) Try(ctx context.Context, s event.Store, permit access.Permit, together bool) ([]Added, error) {
	if err := p.allowed(permit); err != nil {
		return nil, err
	}
	return p.run(ctx, s, permit, event.Once{}, func(taken []int) error {
		if err := allFree(taken); together && err != nil {
			return err
		}
		return errTried
	})
}

// Each creates those whose name is free; who got none has no ID. When it fails some may have been created, and if it is
// repeated under the same key these are not created again. Errors: as Together, but for names; those of permit.Renew
// when the caller may no longer half way.
func (p Import) Each(ctx context.Context, s event.Store, permit access.Permit, once event.Once) ([]Added, error) {
	all := make([]Added, 0, len(p))
	for part := 0; part*importPart < len(p); part++ {
		if part > 0 {
			var err error
			if permit, err = permit.Renew(ctx); err != nil {
				return nil, err
			}
		}
		some := p[part*importPart : min((part+1)*importPart, len(p))]
		if err := some.allowed(permit); err != nil {
			return nil, err
		}
		made, err := some.run(ctx, s, permit, once.Part(part), func([]int) error { return nil })
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// allowed: a hash is as good as a password, so it takes the permission to set one.
func (p Import) allowed(permit access.Permit) error {
	var wrong errs.Violations
	for i := range p {
		for _, v := range p[i].Violations() {
			v.Field = "users[" + strconv.Itoa(i) + "]." + v.Field
			wrong = append(wrong, v)
		}
	}
	if wrong != nil {
		return wrong.Err()
	}
	if MayGivePasswords(permit) {
		return nil
	}
	for i := range p {
		if p[i].PasswordHash != "" {
			return access.ErrDenied
		}
	}
	return nil
}

// run creates, by one command, those whose name is free, unless judge refuses because of the others.
func (p Import) run(ctx context.Context, s event.Store, permit access.Permit, once event.Once,
	judge func(taken []int) error) ([]Added, error) {
	owner := permit.Org()
	c := event.Command{Origin: permit.Origin(), Read: []event.Ref{org.Kind.Ref(owner)}}
	facts, ahead := make([]HumanImported, len(p)), make([]*event.Ahead[User], len(p))
	for i := range p {
		facts[i] = p[i].Fact()
		var err error
		if ahead[i], err = facts[i].Ahead(); err != nil {
			return nil, err
		}
		c.Create = append(c.Create, Kind.Ref(Kind.NewID()))
		c.Claims = append(c.Claims, NameClaim(owner, facts[i].Personal.UserNameKey))
	}
	var made struct { // as it is kept for a repetition
		At  int64    `json:"at"`
		IDs []string `json:"ids"` // empty: the name was taken
	}
	c.Decide = func(tx *event.Tx) error {
		if _, err := org.In(tx, owner); err != nil {
			return err
		}
		made.At, made.IDs = tx.Now(), make([]string, len(p))
		var taken []int
		given := make(map[string]bool, len(p)) // names, by this very command
		for i := range p {
			holder, err := tx.Holder(c.Claims[i])
			if err != nil {
				return err
			}
			if key := c.Claims[i].Key; holder != "" || given[key] {
				taken = append(taken, i)
			} else {
				given[key] = true
				made.IDs[i] = c.Create[i].ID
			}
		}
		if err := judge(taken); err != nil {
			return err
		}
		for i, id := range made.IDs {
			if id == "" {
				continue
			}
			facts[i].Verification = Said(tx, facts[i].EmailVerified, VerifierOf(permit))
			if _, err := Kind.Create(tx, id, owner, facts[i].Recorded(tx, ahead[i])); err != nil {
				return err
			}
			if p[i].PasswordHash != "" {
				tx.PutRow(event.Row{RowKey: PasswordRow(id), Value: []byte(p[i].PasswordHash)})
			}
		}
		return nil
	}
	if err := s.Do(ctx, once.Wrap(c, &made)); err != nil && !errors.Is(err, errTried) {
		return nil, err
	}
	at := event.Time(made.At)
	all := make([]Added, len(made.IDs))
	for i, id := range made.IDs {
		if id != "" {
			all[i] = Added{ID: id, Details: event.Details{Sequence: 1, Created: at, Changed: at, Org: owner}}
		}
	}
	return all, nil
}
