package repo

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Imports run one way. What a rule says holds for the program itself; tests and what only they use (testOnly) may look
// anywhere.
var (
	// folders of internal/, from the bottom to the top: a folder imports only those before it.
	folders = []string{
		"base",      // what knows nothing of us
		"eventlog",  // the truth: events, folding, the store
		"limit",     // how much of anything
		"domain",    // one package per object, and who may
		"transport", // how bytes come in and go out
		"signin",    // who somebody is
		"oauth",     // what applications get
		"life",      // what touches several objects
		"api",       // the RPCs
		"ui",        // the pages and the console
		"ops",       // the server as a whole
	}

	// objects are the packages that hold the rules of the product.
	objects = []string{"internal/domain", "internal/life", "internal/limit/mailcount", "internal/eventlog/notify",
		"internal/signin/session", "internal/signin/federated", "internal/signin/newcomer", "internal/signin/ownpage",
		"internal/oauth"}

	// outside is what the rules of the product know nothing of: protocols, databases, generated code.
	outside = []string{"gen", "net/http", "database/sql", "internal/eventlog/store", "internal/api",
		"internal/transport", "internal/ops",
		"internal/oauth/oidc", "internal/ui", "web"}

	testOnly = []string{"internal/eventlog/event/eventtest", "internal/eventlog/event/storetest",
		"internal/eventlog/event/listtest",
		"internal/domain/factor/factortest", "internal/domain/member/membertest", "internal/life/mail/mailtest",
		"internal/transport/pages/pagestest", "test"}

	mayOnlyImport = []struct {
		pkg  string
		ours []string
	}{
		{"internal/base/errs", nil},
		{"internal/base/syntax", []string{"internal/base/errs"}},
		{"internal/base/disk", nil},
		{"internal/base/systemd", nil},
		{"internal/base/fairqueue", []string{"internal/base/errs"}},
		{"internal/base/tracing", []string{"internal/base/errs"}},
		{"internal/domain/policy", []string{"internal/base/errs", "internal/base/syntax"}},
		{"internal/domain/access", []string{"internal/base/errs", "internal/eventlog/event"}},
		{"internal/base/packing", nil},
		{"internal/transport/pages", []string{"internal/base/packing", "internal/base/syntax"}},
	}

	mayNotImport = []struct {
		pkgs      []string
		but       []string // these of them may
		forbidden []string
	}{
		{objects, []string{"internal/oauth/oidc"}, outside},
		// rules know no tracing
		{[]string{"internal/domain", "internal/life", "internal/signin", "internal/oauth"}, nil,
			[]string{"internal/base/tracing"}},
		{[]string{"internal/api"}, nil, []string{"internal/transport/rpc", "net/http"}},
		{[]string{"internal/transport"}, nil,
			[]string{"internal/domain/app", "internal/domain/idp", "internal/domain/org", "internal/domain/user"}},
		// it costs 6 MB and half of a start: docs/decisions/0063-lean.md
		{[]string{"internal", "cmd"}, nil, []string{"buf.build/go/protovalidate"}},
	}

	mayBeImportedOnlyBy = []struct {
		pkg string
		by  []string
	}{
		{"internal/eventlog/store", []string{"cmd", "bench", "internal/ops"}},
		{"cmd", nil},
		{"internal/ops", []string{"cmd"}},
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

// folderOf is the folder of internal/ that a package is in; empty: none.
func folderOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	if len(parts) < 2 || parts[0] != "internal" {
		return ""
	}
	return parts[1]
}

func TestFoldersImportOnlyThoseBelowThem(t *testing.T) {
	program(t, func(f *file, imported string) {
		from, to := folderOf(f.dir), folderOf(imported)
		if from == "" || to == "" {
			return
		}
		if !slices.Contains(folders, from) {
			t.Errorf("%s is in none of the folders %q", f.path, folders)
		}
		if slices.Index(folders, to) > slices.Index(folders, from) {
			t.Errorf("%s imports %s: %s lies above %s", f.path, imported, to, from)
		}
	})
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
			if under(f.dir, rule.pkgs) && !under(f.dir, rule.but) && under(imported, rule.forbidden) {
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
	named := slices.Concat(objects, testOnly)
	for _, folder := range folders {
		named = append(named, "internal/"+folder)
	}
	for _, rule := range mayBeImportedOnlyBy {
		named = append(named, rule.pkg)
	}
	for _, pkg := range named {
		if !slices.ContainsFunc(files(t), func(f *file) bool { return under(f.dir, []string{pkg}) }) {
			t.Errorf("there is no package %s: the rules in imports_test.go have to follow when one moves", pkg)
		}
	}
}
