package secret

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zitadel/passwap/verifier"

	"github.com/signet-idm/signet/internal/base/fairqueue"
)

// meter stands for the algorithms and measures how many of them run together.
type meter struct {
	running, most atomic.Int32
	release       chan struct{}
}

func (m *meter) work() {
	n := m.running.Add(1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
	<-m.release
	m.running.Add(-1)
}

func (m *meter) Hash(string) []byte { m.work(); return []byte("hash") }

func (m *meter) Verify(string, string) (verifier.Result, error) { m.work(); return verifier.OK, nil }

func TestAllHashWorkSharesTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, calls = 3, 30
		m := &meter{release: make(chan struct{})}
		h := NewHasher(slots, 4*calls)
		h.hash = m.Hash
		for alg := range h.verifiers {
			h.verifiers[alg] = m
		}

		var done sync.WaitGroup
		for i := range calls {
			done.Go(func() {
				var err error
				h := h
				if i%2 == 0 {
					h = h.Public("", "net", 0)
				}
				switch i % 3 {
				case 0:
					_, err = h.Hash(t.Context(), "password")
				case 1: // verifies, then hashes for the upgrade
					_, _, err = h.Verify(t.Context(), []byte(importedBcrypt), "password")
				case 2:
					err = h.VerifyNothing(t.Context(), "password")
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := m.running.Load(); n != slots {
			t.Errorf("%d run at first, want %d", n, slots)
		}
		if _, n := h.limit.Load(); n != calls-slots {
			t.Errorf("%d wait at first, want %d", n, calls-slots)
		}
		for range calls + calls/3 {
			m.release <- struct{}{}
			synctest.Wait()
		}
		done.Wait()
		if most := m.most.Load(); most != slots {
			t.Errorf("%d ran together, want %d", most, slots)
		}
	})
}

// TestCostlyHashesOfOthersLeaveHalfOfTheSlots: somebody who imports hashes that take seconds, and signs in with many of
// them, delays those who have such ones.
func TestCostlyHashesOfOthersLeaveHalfOfTheSlots(t *testing.T) {
	const salt, digest = "$MDEyMzQ1Njc4OWFiY2RlZg", "$rk2Mi3E4dgRMg0fHaYaptWVZRKqs//6b6k3/nntqGJk"
	for _, c := range []struct {
		name, encoded string
		slots, most   int
	}{
		{"bcrypt of the usual cost", "$2b$12" + importedBcrypt[6:], 4, 4},
		{"bcrypt of more", "$2b$13" + importedBcrypt[6:], 4, 2},
		{"bcrypt where there is one slot", "$2b$13" + importedBcrypt[6:], 1, 1},
		{"argon2 of the usual memory", "$argon2id$v=19$m=65536,t=4,p=4" + salt + digest, 4, 4},
		{"argon2 of more memory", "$argon2id$v=19$m=65540,t=1,p=4" + salt + digest, 4, 2},
		{"argon2 of more passes", "$argon2id$v=19$m=65536,t=5,p=4" + salt + digest, 4, 2},
		{"scrypt of the usual memory", "$scrypt$ln=16,r=8,p=4" + salt + digest, 4, 4},
		{"scrypt of more memory", "$scrypt$ln=17,r=8,p=1" + salt + digest, 4, 2},
		{"scrypt of more lanes", "$scrypt$ln=16,r=8,p=5" + salt + digest, 4, 2},
		{"PBKDF2 of the usual rounds", "$pbkdf2-sha256$1000000" + salt + digest, 4, 4},
		{"PBKDF2 of more", "$pbkdf2-sha256$1000001" + salt + digest, 4, 2},
		{"PBKDF2 of more in all", "$pbkdf2$600000" + salt + digest, 4, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{release: make(chan struct{})}
				h := NewHasher(c.slots, 40)
				for alg := range h.verifiers {
					h.verifiers[alg] = m
				}
				h.hash = func(string) []byte { return []byte("hash") }
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if _, _, err := h.Public("", "net", 0).Verify(t.Context(), []byte(c.encoded),
							"password"); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				if n := int(m.running.Load()); n != c.most {
					t.Errorf("%d of %d slots are taken, want %d", n, c.slots, c.most)
				}
				close(m.release)
				all.Wait()
			})
		})
	}
}

func TestNewHasherFillsInDefaults(t *testing.T) {
	for _, c := range []struct{ slots, queue, wantSlots, wantQueue, wantPublic int }{
		{0, 0, runtime.GOMAXPROCS(0), 1024, 256},
		{3, 8, 3, 8, 2},
		{1, 1, 1, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, m := NewHasher(c.slots, c.queue), &meter{release: make(chan struct{})}
			h.hash = m.Hash
			var all sync.WaitGroup
			busy := map[bool]int{}
			var mu sync.Mutex
			for _, public := range []bool{false, true} {
				view, calls := h, c.wantSlots+c.wantQueue
				if public {
					view, calls = h.Public("", "", 0), c.wantPublic
				}
				for range calls + 1 {
					all.Go(func() {
						if _, err := view.Hash(t.Context(), ""); err != nil {
							mu.Lock()
							defer mu.Unlock()
							busy[public]++
						}
					})
				}
				synctest.Wait()
			}
			if held, _ := h.limit.Load(); held != c.wantSlots || busy[false] != 1 || busy[true] != 1 {
				t.Errorf("%d and %d: %d work, and one more than should fit was refused %d and %d times", c.slots,
					c.queue, held, busy[false], busy[true])
			}
			close(m.release)
			all.Wait()
		})
	}
}

// busyHasher is a Hasher whose only slot is taken until the meter is released.
func busyHasher(t *testing.T, queue int) (*Hasher, *meter) {
	t.Helper()
	m := &meter{release: make(chan struct{})}
	h := NewHasher(1, queue)
	h.hash = m.Hash
	for alg := range h.verifiers {
		h.verifiers[alg] = m
	}
	go func() { _ = h.Public("", "net", 0).VerifyNothing(t.Context(), "password") }()
	synctest.Wait()
	return h, m
}

func TestAFloodOfPublicWorkNeitherRefusesNorDelaysAuthorisedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := busyHasher(t, 8) // room for two of the public
		var order []string
		start := func(name string, work func() error) {
			go func() {
				if err := work(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				order = append(order, name)
			}()
			synctest.Wait() // until it waits
		}
		signIn := func() error {
			_, _, err := h.Public("", "net", 0).Verify(t.Context(), []byte(importedArgon2Current), "password")
			return err
		}
		start("first sign-in", signIn)
		start("second sign-in", signIn)
		for range 3 {
			if err := signIn(); !errors.Is(err, ErrBusy) {
				t.Fatalf("a sign-in beyond the public queue: got %v", err)
			}
		}
		start("set a password", func() error { _, err := h.Hash(t.Context(), "password"); return err })
		start("change a password", func() error {
			_, _, err := h.Verify(t.Context(), []byte(importedArgon2Current), "password")
			return err
		})
		for range 5 {
			m.release <- struct{}{}
			synctest.Wait()
		}
		want := []string{"set a password", "change a password", "first sign-in", "second sign-in"}
		if !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if m.most.Load() != 1 {
			t.Errorf("%d ran together in one slot", m.most.Load())
		}
	})
}

func TestWhatWaitsIsBoundedInBytesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := busyHasher(t, 1024)
		megabyte := strings.Repeat("x", 1<<20)
		var done sync.WaitGroup
		left, leave := context.WithCancel(t.Context())
		for i := range 8 {
			ctx := t.Context()
			if i == 0 {
				ctx = left
			}
			done.Go(func() {
				// A long login name weighs as much as a long password.
				view, password := h.Public("", "net", 0), megabyte
				if i%2 == 0 {
					view, password = h.Public("", "net", len(megabyte)), ""
				}
				if err := view.VerifyNothing(ctx, password); err != nil && i != 0 {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := h.Public("", "net", 0).VerifyNothing(t.Context(), "x"); !errors.Is(err, ErrBusy) {
			t.Fatalf("with 8 MiB waiting: got %v", err)
		}
		// It is not held against the authorised.
		done.Go(func() {
			if _, err := h.Hash(t.Context(), "password"); err != nil {
				t.Error(err)
			}
		})
		// Whoever gives up makes room.
		leave()
		synctest.Wait()
		done.Go(func() {
			if err := h.Public("", "net", 0).VerifyNothing(t.Context(), megabyte); err != nil {
				t.Errorf("after one left: %v", err)
			}
		})
		synctest.Wait()
		close(m.release)
		done.Wait()
		synctest.Wait()
		if held, waiting := h.limit.Load(); held != 0 || waiting != 0 {
			t.Errorf("%d slots are taken, and %d wait", held, waiting)
		}
	})
}

// TestAFloodForOneOrganizationDoesNotKeepAnotherWaiting: however many sign in to one, or have passwords set there, they
// do not come before the first of another organization.
func TestAFloodForOneOrganizationDoesNotKeepAnotherWaiting(t *testing.T) {
	for _, c := range []struct {
		name         string
		flood, other func(h *Hasher) *Hasher
	}{
		{"people who sign in there", func(h *Hasher) *Hasher { return h.Public("a", "net", 0) },
			func(h *Hasher) *Hasher { return h.Public("b", "net", 0) }},
		{"passwords that are set there", func(h *Hasher) *Hasher { return h.For("a") },
			func(h *Hasher) *Hasher { return h.For("b") }},
		{"passwords that are set there, and somebody signs in elsewhere", func(h *Hasher) *Hasher { return h.For("a") },
			func(h *Hasher) *Hasher { return h.Public("b", "net", 0) }},
		{"one network that signs in there", func(h *Hasher) *Hasher { return h.Public("a", "net", 0) },
			func(h *Hasher) *Hasher { return h.Public("a", "other net", 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, m := busyHasher(t, 1024)
				var all sync.WaitGroup
				for range 2000 { // more than can wait
					all.Go(func() {
						if err := c.flood(h).VerifyNothing(t.Context(),
							"password"); err != nil && !errors.Is(err, ErrBusy) &&
							!errors.Is(err, fairqueue.ErrUsedUp) {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				served := false
				all.Go(func() {
					if err := c.other(h).VerifyNothing(t.Context(), "password"); err != nil {
						t.Error(err)
					}
					served = true
				})
				synctest.Wait()
				for range 3 { // what was at work, at most one of the flood, and the other
					m.release <- struct{}{}
					synctest.Wait()
				}
				if !served {
					t.Error("the other still waits")
				}
				close(m.release)
				all.Wait()
			})
		})
	}
}

func TestOthersMakeRoomWhileAPasswordIsHashed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, others := &meter{release: make(chan struct{})}, fairqueue.New(fairqueue.Bounds{Slots: 2})
		h := NewHasher(1, 1)
		h.hash = m.Hash
		others.Try(fairqueue.Claim{})
		done := make(chan error)
		go func() {
			_, err := h.Before(others, 2).For("org").Hash(t.Context(), "password")
			done <- err
		}()
		synctest.Wait()
		if others.Try(fairqueue.Claim{}) {
			t.Error("another one began while the password was hashed")
		}
		m.release <- struct{}{}
		if err := <-done; err != nil || !others.Try(fairqueue.Claim{}) {
			t.Errorf("the room is not given back, or the hash failed: %v", err)
		}
	})
}
