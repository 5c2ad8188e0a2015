package repo

import (
	"bufio"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// Whatever the API can do, people can do in the console, or a reason says why not.
func TestEveryOperationHasItsPlaceInTheConsole(t *testing.T) {
	const sources = "../../web/console/src"
	named := regexp.MustCompile(`\b([A-Z]\w+Service)\.method\.(\w+)`)
	short := regexp.MustCompile(`const (\w+) = ([A-Z]\w+Service)\.method;`)
	used := map[string]bool{}
	err := filepath.WalkDir(sources, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "gen" {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".svelte" && ext != ".ts" || strings.HasSuffix(path, ".test.ts") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			used[m[1]+"/"+strings.ToLower(m[2])] = true
		}
		for _, s := range short.FindAllStringSubmatch(string(text), -1) {
			for _, m := range regexp.MustCompile(`\b`+s[1]+`\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
				used[s[2]+"/"+strings.ToLower(m[1])] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	list, err := os.Open("testdata/not_in_the_console.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		name, reason, _ := strings.Cut(lines.Text(), " ")
		if name == "" || name == "#" {
			continue
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s has no reason", name)
		}
		reasons[name] = true
	}
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, _ *signetv1.Rule) {
		service, name := string(m.Parent().Name()), string(m.Name())
		key := service + "/" + name
		switch inConsole := used[service+"/"+strings.ToLower(name)]; {
		case inConsole && reasons[key]:
			t.Errorf("%s is used by the console, and testdata/not_in_the_console.txt says why not", key)
		case !inConsole && !reasons[key]:
			t.Errorf("nothing in the console calls %s: give it a place, or a reason in testdata/not_in_the_console.txt", key)
		}
		delete(reasons, key)
	})
	for name := range reasons {
		t.Errorf("testdata/not_in_the_console.txt names %s, which is no operation", name)
	}
}

// The console says every event as a sentence, and can list events by every type.
func TestEveryEventHasASentenceInTheConsole(t *testing.T) {
	samples, err := filepath.Glob("testdata/events/*.json")
	if err != nil || len(samples) == 0 {
		t.Fatalf("there are no samples of events: %v", err)
	}
	newest := map[string]string{}
	for _, path := range samples { // sorted, so that the last version stays
		m := regexp.MustCompile(`^(\w+)\.(\w+)\.v(\d+)`).FindStringSubmatch(filepath.Base(path))
		newest[m[1]+"."+m[2]] = m[3]
	}
	text, err := os.ReadFile("../../web/console/src/lib/events.ts")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	kinds := regexp.MustCompile("(?m)^  (\\w+):\\s+['`]([\\w:\\s]+)['`],$")
	for _, kind := range kinds.FindAllStringSubmatch(string(text), -1) {
		for name := range strings.FieldsSeq(kind[2]) {
			name, version, _ := strings.Cut(name, ":")
			listed[kind[1]+"."+name] = cmp.Or(version, "1")
		}
	}
	// make console compares the other languages with it
	texts, err := os.ReadFile("../../web/console/src/texts/en/events.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range newest {
		if listed[name] != version {
			t.Errorf("web/console/src/lib/events.ts does not list %s with version %s", name, version)
		}
		delete(listed, name)
		if !strings.Contains(string(texts), `"event.`+name+`":`) {
			t.Errorf("web/console/src/texts/en/events.json has no sentence for %s", name)
		}
	}
	for name := range listed {
		t.Errorf("web/console/src/lib/events.ts lists %s, of which test/repo/testdata/events has no sample", name)
	}
}

// What people read names no path of the repository and none of the API: it leads to pages that the server shows.
func TestTheConsoleNamesNoPaths(t *testing.T) {
	const sources = "../../web/console/src"
	path := regexp.MustCompile(`\b(docs|proto|internal|cmd|examples|test|scripts)/\w|\.md\b|/v1/`)
	page := regexp.MustCompile("['\"`]/docs/([^'\"`]*)")
	texts, pages := 0, 0
	err := filepath.WalkDir(sources, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && entry.Name() == "gen" {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if filepath.Ext(name) == ".json" {
			texts++
			for _, found := range path.FindAllString(string(text), -1) {
				t.Errorf("%s says %q: link to a page below /docs/", name, found)
			}
		}
		// The addresses of pages are those of files, without .md.
		for _, m := range page.FindAllStringSubmatch(string(text), -1) {
			for _, file := range strings.Split(strings.ReplaceAll(m[1], "${page}", "google|microsoft|apple|gitlab|github|openid-connect|jwt"), "|") {
				if i := strings.Index(m[1], "${page}"); i > 0 && !strings.HasPrefix(file, m[1][:i]) {
					file = m[1][:i] + file
				}
				pages++
				file, _, _ = strings.Cut(file, "#")
				if strings.HasSuffix(file, "/") {
					file += "README"
				}
				if _, err := os.Stat("../../docs/" + file + ".md"); err != nil {
					t.Errorf("%s leads to /docs/%s: %v", name, m[1], err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 4*10 || pages < 8 {
		t.Errorf("only %d texts and %d links are found", texts, pages)
	}
}
