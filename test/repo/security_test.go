package repo

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
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
