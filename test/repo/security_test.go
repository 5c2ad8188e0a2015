package repo

import (
	"cmp"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/security.md says which test holds which promise. A test that is renamed or lost has to show there.
func TestTheTestsOfTheSecurityListExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{} // folder and name
	for _, f := range files(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil {
				there[f.dir+" "+fn.Name.Name] = true
			}
		}
	}
	held := regexp.MustCompile("`([a-z]+(?:/[a-z]+)*)`: ((?:Test\\w+(?:, )?)+)")
	found := 0
	for _, m := range held.FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(m[2], ", ") {
			if found++; !there[m[1]+" "+name] {
				t.Errorf("there is no test %s in %s", name, m[1])
			}
		}
	}
	if named := len(regexp.MustCompile(`\bTest[A-Z]\w+`).FindAll(text, -1)); found != named || found < 50 {
		t.Errorf("%d tests are named, %d of them were looked for", named, found)
	}
}

// The rows are sorted by their class, and no promise is made twice: somebody who looks for a class finds all of it in
// one place.
func TestTheSecurityListIsSorted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+)([a-z]?)\*? \| ([^|]+)\|`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 50 {
		t.Errorf("only %d rows were found: is the search still right?", len(rows))
	}
	promised, last, suffix := map[string]bool{}, 0, ""
	for _, row := range rows {
		class, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Or(cmp.Compare(class, last), cmp.Compare(row[2], suffix)) < 0 {
			t.Errorf("%s%s stands behind %d%s", row[1], row[2], last, suffix)
		}
		if last, suffix = class, row[2]; promised[row[3]] {
			t.Errorf("%s%s is there twice: %s", row[1], row[2], row[3])
		}
		promised[row[3]] = true
	}
}
