package program

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// Thousands of times in a row, and without a wait: what a writer was answered is what a reader finds right after, on
// PostgreSQL through the other of two nodes.
func TestScaleAReadSeesTheWriteBeforeIt(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, "")
		nodes := []*client{c.with(c.signIn(t, admin.LoginName, admin.Password))}
		nodes = append(nodes, nodes[0])
		if s.Engine == testdb.Postgres {
			other := newSite(t, s.Database)
			nodes[1] = newClient(t, other.start(t, "--master-key-file", s.path("master.key")), nodes[0].token)
		}
		for i := range scaled(1_000, 10_000) {
			writer, reader := nodes[i%2], nodes[1-i%2]
			name := fmt.Sprint("Round ", i)
			sent := profile(name)
			sent["displayName"] = name
			written := at[string](t, writer.want(t, 200, "PUT", "/v1/users/me/profile", sent), "details", "sequence")
			users := map[string]object{"GetMyUser": at[object](t,
				reader.want(t, 200, "GET", "/v1/users/me", nil), "user")}
			if i%5 == 0 { // the other ways to see a user
				users["GetUser"] = at[object](t, reader.want(t, 200, "GET", "/v1/users/"+admin.UserID, nil), "user")
				listed := at[[]any](t,
					reader.want(t, 200, "GET", "/v1/users?name="+url.QueryEscape(name), nil), "users")
				if len(listed) != 1 {
					t.Fatalf("round %d: the list has %d users", i, len(listed))
				}
				users["ListUsers"] = listed[0].(object)
			}
			for by, u := range users {
				if got := at[string](t, u, "human", "profile", "nickName"); got != name ||
					at[string](t, u, "details", "sequence") != written {
					t.Fatalf("round %d: %s finds %q at sequence %s, not at %s", i, by, got,
						at[string](t, u, "details", "sequence"), written)
				}
			}
		}
	})
}
