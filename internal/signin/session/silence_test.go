package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

// Wrong passwords under one name, then under another: whether both are one person's must not show.
func TestAFewGuessesDoNotTellWhichNamesAreOnePersons(t *testing.T) {
	// Three people: jo has a user name and an address, and two others have one of them each that could be jo's.
	given := func(t *testing.T) (*eventtest.Store, *Sessions) {
		s, sessions := world(t)
		withPassword(t, s, cheap())
		person(t, s, "usr_al", "org_def", "al", "al@mail.test")
		password(t, s, "usr_al", cheap(), user.PasswordSet{})
		return s, sessions
	}
	for _, c := range []struct {
		name    string
		before  func(t *testing.T, sessions *Sessions, s *eventtest.Store)
		guesses int // under the first name, with a wait of a minute after each fourth
	}{
		{"nobody came in before", nil, 6},
		{"after the owner came in from there", func(t *testing.T, sessions *Sessions, s *eventtest.Store) {
			for _, name := range []string{"jo", "al"} {
				_, err := sessions.SignIn(t.Context(), try(name, right, home))
				must(t, err)
			}
			s.GivenRow(joRow(cheap()))
			s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_al"), Value: cheap()})
		}, 6},
		{"after many guesses", nil, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string][]string{}
			for _, second := range []string{"jo@mail.test", "al@mail.test", "nobody@mail.test"} {
				s, sessions := given(t)
				if c.before != nil {
					c.before(t, sessions, s)
				}
				for i := range c.guesses {
					_, err := sessions.SignIn(t.Context(), try("jo", "wrong", home))
					seen[second] = append(seen[second], answer(err))
					if i%4 == 3 {
						s.Advance(time.Minute)
					}
				}
				for range 7 {
					_, err := sessions.SignIn(t.Context(), try(second, "wrong", home))
					seen[second] = append(seen[second], answer(err))
				}
			}
			own, other, nobody := seen["jo@mail.test"], seen["al@mail.test"], seen["nobody@mail.test"]
			if !slices.Equal(own, other) || !slices.Equal(own, nobody) {
				t.Errorf("jo's own: %q\nanother's: %q\nnobody's: %q", own, other, nobody)
			}
			if own[c.guesses] != "SIGN_IN_FAILED" || own[c.guesses+pairFree] != "SIGN_IN_THROTTLED 1s" {
				t.Errorf("under the second name: %q", own[c.guesses:])
			}
		})
	}
}

func TestTheAccountCountsGuessesUnderAllItsNames(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for i := range accountFree {
		name := []string{"jo", "jo@mail.test"}[i%2]
		if _, err := sessions.SignIn(t.Context(), try(name, "wrong", net(i))); answer(err) != "SIGN_IN_FAILED" {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
	}
	for _, name := range []string{"jo", "jo@mail.test"} {
		if _, err := sessions.SignIn(t.Context(), try(name, right, net(1000))); answer(err) != "SIGN_IN_THROTTLED 1s" {
			t.Errorf("%s: %s", name, answer(err))
		}
	}
}

// asked notes what is asked of the store, without the names.
type asked struct {
	event.Store
	mu    sync.Mutex
	asked []string
}

func (a *asked) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
}

func (a *asked) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	a.note("record %s", ref.Kind)
	return a.Store.Record(ctx, ref)
}

func (a *asked) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	a.note("row of %s", key.Table)
	return a.Store.Row(ctx, key)
}

func (a *asked) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	var said []string
	for _, w := range ways {
		if w.Claim != (event.Claim{}) {
			said = append(said, "holder")
		} else {
			said = append(said, fmt.Sprintf("first of %d where %s, anywhere: %t", len(w.Values), w.Column, w.Anywhere))
		}
	}
	a.note("find %q", said)
	return a.Store.Find(ctx, ways)
}

func (a *asked) Do(ctx context.Context, c event.Command) error {
	kinds := func(refs []event.Ref) (kinds []event.Kind) {
		for _, r := range refs {
			kinds = append(kinds, r.Kind)
		}
		return kinds
	}
	tables := []event.SideTable{}
	for _, r := range c.Rows {
		tables = append(tables, r.Table)
	}
	a.note("do: creates %v, writes %v, reads %v, claims %d, rows of %v", kinds(c.Create), kinds(c.Write), kinds(c.Read),
		len(c.Claims), tables)
	return a.Store.Do(ctx, c)
}

// Names that nobody has take the same work as those that somebody has, before the answer is given.
func TestTheWorkIsTheSameForNamesThatNobodyHas(t *testing.T) {
	for what, act := range map[string]func(s *Sessions, name string) error{
		"asking for a reset": func(s *Sessions, name string) error {
			return s.RequestReset(t.Context(), ResetRequest{LoginName: name, Peer: home, UserAgent: "browser"})
		},
		"a wrong password": func(s *Sessions, name string) error {
			_, err := s.SignIn(t.Context(), try(name, "wrong", home))
			return err
		},
		"being turned away": func(s *Sessions, name string) (err error) {
			for range pairFree + 1 {
				_, err = s.SignIn(t.Context(), try(name, "wrong", home))
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			for _, names := range [][]string{{"jo", "nobody"}, {"jo@def.test", "nobody@def.test"},
				{"jo@mail.test", "nobody@mail.test", "else@mail.test"},
				{"jo@def.test", "by-mail@def.test"}, {"jo@b.test", "bo@b.test"}} {
				var first []string
				var told string
				for i, name := range names {
					s, sessions := world(t)
					withPassword(t, s, cheap())
					person(t, s, "usr_by", "org_def", "by", "by-mail@def.test")
					password(t, s, "usr_by", cheap(), user.PasswordSet{})
					person(t, s, "usr_bo", "org_b", "bo", "")
					password(t, s, "usr_bo", cheap(), user.PasswordSet{})
					verified(t, s, "usr_else", "org_b", "else@mail.test", byOwner)
					password(t, s, "usr_else", cheap(), user.PasswordSet{})
					noting := &asked{Store: s}
					sessions.Store = noting
					got := answer(act(sessions, name))
					slices.Sort(noting.asked) // some is asked at the same time
					if i == 0 {
						first, told = noting.asked, got
						continue
					}
					if !slices.Equal(first, noting.asked) || got != told {
						t.Errorf("%s: %s %q\n%s: %s %q", names[0], told, first, name, got, noting.asked)
					}
				}
			}
		})
	}
}

// Waiting requests are rows that nobody can read, and they do not stay.
func TestARequestForAResetWaitsSealedAndIsDroppedWithItsAnswer(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for _, name := range []string{"JO@Mail.Test", "a-password-typed-by-mistake"} {
		must(t, sessions.RequestReset(t.Context(),
			ResetRequest{LoginName: name, Peer: home, UserAgent: "browser", RequestID: "req_1"}))
		if s.Stored(t, name) {
			t.Errorf("%s is stored in the clear", name)
		}
	}
	waiting := func() int {
		rows, err := s.RowsOf(t.Context(), event.Deliveries, resetPrefix, "", 10)
		must(t, err)
		return len(rows)
	}
	if n := waiting(); n != 2 {
		t.Errorf("%d wait", n)
	}
	mark := s.Mark()
	must(t, sessions.AnswerWaitingResets(t.Context()))
	s.Then(t, mark, requested)
	if n := waiting(); n != 0 {
		t.Errorf("%d wait still", n)
	}
}

func TestRequestsForResetsThatNobodyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		login string
		wait  time.Duration
	}{"of an hour ago": {"jo", resetStale},
		"with a name that is too long to be stored": {"jo@" + string(make([]byte, maxResetName)), 0}} {
		t.Run(name, func(t *testing.T) {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			must(t, sessions.RequestReset(t.Context(), ResetRequest{LoginName: c.login, Peer: home}))
			rows, err := s.RowsOf(t.Context(), event.Deliveries, resetPrefix, "", 10)
			if must(t, err); len(rows) != 1 || len(rows[0].Value) > maxResetName {
				t.Errorf("%d rows", len(rows))
			}
			s.Advance(c.wait)
			mark := s.Mark()
			must(t, sessions.AnswerWaitingResets(t.Context()))
			s.Then(t, mark)
			if rows, err = s.RowsOf(t.Context(), event.Deliveries, resetPrefix, "", 10); err != nil || len(rows) != 0 {
				t.Errorf("%d rows stay, %v", len(rows), err)
			}
		})
	}
}

func TestManyRequestsForResetsAreAnsweredAtOnceByWhicheverNode(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	for i := range 2*resetPage + 1 {
		must(t, sessions.RequestReset(t.Context(), ResetRequest{LoginName: fmt.Sprint("nobody", i), Peer: home}))
	}
	must(t, sessions.RequestReset(t.Context(),
		ResetRequest{LoginName: "jo", Peer: home, UserAgent: "browser", RequestID: "req_1"}))
	mark := s.Mark()
	failed := make(chan error)
	for range 3 {
		go func() { failed <- sessions.AnswerWaitingResets(t.Context()) }()
	}
	for range 3 {
		must(t, testkit.Receive(t, failed, "a node has answered what waited"))
	}
	s.Then(t, mark, requested)
	if rows, err := s.RowsOf(t.Context(), event.Deliveries, resetPrefix, "", 10); err != nil || len(rows) != 0 {
		t.Errorf("%d rows stay, %v", len(rows), err)
	}
}

// A policy with few attempts on the account must not bring back what the count by name keeps to itself.
func TestAStrictPolicyDoesNotTellWhichNamesAreOnePersonsEither(t *testing.T) {
	for _, second := range []string{"jo@mail.test", "nobody@mail.test"} {
		s, sessions := strictWorld(t, policy.Policy{AccountAttempts: 10, NetworkAttempts: 10}, nil)
		withPassword(t, s, cheap())
		for _, name := range []string{"jo", second} {
			for i := range 10 {
				if _, err := sessions.SignIn(t.Context(), try(name, "wrong", home)); answer(err) != "SIGN_IN_FAILED" {
					t.Errorf("%s, attempt %d as %s: %s", second, i+1, name, answer(err))
				}
			}
		}
	}
}
