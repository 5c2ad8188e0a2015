package journal

import (
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestFilter(t *testing.T) {
	e := &event.Event{ObjectID: "usr_1", Sequence: 3, Org: "org_a", Type: "user.profile_changed.v1",
		Origin: event.Origin{Actor: "usr_2"}, Time: 1000}
	for _, c := range []struct {
		name   string
		filter Filter
		want   bool
	}{
		{"everything", Filter{}, true},
		{"its organization", Filter{OrgIDs: []string{"org_b", "org_a"}}, true},
		{"others", Filter{OrgIDs: []string{"org_b"}}, false},
		{"its object", Filter{ObjectIDs: []string{"usr_3", "usr_1"}}, true},
		{"another object", Filter{ObjectIDs: []string{"usr_2"}}, false},
		{"its actor", Filter{Actor: "usr_2"}, true},
		{"another actor", Filter{Actor: "usr_1"}, false},
		{"its type", Filter{Types: []string{"org.added.v1", "user.profile_changed.v1"}}, true},
		{"its kind", Filter{Types: []string{"user.*"}}, true},
		{"another kind", Filter{Types: []string{"use.*", "user.profile_changed", "user"}}, false},
		{"from its time on", Filter{From: 1000}, true},
		{"from later", Filter{From: 1001}, false},
		{"until its time", Filter{To: 1000}, false},
		{"until later", Filter{To: 1001}, true},
		{"one of two things", Filter{ObjectIDs: []string{"usr_1"}, Actor: "usr_1"}, false},
	} {
		if got := c.filter.Matches(e); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if ID(e) != "usr_1.3" {
		t.Error(ID(e))
	}
}

func TestWhatIsKeptWithAnOrganizationAndIsNotItsBusiness(t *testing.T) {
	for _, c := range []struct {
		name string
		e    event.Event
		want bool
	}{
		{"the installation, which is kept in the default one",
			event.Event{Type: "installation.policy_set.v1", Payload: []byte("{}")}, false},
		{"roles of its user in it",
			event.Event{Type: "user.membership_set.v1", Payload: []byte(`{"scope":"org_a"}`)}, true},
		{"roles of its user in another",
			event.Event{Type: "user.membership_set.v1", Payload: []byte(`{"scope":"org_b"}`)}, false},
		{"roles of its user in the installation",
			event.Event{Type: "user.membership_set.v1", Payload: []byte(`{"scope":"installation"}`)}, false},
		{"what its user has accepted in another",
			event.Event{Type: "user.roles_accepted.v1", Payload: []byte(`{"scope":"org_b"}`)}, false},
		{"a custom role of its user in it",
			event.Event{Type: "user.custom_role_changed.v1", Payload: []byte(`{"scope":"org_a"}`)}, true},
		{"a custom role of its user in another",
			event.Event{Type: "user.custom_role_changed.v1", Payload: []byte(`{"scope":"org_b"}`)}, false},
		{"a custom role of its user in the installation",
			event.Event{Type: "user.custom_role_changed.v1", Payload: []byte(`{"scope":"installation"}`)}, false},
		{"a group of it",
			event.Event{Type: "user.group_joined.v1", Payload: []byte(`{"org":"org_a","group":"grp_1"}`)}, true},
		{"a group of another",
			event.Event{Type: "user.group_joined.v1", Payload: []byte(`{"org":"org_b","group":"grp_1"}`)}, false},
		{"a group of another, which its user has left",
			event.Event{Type: "user.group_left.v1", Payload: []byte(`{"org":"org_b","group":"grp_1"}`)}, false},
		{"roles of a group of it", event.Event{Type: "user.group_roles_set.v1", Payload: []byte(`{"group":"grp_1"}`)}, true},
		{"roles of a group of another",
			event.Event{Type: "user.group_roles_set.v1", Payload: []byte(`{"org":"org_b","group":"grp_1"}`)}, false},
		{"roles in applications of another",
			event.Event{Type: "user.app_roles_set.v1", Payload: []byte(`{"org":"org_b","roles":[]}`)}, false},
		{"another that its user has left",
			event.Event{Type: "user.org_left.v1", Payload: []byte(`{"org":"org_b"}`)}, false},
		{"anything else", event.Event{Type: "user.removed.v1", Payload: []byte("{}")}, true},
	} {
		c.e.Org = "org_a"
		if got := (&Filter{OrgIDs: []string{"org_a"}}).Matches(&c.e); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if !(&Filter{}).Matches(&c.e) {
			t.Errorf("%s: hidden from those who may see everything", c.name)
		}
	}
}
