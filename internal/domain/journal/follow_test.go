package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// node opens a store on a database, and its journal.
func node(t *testing.T, db testdb.Database, master secret.MasterKey) (*store.Store, *Journal) {
	t.Helper()
	s, _, err := store.Open(t.Context(),
		store.Options{Database: db.Patient(),
			Kinds: []event.Definition{installation.Kind, session.Kind, signing.Kind, user.Kind}, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	j := New(s, s.RootKey())
	j.pace.poll = 5 * time.Millisecond // other nodes are looked at often: nobody waits for time here
	return s, j
}

// happen records something about an object of an organization, with a personal part.
func happen(s event.Store, org, id, what string, decided ...func()) error {
	return s.Do(context.Background(), event.Command{
		Origin: event.Origin{Actor: "usr_actor"},
		Write:  []event.Ref{session.Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			for _, f := range decided {
				f()
			}
			fact := session.Succeeded{SessionID: what, Personal: session.RequestSource{Address: "192.0.2.1"}}
			o, err := session.Kind.Get(tx, id)
			if err != nil {
				return err
			}
			if o == nil {
				_, err = session.Kind.Create(tx, id, org, fact)
				return err
			}
			return o.Append(fact)
		},
	})
}

// happenOften records so many events, which is a multiple of 50, about an object of org_a.
func happenOften(t *testing.T, s event.Store, n int, what string) {
	t.Helper()
	for range n / 50 {
		err := s.Do(t.Context(), event.Command{
			Write: []event.Ref{session.Kind.Ref("sgi_1")},
			Decide: func(tx *event.Tx) error {
				facts := make([]event.Fact[session.SignIns], 50)
				for i := range facts {
					facts[i] = session.Ended{SessionID: what}
				}
				o, err := session.Kind.Get(tx, "sgi_1")
				if err == nil && o == nil {
					_, err = session.Kind.Create(tx, "sgi_1", "org_a", facts...)
					return err
				}
				if err != nil {
					return err
				}
				return o.Append(facts...)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// may is what somebody may who reads events in a scope.
func may(t *testing.T, scope string) access.Permit {
	t.Helper()
	role := access.OrgOwnerViewer
	if scope == access.Installation {
		role = access.IAMOwnerViewer
	}
	permit, err := (&access.Caller{UserID: "usr_reader",
		Memberships: access.Memberships{scope: {role}}}).In(organization(scope), access.EventRead)
	if err != nil {
		t.Fatal(err)
	}
	return permit
}

// organization gives an organization for those who may in all of them.
func organization(scope string) string {
	if scope == access.Installation {
		return "org_a"
	}
	return scope
}

var errEnough = errors.New("enough")

func TestAStreamThatBreaksOffGoesOnWithoutGapAndDouble(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		const writers, each = 4, 60
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range each {
					org := []string{"org_a", "org_b"}[w%2]
					if err := happen(s, org, fmt.Sprintf("sgi_%d", w), fmt.Sprintf("%d.%d", w, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, reader := range []struct {
			scope string
			query Query
			want  int
		}{
			{"org_a", Query{}, writers * each / 2},
			{access.Installation, Query{Everywhere: true}, writers * each},
			{"org_b", Query{Filter: Filter{ObjectIDs: []string{"sgi_1", "sgi_3", "sgi_0"}}}, writers * each / 2},
			{access.Installation,
				Query{Everywhere: true, Filter: Filter{Types: []string{"sign_in.succeeded.v1"}, Actor: "usr_actor"}},
				writers * each},
		} {
			var seen []string
			var after int64
			for len(seen) < reader.want {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				left := rand.IntN(30)
				err := j.Follow(ctx, may(t, reader.scope), reader.query, after, func(e *Entry, position int64) error {
					if left--; left < 0 && e != nil {
						return errEnough // the client is gone before it has got this one
					}
					if position < after {
						t.Errorf("%d after %d", position, after)
					}
					if after = position; e != nil {
						seen = append(seen, e.ID)
					}
					if len(seen) == reader.want {
						return errEnough
					}
					return nil
				})
				cancel()
				if !errors.Is(err, errEnough) {
					t.Fatalf("%d of %d: %v", len(seen), reader.want, err)
				}
			}
			last := map[string]int{}
			for _, id := range seen {
				var object, sequence int
				if _, err := fmt.Sscanf(id, "sgi_%d.%d", &object, &sequence); err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(object)
				if last[key]++; last[key] != sequence {
					t.Fatalf("%s came where %d was next", id, last[key])
				}
			}
		}
		writing.Wait()
	})
}

// A command that began early and commits late, on another node, is not skipped.
func TestALateTransactionOfAnotherNodeIsNeverSkipped(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		master := secret.NewMasterKey()
		here, j := node(t, db, master)
		there, _ := node(t, db, master)
		reached, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			done <- happen(there, "org_a", "sgi_late", "late", func() { once.Do(func() { close(reached); <-resume }) })
		}()
		testkit.Receive(t, reached, "the late command is decided")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var seen []string
		err := j.Follow(ctx, may(t, "org_a"), Query{}, 0, func(e *Entry, _ int64) error {
			switch {
			case e == nil:
				if len(seen) == 0 {
					return happen(here, "org_a", "sgi_early", "early")
				}
				return nil
			case e.ObjectID == "sgi_early" && e.Sequence == 1:
				if err := happen(here, "org_a", "sgi_early", "again"); err != nil {
					return err
				}
			case e.ObjectID == "sgi_early":
				close(resume)
			}
			if seen = append(seen, e.ID); len(seen) == 3 {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) || !slices.Equal(seen, []string{"sgi_early.1", "sgi_early.2", "sgi_late.1"}) {
			t.Errorf("%v, %v", seen, err)
		}
		if err := testkit.Receive(t, done, "the late command is answered"); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoIsFarBehindCatchesUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		happenOften(t, s, keptEvents, "x")
		for _, query := range []Query{{}, {Filter: Filter{Types: []string{"sign_in.session_ended.v1"}}},
			{Filter: Filter{ObjectIDs: []string{"sgi_1"}, From: 1}}} {
			end, err := s.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var next, more int64 = 1, keptEvents + 150
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			err = j.Follow(ctx, may(t, "org_a"), query, 0, func(e *Entry, position int64) error {
				if e == nil {
					return nil
				}
				if position != next || e.Sequence != uint64(next) {
					return fmt.Errorf("position %d where %d was next", position, next)
				}
				if position == 10 { // while it is behind, so much happens that the tail does not reach back to it
					happenOften(t, s, int(more), "x")
				}
				if next++; next == end+more+1 {
					return errEnough
				}
				return nil
			})
			cancel()
			if !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
		}
	})
}

// Who looks for something rare in a long log gets nothing for long. It is told how far that has come, is judged, and
// can leave.
func TestWhoCatchesUpWithNothingIsToldHowFarThatIs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		const looked, end = 2000, 4000 // looked at for a page, and in all
		happenOften(t, s, end, "x")
		j.pace.heartbeat = time.Nanosecond
		nobody := Query{Filter: Filter{Actor: "usr_nobody"}}

		var judged int
		permit := may(t, "org_a").Renewing(func(context.Context) (access.Permit, error) {
			judged++
			return may(t, "org_a"), nil
		})
		var positions []int64
		err := j.Follow(t.Context(), permit, nobody, 0, func(_ *Entry, position int64) error {
			if positions = append(positions, position); position == end {
				return errEnough
			}
			return nil
		})
		if judged != len(positions)-1 {
			t.Errorf("judged %d times for %v", judged, positions)
		}
		if got := slices.Compact(positions); !errors.Is(err, errEnough) || !slices.Equal(got, []int64{0, looked, end}) {
			t.Errorf("%v, %v", got, err)
		}

		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		positions = nil
		err = j.Follow(ctx, may(t, "org_a"), nobody, 0, func(_ *Entry, position int64) error {
			if positions = append(positions, position); position >= looked {
				leave()
			}
			return nil
		})
		if got := slices.Compact(positions); !errors.Is(err, context.Canceled) ||
			!slices.Equal(got, []int64{0, looked}) {
			t.Errorf("%v, though it left at %d, %v", got, looked, err)
		}
	})
}

// However large events are, whoever reads them slowly holds few of them in memory.
func TestLargeEventsAreSentInSmallParts(t *testing.T) {
	testdb.On(t, []string{testdb.SQLite}, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		const all, size = 50, heldBytes / 3
		happenOften(t, s, all, strings.Repeat("x", size))
		events, err := s.Events(t.Context(), 0, all)
		if err != nil {
			t.Fatal(err)
		}
		for name, prepare := range map[string]func(f *follower){
			"from the shared end of the log": func(f *follower) { f.tail.Begin(0); f.tail.Add(events) },
			"from the store":                 func(f *follower) { f.tail.Begin(all) },
		} {
			var sent int64
			f := follower{Journal: j, permit: may(t, "org_a"),
				tail: &tail{Tail: event.Tail{MaxEvents: all, MaxBytes: 1 << 30}}}
			f.send = func(e *Entry, position int64) error {
				if sent++; position != sent || e.Sequence != uint64(sent) {
					t.Errorf("%s: position %d where %d was next", name, position, sent)
				}
				return nil
			}
			prepare(&f)
			for upTo, more := int64(0), true; more && upTo < all; {
				before := sent
				if upTo, more, err = f.advance(t.Context(), upTo); err != nil || upTo != sent || sent-before > 2 {
					t.Fatalf("%s: %d at once, up to %d, %v", name, sent-before, upTo, err)
				}
			}
			if sent != all {
				t.Errorf("%s: %d were sent", name, sent)
			}
		}
		if n := holdable(events[:1]); n != 1 {
			t.Errorf("%d of one", n)
		}
		if n := holdable([]event.Event{{Payload: make([]byte, 2*heldBytes)}, {}}); n != 1 {
			t.Errorf("%d, one of them larger than all may be", n)
		}
	})
}

// behind is a log whose last event is not on the disk yet.
type behind struct{ event.Log }

func (b behind) Position(ctx context.Context) (int64, error) {
	end, err := b.Log.Position(ctx)
	return end - 1, err
}

func TestWhatMayYetBeLostIsNotSent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		j.store = behind{s}
		for _, c := range []struct {
			name           string
			events, atOnce int
			query          Query
		}{
			{"less than a page", 50, 50, Query{}},
			{"of several objects", 0, 50, Query{Filter: Filter{ObjectIDs: []string{"sgi_1", "sgi_2"}}}},
			{"a page, and one more", 50, page, Query{}},
		} {
			happenOften(t, s, c.events, "x")
			f := follower{Journal: j, query: c.query, tail: &tail{}}
			f.tail.Begin(1) // what it needs is not there
			found, upTo, _, err := f.read(t.Context(), 0)
			if want := c.atOnce - 1; err != nil || len(found) != want || upTo != int64(want) {
				t.Errorf("%s: %d events up to %d, %v", c.name, len(found), upTo, err)
			}
		}
	})
}

func TestAFollowerIsJudgedAgainBeforeAnythingIsSent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		var ended bool
		permit := may(t, "org_a").Renewing(func(context.Context) (access.Permit, error) {
			if ended {
				return access.Permit{}, access.ErrUnauthenticated
			}
			return may(t, "org_a"), nil
		})
		var seen []string
		err := j.Follow(t.Context(), permit, Query{}, Now, func(e *Entry, _ int64) error {
			if e == nil {
				return happen(s, "org_a", "sgi_1", "first")
			}
			seen = append(seen, e.ID)
			ended = true
			return happen(s, "org_a", "sgi_1", "second")
		})
		if !errors.Is(err, access.ErrUnauthenticated) || !slices.Equal(seen, []string{"sgi_1.1"}) {
			t.Errorf("%v, %v", seen, err)
		}

		// Whoever no longer reads in the whole installation does not go on doing so, though an organization is left.
		ended = false
		permit = may(t, access.Installation).Renewing(func(context.Context) (access.Permit, error) {
			if ended {
				return may(t, "org_a"), nil
			}
			return may(t, access.Installation), nil
		})
		err = j.Follow(t.Context(), permit, Query{Everywhere: true}, Now, func(e *Entry, _ int64) error {
			if e != nil {
				t.Errorf("%s was sent", e.ID)
			}
			ended = true
			return happen(s, "org_a", "sgi_1", "third")
		})
		if !errors.Is(err, access.ErrDenied) {
			t.Error(err)
		}
	})
}

func TestWhereNothingHappensThereAreSignsOfLife(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		j.pace.heartbeat = 10 * time.Millisecond
		var signs, judged int
		var position int64
		permit := may(t, "org_a").Renewing(func(context.Context) (access.Permit, error) {
			if judged++; judged > 3 && position > 0 { // what happens may take some heartbeats to be on the disk
				return access.Permit{}, access.ErrUnauthenticated
			}
			return may(t, "org_a"), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := j.Follow(ctx, permit, Query{}, Now, func(e *Entry, at int64) error {
			if e != nil || at < position {
				t.Errorf("%v at %d after %d", e, at, position)
			}
			signs++
			position = at
			return happen(s, "org_b", "sgi_b", "elsewhere") // what others do moves the cursor, and nothing else
		})
		if !errors.Is(err, access.ErrUnauthenticated) || signs != judged || position == 0 {
			t.Errorf("%d signs of life up to %d, judged %d times, %v", signs, position, judged, err)
		}
	})
}

func TestACursorAheadOfTheLogIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		if err := happen(s, "org_a", "sgi_1", "x"); err != nil {
			t.Fatal(err)
		}
		err := j.Follow(t.Context(), may(t, "org_a"), Query{}, 2, func(*Entry, int64) error { return errEnough })
		if e, ours := errors.AsType[*errs.Error](err); !ours || e.Kind != errs.InvalidArgument ||
			e.Fields[0].Field != "cursor" {
			t.Error(err)
		}
	})
}

func TestWhatIsErasedIsNotShown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		if err := happen(s, "org_a", "sgi_1", "x"); err != nil {
			t.Fatal(err)
		}
		look := func(erased bool) {
			t.Helper()
			check := func(e *Entry) {
				t.Helper()
				if e.Erased != erased || (e.Personal == nil) != erased || string(e.Payload) != `{"sessionId":"x"}` {
					t.Errorf("%+v", e)
				}
			}
			entries, next, err := j.List(t.Context(), may(t, "org_a"), Query{}, false, 0, 10)
			if err != nil || len(entries) != 1 || next != 0 {
				t.Fatal(entries, next, err)
			}
			check(entries[0])
			err = j.Follow(t.Context(), may(t, "org_a"), Query{}, 0, func(e *Entry, _ int64) error {
				if e == nil {
					return nil
				}
				check(e)
				return errEnough
			})
			if !errors.Is(err, errEnough) {
				t.Error(err)
			}
		}
		look(false)
		events, err := s.Events(t.Context(), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		key := event.RowKey{Table: event.Keys, Key: events[0].KeyID}
		if err := s.Do(t.Context(),
			event.Command{Rows: []event.RowKey{key},
				Decide: func(tx *event.Tx) error { tx.DropRow(key); return nil }}); err != nil {
			t.Fatal(err)
		}
		look(true)
	})
}

// The installation and the roles of users in other places are kept with an organization, and are not its business.
func TestAnOrganizationSeesItsOwnBusinessOnly(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		s, j := node(t, db, secret.NewMasterKey())
		err := s.Do(t.Context(), event.Command{
			Write: []event.Ref{installation.Kind.Ref(installation.ID), user.Kind.Ref("usr_1"),
				signing.Kind.Ref(signing.ID)},
			Claims: []event.Claim{user.NameClaim("org_a", "robot")},
			Decide: func(tx *event.Tx) error {
				if _, err := installation.Kind.Create(tx, installation.ID, "org_a",
					installation.Added{DefaultOrg: "org_a"}); err != nil {
					return err
				}
				u, err := user.AddService(tx, "usr_1", "org_a", "robot", "Robot", "")
				if err != nil {
					return err
				}
				return u.Append(user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwner}},
					user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}},
					user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := happen(s, "org_b", "sgi_b", "x"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name  string
			scope string
			query Query
			want  []string
		}{
			{"its own", "org_a", Query{}, []string{"usr_1.1", "usr_1.4"}},
			{"another's", "org_b", Query{}, []string{"sgi_b.1"}},
			{"another's object", "org_a", Query{Filter: Filter{ObjectIDs: []string{"sgi_b"}}}, nil},
			{"the installation by its identifier", "org_a",
				Query{Filter: Filter{ObjectIDs: []string{installation.ID}}}, nil},
			{"an organization that the query names itself", "org_a", Query{Filter: Filter{OrgIDs: []string{"org_b"}}},
				[]string{"usr_1.1", "usr_1.4"}},
			{"everything, for those who may", access.Installation, Query{Everywhere: true},
				[]string{installation.ID + ".1", "usr_1.1", "usr_1.2", "usr_1.3", "usr_1.4", "sgi_b.1"}},
			{"one organization, for those who may everywhere", access.Installation, Query{},
				[]string{"usr_1.1", "usr_1.4"}},
		} {
			entries, _, err := j.List(t.Context(), may(t, c.scope), c.query, true, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var listed, followed []string
			for _, e := range entries {
				listed = append(listed, e.ID)
				if e.Kind == installation.Kind.Name() && e.OrgID != access.Installation {
					t.Errorf("the installation is shown as one of %s", e.OrgID)
				}
			}
			if !slices.Equal(listed, c.want) {
				t.Errorf("%s: %v", c.name, listed)
			}
			if len(c.want) == 0 {
				continue
			}
			err = j.Follow(t.Context(), may(t, c.scope), c.query, 0, func(e *Entry, _ int64) error {
				if e != nil {
					followed = append(followed, e.ID)
				}
				if len(followed) == len(c.want) {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) || !slices.Equal(followed, c.want) {
				t.Errorf("%s, followed: %v, %v", c.name, followed, err)
			}
		}
		for _, permit := range []access.Permit{may(t, "org_a"), {}} {
			if _, _, err := j.List(t.Context(), permit, Query{Everywhere: true}, true, 0, 100); !errors.Is(err,
				access.ErrDenied) {
				t.Errorf("everything, for those who may not: %v", err)
			}
		}
		if _, _, err := j.List(t.Context(), access.Permit{}, Query{}, true, 0, 100); !errors.Is(err, access.ErrDenied) {
			t.Errorf("without a permit: %v", err)
		}
	})
}
