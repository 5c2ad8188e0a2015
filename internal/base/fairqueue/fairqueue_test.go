package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

var errFull = &errs.Error{Kind: errs.Unavailable, Reason: "FULL", RetryAfter: time.Second}

// shop is slots with work in them that ends when it is told to, one after the other.
type shop struct {
	*Slots
	t      *testing.T
	finish chan struct{}
	begun  []string // in order
}

func open(t *testing.T, b Bounds) *shop {
	b.Full = errFull
	return &shop{Slots: New(b), t: t, finish: make(chan struct{})}
}

// start begins work, and returns when it holds a slot or waits for one.
func (s *shop) start(name string, c Claim) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- s.Do(s.t.Context(), c, func() error {
			s.begun = append(s.begun, name)
			<-s.finish
			return nil
		})
	}()
	synctest.Wait()
	return done
}

// end lets so many finish, each before the next.
func (s *shop) end(n int) {
	for range n {
		s.finish <- struct{}{}
		synctest.Wait()
	}
}

func (s *shop) begins(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.begun, want) {
		s.t.Errorf("work began in the order %q, want %q", s.begun, want)
	}
}

// ended demands that work has ended, with this error.
func ended(t *testing.T, done <-chan error, want error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	default:
		t.Errorf("it waits, or works, and should have ended with %v", want)
	}
}

func TestAnOrganizationThatIsAloneHasAllThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 2, Waiting: 2})
		for i := range 4 {
			s.start(fmt.Sprint(i), Claim{Org: "a"})
		}
		if held, waiting := s.Load(); held != 2 || waiting != 2 {
			t.Errorf("%d are held and %d wait", held, waiting)
		}
		ended(t, s.start("4", Claim{Org: "a"}), errFull)
		s.end(4)
		s.begins("0", "1", "2", "3")
		if held, waiting := s.Load(); held != 0 || waiting != 0 {
			t.Errorf("in the end %d are held and %d wait", held, waiting)
		}
	})
}

func TestTurnsGoRoundTheOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 100})
		for i := range 5 {
			s.start(fmt.Sprint("a", i), Claim{Org: "a"})
		}
		s.start("b0", Claim{Org: "b"})
		s.start("b1", Claim{Org: "b"})
		s.start("c0", Claim{Org: "c"})
		s.end(8)
		s.begins("a0", "a1", "b0", "c0", "a2", "b1", "a3", "a4")
	})
}

// TestWhoComesAgainAndAgainDoesNotGoFirst: an organization that always has one at work and one waiting is not a new one
// each time.
func TestWhoComesAgainAndAgainDoesNotGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 100})
		s.start("b0", Claim{Org: "b"})
		for i := range 3 {
			s.start(fmt.Sprint("a", i), Claim{Org: "a"})
		}
		for i := range 3 {
			s.start(fmt.Sprint("b", i+1), Claim{Org: "b"})
			s.end(2)
		}
		s.end(1)
		s.begins("b0", "a0", "b1", "a1", "b2", "a2", "b3")
	})
}

func TestASlotGoesToWhoeverHoldsTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 4, Waiting: 100})
		for i := range 8 {
			s.start(fmt.Sprint("a", i), Claim{Org: "a"})
		}
		for i := range 3 {
			s.start(fmt.Sprint("b", i), Claim{Org: "b"})
		}
		// Whatever ends first is one of a's, so b catches up until both have two.
		s.end(2)
		s.begins("a0", "a1", "a2", "a3", "b0", "b1")
		s.end(9)
	})
}

func TestWhatAnybodyAsksForStandsBackWithinItsOrganizationOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 100, Public: 100})
		s.start("at work", Claim{Org: "c"})
		s.start("a signs in", Claim{Org: "a", Public: true})
		for i := range 3 {
			s.start(fmt.Sprint("a sets ", i), Claim{Org: "a"})
		}
		s.start("b signs in", Claim{Org: "b", Public: true})
		s.end(6)
		s.begins("at work", "a sets 0", "b signs in", "a sets 1", "a sets 2", "a signs in")
	})
}

// TestThePublicHasEveryFourthTurn: a client that sets passwords without a pause must not keep everybody from signing
// in.
func TestThePublicHasEveryFourthTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 100, Public: 100})
		s.start("at work", Claim{Org: "a"})
		for i := range 8 {
			s.start(fmt.Sprint("sets ", i), Claim{Org: "a"})
		}
		for i := range 2 {
			s.start(fmt.Sprint("signs in ", i), Claim{Org: "a", Network: "n", Public: true})
		}
		s.end(11)
		s.begins("at work", "sets 0", "sets 1", "sets 2", "signs in 0", "sets 3", "sets 4", "sets 5", "signs in 1",
			"sets 6", "sets 7")
	})
}

func TestSlotsThatAreLentStayEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 4, Waiting: 100})
		lent, returned := make(chan struct{}), make(chan error)
		lend := func() { returned <- s.Lend(2, func() error { <-lent; return errFull }) }
		s.start("before", Claim{})
		go lend()
		synctest.Wait()
		for i := range 4 {
			s.start(fmt.Sprint(i), Claim{})
		}
		s.begins("before", "0")
		go lend() // more than there are: one is left
		synctest.Wait()
		s.end(1)
		s.begins("before", "0")
		s.end(1)
		s.begins("before", "0", "1")
		lent <- struct{}{}
		if err := <-returned; !errors.Is(err, errFull) {
			t.Errorf("the work's error is lost: %v", err)
		}
		synctest.Wait()
		s.begins("before", "0", "1", "2")
		lent <- struct{}{}
		<-returned
		synctest.Wait()
		s.begins("before", "0", "1", "2", "3")
		s.end(3)
	})
}

func TestTurnsGoRoundTheNetworksOfAnOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Public: 100})
		for i := range 4 {
			s.start(fmt.Sprint("flood ", i), Claim{Org: "a", Network: "n1", Public: true})
		}
		s.start("other", Claim{Org: "a", Network: "n2", Public: true})
		s.end(5)
		s.begins("flood 0", "flood 1", "other", "flood 2", "flood 3")
	})
}

func TestWhereTheLineIsFullTheLongestMakesRoom(t *testing.T) {
	for _, c := range []struct {
		name     string
		waiting  []Claim // the last of the first kind is the one that has to go, where somebody has
		newcomer Claim
		want     error // of the newcomer
	}{
		{"another organization", []Claim{{Org: "a"}, {Org: "a"}, {Org: "a"}}, Claim{Org: "b"}, nil},
		{"the same organization", []Claim{{Org: "a"}, {Org: "a"}, {Org: "a"}}, Claim{Org: "a"}, errFull},
		{"one that has its share", []Claim{{Org: "a"}, {Org: "a"}, {Org: "b"}}, Claim{Org: "b"}, ErrUsedUp},
		{"everybody has one", []Claim{{Org: "a"}, {Org: "b"}, {Org: "c"}}, Claim{Org: "d"}, errFull},
		{"another network of the same organization",
			[]Claim{{Org: "a", Network: "n1"}, {Org: "a", Network: "n1"}, {Org: "a", Network: "n1"}},
			Claim{Org: "a", Network: "n2"}, nil},
		{"one network at many organizations",
			[]Claim{{Org: "a", Network: "n1"}, {Org: "b", Network: "n1"}, {Org: "c", Network: "n1"}},
			Claim{Org: "d", Network: "n2"}, nil},
		{"another organization with little", []Claim{{Org: "a", Bytes: 40}, {Org: "a", Bytes: 40}},
			Claim{Org: "b", Bytes: 40}, nil},
		{"another organization with much", []Claim{{Org: "a", Bytes: 40}, {Org: "a", Bytes: 40}},
			Claim{Org: "b", Bytes: 90}, errFull},
		{"more than fits", nil, Claim{Org: "b", Bytes: 101}, errFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Bounds{Slots: 1, Waiting: 3, Bytes: 100})
				s.start("at work", Claim{Org: "z"})
				var all []<-chan error
				for i, w := range c.waiting {
					all = append(all, s.start(fmt.Sprint(i), w))
				}
				newcomer := s.start("newcomer", c.newcomer)
				gone := 0
				for _, done := range all {
					select {
					case err := <-done:
						gone++
						if !errors.Is(err, ErrUsedUp) {
							t.Errorf("who made room got %v", err)
						}
					default:
					}
				}
				if c.want != nil {
					ended(t, newcomer, c.want)
				}
				if want := 1; c.want == nil && gone != want || c.want != nil && gone != 0 {
					t.Errorf("%d had to go", gone)
				}
				s.end(1 + len(all) - gone)
				if c.want == nil {
					s.end(1)
					if err := <-newcomer; err != nil {
						t.Errorf("the newcomer got %v", err)
					}
				}
				if held, waiting := s.Load(); held != 0 || waiting != 0 || s.line != [2]load{} {
					t.Errorf("in the end %d are held and %d wait: %v", held, waiting, s.line)
				}
			})
		})
	}
}

// TestMadeUpOrganizationsTakeNothingFromOthers: whoever names another organization with each request has no more turns,
// and no more room, for it.
func TestMadeUpOrganizationsTakeNothingFromOthers(t *testing.T) {
	const room = 100
	for name, of := range map[string]func(i int) Claim{
		"an organization each": func(i int) Claim {
			return Claim{Org: fmt.Sprint("made up ", i), Network: "n1", Public: true}
		},
		"one organization": func(int) Claim { return Claim{Network: "n1", Public: true} },
		"a network each":   func(i int) Claim { return Claim{Network: fmt.Sprint("n", i), Public: true} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Bounds{Slots: 1, Public: room})
				s.start("at work", Claim{Org: "real", Network: "own 0", Public: true})
				var real []<-chan error
				for i := range 3 * room {
					s.start("made up", of(i))
					if i%room == room/2 {
						real = append(real,
							s.start("real", Claim{Org: "real", Network: fmt.Sprint("own ", len(real)+1), Public: true}))
					}
				}
				if _, waiting := s.Load(); waiting != room {
					t.Errorf("%d wait", waiting)
				}
				s.end(7)
				if turns := strings.Count(strings.Join(s.begun, " "), "real"); of(0) == of(1) && turns != 3 {
					t.Errorf("of the first turns the organization had %d: %q", turns, s.begun)
				}
				s.end(room - 6)
				for _, done := range real {
					ended(t, done, nil)
				}
			})
		})
	}
}

// TestBeingNewIsNoMerit: organizations that come one after the other, each for the first time, do not all go before one
// that waits. TestOfWhatIsPublicTheNetworkThatHasTheMostMakesRoom: one client that names an organization after the
// other must not push out the people of one that is popular, each of whom waits once.
func TestOfWhatIsPublicTheNetworkThatHasTheMostMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Public: 100})
		s.start("at work", Claim{Org: "z", Network: "n", Public: true})
		var people []<-chan error
		for i := range 40 {
			people = append(people,
				s.start("popular", Claim{Org: "popular", Network: fmt.Sprint("home ", i), Public: true}))
		}
		for i := range 60 {
			s.start("one client", Claim{Org: fmt.Sprint("org ", i), Network: "client", Public: true})
		}
		for i := range 50 {
			s.start("newcomer", Claim{Org: fmt.Sprint("org ", i), Network: fmt.Sprint("other home ", i), Public: true})
		}
		s.end(101)
		for i, done := range people {
			if err := <-done; err != nil {
				t.Errorf("person %d got %v", i, err)
			}
		}
	})
}

func TestBeingNewIsNoMerit(t *testing.T) {
	for name, of := range map[string]func(i int) Claim{
		"organizations": func(i int) Claim { return Claim{Org: fmt.Sprint("new ", i), Public: true} },
		"networks":      func(i int) Claim { return Claim{Org: "real", Network: fmt.Sprint("new ", i), Public: true} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Bounds{Slots: 1, Public: 100})
				claim := Claim{Org: "real", Network: "own", Public: true}
				s.start("real 0", claim)
				s.start("new 0", of(0))
				s.start("real 1", claim)
				for i := range 3 {
					s.start(fmt.Sprint("new ", i+1), of(i+1))
					s.end(1)
				}
				s.begins("real 0", "new 0", "real 1", "new 1")
				s.end(3)
			})
		})
	}
}

// TestWhatIsHeldForLongIsKeptForOthers: no organization has more than half of it, and each of several finds something.
func TestWhatIsHeldForLongIsKeptForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 16, Reserve: true})
		for org, most := range []int{8, 4, 2, 1, 1} {
			claim := Claim{Org: fmt.Sprint(org)}
			for range most {
				s.start("", claim)
			}
			want := ErrUsedUp
			if org == 4 {
				want = errFull
			}
			ended(t, s.start("one too many", claim), want)
		}
		s.end(16)
	})
}

func TestWhoWaitsForWhatIsKeptGetsItWhenOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 4, Waiting: 10, Reserve: true})
		for i := range 3 {
			s.start(fmt.Sprint("a", i), Claim{Org: "a"})
		}
		s.start("b0", Claim{Org: "b"})
		s.begins("a0", "a1", "b0")
		s.end(4)
		s.begins("a0", "a1", "b0", "a2")
	})
}

func TestACallerMayLeaveTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 1, Bytes: 10})
		s.start("at work", Claim{})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			left <- s.Do(ctx, Claim{Bytes: 10}, func() error { t.Error("work ran for nobody"); return nil })
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
		s.start("next", Claim{Bytes: 10})
		s.end(2)
		s.begins("at work", "next")
	})
}

func TestWhoseDeadlinePassesInTheLineIsToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 1})
		s.start("at work", Claim{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Do(ctx, Claim{}, func() error { t.Error("work ran for nobody"); return nil })
		if !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
		if s.Refused() != (Refused{Full: 1}) {
			t.Errorf("counted %+v", s.Refused())
		}
		s.start("next", Claim{})
		s.end(2)
		s.begins("at work", "next")
	})
}

func TestNoWorkIsDoneForAContextThatHasEnded(t *testing.T) {
	p := New(Bounds{Slots: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 { // more often than there are slots, so that one that is kept would show
		if err := p.Do(ctx, Claim{}, func() error { t.Error("work ran for nobody"); return nil }); !errors.Is(err,
			context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestWorkThatPanicsGivesItsSlotBack(t *testing.T) {
	p := New(Bounds{Slots: 1})
	func() {
		defer func() { _ = recover() }()
		_ = p.Do(t.Context(), Claim{}, func() error { panic("broken") })
	}()
	if held, _ := p.Load(); held != 0 {
		t.Fatal("the slot is still taken")
	}
}

func TestASlotIsGivenBackOnce(t *testing.T) {
	p := New(Bounds{Slots: 2})
	for _, c := range []Claim{{Org: "a"}, {Org: "a", Network: "n"}, {Org: "b"}} {
		if !p.Try(Claim{Org: "a"}) {
			t.Fatal("there is no slot")
		}
		p.Leave(Claim{Org: "a"})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v gave back what it does not hold", c)
				}
			}()
			p.Leave(c)
		}()
		if held, _ := p.Load(); held != 0 {
			t.Errorf("%d are held", held)
		}
	}
}

// TestWhoeverComesIsForgottenAgain: neither organizations nor networks stay in memory for good.
func TestWhoeverComesIsForgottenAgain(t *testing.T) {
	p := New(Bounds{Slots: 1})
	for i := range 10 * idleGroups {
		if err := p.Do(t.Context(), Claim{Org: fmt.Sprint(i)}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := p.Do(t.Context(), Claim{Org: "busy", Network: strings.Repeat("n", i%99)},
			func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.groups) > idleGroups || len(p.groups["busy"].lanes) > idleLanes {
		t.Errorf("%d organizations and %d networks are kept", len(p.groups), len(p.groups["busy"].lanes))
	}
}

func BenchmarkASlotThatIsFree(b *testing.B) {
	p := New(Bounds{Slots: 512, Waiting: 4096, Reserve: true})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.Enter(context.Background(), Claim{Org: "org_a"}); err != nil {
				b.Fatal(err)
			}
			p.Leave(Claim{Org: "org_a"})
		}
	})
}

func TestRefusalsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Bounds{Slots: 1, Waiting: 2})
		s.start("a", Claim{Org: "a"})
		s.start("a waits", Claim{Org: "a"})
		victim := s.start("a waits, too", Claim{Org: "a"})
		if got := s.Refused(); got != (Refused{}) {
			t.Errorf("before anybody was: %+v", got)
		}
		if err := <-s.start("no room", Claim{Org: "a"}); !errors.Is(err, errFull) {
			t.Error(err)
		}
		s.start("b", Claim{Org: "b"})
		if err := <-victim; !errors.Is(err, ErrUsedUp) {
			t.Error(err)
		}
		if err := <-s.start("a again", Claim{Org: "a"}); !errors.Is(err, ErrUsedUp) {
			t.Error(err)
		}
		if got := s.Refused(); got != (Refused{UsedUp: 2, Full: 1}) {
			t.Errorf("%+v", got)
		}
		close(s.finish)
		synctest.Wait()
	})
}
