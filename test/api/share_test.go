package api_test

import (
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/server"
	"github.com/signet-idm/signet/internal/share"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// One organization sets passwords, or is signed in to, more often than can be done. Another one has its turn all the same, at once: the test holds all slots for hashing until
// everybody waits, so that the order of the turns depends on nothing else.
func TestAnOrganizationThatHashesAllTheTimeDelaysNoOther(t *testing.T) {
	const many = 20
	set := func(_ int, w *World, s *scene) proto.Message { return setPassword(s.user.UserID, w.secret("another")) }
	signIn := func(i int, w *World, s *scene) proto.Message {
		return &signetv1.CreateSessionRequest{LoginName: fmt.Sprint("nobody", i), Password: w.secret("wrong"), OrgId: s.org}
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		for flood, by := range map[string]func(int, *World, *scene) proto.Message{"setting passwords": set, "signing in": signIn} {
			for what, ask := range map[string]func(int, *World, *scene) proto.Message{"sets a password": set, "signs in": signIn} {
				t.Run("while one is "+flood+", another "+what, func(t *testing.T) {
					var mu sync.Mutex
					var turns []string
					hasher := secret.NewCheapHasher().Turns(func(org string) {
						mu.Lock()
						defer mu.Unlock()
						turns = append(turns, org)
					})
					w := openWorld(t, testdb.New(t, db.Engine), func(c *server.Config) { c.Hasher = hasher })
					a, b := w.newScene(t), w.newScene(t)
					slots, _ := hasher.Places()
					n, held := slots.Bounds().Places, share.Claim{Org: a.org}
					for range n {
						testkit.Must(t, slots.Enter(t.Context(), held))
					}
					var all sync.WaitGroup
					send := func(s *scene, req proto.Message) {
						all.Go(func() {
							as := s.owner
							if _, public := req.(*signetv1.CreateSessionRequest); public {
								as = nil
							}
							if answer := w.send(t, w.rest, as, req, nil); answer.code() != codes.OK && answer.code() != codes.Unauthenticated {
								t.Errorf("%v", answer)
							}
						})
					}
					waiting := func(n int) {
						t.Helper()
						testkit.Await(t, fmt.Sprint(n, " wait"), func() bool { _, waiting := slots.Load(); return waiting == n })
					}
					for i := range many {
						send(a, by(i, w, a))
					}
					waiting(many)
					send(b, ask(many, w, b))
					waiting(many + 1)
					mu.Lock()
					turns = nil
					mu.Unlock()
					slots.Leave(held) // the others stay, so there is one turn at a time
					all.Wait()
					for range n - 1 {
						slots.Leave(held)
					}
					mu.Lock()
					defer mu.Unlock()
					before := 0
					for before < len(turns) && turns[before] != b.org {
						before++
					}
					if n > 1 && before > 0 || before > 1 { // with one slot, nobody holds any at that moment, and who came first goes first
						t.Errorf("%d of %d turns went before that of another organization, with %d slots", before, len(turns), n)
					}
				})
			}
		}
	})
}
