package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// searches are the functions of strings, slices and regexp that say whether a text is or has another.
var searches = []string{"Contains", "HasPrefix", "HasSuffix", "CutPrefix", "CutSuffix", "EqualFold", "Compare", "Index",
	"MatchString", "FindStringSubmatch"}

// comparedMessages finds where code decides something by a message: it compares x.Message, searches it, looks something
// up with it, or keeps it in a variable to do so. That there is a message at all may be asked.
func comparedMessages(f *ast.File) (at []token.Pos) {
	check := func(operands ...ast.Expr) {
		for _, e := range operands {
			if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == "Message" {
				at = append(at, s.Pos())
			}
		}
	}
	isEmpty := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		return ok && l.Value == `""`
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && !isEmpty(n.X) && !isEmpty(n.Y) {
				check(n.X, n.Y)
			}
		case *ast.SwitchStmt:
			check(n.Tag)
		case *ast.CaseClause:
			check(n.List...)
		case *ast.IndexExpr:
			check(n.Index)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(searches, s.Sel.Name) {
				check(n.Args...)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				check(n.Rhs...)
			}
		}
		return true
	})
	return at
}

// TestNobodyDecidesByAMessage: messages are for people, and may be reworded. Pages choose their texts by the reason of a
// violation.
func TestNobodyDecidesByAMessage(t *testing.T) {
	theirs := []string{"internal/eventlog/store/engine"} // PgBouncer has one code for everything
	found := 0
	for _, f := range files(t) {
		if f.test || under(f.dir, testOnly) {
			continue
		}
		for _, at := range comparedMessages(f.syntax) {
			if found++; !under(f.dir, theirs) {
				t.Errorf("%s: compare the reason: messages may be reworded", fileSet.Position(at))
			}
		}
	}
	if found == 0 {
		t.Error("not even the one that may be there was found: is the search still right?")
	}
}

func TestTheSearchForComparedMessages(t *testing.T) {
	for code, want := range map[string]int{
		`if v.Message == syntax.Empty.Message {}`:                            2,
		`if "must not be empty" != v.Message {}`:                             1,
		`switch v.Message { case "must not be empty": }`:                     1,
		`switch text { case syntax.Empty.Message: }`:                         1,
		`switch { case v.Field == "a" && v.Message == user.NameIsAddress: }`: 1,
		`if strings.Contains(v.Message, "empty") {}`:                         1,
		`if slices.Contains(known, v.Message) {}`:                            1,
		`if pattern.MatchString(v.Message) {}`:                               1,
		`m := texts[v.Message]`:                                              1,
		`m := v.Message`:                                                     1,
		`if v.Message == "" {}`:                                              0,
		`if v.Reason == syntax.IsEmpty {}`:                                   0,
		`show(v.Message)`:                                                    0,
		`show(strings.Replace(v.Message, "request", "user", 1))`:             0,
		`out.Message = e.Message`:                                            0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+code+"\n}",
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(comparedMessages(f)); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}
