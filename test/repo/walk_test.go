package repo

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step of the walk in docs/architecture.md: | 3 | `internal/transport/rpc` | `binding.serve` | ...
var walkStep = regexp.MustCompile("(?m)^\\| \\d+ \\| `([a-z/]+)` \\| `(?:([A-Za-z]+)\\.)?([A-Za-z]+)` \\|")

// TestTheWalkThroughOneOperationIsShort: docs/architecture.md follows Set User Password from the request's bytes to the
// disk. Every step is a function that exists and fits on a page, and no step goes back to a package that an earlier one
// has left.
func TestTheWalkThroughOneOperationIsShort(t *testing.T) {
	const mostSteps, mostLines = 12, 40
	text, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := walkStep.FindAllStringSubmatch(string(text), -1)
	if len(steps) < 8 || len(steps) > mostSteps {
		t.Errorf("the walk has %d steps", len(steps))
	}
	var packages []string
	for _, s := range steps {
		name := strings.Trim(s[2]+"."+s[3], ".")
		if lines := functionLines(t, s[1], name); lines == 0 {
			t.Errorf("%s has no function %s", s[1], name)
		} else if lines > mostLines {
			t.Errorf("%s %s has %d lines, at most %d are easy to follow", s[1], name, lines, mostLines)
		}
		packages = append(packages, s[1])
	}
	packages = slices.Compact(packages)
	for i, p := range packages {
		if slices.Contains(packages[:i], p) {
			t.Errorf("the walk goes back to %s", p)
		}
	}
}

// functionLines is how long a function or a method of a package is; 0 where there is none.
func functionLines(t *testing.T, dir, name string) int {
	t.Helper()
	for _, f := range files(t) {
		if f.dir != dir || f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && nameOf(fn) == name {
				return fileSet.Position(fn.End()).Line - fileSet.Position(fn.Pos()).Line + 1
			}
		}
	}
	return 0
}

// nameOf is Type.Method for methods.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return of.(*ast.Ident).Name + "." + fn.Name.Name
}
