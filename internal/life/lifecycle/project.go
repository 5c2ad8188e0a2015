package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// projects removes some of the projects of a removed organization. Their grants go with them, see cleanProjects.
func (c *Cleaner) projects(ctx context.Context, id string) (left bool, err error) {
	projects, _, err := project.Kind.List(ctx, c.store, event.Query{Org: id, Limit: cleanStep})
	if err != nil {
		return false, err
	}
	return discard(ctx, c, id, project.Kind, projects, nil, func(_ *event.Tx, p *event.Object[project.Project]) error {
		if p.Data.State == project.Removed {
			return nil
		}
		return p.Append(project.WasRemoved{})
	})
}

// granted ends some of what others have granted to a removed organization, accepted or not.
func (c *Cleaner) granted(ctx context.Context, id string) (left bool, err error) {
	return project.EndGrants(ctx, c.store, project.GrantsTo(id), cleanStep)
}

// cleanProjects ends the grants and accesses of removed projects. They count no longer since their project was removed.
func (c *Cleaner) cleanProjects(ctx context.Context) error {
	var problems []error
	for after := (&event.Cursor{}); after != nil; {
		projects, next, err := project.Kind.List(ctx, c.store,
			event.Query{Group: project.Removing, After: *after, Limit: cleanStep})
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		for _, p := range projects {
			if err := c.emptyProject(ctx, p.ID); err != nil {
				problems = append(problems, fmt.Errorf("project %s: %w", p.ID, err))
			}
		}
		after = next
	}
	return errors.Join(problems...)
}

// emptyProject ends the grants of one removed project. No new one can be made: that reads the project in the same
// transaction.
func (c *Cleaner) emptyProject(ctx context.Context, id string) error {
	for left := true; left; {
		var err error
		if left, err = project.EndGrants(ctx, c.store, project.GrantsOf(id), cleanStep); err != nil {
			return err
		}
	}
	return c.store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System}, Write: []event.Ref{project.Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			p, err := project.Kind.Get(tx, id)
			if err != nil || p.Data.Empty {
				return err
			}
			return p.Append(project.Emptied{})
		},
	})
}
