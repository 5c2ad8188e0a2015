package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// counted is what an answer tells of all its days, as "way successes failures throttled": a day may end at any moment.
func (c *Client) counted(t *testing.T, as *Actor, req *signetv1.CountSignInsRequest,
	h ...Header) (all map[string][3]uint64) {
	t.Helper()
	all = map[string][3]uint64{}
	for _, day := range done[*signetv1.CountSignInsResponse](t, c, as, req, h...).GetDays() {
		for _, n := range day.GetCounts() {
			sum := all[n.GetWay().String()]
			all[n.GetWay().String()] = [3]uint64{sum[0] + n.GetSuccesses(), sum[1] + n.GetFailures(),
				sum[2] + n.GetThrottled()}
		}
	}
	return all
}

// countStory signs in, fails and is throttled, in every way, and counts that.
func countStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	mine := func() string {
		return fmt.Sprint(c.counted(t, s.owner, &signetv1.CountSignInsRequest{}))
	}
	all := &signetv1.CountSignInsRequest{AllOrganizations: true}
	before := c.counted(t, c.w.root, all)
	same(t, "nothing happened", mine(), "map[]")
	done[*signetv1.CreateSessionResponse](t, c, nil, signIn(s.user.LoginName, s.user.Password))
	same(t, "a password", mine(), "map[WAY_PASSWORD:[1 0 0]]")
	c.refused(t, signInFailed, nil, signIn(s.user.LoginName, c.w.secret("wrong")))
	same(t, "a wrong one", mine(), "map[WAY_PASSWORD:[1 1 0]]")
	c.refused(t, signInFailed, nil, signIn(unique("nobody")+"@"+s.domain, c.w.secret("wrong")))
	same(t, "of nobody", mine(), "map[WAY_PASSWORD:[1 2 0]]")
	nobody := signIn(unique("nobody")+"@"+s.domain, c.w.secret("wrong"))
	_, heard := untilThrottled(t, c.w, c.wire, nil, nobody, signInFailed)
	same(t, "throttled", mine(), fmt.Sprintf("map[WAY_PASSWORD:[1 %d 1]]", 2+heard))
	done[*signetv1.CreateSessionWithPasskeyResponse](t, c, nil,
		&signetv1.CreateSessionWithPasskeyRequest{Assertion: s.assertion()})
	same(t, "a passkey", mine(), fmt.Sprintf("map[WAY_PASSKEY:[1 0 0] WAY_PASSWORD:[1 %d 1]]", 2+heard))
	// An organization that does not exist counts for the installation alone.
	c.refused(t, signInFailed, nil, with(signIn(unique("nobody"), c.w.secret("wrong")), "orgId", unknownOrg))
	after := c.counted(t, c.w.root, all)
	if grown := after["WAY_PASSWORD"][1] - before["WAY_PASSWORD"][1]; grown < uint64(3+heard) {
		t.Errorf("the installation has %d more failures", grown)
	}
	same(t, "the organization has not", mine(), fmt.Sprintf("map[WAY_PASSKEY:[1 0 0] WAY_PASSWORD:[1 %d 1]]", 2+heard))

	// Whose, and which days.
	for _, n := range []int32{0, 1, 7, 90} {
		yesterday := time.Now().UTC().Format(time.DateOnly) // if the day ends now
		days := done[*signetv1.CountSignInsResponse](t, c, s.owner, &signetv1.CountSignInsRequest{Days: n}).GetDays()
		want := int(n)
		if n == 0 {
			want = 30
		}
		same(t, "days", len(days), want)
		last, err := time.Parse(time.DateOnly, days[len(days)-1].GetDate())
		if today := time.Now().UTC().Format(time.DateOnly); err != nil ||
			last.Format(time.DateOnly) != today && last.Format(time.DateOnly) != yesterday {
			t.Errorf("the last one is %s, %v", days[len(days)-1].GetDate(), err)
		}
		same(t, "the first one", days[0].GetDate(), last.AddDate(0, 0, 1-want).Format(time.DateOnly))
	}
	c.refused(t, invalid("days"), s.owner, &signetv1.CountSignInsRequest{Days: 91})
	for _, req := range []proto.Message{all, &signetv1.SearchUsersRequest{Query: "anna", AllOrganizations: true},
		&signetv1.ListEventsRequest{AllOrganizations: true}} {
		if said := c.refused(t, permissionDenied, s.owner, req).status.GetMessage(); !strings.Contains(said,
			"in the installation") {
			t.Errorf("all organizations are refused with %q, which does not say whom to ask", said)
		}
	}
	c.refused(t, permissionDenied, s.holder(t, iamOrgManager), all)
	elsewhere := c.w.newScene(t)
	same(t, "another organization", fmt.Sprint(c.counted(t, elsewhere.owner, &signetv1.CountSignInsRequest{})), "map[]")
	guest := c.w.addUser(t, person{Org: elsewhere.org,
		Elsewhere: map[string][]access.Role{s.org: {access.OrgOwnerViewer}}})
	same(t, "a guest", c.counted(t, guest, &signetv1.CountSignInsRequest{}, header(orgID, s.org))["WAY_PASSKEY"],
		[3]uint64{1, 0, 0})
}

// countsOnEveryNode: what one node counts, others tell a moment later, and it is there after a restart.
func countsOnEveryNode(t *testing.T, w *World) {
	if w.db.Engine != testdb.Postgres {
		return // one node: see package tally for a restart
	}
	here, there := &Client{w, w.rest}, &Client{w, w.secondNode(t)}
	s := w.newScene(t)
	for range 3 {
		for _, c := range []*Client{here, there} {
			done[*signetv1.CreateSessionResponse](t, c, nil, signIn(s.user.LoginName, s.user.Password))
		}
	}
	for _, c := range []*Client{here, there} {
		testkit.Await(t, "all are counted", func() bool {
			return c.counted(t, s.owner, &signetv1.CountSignInsRequest{})["WAY_PASSWORD"] == [3]uint64{6, 0, 0}
		})
	}
}
