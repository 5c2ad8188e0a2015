package api_test

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/server"
	"github.com/signet-idm/signet/internal/testdb"
)

// secondNode is another server on the same database; on SQLite, where there can be only one, the same.
func (w *World) secondNode(t *testing.T) restWire {
	t.Helper()
	if w.db.Engine != testdb.Postgres {
		return w.rest
	}
	log := slog.New(slog.NewJSONHandler(&w.log, nil))
	node, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", ExternalURL: "https://" + suffix, DataDir: t.TempDir(),
		MasterKey: string(w.master.Text()), Database: w.db.URL}, log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	http := server.NewHTTPServer(node.Handler(), log)
	stopped := make(chan error, 1)
	go func() { stopped <- http.Serve(listener) }()
	t.Cleanup(func() {
		_ = http.Close()
		<-stopped
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	return restWire{w.rest.client, "http://" + listener.Addr().String()}
}

// readsSeeWrites: 10,000 times, what was answered to a writer on one node is what a reader finds on another right after.
func readsSeeWrites(t *testing.T, w *World) {
	const writers, times = 4, 2500
	other := w.secondNode(t)
	s := w.scene(t)
	var group sync.WaitGroup
	for n := range writers {
		who := w.addUser(t, person{Org: s.org, Domain: s.domain})
		group.Go(func() {
			for i := range times {
				name := fmt.Sprintf("Reader %d of %d", i, n)
				written := w.send(t, w.rest, who, with(with(profile(), "displayName", name), "nickName", nil), nil)
				if written.status != nil {
					t.Errorf("writing: %s", written.summary())
					return
				}
				sequence := written.message.(*signetv1.UpdateMyProfileResponse).GetDetails().GetSequence()
				for about, req := range map[string]proto.Message{
					"GetMyUser": &signetv1.GetMyUserRequest{},
					"GetUser":   &signetv1.GetUserRequest{UserId: who.UserID},
					"ListUsers": &signetv1.ListUsersRequest{Name: name, PageSize: 2},
				} {
					as := s.owner
					switch about {
					case "GetMyUser":
						as = who
					default:
						if i%10 != 0 {
							continue
						}
					}
					if got := userIn(w.send(t, other, as, req, nil)); got.GetDetails().GetSequence() != sequence || got.GetHuman().GetProfile().GetDisplayName() != name {
						t.Errorf("%s finds sequence %d and %q right after %d and %q", about, got.GetDetails().GetSequence(),
							got.GetHuman().GetProfile().GetDisplayName(), sequence, name)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// userIn gives the one user that an answer holds.
func userIn(a *Answer) *signetv1.User {
	switch m := a.message.(type) {
	case *signetv1.GetMyUserResponse:
		return m.GetUser()
	case *signetv1.GetUserResponse:
		return m.GetUser()
	case *signetv1.ListUsersResponse:
		if len(m.GetUsers()) == 1 {
			return m.GetUsers()[0]
		}
	}
	return nil
}
