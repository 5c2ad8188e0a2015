package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`(?:\]\(|src=")([^)"\s]+)[)"]`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksLeadSomewhere: every link of a page to a file of the repository, and to a heading in it, has its goal.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if to, anchor, _ := strings.Cut(m[1], "#"); !strings.Contains(to, ":") {
				followed++
				goal := filepath.Join(filepath.Dir(path), to)
				if to == "" {
					goal = path
				}
				if problem := leads(goal, anchor); problem != "" {
					t.Errorf("%s: %s: %s", path, m[1], problem)
				}
			}
		}
		return err
	}))
	if followed < 150 {
		t.Errorf("only %d links were found: is the search still right?", followed)
	}
}

func leads(goal, anchor string) string {
	info, err := os.Stat(goal)
	if err != nil {
		return "there is no such file"
	}
	if anchor == "" || info.IsDir() {
		return ""
	}
	text, err := os.ReadFile(goal)
	if err != nil {
		return err.Error()
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		if strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return ""
		}
	}
	return "there is no such heading"
}
