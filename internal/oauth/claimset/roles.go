// This file has the claims by which applications learn about the roles, groups and metadata of people. Roles and groups
// are told by identifier, under the organization that they were given in. There is never one list across organizations,
// or an administrator of one customer would pass for one of another.

package claimset

import (
	"maps"
	"slices"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// The claims. What people agree to has the names of the first three as well, beside the scopes.
const (
	Roles    = "urn:signet:app_roles"
	Groups   = "urn:signet:groups"
	Metadata = "urn:signet:metadata"
	Overflow = "urn:signet:overflow" // the claims that did not fit into the token
)

// RoleClaims lists them.
var RoleClaims = []string{Roles, Groups, Metadata, Overflow}

// MaxToken is how many bytes of JSON the claims can have together in a token: tokens travel in headers.
const MaxToken = 4096

// RoleClaimsOf are the claims that are switched on for an application, or that it declares claims of its own from.
func RoleClaimsOf(a *app.App) []string {
	var names []string
	s, mapped := a.RoleSettings, a.Maps()
	if s.Roles || mapped.Roles {
		names = append(names, Roles)
	}
	if s.Groups || mapped.Groups {
		names = append(names, Groups)
	}
	if len(s.Metadata) > 0 || a.MapsMetadata() {
		names = append(names, Metadata)
	}
	return names
}

// Agreed leaves out of what an application is told about somebody of another organization what they do not know of: it
// was switched on since they were asked. In one organization its administrators answer for both.
func Agreed(c project.Client, home string, agreed []string) project.Client {
	if c.Org != home {
		c.Roles = c.Roles && slices.Contains(agreed, Roles)
		c.Groups = c.Groups && slices.Contains(agreed, Groups)
		c.Mapped.Roles = c.Mapped.Roles && slices.Contains(agreed, Roles)
		c.Mapped.Groups = c.Mapped.Groups && slices.Contains(agreed, Groups)
	}
	return c
}

// SameProject tells whether an application may read what is told to a client of an organization: those of one project
// learn the same.
func SameProject(a *event.Object[app.App], org, project string) bool {
	return a != nil && project != "" && a.Org == org && a.Data.RoleSettings.Project == project
}

// settings are the switches of an application that the claims come from.
var settings = map[string]string{Roles: "roleSettings.rolesInTokens", Groups: "roleSettings.groupsInTokens",
	Metadata: "roleSettings.metadataKeys"}

// present are the claims that there are.
func present(h project.Held) map[string]any {
	claims := map[string]any{}
	if h.Roles != nil {
		claims[Roles] = h.Roles
	}
	if h.Groups != nil {
		claims[Groups] = h.Groups
	}
	if h.Metadata != nil {
		claims[Metadata] = h.Metadata
	}
	return claims
}

// AddRoles adds the claims as they are.
func AddRoles(claims Set, h project.Held) {
	for name, value := range present(h) {
		claims.Put(name, value, Why{Source: Setting, Of: settings[name]})
	}
	for name, of := range settings {
		claims.Lacks(Missing{Lack: NotSet, Of: of}, name)
	}
}

// AddRolesToToken adds the claims, and those that the application declares, if they fit; otherwise the token says which
// are missing. User info and introspection have them.
func AddRolesToToken(claims Set, h project.Held, m Mapped) {
	if there := present(h); sizeOf(there)+sizeOf(m.values) > MaxToken {
		claims.overflow(slices.AppendSeq(slices.Collect(maps.Keys(there)), maps.Keys(m.values)))
		m.values = nil
	} else {
		AddRoles(claims, h)
	}
	claims.addMapped(m)
}

// WithholdRoles notes that claims are not told because others read them, too.
func WithholdRoles(claims Set, whole, told project.Held) {
	there := present(told)
	for name := range present(whole) {
		if _, is := there[name]; !is {
			claims.Lacks(Missing{Lack: OtherAudience}, name)
		}
	}
}
