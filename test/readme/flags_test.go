package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testkit"
)

var (
	command = regexp.MustCompile("\\bsignet ((?:start|health|migrate|rebuild|verify|admin recover|admin first|keys list|keys rotate|backup|restore|master-key rotate|move|import users|idp check|doctor|version)\\b)([^`|\n]*)")
	flag    = regexp.MustCompile(`--[a-z][a-z0-9-]+`)
	setting = regexp.MustCompile("`(--[a-z][a-z0-9-]+)[` ]")
)

// TestCommandsInTheDocsHaveTheirFlags: whatever a page writes after a command of the program, the help of that command has it. A flag that stands alone belongs
// to some command.
func TestCommandsInTheDocsHaveTheirFlags(t *testing.T) {
	helps, all, found := map[string]string{}, "", 0
	binary, err := testkit.Program(t.TempDir())
	must(t, err)
	help := func(command string) string {
		if _, known := helps[command]; !known {
			out, err := exec.Command(binary, append(strings.Fields(command), "--help")...).Output()
			must(t, err)
			helps[command], all = string(out), all+string(out)
		}
		return helps[command]
	}
	eachPage(t, func(path, text string) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			for _, f := range flag.FindAllString(m[2], -1) {
				if found++; !strings.Contains(help(m[1]), f) {
					t.Errorf("%s: signet %s has no %s", path, m[1], f)
				}
			}
		}
	})
	if found < 20 {
		t.Errorf("only %d flags were found: is the search still right?", found)
	}
	eachPage(t, func(path, text string) {
		if !strings.Contains(path, "docs/operations/") && !strings.HasSuffix(path, "docs/troubleshooting.md") {
			return // others speak of flags of other programs, too
		}
		for _, m := range setting.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(all, m[1]) {
				t.Errorf("%s: no command has %s", path, m[1])
			}
		}
	})
}

// eachPage calls visit with every page of the docs but that of mistakes, and the README.
func eachPage(t *testing.T, visit func(path, text string)) {
	t.Helper()
	pages := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../docs/*/*/*.md"} {
		more, err := filepath.Glob(pattern)
		must(t, err)
		pages = append(pages, more...)
	}
	for _, path := range pages {
		if filepath.Base(path) == "mistakes.md" {
			continue // its flags are wrong on purpose
		}
		text, err := os.ReadFile(path)
		must(t, err)
		visit(path, string(text))
	}
}
