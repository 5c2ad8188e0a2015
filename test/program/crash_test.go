package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testdb"
)

// crashRounds is how often a crash test pulls the plug, on each engine.
func crashRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SIGNET_CRASH_ROUNDS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SIGNET_CRASH_ROUNDS is %q", text)
	}
	return n
}

// TestCrashUnderLoad kills the server while many write, again and again on the same data. Whatever was acknowledged has
// to be there afterwards, what was not may be, and nothing else; and the state has to be what the log says.
func TestCrashUnderLoad(t *testing.T) {
	rounds := crashRounds(t)
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		owner := newClient(t, p, admin.Token)
		load := &load{}
		for i := range 2 {
			created := owner.want(t, 200, "POST", "/v1/orgs/_setup", newOrg(fmt.Sprint("Load ", i), "a password"))
			org := owner.want(t, 200, "GET", "/v1/orgs/"+at[string](t, created, "orgId"), nil)
			token := owner.signIn(t, "owner@"+at[string](t, org, "org", "primaryDomain"), "a password")
			load.add(&register{token: token, write: "/v1/users/me/profile", read: "/v1/users/me", body: profile,
				object: "user", value: []string{"human", "profile", "nickName"}})
		}
		for i := range 2 {
			created := owner.want(t, 200, "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("Load ", i)))
			path := "/v1/idps/" + at[string](t, created, "idpId")
			load.add(&register{
				token:  admin.Token,
				write:  path,
				read:   path,
				body:   func(value string) object { return object{"name": value} },
				object: "idp",
				value:  []string{"name"},
			})
		}
		for round := range rounds {
			load.run(t, p, admin.Token, round, time.Duration(100+rand.IntN(500))*time.Millisecond)
			p = s.start(t)
			load.check(t, p, admin.Token)
			if round < 3 || round%10 == 0 || round == rounds-1 {
				s.run(t, "rebuild", "--check").fine(t)
				s.verified(t)
			}
			if t.Failed() {
				t.Fatalf("in round %d", round)
			}
		}
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
		s.verified(t)
		t.Logf("%d crashes, %d acknowledged writes, %d events", rounds, load.acknowledged.Load(), s.events(t))
	})
}

// load is what the writers of a crash test do and remember.
type load struct {
	registers    []*register
	acknowledged atomic.Int64

	mu       sync.Mutex
	created  []place // what was created and acknowledged in this round
	lifetime []place // a sample of that of earlier rounds
}

// place is where something can be read: its path, and the organization that it is in.
type place struct{ path, org string }

func (l *load) add(r *register) {
	r.acked, r.open = map[int]string{}, map[string]bool{}
	l.registers = append(l.registers, r)
}

// register is one object that several writers keep setting to new values.
type register struct {
	token       string
	write, read string
	body        func(value string) object
	object      string
	value       []string

	mu    sync.Mutex
	acked map[int]string  // values by the sequence they were acknowledged with
	last  int             // the highest of them
	open  map[string]bool // sent, and never heard of again
}

// run keeps writing until the server is killed in the midst of it.
func (l *load) run(t *testing.T, p *process, token string, round int, life time.Duration) {
	t.Helper()
	l.created = nil
	before := l.acknowledged.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var dead atomic.Bool
	var writers sync.WaitGroup
	// writer repeats a call until it fails; only a server that is being killed may make it fail.
	writer := func(c *client, call func(n int) (method, path string, body object), done func(n int, answer object)) {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				method, path, body := call(n)
				status, answer, err := c.do(ctx, method, path, body)
				if err != nil || status != 200 {
					if !dead.Load() {
						t.Errorf("%s %s: status %d, %v %v", method, path, status, answer, err)
					}
					return
				}
				l.acknowledged.Add(1)
				done(n, answer)
			}
		})
	}
	c := newClient(t, p, token)
	for i, r := range l.registers {
		for w := range 1 + i%2*2 { // alone on some, three at a time on others
			name := func(n int) string { return fmt.Sprintf("round %d writer %d value %d", round, w, n) }
			writer(c.with(r.token), func(n int) (string, string, object) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.open[name(n)] = true
				return "PUT", r.write, r.body(name(n))
			}, func(n int, answer object) { r.acknowledge(t, name(n), answer) })
		}
	}
	keep := func(path, id string, answer object) {
		details, _ := answer["details"].(object)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.created = append(l.created, place{path + fmt.Sprint(answer[id]), fmt.Sprint(details["resourceOwner"])})
	}
	writer(c, func(n int) (string, string, object) {
		return "POST", "/v1/idps/jwt", newProvider(fmt.Sprint("provider ", n))
	},
		func(_ int, answer object) { keep("/v1/idps/", "idpId", answer) })
	writer(c, func(n int) (string, string, object) {
		return "POST", "/v1/orgs/_setup", newOrg(fmt.Sprint("org ", n), "a password")
	},
		func(_ int, answer object) {
			keep("/v1/orgs/", "orgId", answer)
			keep("/v1/users/", "userId", answer)
		})

	awaitCount(t, &l.acknowledged, before+1) // or the crash would have nothing to lose
	pull := time.NewTimer(life)
	defer pull.Stop()
	select {
	case <-pull.C:
	case <-p.done:
		t.Error("it ended by itself")
	}
	dead.Store(true)
	p.kill(t)
	writers.Wait()
}

func (r *register) acknowledge(t *testing.T, value string, answer object) {
	t.Helper()
	details, _ := answer["details"].(object)
	sequence, err := strconv.Atoi(fmt.Sprint(details["sequence"]))
	if err != nil {
		t.Errorf("%s answers %v", r.write, answer)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, twice := r.acked[sequence]; twice {
		t.Errorf("%s: sequence %d was given to %q and to %q", r.write, sequence, other, value)
	}
	delete(r.open, value)
	r.acked[sequence], r.last = value, max(r.last, sequence)
}

// check reads everything back that was acknowledged.
func (l *load) check(t *testing.T, p *process, token string) {
	t.Helper()
	c := newClient(t, p, token)
	for _, r := range l.registers {
		answer := c.with(r.token).want(t, 200, "GET", r.read, nil)
		value := at[string](t, answer, append([]string{r.object}, r.value...)...)
		sequence, err := strconv.Atoi(at[string](t, answer, r.object, "details", "sequence"))
		if err != nil {
			t.Fatal(err)
		}
		if sequence < r.last {
			t.Errorf("%s: the sequence is %d, and %d was acknowledged", r.read, sequence, r.last)
		}
		if acked, known := r.acked[sequence]; known && acked != value {
			t.Errorf("%s: the value is %q, and %q was acknowledged as sequence %d", r.read, value, acked, sequence)
		} else if !known && r.last > 0 && !r.open[value] {
			t.Errorf("%s: the value is %q at sequence %d: nobody sent that", r.read, value, sequence)
		}
		r.acked, r.open, r.last = map[int]string{sequence: value}, map[string]bool{}, sequence
	}
	for _, made := range slices.Concat(l.created, l.lifetime) {
		there := *c
		there.org = made.org
		status, answer, err := there.do(t.Context(), "GET", made.path, nil)
		if err != nil || status != 200 {
			t.Errorf("%s was acknowledged, and now: %d %v %v", made.path, status, answer, err)
		}
	}
	for i := range min(5, len(l.created)) {
		l.lifetime = append(l.lifetime, l.created[i*len(l.created)/5])
	}
}

// TestCrashInTheFirstStart kills first starts at any moment. The next start always ends with an administrator who can
// sign in with what the file says.
func TestCrashInTheFirstStart(t *testing.T) {
	rounds := crashRounds(t)
	eachEngine(t, func(t *testing.T, first *site) {
		for round := range rounds {
			s := first
			if round > 0 {
				s = newSite(t, testdb.New(t, first.Engine))
			}
			life := time.Duration(5+rand.IntN(120)) * time.Millisecond
			p := s.launch(t, nil)
			pull := time.NewTimer(life)
			select {
			case <-pull.C:
			case <-p.done:
				t.Error("it ended by itself")
			}
			p.kill(t)
			p = s.start(t)
			admin := s.admin(t)
			c := newClient(t, p, admin.Token)
			c.want(t, 200, "GET", "/v1/users/"+admin.UserID, nil)
			c.signIn(t, admin.LoginName, admin.Password)
			checkFiles(t, s)
			p.stop(t)
			s.run(t, "rebuild", "--check").fine(t)
			if t.Failed() {
				t.Fatalf("in round %d, killed after %v", round, life)
			}
		}
	})
}
