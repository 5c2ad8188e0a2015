package access

import (
	"maps"
	"slices"
)

// RolesIn are the roles that there are in a scope.
func RolesIn(scope string) []Role { return slices.Sorted(maps.Keys(rolesIn(scope))) }
