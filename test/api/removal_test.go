package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// removalSurvivesRestart removes an organization with many users, stops the server while it clears them away, and lets
// the next one finish.
func removalSurvivesRestart(t *testing.T, w *World) {
	const users = 1000
	config := server.Config{Data: server.Data{DataDir: t.TempDir(), MasterKey: string(w.master.Text())},
		Listen: "127.0.0.1:0", ExternalURL: "https://" + suffix}
	if db := testdb.New(t, w.db.Engine); db.Engine == testdb.Postgres {
		config.Database = db.URL
	}
	open := func() *server.Server {
		t.Helper()
		s, err := server.Open(t.Context(), config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	first := s.FirstAdmin
	w.hide(first.Password)
	w.hide(first.Token)
	const doomed = "org_doomed"
	names := crowd(t, s, doomed, users)

	request := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/v1/orgs/"+doomed, nil)
	request.Header.Set("authorization", "Bearer "+first.Token)
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	left := func(r event.Reader) int {
		t.Helper()
		some, _, err := user.Kind.List(t.Context(), r, event.Query{Org: doomed, Limit: users + 1})
		if err != nil {
			t.Fatal(err)
		}
		return len(some)
	}
	testkit.Await(t, "some are gone", func() bool { return left(s.Store()) < users })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	defer s.Close()
	testkit.Await(t, "the organization is empty", func() bool {
		o, err := org.Kind.Read(t.Context(), s.Store(), doomed)
		return err == nil && o.Data.Empty
	})
	if n := left(s.Store()); n > 0 {
		t.Errorf("%d users are left", n)
	}
	for _, name := range names {
		if holder, err := s.Store().Holder(t.Context(), user.NameClaim(doomed, name)); err != nil || holder != "" {
			t.Fatalf("the name %s belongs to %q, %v", name, holder, err)
		}
	}
	report, err := s.Store().RebuildCheck(t.Context())
	if err != nil || len(report.Differences) > 0 || report.Events < 2*users {
		t.Errorf("%d events; different: %q, %v", report.Events, report.Differences, err)
	}
}

// crowd makes an organization with many users.
func crowd(t *testing.T, s *server.Server, id string, users int) (names []string) {
	t.Helper()
	command := event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{org.Kind.Ref(id)}}
	var ids []string
	for i := range users {
		names, ids = append(names, fmt.Sprint("user", i)), append(ids, user.Kind.NewID())
		command.Write = append(command.Write, user.Kind.Ref(ids[i]))
		command.Claims = append(command.Claims, user.NameClaim(id, names[i]))
	}
	command.Decide = func(tx *event.Tx) error {
		if _, err := org.Kind.Create(tx, id, id, org.Added{Name: "Doomed"}); err != nil {
			return err
		}
		for i := range ids {
			u, err := user.AddService(tx, ids[i], id, names[i], "Robot", "")
			if err != nil {
				return err
			}
			if err := u.Append(user.MembershipSet{Scope: id, Roles: []access.Role{access.OrgUserManager}}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.Store().Do(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	return names
}
