package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// refuse has somebody turned away.
func refuse(t *testing.T, s *Sessions, r Refused) {
	t.Helper()
	r.UserID, r.Peer, r.UserAgent, r.RequestID = "usr_jo", home, "browser", "req_1"
	must(t, s.Refused(t.Context(), r))
}

// lastFailed is the payload of the last event, which is about failures.
func lastFailed(t *testing.T, s *eventtest.Store, mark int64) Failed {
	t.Helper()
	facts := s.Since(t, mark)
	if len(facts) == 0 || facts[len(facts)-1].Type != "sign_in.failed.v1" {
		t.Fatalf("recorded: %+v", facts)
	}
	var f Failed
	must(t, json.Unmarshal([]byte(facts[len(facts)-1].Payload), &f))
	return f
}

// Whatever way is tried, there is one event a minute about an account.
func TestAllWaysOfAnAccountShareOneEventAMinute(t *testing.T) {
	a := arm(t)
	in := signIn(t, a.sessions)
	me := as(t, a.sessions, in.Token)
	mark := a.Mark()
	toApp := From{Peer: home, UserAgent: "browser", App: "app_x"}
	_, err := a.sessions.Prove(t.Context(), me, wrongApp(a), toApp)
	if err == nil {
		t.Fatal("a wrong code is right")
	}
	attempt := try("jo", "wrong", home)
	attempt.App = "app_y"
	for range 2 {
		_, err = a.sessions.SignIn(t.Context(), attempt)
		eventtest.As(t, err, ErrSignInFailed)
	}
	refuse(t, a.sessions, Refused{Method: ByProvider, Reason: LinkIsSuspended})
	if got := a.Since(t, mark); len(got) != 1 || got[0].Payload !=
		`{"count":1,"by":[{"method":"otp","application":"app_x","reason":"second_factor_failed","count":1}]}` {
		t.Fatalf("recorded: %+v", got)
	}
	a.Advance(mergeWindow)
	_, err = a.sessions.Reauthenticate(t.Context(), me, "wrong", toApp)
	if err == nil {
		t.Fatal("a wrong password is right")
	}
	got := lastFailed(t, a.Store, mark)
	want := []FailedAs{{ByPassword, "app_y", WrongPassword, 2}, {ByProvider, "", LinkIsSuspended, 1},
		{ByPassword, "app_x", WrongPassword, 1}}
	if got.Count != 4 || got.Others != 0 || fmt.Sprint(got.By) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, e := range events(t, a.Store, mark) {
		if e.Actor != event.System {
			t.Errorf("%s is caused by %s", e.Type, e.Actor)
		}
	}
}

func TestAnEventTellsEightCausesApart(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	refuse(t, sessions, Refused{Method: ByProvider, Reason: WayNotAllowed})
	mark := s.Mark()
	for i := range 11 {
		for range 2 {
			refuse(t, sessions, Refused{Method: ByProvider, Reason: RoleMissing,
				Purpose: Purpose{Application: fmt.Sprint("app_", i)}})
		}
	}
	s.Advance(mergeWindow)
	refuse(t, sessions, Refused{Method: ByProvider, Reason: RoleMissing, Purpose: Purpose{Application: "app_7"}})
	got := lastFailed(t, s, mark)
	if got.Count != 23 || got.Others != 6 || len(got.By) != mostCause || got.By[7].Count != 3 {
		t.Errorf("got %+v", got)
	}
	state := eventtest.State(t, s, Kind, IDFor("usr_jo"))
	if state.Data.Failed != 24 || state.Sequence != 2 {
		t.Errorf("%+v at %d", state.Data, state.Sequence)
	}
}

func TestFailuresAreSaidWhenTheirMinuteIsOver(t *testing.T) {
	s, sessions := world(t)
	sessions.Unsaid = &Unsaid{}
	withPassword(t, s, cheap())
	failed := eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.failed.v1",
		Payload:  `{"count":2,"by":[{"method":"fed","reason":"link_suspended","count":2}]}`,
		Personal: `{"address":"192.0.2.1","userAgent":"browser"}`}
	for range 3 { // of which the first is said at once
		refuse(t, sessions, Refused{Method: ByProvider, Reason: LinkIsSuspended})
	}
	mark := s.Mark()
	s.Advance(mergedFor - time.Microsecond)
	must(t, sessions.SayFailures(t.Context()))
	s.Then(t, mark)
	s.Advance(time.Microsecond)
	must(t, sessions.SayFailures(t.Context()))
	must(t, sessions.SayFailures(t.Context()))
	s.Then(t, mark, failed)
	// What another node has said meanwhile is not said again.
	refuse(t, sessions, Refused{Method: ByProvider, Reason: LinkIsSuspended})
	refuse(t, sessions, Refused{Method: ByProvider, Reason: LinkIsSuspended})
	s.Advance(mergedFor)
	other := *sessions
	other.Unsaid = nil
	mark = s.Mark()
	refuse(t, &other, Refused{Method: ByProvider, Reason: LinkIsSuspended})
	must(t, sessions.SayFailures(t.Context()))
	if got := s.Since(t, mark); len(got) != 1 {
		t.Errorf("recorded: %+v", got)
	}
	for i := range 2 * mostUnsaid {
		sessions.Unsaid.put(fmt.Sprint("usr_", i), unsaid{})
	}
	if n := len(sessions.Unsaid.users); n != mostUnsaid {
		t.Errorf("%d accounts wait", n)
	}
}

// A wrong password writes as many counters for a name that nobody has, and strangers do not fill what waits to be said.
func TestNamesThatNobodyHasAreCountedAlike(t *testing.T) {
	s, sessions := world(t)
	sessions.Unsaid = &Unsaid{}
	withPassword(t, s, cheap())
	var written []string
	for _, name := range []string{"jo", "nobody"} {
		for range 2 {
			_, err := sessions.SignIn(t.Context(), try(name, "wrong", home))
			eventtest.As(t, err, ErrSignInFailed)
		}
		u, typed, err := sessions.find(t.Context(), name, NameScope{})
		must(t, err)
		tried := sessions.throttle(policy.Settings{}, atPassword(u, typed), idOf(u), home, RequestSource{})
		rows := ""
		for _, key := range tried.rows() {
			row, err := s.Row(t.Context(), key)
			must(t, err)
			rows += fmt.Sprint(row != nil, " ")
		}
		written = append(written, rows)
	}
	if written[0] != written[1] || !strings.HasSuffix(written[0], "true ") {
		t.Errorf("for a name that somebody has %s, for one that nobody has %s", written[0], written[1])
	}
	if n := len(sessions.Unsaid.users); n != 1 {
		t.Errorf("failures of %d accounts wait", n)
	}
}

func TestNothingIsRecordedOfSomebodyWhoIsGone(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	eventtest.Given(t, s, user.Kind, "usr_jo", "", nil, user.WasRemoved{})
	mark := s.Mark()
	refuse(t, sessions, Refused{Method: ByProvider, Reason: RoleMissing})
	s.Then(t, mark)
}

// A node of the version before keeps failures without a reason with those that slow down guessing.
func TestFailuresThatAnOlderNodeHasCountedAreReported(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	_, err := sessions.SignIn(t.Context(), try("jo", "wrong", home))
	eventtest.As(t, err, ErrSignInFailed)
	u := eventtest.State(t, s, user.Kind, "usr_jo")
	of := sessions.throttle(policy.Settings{}, atOwnPassword(u), "usr_jo", home, RequestSource{})
	key := event.RowKey{Table: event.Throttle, Key: of.Key()}
	row, err := s.Row(t.Context(), key)
	must(t, err)
	older := strings.Replace(string(row.Value), "{", `{"n":3,"t":2,"e":1,`, 1)
	s.GivenRow(event.Row{RowKey: key, Value: []byte(older), Expires: row.Expires})
	s.Advance(time.Minute)
	mark := s.Mark()
	_, err = sessions.SignIn(t.Context(), try("jo", "wrong", home))
	eventtest.As(t, err, ErrSignInFailed)
	place := `{"address":"192.0.2.1","userAgent":"browser"}`
	s.Then(t, mark, eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.failed.v1", Personal: place,
		Payload: `{"count":4,"by":[{"method":"pwd","reason":"wrong_password","count":1}],"others":3}`},
		eventtest.Fact{Object: IDFor("usr_jo"), Type: "sign_in.throttled.v1", Payload: `{"count":2}`, Personal: place})
}

// TestEveryReasonIsExplained: where programs read about it, and in the console in every language, with what to do.
func TestEveryReasonIsExplained(t *testing.T) {
	source, err := os.ReadFile("failures.go")
	must(t, err)
	page, err := os.ReadFile("../../../docs/api/events.md")
	must(t, err)
	texts, err := filepath.Glob("../../../web/console/src/texts/*/events.json")
	must(t, err)
	names := regexp.MustCompile(`(?m)^\t[A-Z]\w+ +Reason += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 15 || len(texts) != 4 {
		t.Fatalf("%d reasons and %d languages were found", len(names), len(texts))
	}
	for _, name := range names {
		if !strings.Contains(string(page), "| `"+name[1]+"` |") {
			t.Errorf("docs/api/events.md does not explain %s", name[1])
		}
	}
	for _, file := range texts {
		text, err := os.ReadFile(file)
		must(t, err)
		said := map[string]any{}
		must(t, json.Unmarshal(text, &said))
		for _, name := range names {
			for _, key := range []string{"why." + name[1], "whatToDo." + name[1]} {
				if s, _ := said[key].(string); s == "" {
					t.Errorf("%s has no %s", file, key)
				}
			}
		}
	}
}
