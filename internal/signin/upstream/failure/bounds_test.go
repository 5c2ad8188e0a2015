package failure

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

func TestTheMemoryForFailuresIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := NewRecorder(nil, func() time.Time { return now })
	for i := range 2 * maxCounted {
		if f := r.due(Refusal{Provider: fmt.Sprint(i), Check: Nonce}); f == nil || f.Count != 1 {
			t.Fatal("a first failure is not written")
		}
	}
	if r.due(Refusal{Provider: "0", Check: Nonce}) != nil {
		t.Error("a second failure within a minute asks the store")
	}
	if len(r.counted) != maxCounted {
		t.Errorf("%d are counted", len(r.counted))
	}
	now = now.Add(pause)
	if r.due(Refusal{Provider: "another", Check: Nonce}); len(r.counted) != 1 {
		t.Errorf("%d are counted after a minute", len(r.counted))
	}
}

// TestEveryCheckIsExplained: administrators see the names of checks in events.
func TestEveryCheckIsExplained(t *testing.T) {
	source, err := os.ReadFile("failure.go")
	testkit.Must(t, err)
	page, err := os.ReadFile("../../../../docs/operations/provider-failures.md")
	testkit.Must(t, err)
	console, err := os.ReadFile("../../../../web/console/src/lib/sign-ins.ts")
	testkit.Must(t, err)
	names := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 30 {
		t.Fatalf("only %d checks were found", len(names))
	}
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name[1]+"`") {
			t.Errorf("%s is not explained", name[1])
		}
		logout := slices.Contains([]string{TokenID, Event, Session}, name[1]) // the console has one text for all of these
		if !logout && !regexp.MustCompile(`\b`+name[1]+`\b`).Match(console) {
			t.Errorf("the console has no words for %s", name[1])
		}
	}
}
