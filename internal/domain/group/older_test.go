package group_test

import (
	"path/filepath"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
)

// While nodes run that know only the long form of what is recorded about each member, roles are given in that form.
func TestRolesAreGivenWhileOlderNodesRun(t *testing.T) {
	s, _, err := store.Open(t.Context(), store.Options{
		Database: filepath.Join(t.TempDir(), "signet.db"), Kinds: model.Kinds, Master: secret.NewMasterKey(),
		FactVersion: user.GroupRolesSet{}.Since() - 1,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	membertest.Given(t, s)
	membertest.User(t, s, "usr_a", "org_a", nil)
	membertest.User(t, s, "usr_keeps", "org_a", owner)
	newGroup(t, s, "grp_g", "org_a")
	join(t, s, "usr_a")
	for _, roles := range [][]string{{"ORG_OWNER"}, {"ORG_USER_MANAGER"}} {
		_, err := group.SetRoles(t.Context(), s, in(t, owner), "grp_g", event.IfMatch{}, roles)
		must(t, err)
		u, err := user.Kind.Read(t.Context(), s, "usr_a")
		must(t, err)
		if got := u.Data.Memberships["org_a"]; len(got) != 1 || got[0] != access.Role(roles[0]) {
			t.Errorf("usr_a holds %v, and the group gives %v", got, roles)
		}
	}
}
