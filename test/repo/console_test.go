package repo

import (
	"bufio"
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
		if ext := filepath.Ext(path); ext != ".svelte" && ext != ".ts" {
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
