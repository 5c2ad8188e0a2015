package session

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// supports is a permit of somebody of support.
func supports(t *testing.T, agent, org string) access.Permit {
	t.Helper()
	permit, err := (&access.Caller{UserID: agent, RequestID: "req_1",
		Memberships: access.Memberships{access.Installation: {access.IAMSupport}}}).In(org, access.UserSupport)
	must(t, err)
	return permit
}

// readOnly is a store that takes no changes while it is set.
type readOnly struct {
	event.Store
	is atomic.Bool
}

func (s *readOnly) Do(ctx context.Context, c event.Command) error {
	if s.is.Load() {
		return errors.New("the database takes no changes")
	}
	return s.Store.Do(ctx, c)
}

// openings are those that are recorded of a user, each with its agent.
func openings(t *testing.T, s *eventtest.Store, userID string) (agents []string) {
	t.Helper()
	page, err := s.EventsWhere(t.Context(), event.EventQuery{Objects: []string{IDFor(userID)}, OldestFirst: true,
		Types: []event.Type{OpenedBySupport{}.EventType()}, Limit: 100})
	must(t, err)
	for _, e := range page.Events {
		agents = append(agents, e.Actor)
	}
	return agents
}

func TestWhomSupportOpensIsRecordedOnceAnHour(t *testing.T) {
	s, _ := world(t)
	nodes := []*Openings{NewOpenings(s, s.Now, slog.New(slog.DiscardHandler)),
		NewOpenings(s, s.Now, slog.New(slog.DiscardHandler))}
	person(t, s, "usr_b", "org_b", "b", "")
	for _, step := range []struct {
		name  string
		node  int
		agent string
		wait  time.Duration
		want  int
	}{
		{"the first time", 0, "usr_1", 0, 1},
		{"again", 0, "usr_1", 0, 1},
		{"on another node", 1, "usr_1", time.Minute, 1},
		{"another agent", 0, "usr_2", 0, 2},
		{"before an hour is over", 0, "usr_1", 58 * time.Minute, 2},
		{"after it, on the node that has recorded nothing", 1, "usr_1", time.Minute, 3},
		{"which the first node finds", 0, "usr_1", 0, 3},
		{"after it on the other node", 1, "usr_2", time.Hour, 4},
	} {
		s.Advance(step.wait)
		o := nodes[step.node]
		if next := o.add(&unrecorded{opened: opened{step.agent, "usr_b"}, done: make(chan struct{})}); next != nil {
			must(t, o.flush(t.Context()))
			<-next.done
		}
		if got := openings(t, s, "usr_b"); len(got) != step.want || got[len(got)-1] == "" {
			t.Errorf("%s: recorded %q, want %d", step.name, got, step.want)
		}
	}
	_, err := nodes[0].record(t.Context(), &unrecorded{opened: opened{"usr_1", "usr_gone"}})
	must(t, err)
	if got := openings(t, s, "usr_gone"); got != nil {
		t.Errorf("of nobody is recorded %q", got)
	}
}

func TestAReadGoesOnWithoutItsRecordWhichFollows(t *testing.T) {
	s, _ := world(t)
	person(t, s, "usr_b", "org_b", "b", "")
	store := &readOnly{Store: s}
	store.is.Store(true)
	o := NewOpenings(store, s.Now, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.Run(ctx) }()
	gone, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for it
	o.Note(gone, supports(t, "usr_1", "org_b"), "usr_b")
	o.Note(t.Context(), supports(t, "usr_1", "org_b"), "usr_b") // known: it does not wait
	if got := openings(t, s, "usr_b"); got != nil {
		t.Errorf("recorded %q", got)
	}
	store.is.Store(false)
	stop() // what waits is stored before a node stops
	<-ended
	if got := openings(t, s, "usr_b"); len(got) != 1 || got[0] != "usr_1" {
		t.Errorf("then %q", got)
	}
}

func TestOpeningsThatWaitAreBounded(t *testing.T) {
	s, _ := world(t)
	store := &readOnly{Store: s}
	store.is.Store(true)
	o := NewOpenings(store, s.Now, slog.New(slog.DiscardHandler))
	for range openingsKept + 1 {
		o.add(&unrecorded{opened: opened{"usr_1", event.NewID("usr")}, done: make(chan struct{})})
	}
	if len(o.waiting) != openingsKept || len(o.known) > openingsKept {
		t.Errorf("%d wait, %d are known", len(o.waiting), len(o.known))
	}
}

// Who clears the throttle starts all counts of attempts again, but neither the guesses of the day nor what is known of
// networks.
func TestAClearedThrottleStartsAnotherRound(t *testing.T) {
	s, sessions := world(t)
	person(t, s, "usr_b", "org_b", "b", "")
	caller := &access.Caller{UserID: "usr_b", OrgID: "org_b"}
	rows := func() (all []event.RowKey) {
		factors, err := sessions.factorThrottle(t.Context(), caller, ByTOTP, From{Peer: home})
		must(t, err)
		u := eventtest.State(t, s, user.Kind, "usr_b")
		password := sessions.throttle(policy.Settings{}, atOwnPassword(u), u.ID, home, RequestSource{})
		return append(password.Rows(), factors.Rows()...)
	}
	changed := func(before []event.RowKey) (out string) {
		for i, row := range rows() {
			if row == before[i] {
				out += "="
			} else {
				out += "x"
			}
		}
		return out
	}
	before := rows() // typed, account, network; typed, account, network, day
	eventtest.Given(t, s, user.Kind, "usr_b", "", nil, user.ThrottleCleared{})
	if got := changed(before); got != "xx=xx==" {
		t.Errorf("cleared: %s", got)
	}
	before = rows()
	eventtest.Given(t, s, user.Kind, "usr_b", "", nil, user.ThrottleCleared{})
	if got := changed(before); got != "xx=xx==" {
		t.Errorf("once more: %s", got)
	}
	before = rows()
	eventtest.Given(t, s, user.Kind, "usr_b", "", nil, user.PasswordSet{})
	if got := changed(before); got != "xxxxx=x" {
		t.Errorf("another password: %s", got)
	}
}
