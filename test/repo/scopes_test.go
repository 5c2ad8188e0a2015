package repo

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// generalFile lists what applications may do with the general scopes.
const generalFile = "testdata/general_scopes.txt"

// general are the scopes for what opens no way in.
var general = []string{"signet.self", "signet.read", "signet.write"}

func isGeneral(scopes []string) bool {
	return len(scopes) > 0 && !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(general, s) })
}

func neededBy(fd protoreflect.FieldDescriptor) string {
	name, _ := proto.GetExtension(fd.Options(), signetv1.E_NeedsScope).(string)
	return name
}

func isSecret(fd protoreflect.FieldDescriptor) bool {
	secret, _ := proto.GetExtension(fd.Options(), signetv1.E_Secret).(bool)
	return secret
}

// everyField calls visit with each field of a message and of what is in it. What visit refuses is not looked into.
func everyField(md protoreflect.MessageDescriptor, above string,
	visit func(path string, fd protoreflect.FieldDescriptor) bool) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		path := above + fd.JSONName()
		if visit(path, fd) && fd.Message() != nil && fd.Message().ParentFile().Package() == "signet.v1" {
			everyField(fd.Message(), path+".", visit)
		}
	}
}

// TestGeneralScopesAreAnAllowList fails for an operation or a field that is new within a general scope. Whoever adds
// its line has thought about what an application could do with it that acts for an owner of the installation.
func TestGeneralScopesAreAnAllowList(t *testing.T) {
	content, err := os.ReadFile(generalFile)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			listed[line] = true
		}
	}
	found := map[string]bool{}
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		if !isGeneral(rule.GetApiScopes()) {
			return
		}
		operation := strings.Join(rule.GetApiScopes(), "+") + " " + string(m.Name())
		found[operation] = true
		everyField(m.Input(), "", func(path string, fd protoreflect.FieldDescriptor) bool {
			if neededBy(fd) != "" {
				return false
			}
			found[operation+" "+path] = true
			return true
		})
	})
	for _, line := range slices.Sorted(maps.Keys(found)) {
		if !listed[line] {
			t.Errorf("%q is not in %s: give the operation another scope or the field (needs_scope), or add the line if an application with a general scope may do that for everybody", line, generalFile)
		}
	}
	for line := range listed {
		if !found[line] {
			t.Errorf("%q is in %s, but not in the definition", line, generalFile)
		}
	}
}

func TestScopesFitTheOperationsTheyAreFor(t *testing.T) {
	used := map[string]bool{}
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		scopes := rule.GetApiScopes()
		for _, name := range scopes {
			used[name] = true
			if !access.IsAPIScope(name) {
				t.Errorf("%q is no scope that package access knows", name)
			}
			if self := name == "signet.self"; self != rule.GetAuthenticated() {
				t.Errorf("%s: operations about oneself, and no others, have signet.self", name)
			}
			if read := name == "signet.read"; read && !strings.HasSuffix(rule.GetPermission(), ".read") ||
				!read && strings.HasSuffix(rule.GetPermission(), ".read") {
				t.Errorf("%s: operations that read, and no others, have signet.read", name)
			}
		}
		if len(scopes) == 0 && rule.GetPermission() != "" {
			t.Errorf("nobody holds %s in full any more who acts by an application, since no scope is for this operation", rule.GetPermission())
		}
		if len(scopes) > 0 && (rule.GetPublic() || rule.GetRestrictedSession() || rule.GetUnprovenSession() ||
			rule.GetAuthenticated() && rule.GetProof() != 0) {
			t.Error("it is for sessions of people, or for everybody: it has no scopes")
		}
		everyField(m.Input(), "", func(path string, fd protoreflect.FieldDescriptor) bool {
			if name := neededBy(fd); name != "" {
				used[name] = true
				if !access.IsAPIScope(name) {
					t.Errorf("%s needs %q, which is no scope that package access knows", path, name)
				}
				return true
			}
			if isGeneral(scopes) && isSecret(fd) {
				t.Errorf("%s takes a secret: it needs a scope of its own", path)
			}
			return true
		})
		everyField(m.Output(), "", func(path string, fd protoreflect.FieldDescriptor) bool {
			if isGeneral(scopes) && isSecret(fd) {
				t.Errorf("it answers a secret, %s: no general scope is for that", path)
			}
			return true
		})
	})
	for _, name := range access.APIScopeNames {
		if !used[name] {
			t.Errorf("nothing needs %s", name)
		}
	}
}

// TestScopesAreSpelledInOnePlace: whoever asks about a scope by its name asks package access.
func TestScopesAreSpelledInOnePlace(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !under(f.dir, []string{"internal"}) || under(f.dir, append(testOnly, "internal/domain/access")) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range access.APIScopeNames {
			if strings.Contains(string(content), `"`+name+`"`) {
				t.Errorf("%s spells %s", f.path, name)
			}
		}
	}
}

// A permission that is neither an operation's nor listed beside them would be one that no application, and no service
// user's access token, holds.
func TestEveryPermissionIsHeldByScopes(t *testing.T) {
	named := map[access.Permission]bool{}
	methods(t, func(_ *testing.T, _ protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		for _, name := range append(rule.GetNarrower(), rule.GetPermission()) {
			named[access.Permission(name)] = true
		}
	})
	for _, p := range access.Permissions() {
		if _, beside := access.BesideOperations[p]; beside == named[p] {
			t.Errorf("%s: named by an operation: %t, listed in access.BesideOperations: %t", p, named[p], beside)
		}
	}
}
