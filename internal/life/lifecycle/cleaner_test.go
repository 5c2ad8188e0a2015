package lifecycle_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

var quiet = slog.New(slog.DiscardHandler)

// hookRows are all that a webhook has in side tables.
func hookRows(id string) []event.RowKey {
	return []event.RowKey{event.SecretOf(id), {Table: event.Followers, Key: "webhook/" + id},
		{Table: event.Deliveries, Key: id + "/o/usr_x"}, {Table: event.Deliveries, Key: id + "/history"}}
}

func TestARemovedOrganizationIsEmptied(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	membertest.Owner(t, s, "usr_o", "org_a")
	membertest.User(t, s, "usr_guest", "org_b",
		access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwner}})
	membertest.User(t, s, "usr_visitor", "org_b", nil, user.MembershipSet{Scope: "org_a", Stays: true},
		user.GroupJoined{Org: "org_a", Group: "grp_a", Roles: []access.Role{access.OrgOwnerViewer}},
		user.AppRolesSet{Place: "prj_a", Project: "prj_a", Org: "org_a",
			Roles: []user.AppRole{{Key: "admin", Epoch: 1}}}, user.GroupJoined{Org: "org_b", Group: "grp_b"})
	eventtest.Given(t, s, group.Kind, "grp_a", "org_a", []event.Claim{group.NameClaim("org_a", "a")},
		group.Added{Name: "a", NameKey: "a"})
	eventtest.Given(t, s, group.Kind, "grp_b", "org_b", []event.Claim{group.NameClaim("org_b", "b")},
		group.Added{Name: "b", NameKey: "b"})
	eventtest.Given(t, s, idp.Kind, "idp_a", "org_a", nil, idp.JWTAdded{General: idp.General{Name: "a"}})
	eventtest.Given(t, s, idp.Kind, "idp_b", "org_b", nil, idp.JWTAdded{General: idp.General{Name: "b"}})
	eventtest.Given(t, s, app.Kind, "app_a", "org_a", nil, app.Added{Name: "a", Type: app.Web}, app.SecretSet{})
	eventtest.Given(t, s, app.Kind, "app_b", "org_b", nil, app.Added{Name: "b", Type: app.Web})
	eventtest.Given(t, s, webhook.Kind, "whk_a", "org_a", nil, webhook.Added{Name: "a"})
	eventtest.Given(t, s, webhook.Kind, "whk_b", "org_b", nil, webhook.Added{Name: "b"})
	for _, key := range hookRows("whk_a") {
		s.GivenRow(event.Row{RowKey: key, Value: []byte("{}")})
	}
	s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_a"), Value: []byte("hash")})
	s.GivenRow(event.Row{RowKey: app.SecretRow("app_a"), Value: []byte("hash")})
	s.GivenRow(event.Row{RowKey: idp.SecretRow("idp_a"), Value: []byte("sealed")})
	s.GivenToken(event.Token{ID: "pat_1", Hash: make([]byte, 32), UserID: "usr_a", Kind: string(secret.PAT),
		Expires: event.Micros(s.Now()) + 1e9})
	cleaner := lifecycle.NewCleaner(s, quiet)

	before := s.Fingerprint()
	must(t, cleaner.Clean(t.Context()))
	if s.Fingerprint() != before {
		t.Error("something was cleared away before anything was removed")
	}
	_, err := lifecycle.RemoveOrganization(t.Context(), s, in(t, "org_a", iam), event.IfMatch{})
	must(t, err)
	mark := s.Mark()
	must(t, cleaner.Clean(t.Context()))
	s.Then(t, mark,
		eventtest.Fact{Object: "usr_a", Type: "user.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "usr_o", Type: "user.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: installation.ID, Type: "installation.owner_removed.v1", Payload: `{"userId":"usr_o"}`},
		eventtest.Fact{Object: "app_a", Type: "app.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "idp_a", Type: "idp.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "whk_a", Type: "webhook.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "grp_a", Type: "group.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: "usr_guest", Type: "user.membership_set.v1", Payload: `{"scope":"org_a"}`},
		eventtest.Fact{Object: "usr_visitor", Type: "user.org_left.v1", Payload: `{"org":"org_a"}`},
		eventtest.Fact{Object: "org_a", Type: "org.emptied.v1", Payload: `{}`})
	gone(t, s, "usr_a")
	if row, err := s.Row(t.Context(), idp.SecretRow("idp_a")); err != nil || row != nil {
		t.Errorf("the provider's secret is still there (%v)", err)
	}
	if row, err := s.Row(t.Context(), app.SecretRow("app_a")); err != nil || row != nil {
		t.Errorf("the application's secret is still there (%v)", err)
	}
	for _, key := range hookRows("whk_a") {
		if row, err := s.Row(t.Context(), key); err != nil || row != nil {
			t.Errorf("the webhook's row %s is still there (%v)", key.Key, err)
		}
	}
	if a := eventtest.State(t, s, app.Kind, "app_a"); a.Data.Epoch != 1 {
		t.Error("the application's tokens live on")
	}
	if u := eventtest.State(t, s, user.Kind, "usr_guest"); len(u.Data.Memberships) != 1 ||
		len(u.Data.Memberships["org_b"]) != 1 {
		t.Errorf("the guest holds %v", u.Data.Memberships)
	}
	if u := eventtest.State(t, s, user.Kind, "usr_visitor"); len(u.Data.Memberships) != 0 || u.Data.AppRoles != nil ||
		len(u.Data.Groups) != 1 || !u.Data.In("org_b", "grp_b") {
		t.Errorf("the visitor has %+v", u.Data)
	}
	mark = s.Mark()
	must(t, cleaner.Clean(t.Context()))
	s.Then(t, mark)
}

// Security list 13: what was granted ends with either organization, and with the project.
func TestGrantsEndWithEitherOrganizationAndWithTheProject(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(t *testing.T, s event.Store)
		left []string
	}{
		"the one that granted": {func(t *testing.T, s event.Store) {
			_, err := lifecycle.RemoveOrganization(t.Context(), s, in(t, "org_a", iam), event.IfMatch{})
			must(t, err)
		}, []string{"pgr_other", "pac_other"}},
		"the one that it was granted to": {func(t *testing.T, s event.Store) {
			_, err := lifecycle.RemoveOrganization(t.Context(), s, in(t, "org_b", iam), event.IfMatch{})
			must(t, err)
		}, []string{"pgr_c", "pgr_other", "pac_other"}},
		"the project": {func(t *testing.T, s event.Store) {
			eventtest.Given(t, s, project.Kind, "prj_a", "", nil, project.WasRemoved{})
		}, []string{"pgr_other", "pac_other"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			eventtest.Given(t, s, org.Kind, "org_c", "org_c", nil, org.Added{Name: "C"})
			eventtest.Given(t, s, org.Kind, "org_d", "org_d", nil, org.Added{Name: "D"})
			granted := func(grant, access, of, from, to string) {
				eventtest.Given(t, s, project.GrantKind, grant, from, []event.Claim{project.GrantClaim(of, to)},
					project.GrantAdded{Project: of, To: to})
				if access != "" {
					eventtest.Given(t, s, project.AccessKind, access, to, []event.Claim{project.AccessClaim(of, to)},
						project.AccessAdded{Project: of, Owner: from, Grant: grant})
					eventtest.Given(t, s, project.GrantKind, grant, "", nil, project.GrantAccepted{Access: access})
				}
			}
			eventtest.Given(t, s, project.Kind, "prj_a", "org_a", nil, project.Added{Name: "A"})
			eventtest.Given(t, s, project.Kind, "prj_d", "org_d", nil, project.Added{Name: "D"})
			granted("pgr_b", "pac_b", "prj_a", "org_a", "org_b")
			granted("pgr_c", "", "prj_a", "org_a", "org_c")
			granted("pgr_other", "pac_other", "prj_d", "org_d", "org_c")
			cleaner := lifecycle.NewCleaner(s, quiet)
			must(t, cleaner.Clean(t.Context()))
			c.ends(t, s)
			must(t, cleaner.Clean(t.Context()))
			var left []string
			for _, id := range []string{"pgr_b", "pgr_c", "pgr_other"} {
				if g := eventtest.State(t, s, project.GrantKind, id); g.Data.State != project.Removed {
					left = append(left, id)
				}
			}
			for _, id := range []string{"pac_b", "pac_other"} {
				if a := eventtest.State(t, s, project.AccessKind, id); a.Data.State != project.Removed {
					left = append(left, id)
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("%q are left, not %q", left, c.left)
			}
			if d := eventtest.State(t, s, project.Kind, "prj_d"); d.Data.State != project.Active {
				t.Error("another project is gone")
			}
			// Nothing is left to do.
			mark := s.Mark()
			must(t, cleaner.Clean(t.Context()))
			s.Then(t, mark)
		})
	}
}

func TestAnOrganizationThatCannotBeEmptiedDoesNotHoldUpOthers(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	for _, id := range []string{"org_a", "org_b"} {
		_, err := lifecycle.RemoveOrganization(t.Context(), s, in(t, id, iam), event.IfMatch{})
		must(t, err)
	}
	broken := errors.New("broken")
	failing := &limited{Store: s, refuse: func(c *event.Command) error {
		if slices.Contains(c.Write, user.Kind.Ref("usr_a")) {
			return broken
		}
		return nil
	}}
	if err := lifecycle.NewCleaner(failing, quiet).Clean(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	for id, want := range map[string]bool{"org_a": false, "org_b": true} {
		if o := eventtest.State(t, s, org.Kind, id); o.Data.Empty != want {
			t.Errorf("%s is empty: %t", id, o.Data.Empty)
		}
	}
}

// limited refuses commands.
type limited struct {
	event.Store
	refuse func(*event.Command) error
}

func (l *limited) Do(ctx context.Context, c event.Command) error {
	if err := l.refuse(&c); err != nil {
		return err
	}
	return l.Store.Do(ctx, c)
}

// nodes opens an installation on a fresh database: one node of it on SQLite, two on PostgreSQL.
type nodes struct {
	db     testdb.Database
	master secret.MasterKey
	all    []*store.Store
}

func open(t *testing.T, db testdb.Database) *nodes {
	t.Helper()
	n := &nodes{db: db, master: secret.NewMasterKey()}
	n.start(t)
	membertest.Given(t, n.all[0])
	for _, id := range []string{"org_d", "org_a", "org_b"} {
		eventtest.Given(t, n.all[0], org.Kind, id, id, []event.Claim{org.DomainClaim(id + ".example")},
			org.DomainAdded{Domain: id + ".example", Verified: true, Primary: true})
	}
	return n
}

func (n *nodes) start(t *testing.T) {
	t.Helper()
	count := 1
	if n.db.Engine == testdb.Postgres {
		count = 2
	}
	n.all = nil
	for range count {
		s, _, err := store.Open(t.Context(),
			store.Options{Database: n.db.URL, Kinds: model.Kinds, Master: n.master, Log: quiet})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		n.all = append(n.all, s)
	}
}

func (n *nodes) stop(t *testing.T) {
	t.Helper()
	for _, s := range n.all {
		must(t, s.Close())
	}
}

// node spreads work over all of them.
func (n *nodes) node(i int) *store.Store { return n.all[i%len(n.all)] }

func service(id string) event.Fact[user.User] {
	return user.ServiceAdded{Personal: user.ServiceFacts{UserName: id, UserNameKey: id, Name: id}}
}

// equal demands that the state follows from the log.
func (n *nodes) equal(t *testing.T) {
	t.Helper()
	report, err := n.all[0].RebuildCheck(t.Context())
	must(t, err)
	if len(report.Differences) > 0 {
		t.Errorf("different: %q", report.Differences)
	}
}

func hashOf(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:]
}

// crowd puts many users with a password and a token each into an organization, and members from elsewhere.
func crowd(t *testing.T, s event.Store, org string, users, guests int) (ids []string) {
	t.Helper()
	const batch = 100
	for from := 0; from < users+guests; from += batch {
		c := event.Command{Origin: event.Origin{Actor: event.System}}
		var made []func(tx *event.Tx) error
		for i := from; i < min(from+batch, users+guests); i++ {
			id, home := fmt.Sprintf("usr_%05d", i), org
			if i >= users {
				home = "org_b"
			}
			ids = append(ids, id)
			c.Write = append(c.Write, user.Kind.Ref(id))
			c.Claims = append(c.Claims, user.NameClaim(home, id))
			made = append(made, func(tx *event.Tx) error {
				tx.PutRow(event.Row{RowKey: user.PasswordRow(id), Value: []byte("hash")})
				tx.PutToken(event.Token{ID: "pat_" + id, Hash: hashOf(id), Kind: string(secret.PAT), UserID: id,
					Expires: tx.Now() + 1e10})
				_, err := user.Kind.Create(tx, id, home, service(id),
					user.MembershipSet{Scope: org, Roles: []access.Role{access.OrgUserManager}})
				return err
			})
		}
		c.Decide = func(tx *event.Tx) error {
			for _, make := range made {
				if err := make(tx); err != nil {
					return err
				}
			}
			return nil
		}
		must(t, s.Do(t.Context(), c))
	}
	return ids
}

func TestClearingAwayGoesOnWhereItWasStopped(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		const users, guests = 1000, 150
		ids := crowd(t, n.node(0), "org_a", users, guests)
		for i := range 3 {
			eventtest.Given(t, n.node(0), idp.Kind, fmt.Sprint("idp_", i), "org_a", nil,
				idp.JWTAdded{General: idp.General{Name: "a"}})
		}
		_, err := lifecycle.RemoveOrganization(t.Context(), n.node(0), in(t, "org_a", iam), event.IfMatch{})
		must(t, err)

		// The node stops after a few steps.
		ctx, stop := context.WithCancel(t.Context())
		steps, largest := 0, 0
		dying := &limited{Store: n.node(0), refuse: func(c *event.Command) error {
			if steps++; steps > 4 {
				stop()
			}
			largest = max(largest, len(c.Write)) // users with what stands beside each of them
			return nil
		}}
		if err := lifecycle.NewCleaner(dying, quiet).Clean(ctx); err == nil {
			t.Fatal("it finished before it was stopped")
		}
		if left := len(listed(t, n.node(0), "org_a")); left == 0 || left == users {
			t.Fatalf("%d users are left", left)
		}
		if largest > 301 {
			t.Errorf("one step wrote %d objects", largest)
		}
		n.stop(t)

		// All nodes start again, and all of them go on.
		n.start(t)
		var wait sync.WaitGroup
		for _, s := range n.all {
			wait.Go(func() {
				if err := lifecycle.NewCleaner(s, quiet).Clean(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for _, id := range ids[:users] {
			gone(t, n.node(0), id)
			if u, err := user.Kind.Read(t.Context(), n.node(0), id); err != nil || u.Sequence != 3 {
				t.Errorf("%s was removed more than once: %+v, %v", id, u, err)
			}
			if holder, err := n.node(0).Holder(t.Context(), user.NameClaim("org_a", id)); err != nil || holder != "" {
				t.Errorf("the name %s belongs to %q, %v", id, holder, err)
			}
		}
		for _, id := range ids[users:] {
			if u, err := user.Kind.Read(t.Context(), n.node(0), id); err != nil || u.Data.State != user.Active ||
				len(u.Data.Memberships) > 0 || u.Sequence != 3 {
				t.Errorf("%s: %+v, %v", id, u, err)
			}
		}
		if holder, err := n.node(0).Holder(t.Context(), org.DomainClaim("org_a.example")); err != nil || holder != "" {
			t.Errorf("the domain belongs to %q, %v", holder, err)
		}
		o, err := org.Kind.Read(t.Context(), n.node(0), "org_a")
		must(t, err)
		if !o.Data.Empty || o.Sequence != 4 {
			t.Errorf("the organization is %+v at %d", o.Data, o.Sequence)
		}
		if members, _, err := user.Kind.List(t.Context(), n.node(0),
			event.Query{Group: user.MembersOf("org_a"), Limit: 1}); err != nil || len(members) > 0 {
			t.Errorf("members: %v, %v", members, err)
		}
		n.equal(t)
	})
}

func listed(t *testing.T, r event.Reader, org string) []*event.Object[user.User] {
	t.Helper()
	users, _, err := user.Kind.List(t.Context(), r, event.Query{Org: org, Limit: 5000})
	must(t, err)
	return users
}

// Whatever gets into an organization while it is being removed goes with it, or does not get in.
func TestNothingGetsIntoARemovedOrganization(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		for round := range 10 {
			id := fmt.Sprint("org_", round)
			eventtest.Given(t, n.node(0), org.Kind, id, id, nil, org.Added{Name: id})
			guest := fmt.Sprint("usr_guest_", round)
			membertest.User(t, n.node(0), guest, "org_b", nil)
			permit := in(t, id, iam)
			var wait sync.WaitGroup
			start := make(chan struct{})
			for i := range 8 {
				wait.Go(func() {
					<-start
					var err error
					switch i {
					case 0:
						if _, err = lifecycle.RemoveOrganization(context.Background(), n.node(round), permit,
							event.IfMatch{}); err == nil {
							err = lifecycle.NewCleaner(n.node(round), quiet).Clean(context.Background())
						}
					case 1:
						var m member.Members
						if m, err = member.OfOrganization(permit); err == nil {
							_, err = m.Set(context.Background(), n.node(1), guest, event.IfMatch{},
								[]string{"ORG_OWNER"})
						}
					case 2, 3, 4:
						_, err = app.Add(context.Background(), n.node(i), permit, app.New{Name: "x", Type: app.API})
					default:
						_, err = idp.AddJWT(context.Background(), n.node(i), permit, event.Once{},
							idp.General{Name: "x"}, idp.JWT{Endpoint: "e", Issuer: "i", KeysEndpoint: "k"}, false)
					}
					if err != nil && (i == 0 || errs.KindOf(err) != errs.NotFound) {
						t.Error(err)
					}
				})
			}
			close(start)
			wait.Wait()
			if providers, _, err := idp.Kind.List(t.Context(), n.node(0),
				event.Query{Org: id, Limit: 10}); err != nil || len(providers) > 0 {
				t.Fatalf("%d providers are left, %v", len(providers), err)
			}
			if apps, _, err := app.Kind.List(t.Context(), n.node(0), event.Query{Org: id, Limit: 10}); err != nil ||
				len(apps) > 0 {
				t.Fatalf("%d applications are left, %v", len(apps), err)
			}
			if u, err := user.Kind.Read(t.Context(), n.node(0), guest); err != nil || len(u.Data.Memberships) > 0 {
				t.Fatalf("the guest holds %v, %v", u.Data.Memberships, err)
			}
		}
		n.equal(t)
	})
}

// Two owners try to get rid of each other, in every way there is. One of them stays.
func TestTwoWhoEndEachOtherNeverBothSucceed(t *testing.T) {
	demote := func(ctx context.Context, s event.Store, id, _ string) error {
		permit, err := (&access.Caller{UserID: "usr_me", Memberships: iam}).In(access.Installation, access.SystemWrite)
		if err != nil {
			return err
		}
		m, err := member.OfInstallation(permit)
		if err != nil {
			return err
		}
		_, err = m.Set(ctx, s, id, event.IfMatch{}, []string{"IAM_OWNER_VIEWER"})
		return err
	}
	ways := []func(ctx context.Context, s event.Store, id, org string) error{demote}
	for _, change := range []userChange{lifecycle.DeactivateUser, lifecycle.LockUser, lifecycle.RemoveUser} {
		ways = append(ways, func(ctx context.Context, s event.Store, id, org string) error {
			_, err := change(ctx, s, in(t, org, iam), id, event.IfMatch{})
			return err
		})
	}
	for _, change := range []orgChange{lifecycle.DeactivateOrganization, lifecycle.RemoveOrganization} {
		ways = append(ways, func(ctx context.Context, s event.Store, _, org string) error {
			_, err := change(ctx, s, in(t, org, iam), event.IfMatch{})
			return err
		})
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		round := 0
		for _, first := range ways {
			for _, second := range ways {
				round++
				// Two new owners in organizations of their own; nobody else is one any more.
				var ids [2]string
				for i := range ids {
					ids[i] = fmt.Sprintf("%d_%d", round, i)
					eventtest.Given(t, n.node(0), org.Kind, "org_"+ids[i], "org_"+ids[i], nil, org.Added{Name: "x"})
					membertest.Owner(t, n.all[0], "usr_"+ids[i], "org_"+ids[i])
				}
				n.onlyOwners(t, "usr_"+ids[0], "usr_"+ids[1])
				var wait sync.WaitGroup
				start := make(chan struct{})
				var results [2]error
				for i, end := range []func(context.Context, event.Store, string, string) error{first, second} {
					wait.Go(func() {
						<-start
						results[i] = end(context.Background(), n.node(i), "usr_"+ids[i], "org_"+ids[i])
					})
				}
				close(start)
				wait.Wait()
				if (results[0] == nil) == (results[1] == nil) {
					t.Fatalf("round %d: %v and %v", round, results[0], results[1])
				}
				for _, err := range results {
					if err != nil {
						eventtest.As(t, err, member.ErrLastOwner)
					}
				}
			}
		}
		n.equal(t)
	})
}

// onlyOwners takes the rights of all other owners away.
func (n *nodes) onlyOwners(t *testing.T, ids ...string) {
	t.Helper()
	i, err := installation.Read(t.Context(), n.node(0))
	must(t, err)
	for _, id := range i.Data.Owners {
		if id != ids[0] && id != ids[1] {
			eventtest.Given(t, n.node(0), installation.Kind, installation.ID, "", nil,
				installation.OwnerRemoved{UserID: id})
		}
	}
}
