package repo

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limiters are the files that make a token bucket, a queue or a stored counter: how often each does so, and the rows of
// the table in docs/operations/limits.md that describe them. Files that make none have a limit of their own.
var limiters = map[string]struct {
	made int
	rows []string
}{
	"internal/base/outbound/outbound.go": {1, []string{"calls to others that somebody waits for"}},
	"internal/base/secret/password.go": {2,
		[]string{"hashing of passwords", "expensive imported hashes"}},
	"internal/domain/user/change.go":                 {0, []string{"events about the credentials of a guest"}},
	"internal/domain/webhook/dispatch.go":            {1, []string{"webhook messages in flight"}},
	"internal/eventlog/store/readbatch/readbatch.go": {1, []string{"reads from PostgreSQL"}},
	"internal/eventlog/store/store.go":               {2, []string{"commands for the database"}},
	"internal/life/invitation/link.go":               {1, []string{"invitations of an organization"}},
	"internal/domain/user/support.go":                {1, []string{"times that the throttle of a user is cleared"}},
	"internal/life/registration/registration.go": {2, []string{"registrations in an organization",
		"registrations in all organizations", "registrations that wait for their mail"}},
	"internal/limit/guessing/day.go": {1, []string{"wrong codes of a second factor"}},
	"internal/limit/guessing/guessing.go": {3, []string{"guesses in a network at a typed name",
		"guesses in all networks at an account"}},
	"internal/limit/mailcount/mailcount.go": {1, []string{"mails of a kind to a user or an invited address",
		"mails to a mailbox about registrations", "mails to a user about roles that an organization offers"}},
	"internal/signin/session/failures.go": {1, []string{"events about failed sign-ins of an account"}},
	"internal/oauth/device.go":            {0, []string{"polls of a device"}},
	"internal/oauth/oidc/backchannel.go":  {1, []string{"back-channel logouts in flight"}},
	"internal/oauth/trial/keeper.go":      {0, []string{"unfinished trials of sign-ins of a user"}},
	"internal/oauth/usercode.go":          {1, []string{"wrong codes of devices in a network"}},
	"internal/ops/server/limits.go": {2, []string{"requests of a caller", "requests of an organization",
		"requests of a network", "public requests of a network", "starts of a network",
		"tokens for the web console of a network"}},
	"internal/transport/rpc/share.go": {5, []string{"running operations", "requests that may be larger than 1 MiB",
		"lists and searches", "searches", "operations that write many objects"}},
	"internal/transport/rpc/stream.go":     {1, []string{"event streams", "watchers of the server's health"}},
	"internal/transport/web/budget.go":     {0, []string{"request bodies in memory"}},
	"internal/transport/web/connection.go": {1, []string{"cancelled requests of a connection"}},
}

// making is how a limiter is made of one of the kinds.
var making = regexp.MustCompile(`\bfairqueue\.(New\(|Pace\b)|` +
	`\bratelimit\.(New\(|NewLimits\(|NetworkLimiter\{|FairPool\{|Bucket\b)|` +
	`\bstored\.(Of|At)\[`)

const limitsPage = "docs/operations/limits.md"

// limitRows reads the table of limits: the rows' first cells, and all of its text.
func limitRows(t *testing.T) (names []string, text string) {
	t.Helper()
	page, err := os.ReadFile(root + "/" + limitsPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		text += line
		if name := strings.TrimSpace(cells[1]); name != "what" && strings.Trim(name, "-") != "" {
			names = append(names, name)
		}
	}
	return names, text
}

func TestEveryLimiterIsInTheTableOfLimits(t *testing.T) {
	var want []string
	for _, l := range limiters {
		want = append(want, l.rows...)
	}
	names, _ := limitRows(t)
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%s has the limits\n%s\nand this test knows\n%s", limitsPage,
			strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	made := map[string]int{}
	for _, f := range files(t) {
		if f.test || !under(f.dir, []string{"internal", "cmd"}) || under(f.dir, testOnly) {
			continue
		}
		source, err := os.ReadFile(root + "/" + f.path)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(making.FindAll(source, -1)); n > 0 {
			made[f.path] = n
		}
	}
	for path, l := range limiters {
		if made[path] != l.made {
			t.Errorf("%s makes %d limiters, not %d: describe each in %s, and list it in this test",
				path, made[path], l.made, limitsPage)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(made)) {
		if _, known := limiters[path]; !known {
			t.Errorf("%s makes %d limiters: describe each in %s, and list it in this test",
				path, made[path], limitsPage)
		}
	}
}

func TestTheTableOfLimitsHasEveryRefusalForTooMuch(t *testing.T) {
	const aSize = "BODY_TOO_LARGE" // waiting does not help
	_, text := limitRows(t)
	for reason, kinds := range documented(t) {
		if slices.Contains(kinds, "ResourceExhausted") && reason != aSize && !strings.Contains(text, "`"+reason+"`") {
			t.Errorf("%s says nothing about %s: which limit refuses with it?", limitsPage, reason)
		}
	}
}
