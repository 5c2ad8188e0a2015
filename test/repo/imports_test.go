package repo

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Imports run one way. What a rule says holds for the program itself; tests and what only they use (testOnly) may look anywhere.
var (
	// objects are the packages that hold the rules of the product.
	objects = []string{"internal/org", "internal/user", "internal/idp", "internal/installation", "internal/session", "internal/setup",
		"internal/member", "internal/lifecycle", "internal/app", "internal/signing", "internal/notify", "internal/journal", "internal/webhook", "internal/mail", "internal/factor", "internal/grant",
		"internal/group", "internal/project", "internal/mailcount", "internal/invitation", "internal/registration", "internal/metadata"}

	// outside is what the rules of the product know nothing of: protocols, databases, generated code.
	outside = []string{"gen", "net/http", "database/sql", "internal/store", "internal/api", "internal/rpc", "internal/server", "internal/web", "internal/oidc", "internal/login", "internal/account", "internal/console", "internal/pages", "web"}

	testOnly = []string{"internal/event/eventtest", "internal/event/storetest", "internal/event/listtest", "test/testdb", "test/testkit", "internal/mail/mailtest", "internal/factor/factortest", "internal/member/membertest", "internal/pages/pagestest",
		"test/repo", "test/costtest", "test"}

	mayOnlyImport = []struct {
		pkg  string
		ours []string
	}{
		{"internal/errs", nil},
		{"internal/syntax", nil},
		{"internal/disk", nil},
		{"internal/systemd", nil},
		{"internal/policy", []string{"internal/errs", "internal/syntax"}},
		{"internal/share", []string{"internal/errs"}},
		{"internal/tracing", []string{"internal/errs"}},
		{"internal/metadata", []string{"internal/errs", "internal/event", "internal/syntax"}},
		{"internal/secret", []string{"internal/disk", "internal/errs", "internal/share", "internal/secret/argon", "internal/tracing"}},
		{"internal/event", []string{"internal/errs", "internal/secret", "internal/syntax"}},
		{"internal/access", []string{"internal/errs", "internal/event"}},
		{"internal/outbound", []string{"internal/errs", "internal/share", "internal/tracing"}},
		{"internal/call", []string{"internal/access", "internal/event", "internal/errs"}},
		{"internal/pages", []string{"internal/syntax"}},
	}

	mayNotImport = []struct {
		pkgs      []string
		forbidden []string
	}{
		{objects, outside},
		{slices.DeleteFunc(slices.Clone(objects), func(pkg string) bool { return pkg == "internal/notify" }), []string{"internal/tracing"}}, // rules know no tracing
		{[]string{"internal/api"}, []string{"internal/store", "internal/rpc", "internal/server", "net/http"}},
		{[]string{"internal/web"}, slices.Concat(objects, []string{"internal/api", "internal/rpc", "internal/store"})},
		{[]string{"internal/oidc", "internal/login", "internal/account", "internal/console", "internal/pages"}, []string{"internal/api", "internal/rpc", "internal/store", "internal/server"}},
		{[]string{"internal/rpc"}, slices.Concat(objects, []string{"internal/api", "internal/store"})},
		{[]string{"internal", "cmd"}, []string{"buf.build/go/protovalidate"}}, // it costs 6 MB and half of a start: docs/decisions/0063-lean.md
	}

	mayBeImportedOnlyBy = []struct {
		pkg string
		by  []string
	}{
		{"internal/store", []string{"cmd", "bench", "internal/server"}},
		{"cmd", nil},
		{"internal/server", []string{"cmd"}},
	}
)

// under tells whether a package is one of these or lies below one.
func under(pkg string, of []string) bool {
	return slices.ContainsFunc(of, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

func isOurs(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return slices.Contains([]string{"internal", "cmd", "gen", "bench", "test", "web"}, first)
}

// program calls visit for every import of the program itself.
func program(t *testing.T, visit func(f *file, imported string)) {
	t.Helper()
	for _, f := range files(t) {
		if f.test || under(f.dir, testOnly) {
			continue
		}
		for _, i := range f.imports {
			visit(f, i)
		}
	}
}

func TestLowPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	seen := map[string]bool{}
	program(t, func(f *file, imported string) {
		for _, rule := range mayOnlyImport {
			if f.dir != rule.pkg {
				continue
			}
			seen[rule.pkg] = true
			if isOurs(imported) && !slices.Contains(rule.ours, imported) {
				t.Errorf("%s imports %s: of ours, %s may import %q only", f.path, imported, rule.pkg, rule.ours)
			}
		}
	})
	if len(seen) != len(mayOnlyImport) {
		t.Errorf("of the packages in the rule only %q were found: has one moved?", slices.Sorted(maps.Keys(seen)))
	}
}

func TestRulesKnowNoTransportAndNoDatabase(t *testing.T) {
	program(t, func(f *file, imported string) {
		for _, rule := range mayNotImport {
			if under(f.dir, rule.pkgs) && under(imported, rule.forbidden) {
				t.Errorf("%s imports %s: packages like %s never do", f.path, imported, f.dir)
			}
		}
	})
}

func TestWhoMayImportTheStoreAndTheCommands(t *testing.T) {
	program(t, func(f *file, imported string) {
		for _, rule := range mayBeImportedOnlyBy {
			if under(imported, []string{rule.pkg}) && !under(f.dir, append(rule.by, rule.pkg)) {
				t.Errorf("%s imports %s: only %q may", f.path, imported, rule.by)
			}
		}
	})
}

func TestTheProgramImportsNothingThatIsForTests(t *testing.T) {
	program(t, func(f *file, imported string) {
		if under(imported, testOnly) || imported == "testing" {
			t.Errorf("%s imports %s, which is for tests", f.path, imported)
		}
	})
}

func TestTheRulesAreAboutPackagesThatExist(t *testing.T) {
	exists := map[string]bool{}
	for _, f := range files(t) {
		exists[f.dir] = true
	}
	for _, pkg := range slices.Concat(objects, []string{"internal/api", "internal/rpc", "internal/store"}) {
		if !exists[pkg] {
			t.Errorf("there is no package %s: the rules in imports_test.go have to follow when one moves", pkg)
		}
	}
}
