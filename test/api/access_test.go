package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

func (c *Client) access(t *testing.T, as *Actor) *signetv1.GetMyAccessResponse {
	t.Helper()
	return done[*signetv1.GetMyAccessResponse](t, c, as, &signetv1.GetMyAccessRequest{})
}

// accessIn is what an answer tells about an organization; nil where it is not in it.
func accessIn(a *signetv1.GetMyAccessResponse, org string) *signetv1.OrganizationAccess {
	for _, o := range a.GetOrganizations() {
		if o.GetOrgId() == org {
			return o
		}
	}
	return nil
}

// tells whether an operation is allowed, as the definition of GetMyAccess says that it is to be read. It uses what
// ListRoles tells of the operation.
func tells(a *signetv1.GetMyAccessResponse, p string, op *signetv1.Operation, org string) bool {
	if a.GetLimitedToScopes() && !enough(a.GetScopes(), op.GetScopes()) {
		return false
	}
	if slices.Contains(a.GetInstallationPermissions(), p) {
		return true
	}
	o := accessIn(a, org)
	return !op.GetInstallation() && slices.Contains(o.GetPermissions(), p) &&
		o.GetNeeds() == signetv1.OrganizationAccess_NEED_UNSPECIFIED
}

// accessMatches sends every operation that needs a permission, as everybody of the matrix and as applications, and
// compares what the server answers with what it has told them that they may.
func accessMatches(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	m := newMatrix(t, w)
	listed, permissionsOf := map[string]*signetv1.Operation{}, map[string][]string{}
	for _, p := range done[*signetv1.ListRolesResponse](t, c, m.parties[0].Actor,
		&signetv1.ListRolesRequest{}).GetPermissions() {
		for _, op := range p.GetOperations() {
			listed[op.GetName()] = op
			permissionsOf[op.GetName()] = append(permissionsOf[op.GetName()], p.GetName())
		}
	}
	parties := slices.Clone(m.parties)
	for _, p := range m.parties {
		if p.name != orgOwner && p.name != iamViewer {
			continue
		}
		for _, scopes := range [][]string{{"signet.self"}, {"signet.self", "signet.read"},
			{"signet.self", "signet.write", "signet.credentials"}, {"signet.self", "signet.domains", "signet.roles"}} {
			bound := *p
			bound.Actor = &Actor{UserID: p.UserID, OrgID: p.OrgID,
				Token: w.accessToken(t, p.Actor, w.server.URL(), scopes...)}
			bound.name += " through an application with " + strings.Join(scopes, " ")
			parties = append(parties, &bound)
		}
	}
	for _, p := range parties {
		told, used := c.access(t, p.Actor), map[string]bool{}
		for _, op := range operations {
			if op.rule.GetPermission() == "" {
				continue
			}
			permissions := op.permissions()
			slices.Sort(permissions)
			known := listed[string(op.md.Parent().Name())+"/"+op.name()]
			if known == nil || !slices.Equal(permissionsOf[known.GetName()], permissions) {
				t.Fatalf("ListRoles does not tell that %s needs one of %q", op.name(), permissions)
			}
			for _, x := range []*scene{p.home, m.theirs} {
				if x != p.home && known.GetInstallation() {
					continue
				}
				req, h := x.sample(op), op.header()
				if x != p.home {
					h = merge([]Header{h, header(orgID, x.org)})
				}
				a := w.send(t, w.rest, p.Actor, req, h)
				may := a.reason() != "PERMISSION_DENIED" && a.reason() != "SCOPE_REQUIRED"
				want := slices.ContainsFunc(permissions,
					func(permission string) bool { return tells(told, permission, known, x.org) })
				if told.GetLimitedToScopes() {
					want = want && enough(told.GetScopes(), scopesOf(op, req)) // fields need scopes, too
				}
				if op.name() == "SetGroupRoles" { // it asks for a second permission, as its description says
					want = want &&
						tells(told, "member.write", &signetv1.Operation{Scopes: []string{"signet.self"}}, x.org) &&
						(!told.GetLimitedToScopes() || may)
				}
				if may != want {
					t.Errorf("%s as %s in %s: the server answers %s, but GetMyAccess tells that it is allowed: %t",
						op.name(), p.name, x.org, a.summary(), want)
				}
				for _, permission := range permissions {
					used[permission] = used[permission] || may
				}
			}
		}
		for _, o := range told.GetOrganizations() {
			for _, permission := range slices.Concat(told.GetInstallationPermissions(), o.GetPermissions()) {
				if _, beside := access.BesideOperations[access.Permission(permission)]; !beside && !used[permission] &&
					(o.GetOrgId() == p.OrgID || o.GetOrgId() == m.theirs.org) {
					t.Errorf("%s is told of %s, but can do nothing with it", p.name, permission)
				}
			}
		}
	}
}

// rolesListed compares what is told about roles with the contract's table, and what is told about permissions with the
// definition.
func rolesListed(t *testing.T, w *World) {
	told := done[*signetv1.ListRolesResponse](t, &Client{w, w.rest}, w.scene(t).user, &signetv1.ListRolesRequest{})
	var names, permissions []string
	for _, p := range told.GetPermissions() {
		permissions = append(permissions, p.GetName())
		var got, want []string
		for _, op := range p.GetOperations() {
			got = append(got, fmt.Sprint(op.GetName(), op.GetInstallation(), op.GetScopes()))
		}
		for _, op := range operations {
			if slices.Contains(op.permissions(), p.GetName()) {
				want = append(want,
					fmt.Sprint(string(op.md.Parent().Name())+"/"+op.name(),
						op.rule.GetScope() == signetv1.Scope_SCOPE_SELF, op.rule.GetApiScopes()))
			}
		}
		if !slices.IsSortedFunc(p.GetOperations(),
			func(a, b *signetv1.Operation) int { return strings.Compare(a.GetName(), b.GetName()) }) ||
			!slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s is for %q, want %q", p.GetName(), got, want)
		}
	}
	for _, r := range told.GetRoles() {
		names = append(names, r.GetName())
		var want []string
		for _, p := range permissions {
			if rolesMay[r.GetName()](p) {
				want = append(want, p)
			}
		}
		if !slices.Equal(r.GetPermissions(), want) || r.GetInstallation() != strings.HasPrefix(r.GetName(), "IAM_") {
			t.Errorf("%v, want %q", r, want)
		}
	}
	if want := slices.Sorted(maps.Keys(rolesMay)); !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("roles %q, want %q", names, want)
	}
}

// accessStory tells somebody what they are and may in several organizations, and over whom.
func accessStory(t *testing.T, c *Client) {
	s, home, gone, off := c.w.newScene(t), c.w.newScene(t), c.w.newScene(t), c.w.newScene(t)
	guest := c.w.addUser(t, person{Org: home.org, Domain: home.domain, Roles: []access.Role{access.OrgUserManager},
		Elsewhere: map[string][]access.Role{s.org: {access.OrgOwner, access.OrgUserManager},
			gone.org: {access.OrgOwner}}})
	c.giveAndAccept(t, c.w.root, off.org, guest)
	c.w.removeOrg(t, gone)
	c.carryOut(t, c.w.root, &signetv1.DeactivateOrganizationRequest{OrgId: off.org})
	told := c.access(t, guest)
	var ids []string
	for _, o := range told.GetOrganizations() {
		ids = append(ids, o.GetOrgId())
	}
	if others := slices.Sorted(slices.Values([]string{s.org, off.org})); !slices.Equal(ids,
		slices.Concat([]string{home.org}, others)) {
		t.Errorf("organizations %q", ids)
	}
	same(t, "installation", len(told.GetInstallationPermissions())+len(told.GetInstallationRoles()), 0)
	same(t, "complete", told.GetMore(), false)
	same(t, "not bound", told.GetLimitedToScopes() || told.GetSession() || told.OverUser != nil, false)
	same(t, "the default organization, for somebody outside of it", told.GetDefaultOrgId(), "")
	inside := c.w.addUser(t, person{Org: c.w.root.OrgID})
	same(t, "the default organization, for somebody in it", c.access(t, inside).GetDefaultOrgId(), c.w.root.OrgID)
	viewer := c.w.addUser(t, person{Org: home.org, Domain: home.domain,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwnerViewer}}})
	same(t, "the default organization, for a role in the installation", c.access(t, viewer).GetDefaultOrgId(),
		c.w.root.OrgID)
	there := accessIn(told, s.org)
	same(t, "roles there", fmt.Sprint(there.GetRoles()), "[ORG_OWNER ORG_USER_MANAGER]")
	same(t, "name there", there.GetName(), c.org(t, s.owner, s.org).GetName())
	same(t, "state", accessIn(told, off.org).GetState(), signetv1.Organization_STATE_INACTIVE)
	same(t, "a guest without roles", len(accessIn(told, off.org).GetPermissions()), 0)
	same(t, "an application", c.access(t,
		&Actor{Token: c.w.accessToken(t, guest, c.w.server.URL(), "signet.self", "signet.write",
			"other")}).GetLimitedToScopes(), true)

	// What organizations ask of guests.
	session, old := c.w.signedIn(t, guest), c.w.oldSession(t, guest)
	same(t, "a session", c.access(t, session).GetSession(), true)
	needs := func(as *Actor, want signetv1.OrganizationAccess_Need) {
		t.Helper()
		told := c.access(t, as)
		same(t, "needs there", accessIn(told, s.org).GetNeeds(), want)
		same(t, "needs at home", accessIn(told, home.org).GetNeeds(), signetv1.OrganizationAccess_NEED_UNSPECIFIED)
	}
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{GuestProofSeconds: 60}))
	needs(session, signetv1.OrganizationAccess_NEED_UNSPECIFIED)
	needs(old, signetv1.OrganizationAccess_NEED_RECENT_PROOF)
	needs(guest, signetv1.OrganizationAccess_NEED_UNSPECIFIED) // nobody signs in for a token
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{SecondFactorRequired: true}))
	needs(session, signetv1.OrganizationAccess_NEED_SECOND_FACTOR)

	// Over whom: what SetUserPassword says decides.
	over := func(id string) *signetv1.GetMyAccessRequest {
		return &signetv1.GetMyAccessRequest{UserId: id}
	}
	manager, root := s.holder(t, userManager), s.holder(t, iamOwner)
	set := setPassword("", c.w.secret("over"))
	for _, as := range []*Actor{s.owner, manager, root, c.w.root, s.holder(t, iamOwner)} {
		for _, target := range []*Actor{s.owner, s.user, manager, root} {
			told := done[*signetv1.GetMyAccessResponse](t, c, as, over(target.UserID))
			if told.OverUser == nil {
				t.Fatal("it does not tell over whom")
			}
			if as == target {
				same(t, "over oneself", told.GetOverUser(), true)
				continue
			}
			a := c.send(t, as, with(set, "userId", target.UserID), stale, header(orgID, s.org))
			same(t, "over "+target.UserID, told.GetOverUser(), a.reason() != "TARGET_HOLDS_MORE")
		}
	}
	same(t, "a lesser one over oneself",
		done[*signetv1.GetMyAccessResponse](t, c, s.user, over(s.user.UserID)).GetOverUser(), true)
	removed := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	c.carryOut(t, s.owner, &signetv1.RemoveUserRequest{UserId: removed.UserID})
	for _, as := range []*Actor{s.owner, root} {
		for _, id := range []string{"usr_0198c0de00007000800000000000dead", "x", s.org, removed.UserID} {
			c.refused(t, noUser, as, over(id))
		}
	}
	// may not read users
	c.refused(t, noUser, s.user, over(s.owner.UserID))
	// of another organization
	if said := c.refused(t, noUser, home.owner,
		over(s.user.UserID)).status.GetMessage(); strings.Contains(said, orgID) {
		t.Errorf("a header that plays no part is asked for: %q", said)
	}
	c.refused(t, noUser, session, over(s.user.UserID)) // not with this sign-in
	reader := func(scopes ...string) *Actor {
		return &Actor{Token: c.w.accessToken(t, s.owner, c.w.server.URL(), scopes...)}
	}
	c.refused(t, scopeRequired, reader("signet.self"), over(s.user.UserID))
	both := reader("signet.self", "signet.read")
	same(t, "an application over somebody with roles",
		done[*signetv1.GetMyAccessResponse](t, c, both, over(manager.UserID)).GetOverUser(), false)
	same(t, "an application over somebody without",
		done[*signetv1.GetMyAccessResponse](t, c, both, over(s.user.UserID)).GetOverUser(), true)
	same(t, "an application over its user",
		done[*signetv1.GetMyAccessResponse](t, c, both, over(s.owner.UserID)).GetOverUser(), false)
}

// manyOrganizations: the answer is bounded.
func manyOrganizations(t *testing.T, w *World) {
	s := w.scene(t)
	everywhere := map[string][]access.Role{s.org: {access.OrgOwner}}
	for i := range 1000 {
		everywhere[fmt.Sprintf("org_%032d", i)] = []access.Role{access.OrgOwner}
	}
	a := w.addUser(t, person{Org: w.there.org, Elsewhere: everywhere})
	told := (&Client{w, w.rest}).access(t, a)
	same(t, "there is more", told.GetMore(), true)
	same(t, "the own one is there", told.GetOrganizations()[0].GetOrgId(), w.there.org)
}
