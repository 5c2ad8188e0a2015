package api_test

import (
	"strconv"
	"strings"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
)

// listedOrgs reads a list of organizations to its end, in pages of one size.
func (c *Client) listedOrgs(t *testing.T, as *Actor, req *signetv1.ListOrganizationsRequest,
	size int32) (names []string) {
	t.Helper()
	req = with(req, "pageSize", size)
	for {
		page := done[*signetv1.ListOrganizationsResponse](t, c, as, req)
		if len(page.GetOrgs()) > int(size) {
			t.Fatalf("%d organizations on a page of %d", len(page.GetOrgs()), size)
		}
		for _, o := range page.GetOrgs() {
			names = append(names, o.GetName())
		}
		if page.GetNextPageToken() == "" {
			return names
		}
		req = with(req, "pageToken", page.GetNextPageToken())
	}
}

// organizationStory: names are changed and found again.
func organizationStory(t *testing.T, c *Client) {
	w := c.w
	word := unique("Straße")
	var scenes []*scene
	for i, name := range []string{word + " B", strings.ToUpper(word) + " a", word + " C"} {
		s := w.newScene(t)
		before := c.org(t, s.owner, s.org)
		d := done[*signetv1.UpdateOrganizationResponse](t, c, s.owner,
			&signetv1.UpdateOrganizationRequest{OrgId: s.org, Name: name},
			header("if-match", strconv.FormatUint(before.GetDetails().GetSequence(), 10))).GetDetails()
		after := c.org(t, s.owner, s.org)
		same(t, "name", after.GetName(), name)
		same(t, "sequence", d.GetSequence(), before.GetDetails().GetSequence()+1)
		after.Name, after.Details = before.GetName(), before.GetDetails()
		sameMessage(t, "all else", after, before)
		c.refused(t, sequenceMismatch, s.owner, &signetv1.UpdateOrganizationRequest{OrgId: s.org, Name: "x"}, stale)
		c.refused(t, invalid("name"), s.owner, &signetv1.UpdateOrganizationRequest{OrgId: s.org})
		c.refused(t, permissionDenied, s.user, &signetv1.UpdateOrganizationRequest{OrgId: s.org, Name: "x"})
		if scenes = append(scenes, s); i > 0 {
			c.refused(t, permissionDenied, scenes[0].owner,
				&signetv1.UpdateOrganizationRequest{OrgId: s.org, Name: "x"})
		}
	}

	// One's own, for everybody who belongs to it.
	for _, as := range []*Actor{scenes[0].owner, scenes[0].user} {
		mine := done[*signetv1.GetMyOrganizationResponse](t, c, as, &signetv1.GetMyOrganizationRequest{}).GetOrg()
		sameMessage(t, "my organization", mine, c.org(t, w.root, scenes[0].org))
	}

	// Found by name, whatever its case, in the order of names; page by page.
	w.changeOrg(t, scenes[2].org, org.Deactivated{})
	all := []string{strings.ToUpper(word) + " a", word + " B", word + " C"}
	for _, prefix := range []string{word, strings.ToUpper(word), strings.ReplaceAll(word, "ß", "SS") + " "} {
		for _, size := range []int32{1, 2, 500} {
			same(t, "by "+prefix,
				strings.Join(c.listedOrgs(t, w.root, &signetv1.ListOrganizationsRequest{Name: prefix}, size), ","),
				strings.Join(all, ","))
		}
	}
	by := func(state signetv1.Organization_State, domain string) string {
		return strings.Join(c.listedOrgs(t, w.root,
			&signetv1.ListOrganizationsRequest{Name: word, State: state, Domain: domain}, 2), ",")
	}
	same(t, "active ones", by(signetv1.Organization_STATE_ACTIVE, ""), strings.Join(all[:2], ","))
	same(t, "inactive ones", by(signetv1.Organization_STATE_INACTIVE, ""), all[2])
	same(t, "by domain", by(0, scenes[2].domain), all[2])
	same(t, "by domain and state", by(signetv1.Organization_STATE_INACTIVE, scenes[2].domain), all[2])
	same(t, "by domain and another state", by(signetv1.Organization_STATE_ACTIVE, scenes[2].domain), "")
	same(t, "by the domain of another", by(0, w.here.domain), "")
	shown := done[*signetv1.ListOrganizationsResponse](t, c, w.root,
		&signetv1.ListOrganizationsRequest{Domain: scenes[2].domain}).GetOrgs()[0]
	sameMessage(t, "as listed", shown, c.org(t, w.root, scenes[2].org))
	same(t, "state", shown.GetState(), signetv1.Organization_STATE_INACTIVE)
	w.changeOrg(t, scenes[2].org, org.WasRemoved{})
	same(t, "a removed one", by(0, ""), strings.Join(all[:2], ","))
	same(t, "the domain of a removed one", by(0, scenes[2].domain), "")

	// The list is the installation's: being an owner of organizations is not enough.
	viewer := w.addUser(t, person{Org: scenes[0].org,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwnerViewer}}})
	same(t, "a viewer", len(c.listedOrgs(t, viewer, &signetv1.ListOrganizationsRequest{Name: word}, 10)), 2)
	c.refused(t, permissionDenied, scenes[0].owner, &signetv1.ListOrganizationsRequest{Name: word})
	// A token leads on in its own query only.
	first := done[*signetv1.ListOrganizationsResponse](t, c, w.root,
		&signetv1.ListOrganizationsRequest{Name: word, PageSize: 1})
	next := &signetv1.ListOrganizationsRequest{Name: word, PageSize: 1, PageToken: first.GetNextPageToken()}
	c.refused(t, invalid("pageToken"), w.root, with(next, "name", word+" "))
	c.refused(t, invalid("pageToken"), w.root, with(next, "domain", w.here.domain))
	c.refused(t, invalid("pageToken"), viewer, next)
	c.refused(t, invalid("pageSize"), w.root, &signetv1.ListOrganizationsRequest{PageSize: 501})
}
