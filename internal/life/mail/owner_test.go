package mail

import (
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// Who can do something about an organization without an owner hears of it: the owners of the installation and its
// members with roles, each once.
func TestThatAnOrganizationHasNoOwnerIsTold(t *testing.T) {
	p := newPost(t)
	eventtest.Given(t, p.Store, org.Kind, "org_h", "org_h", nil, org.Added{Name: "Host"})
	eventtest.Given(t, p.Store, installation.Kind, installation.ID, "org_a", nil,
		installation.Added{DefaultOrg: "org_a"}, installation.OwnerAdded{UserID: "usr_root"})
	roles := func(name string, roles ...access.Role) {
		eventtest.Given(t, p.Store, user.Kind, "usr_"+name, "", nil,
			user.MembershipSet{Scope: "org_h", Roles: roles, Stays: len(roles) == 0})
	}
	for _, name := range []string{"root", "viewer", "german", "unverified", "guest", "locked", "stranger"} {
		profile := user.Profile{DisplayName: name}
		if name == "german" {
			profile.PreferredLanguage = "de"
		}
		p.person(t, name, name != "unverified", profile)
	}
	for _, name := range []string{"viewer", "german", "unverified", "locked"} {
		roles(name, access.OrgOwnerViewer)
	}
	roles("guest")
	eventtest.Given(t, p.Store, user.Kind, "usr_locked", "", nil, user.WasLocked{})
	p.mark = p.Mark()
	p.sent = nil
	lost := org.OwnerLost{UserID: "usr_gone", Org: "org_a"}
	told := func() (who []string) {
		for _, m := range p.sent {
			if m.Kind != OwnerLost || !strings.Contains(m.Text, "Host") || !strings.Contains(m.Text, "ORG_OWNER") ||
				strings.Contains(m.Text, "usr_gone") || (m.Language == "de") != (m.UserID == "usr_german") {
				t.Errorf("%+v", m)
			}
			who = append(who, m.UserID)
		}
		slices.Sort(who)
		p.sent = nil
		return who
	}

	eventtest.Given(t, p.Store, org.Kind, "org_h", "", nil, lost)
	p.fail = 1
	if p.deliver(t) == nil {
		t.Error("a mail that was not sent is forgotten")
	}
	must(t, p.deliver(t))
	if got := told(); !slices.Equal(got, []string{"usr_german", "usr_root", "usr_viewer"}) {
		t.Errorf("told were %q", got)
	}
	// Nobody gets it twice.
	p.mark--
	must(t, p.deliver(t))
	if got := told(); got != nil {
		t.Errorf("told again were %q", got)
	}
	// If somebody owns it by now, it is no news.
	eventtest.Given(t, p.Store, org.Kind, "org_h", "", nil, lost)
	roles("viewer", access.OrgOwner)
	must(t, p.deliver(t))
	if got := told(); got != nil {
		t.Errorf("told were %q", got)
	}
}
