package project

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxMetadataKeys bounds what applications are told of people's metadata.
const MaxMetadataKeys = 20

// ErrMetadataDenied keeps those who may not read metadata from sending it to an application of theirs.
var ErrMetadataDenied = errs.New(errs.PermissionDenied, access.PermissionDenied,
	"only somebody who may read metadata (metadata.read) can have an application be told more of it: ask an owner of the organization, or leave the new metadataKeys out")

// RoleSettingsViolations lists what is wrong with the role settings of an application.
func RoleSettingsViolations(to app.RoleSettings) (wrong errs.Violations) {
	wrong.Add("projectId", syntax.Text(to.Project, MaxOrgID))
	if to.Project == "" && (to.Roles || to.Required) {
		wrong.Add("projectId", errs.Plain("must not be empty if rolesInTokens or roleRequired is set: the roles are "+
			"those of the project"))
	}
	if len(to.Metadata) > MaxMetadataKeys {
		wrong.Add("metadataKeys", syntax.TooMany(MaxMetadataKeys, "elements"))
		return wrong
	}
	for i, key := range to.Metadata {
		wrong.Add(fmt.Sprintf("metadataKeys[%d]", i), metadata.Key(key))
	}
	return wrong
}

// SetRoleSettings says which project of its organization an application belongs to, what it is told about people there,
// and whether only people with a role may use it. Errors: InvalidArgument with RoleSettingsViolations; app.ErrNotFound;
// access.ErrMoreScopes where another application does it to one that may do more; app.ErrOpensWaysIn; ErrNotFound;
// ErrMetadataDenied; Aborted when match does not hold.
func SetRoleSettings(ctx context.Context, s event.Store, permit access.Permit, appID string, match event.IfMatch,
	to app.RoleSettings) (event.Details, error) {
	if err := RoleSettingsViolations(to).Err(); err != nil {
		return event.Details{}, err
	}
	to.Metadata = unique(to.Metadata)
	var needs event.Command
	if to.Project != "" {
		needs.Read = []event.Ref{Kind.Ref(to.Project)}
	}
	return app.Within(permit, appID).Needs(needs).Change(ctx, s, match,
		func(tx *event.Tx, a *event.Object[app.App]) error {
			if err := permit.CoversScopes(access.ScopesNamed(a.Data.APIScopes...)); err != nil {
				return err
			}
			if to.Project != "" {
				p, err := Within(permit, to.Project).Get(tx)
				if err != nil {
					return err
				}
				if p.Org != a.Org {
					return ErrNotFound
				}
			}
			added := slices.ContainsFunc(to.Metadata,
				func(key string) bool { return !slices.Contains(a.Data.RoleSettings.Metadata, key) })
			if added && !permit.HoldsFor(access.ReadScope, access.MetadataRead, a.Org) {
				return ErrMetadataDenied
			}
			if to.Equal(a.Data.RoleSettings) {
				return nil
			}
			return app.Append(permit, a, app.RoleSettingsSet{RoleSettings: to})
		})
}
