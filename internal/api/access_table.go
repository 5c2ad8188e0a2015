package api

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// permissionTable is what the definition of the API says about permissions. The server enforces the same rules (package
// rpc).
type permissionTable struct {
	operations map[access.Permission][]*signetv1.Operation
	scopes     map[access.Permission][]access.APIScopes // with which applications can use a permission, each for itself
}

// readPermissionTable reads the compiled descriptors.
func readPermissionTable() *permissionTable {
	t := &permissionTable{operations: map[access.Permission][]*signetv1.Operation{},
		scopes: map[access.Permission][]access.APIScopes{}}
	for p, needs := range access.BesideOperations {
		t.scopes[p] = append(t.scopes[p], needs)
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				t.add(methods.Get(j))
			}
		}
		return true
	})
	for _, all := range t.operations {
		slices.SortFunc(all, byName)
	}
	return t
}

func (t *permissionTable) add(md protoreflect.MethodDescriptor) {
	rule, _ := proto.GetExtension(md.Options(), signetv1.E_Rule).(*signetv1.Rule)
	if rule.GetPermission() == "" {
		return
	}
	for _, name := range append([]string{rule.GetPermission()}, rule.GetNarrower()...) {
		p := access.Permission(name)
		t.operations[p] = append(t.operations[p], &signetv1.Operation{
			Name:         string(md.Parent().Name()) + "/" + string(md.Name()),
			Installation: rule.GetScope() == signetv1.Scope_SCOPE_SELF,
			Scopes:       rule.GetApiScopes(),
		})
		if needs := access.ScopesNamed(rule.GetApiScopes()...); needs != 0 {
			t.scopes[p] = append(t.scopes[p], needs)
		}
	}
}

// usable tells whether a token with these scopes can do something with a permission.
func (t *permissionTable) usable(p access.Permission, given access.APIScopes) bool {
	return slices.ContainsFunc(t.scopes[p], func(needs access.APIScopes) bool { return needs.Without(given) == 0 })
}

func (t *permissionTable) render() *signetv1.ListRolesResponse {
	out := &signetv1.ListRolesResponse{}
	for _, scope := range []string{access.Installation, ""} {
		for _, role := range access.RolesOf(scope) {
			out.Roles = append(out.Roles, &signetv1.Role{Name: string(role), Installation: scope == access.Installation,
				Permissions: permissionNames(access.PermissionsOf(scope, []access.Role{role}))})
		}
	}
	for _, p := range access.Permissions() {
		out.Permissions = append(out.Permissions, &signetv1.Permission{Name: string(p), Operations: t.operations[p],
			Organization: access.OfOrganizations(p)})
	}
	slices.SortFunc(out.Permissions, byName)
	return out
}
