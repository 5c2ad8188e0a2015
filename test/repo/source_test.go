package repo

import (
	"go/ast"
	"maps"
	"slices"
	"testing"
)

func TestEveryPackageExplainsItself(t *testing.T) {
	explained := map[string]bool{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		explained[f.dir] = explained[f.dir] || f.syntax.Doc != nil && len(f.syntax.Doc.Text()) > 40
	}
	for _, dir := range slices.Sorted(maps.Keys(explained)) {
		if !explained[dir] {
			t.Errorf("package %s has no comment before its package clause that a newcomer could start from", dir)
		}
	}
}

// isFunction tells whether an expression is a function of a package.
func isFunction(e ast.Expr, pkg, function string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != function {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestNobodySleeps(t *testing.T) {
	const instead = "wait for the thing itself (a channel, a condition, a clock that the test sets)"
	for _, f := range files(t) {
		name := f.imported("time")
		if name == "" || under(f.dir, []string{"bench"}) {
			continue
		}
		realTime, cases := f.test && f.imported("testing/synctest") == "", map[ast.Stmt]bool{}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CommClause:
				cases[n.Comm] = true
			case *ast.ExprStmt: // in a test, <-time.After(…) sleeps too, unless it is a case among others
				if wait, ok := n.X.(*ast.UnaryExpr); ok && realTime && !cases[n] {
					if after, ok := wait.X.(*ast.CallExpr); ok && isFunction(after.Fun, name, "After") {
						t.Errorf("%s sleeps: %s", fileSet.Position(n.Pos()), instead)
					}
				}
			case *ast.SelectorExpr:
				if isFunction(n, name, "Sleep") {
					t.Errorf("%s sleeps: %s", fileSet.Position(n.Pos()), instead)
				}
			}
			return true
		})
	}
}

// waysOut are the names by which a program calls others.
var waysOut = map[string][]string{
	"net": {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "Dialer"},
	"net/http": {"Client", "DefaultClient", "Transport", "DefaultTransport", "Get", "Head", "Post", "PostForm",
		"NewRequest", "NewRequestWithContext"},
	"net/http/httputil": {"ReverseProxy", "NewSingleHostReverseProxy"},
	"crypto/tls":        {"Dial", "DialWithDialer", "Dialer"},
}

// Security list, row 19: whoever calls an address that somebody else chose does so through package outbound. What may
// call others besides is told where to by its operator.
func TestOneWayLeadsOut(t *testing.T) {
	mayCall := []string{"internal/base/outbound", "internal/eventlog/store/engine/silence", "cmd/signet/remote",
		"internal/ops/doctor", "internal/base/tracing/otlp", "bench"}
	found := 0
	for _, f := range files(t) {
		if f.test || under(f.dir, testOnly) {
			continue
		}
		for pkg, names := range waysOut {
			as := f.imported(pkg)
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && as != "" && slices.Contains(names, s.Sel.Name) {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == as {
						if found++; !under(f.dir, mayCall) {
							t.Errorf("%s: use package outbound, which judges every address and bounds every answer",
								fileSet.Position(s.Pos()))
						}
					}
				}
				return true
			})
		}
	}
	if found < 3 {
		t.Errorf("only %d ways out were found: is the search still right?", found)
	}
}

func TestOnlyTestsHashPasswordsCheaply(t *testing.T) {
	found := 0
	for _, f := range files(t) {
		as := f.imported(module + "internal/base/secret")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && as != "" && isFunction(s, as, "NewCheapHasher") {
				if found++; !f.test && !under(f.dir, testOnly) {
					t.Errorf("%s: such a hash protects no password: use NewHasher", fileSet.Position(s.Pos()))
				}
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("only %d uses were found: is the search still right?", found)
	}
}
