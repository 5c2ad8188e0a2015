package refusal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/test/testkit"
)

var refused = errs.New(errs.Unauthenticated, "INVALID_CLIENT", "no")

// read is what a book says about an application, as text.
func read(b *Book, app string) string {
	last, totals, _ := b.Read(app)
	var said []string
	for _, n := range last {
		said = append(said, fmt.Sprintf("%s %s %d", n.Cause, n.Address, n.Count))
	}
	return fmt.Sprint(said, totals)
}

func TestABookKeepsWhatIsAboutAnApplication(t *testing.T) {
	clock := testkit.NewClock(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	b := NewBook(clock.Now)
	for _, err := range []error{nil, errors.New("x"), refused, About(refused, "", Secret)} {
		b.Note(err)
	}
	if len(b.apps) != 0 {
		t.Errorf("%d applications were refused", len(b.apps))
	}
	for _, err := range []error{About(refused, "app_1", Secret), fmt.Errorf("around: %w", About(refused, "app_1", Method)),
		OfAddress(refused, "app_1", RedirectURI, "https://me:pw@a.test/b?code=x#y"), About(refused, "app_1", Secret),
		OfAddress(refused, "app_1", RedirectURI, "https://c.test/"), About(refused, "app_2", CodeUsed)} {
		clock.Advance(time.Second)
		b.Note(err)
	}
	if got, want := read(b, "app_1"), "[redirect_uri https://c.test/ 1 client_secret  2 redirect_uri https://a.test/b?…#… 1 "+
		"client_method  1] [{client_method 1} {client_secret 2} {redirect_uri 2}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	last, _, since := b.Read("app_1")
	if !since.Equal(start) || !last[0].Last.Equal(start.Add(5*time.Second)) || !last[1].Last.Equal(start.Add(4*time.Second)) {
		t.Errorf("%+v since %v", last, since)
	}
	if got := read(b, "app_3"); got != "[] []" {
		t.Errorf("of another application: %s", got)
	}
	var none *Book
	none.Note(About(refused, "app_1", Secret))
	if got := read(none, "app_1"); got != "[] []" {
		t.Errorf("of no book: %s", got)
	}
}

func TestABookIsBounded(t *testing.T) {
	b := NewBook(time.Now)
	for i := range 3 * mostEach {
		b.Note(OfAddress(refused, "app_x", RedirectURI, fmt.Sprintf("https://a.test/%d%s", i, strings.Repeat("é", 900))))
	}
	last, totals, _ := b.Read("app_x")
	if len(last) != mostEach || !strings.HasPrefix(last[0].Address, "https://a.test/59") || len(last[0].Address) > 210 ||
		totals[0].Count != 3*mostEach {
		t.Errorf("%d are kept, the last %q, of %v", len(last), last[0].Address, totals)
	}
	for i := range mostApps {
		if i == mostApps/2 {
			b.Note(About(refused, "app_x", Secret)) // which makes it one of the last
		}
		b.Note(About(refused, fmt.Sprint("app_", i), Secret))
	}
	if len(b.apps) != mostApps || b.used.Len() != mostApps {
		t.Errorf("%d applications are kept", len(b.apps))
	}
	if read(b, "app_0") != "[] []" || read(b, "app_x") == "[] []" || read(b, "app_999") == "[] []" {
		t.Error("another one was forgotten than the one that was refused longest ago")
	}
}

func TestABookIsReadAndWrittenAtOnce(t *testing.T) {
	b := NewBook(time.Now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				b.Note(About(refused, fmt.Sprint("app_", i%2), Secret))
				b.Read("app_0")
			}
		})
	}
	all.Wait()
	if got := read(b, "app_1"); got != "[client_secret  400] [{client_secret 400}]" {
		t.Errorf("got %s", got)
	}
}

// TestEveryCauseIsExplained: where developers read about it, and in the console in every language, with what to do.
func TestEveryCauseIsExplained(t *testing.T) {
	source, err := os.ReadFile("refusal.go")
	testkit.Must(t, err)
	page, err := os.ReadFile("../../../docs/api/openid-connect.md")
	testkit.Must(t, err)
	texts, err := filepath.Glob("../../../web/console/src/texts/*/apps.json")
	testkit.Must(t, err)
	ofUsers, err := filepath.Glob("../../../web/console/src/texts/*/users.json") // where those of service users are shown
	testkit.Must(t, err)
	names := regexp.MustCompile(`(?m)^\t[A-Z]\w+ +Cause += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 15 || len(texts) != 4 || len(ofUsers) != 4 {
		t.Fatalf("%d causes and %d languages were found", len(names), len(texts))
	}
	for _, name := range names {
		if !strings.Contains(string(page), "| `"+name[1]+"` |") {
			t.Errorf("docs/api/openid-connect.md does not explain %s", name[1])
		}
	}
	for _, file := range append(texts, ofUsers...) {
		text, err := os.ReadFile(file)
		testkit.Must(t, err)
		said := map[string]any{}
		testkit.Must(t, json.Unmarshal(text, &said))
		for _, name := range names {
			if strings.HasPrefix(name[1], "workload_") != slices.Contains(ofUsers, file) {
				continue
			}
			for _, key := range []string{"refusal." + name[1], "refusalToDo." + name[1]} {
				if s, _ := said[key].(string); s == "" {
					t.Errorf("%s has no %s", file, key)
				}
			}
		}
	}
}
