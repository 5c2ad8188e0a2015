package repo

import (
	"go/ast"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	reasonsFile = root + "/docs/api/reasons.txt"
	errsPackage = module + "internal/base/errs"
)

// declared is a reason as the code has it.
type declared struct {
	where string
	kinds map[string]bool // with which kinds it is raised, as far as that can be read off
}

// reasons finds every constant of the type errs.Reason, and where one is used together with a kind.
func reasons(t *testing.T) map[string]*declared {
	t.Helper()
	byName := map[string]*declared{}  // USER_NOT_FOUND
	byConst := map[string]*declared{} // internal/domain/user.NotFound
	program := slices.DeleteFunc(slices.Clone(files(t)), func(f *file) bool { return f.test || under(f.dir, testOnly) })
	for _, f := range program {
		errs := f.imported(errsPackage)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !isReason(f, errs, spec.Type) {
				return true
			}
			for i, value := range spec.Values {
				where := fileSet.Position(value.Pos()).String()
				literal, ok := value.(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: a reason is a constant text", where)
					continue
				}
				name, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if twice := byName[name]; twice != nil {
					t.Errorf("%s: %s is declared already in %s: use that one, or find a reason of your own", where,
						name, twice.where)
					byConst[f.dir+"."+spec.Names[i].Name] = twice
					continue
				}
				byName[name] = &declared{where: where, kinds: map[string]bool{}}
				byConst[f.dir+"."+spec.Names[i].Name] = byName[name]
			}
			return true
		})
	}
	for _, f := range program {
		errs := f.imported(errsPackage)
		raised := func(kind, reason ast.Expr) {
			k := kindName(f, errs, kind)
			r := byConst[constName(f, reason)]
			if k != "" && r != nil {
				r.kinds[k] = true
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // errs.New(kind, reason, message)
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "New" && len(n.Args) == 3 &&
					isIdent(s.X, errs) {
					raised(n.Args[0], n.Args[1])
				}
			case *ast.CompositeLit: // errs.Error{Kind: kind, Reason: reason}
				fields := map[string]ast.Expr{}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := kv.Key.(*ast.Ident); ok {
							fields[key.Name] = kv.Value
						}
					}
				}
				if fields["Kind"] != nil && fields["Reason"] != nil {
					raised(fields["Kind"], fields["Reason"])
				}
			}
			return true
		})
	}
	return byName
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && name != "" && i.Name == name
}

func isReason(f *file, errs string, e ast.Expr) bool {
	if f.dir == "internal/base/errs" {
		return isIdent(e, "Reason")
	}
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Reason" && isIdent(s.X, errs)
}

func kindName(f *file, errs string, e ast.Expr) string {
	if i, ok := e.(*ast.Ident); ok && f.dir == "internal/base/errs" {
		return i.Name
	}
	if s, ok := e.(*ast.SelectorExpr); ok && isIdent(s.X, errs) {
		return s.Sel.Name
	}
	return ""
}

// constName spells a constant as internal/domain/user.NotFound, whichever way the file refers to it.
func constName(f *file, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return f.dir + "." + e.Name
	case *ast.SelectorExpr:
		for _, i := range f.imports {
			if isIdent(e.X, f.imported(module+i)) {
				return i + "." + e.Sel.Name
			}
		}
	}
	return ""
}

// documented reads docs/api/reasons.txt: reason, kinds with commas between them, meaning.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(reasonsFile)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{}
	last := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 4 {
			t.Errorf("docs/api/reasons.txt: %q has no kind or no meaning", strings.TrimSpace(line))
			continue
		}
		if fields[0] <= last {
			t.Errorf("docs/api/reasons.txt: %s is out of order, or there twice", fields[0])
		}
		last = fields[0]
		kinds[fields[0]] = strings.Split(fields[1], ",")
	}
	return kinds
}

func TestEveryReasonIsDocumentedAndNoneVanishes(t *testing.T) {
	inCode, inDocs := reasons(t), documented(t)
	for _, name := range slices.Sorted(maps.Keys(inCode)) {
		d := inCode[name]
		if strings.ToUpper(name) != name || strings.ContainsAny(name, " -.") {
			t.Errorf("%s: %q is not written like A_REASON", d.where, name)
		}
		kinds, ok := inDocs[name]
		if !ok {
			t.Errorf("%s: %s is not documented: add a line for it to docs/api/reasons.txt (reason, kind, what it means)", d.where, name)
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(d.kinds)) {
			if !slices.Contains(kinds, kind) {
				t.Errorf("%s is raised as %s, but docs/api/reasons.txt says %q only: a reason never changes its meaning, so take another one", name, kind, kinds)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inDocs)) {
		if inCode[name] == nil {
			t.Errorf("%s is in docs/api/reasons.txt but not in the code: programs of others wait for it. "+
				"If it was never released, take it out of the file; otherwise bring it back, or keep its line there marked as retired and teach this test so", name)
		}
	}
}
