package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// messages that docs/troubleshooting.md quotes: `in code` in the first column.
var quotedMessage = regexp.MustCompile("`([^`]+)`")

// TestTroubleshootingQuotesMessagesOfTheProgram: people search for what they see.
func TestTroubleshootingQuotesMessagesOfTheProgram(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	must(t, err)
	said, quoted := sources(t), 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range quotedMessage.FindAllStringSubmatch(cells[1], -1) {
			if quoted++; !strings.Contains(said, strings.ToLower(m[1])) {
				t.Errorf("the program does not say %q", m[1])
			}
		}
	}
	if quoted < 25 {
		t.Errorf("only %d messages were found: is the search still right?", quoted)
	}
}

// sources is the text of the program in lower case: its code without tests, and the texts of its pages. Strings that are put together over two lines are joined.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, root := range []string{"../../cmd", "../../internal", "../../docs/api/reasons.txt"} {
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return regexp.MustCompile(`" \+\n\s*"`).ReplaceAllString(strings.ToLower(all.String()), "")
}
