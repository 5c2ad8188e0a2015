package api_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

const orgID = "x-service-orgid"

// orgHeaderCases are about the header that names an organization: it is never ignored.
func orgHeaderCases(t *testing.T, w *World) (cases []Case) {
	s, other := w.scene(t), w.elsewhere(t)
	add := func(name string, as *Actor, req proto.Message, h Header, want Want) {
		cases = append(cases, Case{Name: name, As: as, Req: req, Header: h, Want: want})
	}
	as := s.holder(t, iamOwner)
	// Whatever an operation is about: own, empty and absent mean the same, and twice is once too often.
	for _, op := range operations {
		if op.rule.GetPublic() {
			continue
		}
		add := func(name string, extra Header, want Want) {
			cases = append(cases, Case{
				Name:   op.name() + "/" + name,
				As:     as,
				Req:    s.sample(op),
				Fresh:  func() proto.Message { return s.sample(op) },
				Header: merge([]Header{op.header(), extra}),
				Want:   want,
				Sparse: true,
			})
		}
		add("own", header(orgID, s.org), passed(op))
		add("empty", header(orgID, ""), passed(op))
		add("twice", header(orgID, s.org, orgID, s.org), invalid(orgID))
		add("own and another", header(orgID, s.org, orgID, other.org), invalid(orgID))
		add("mistyped", header("x-service-org-id", other.org), invalid("x-service-org-id"))
	}
	add("path agrees", s.owner, &signetv1.GetOrganizationRequest{OrgId: s.org}, header(orgID, s.org), ok)
	add("path disagrees", s.owner, &signetv1.GetOrganizationRequest{OrgId: s.org}, header(orgID, other.org),
		invalid(orgID))
	add("path disagrees, unknown", s.owner, &signetv1.GetOrganizationRequest{OrgId: s.org}, header(orgID, "org_x"),
		invalid(orgID))

	in := signIn(s.user.LoginName, w.password)
	add("sign-in/header is the organization", nil, in, header(orgID, s.org), ok)
	add("sign-in/header is another organization", nil, in, header(orgID, other.org), signInFailed)
	add("sign-in/header is no organization", nil, in, header(orgID, "org_x"), signInFailed)
	add("sign-in/header agrees with orgId", nil, with(in, "orgId", s.org), header(orgID, s.org), ok)
	add("sign-in/header disagrees with orgId", nil, with(in, "orgId", s.org), header(orgID, other.org), invalid(orgID))
	add("sign-in/header empty", nil, with(in, "orgId", s.org), header(orgID, ""), ok)
	add("sign-in/header twice", nil, in, header(orgID, s.org, orgID, s.org), invalid(orgID))
	add("sign-in/header mistyped", nil, in, header("x-service-org-id", s.org), invalid("x-service-org-id"))
	return cases
}

// orderCases have two things wrong at once: the one that must be answered is the earlier in the contract's order.
func orderCases(t *testing.T, w *World) []Case {
	s, other := w.scene(t), w.elsewhere(t)
	robot := w.addUser(t, person{Org: s.org, Service: true})
	bad := with(setPassword(other.user.UserID, "x"), "password", "")
	return []Case{
		{Name: "no credential, invalid request", Req: &signetv1.UpdateMyProfileRequest{}, Want: unauthenticated},
		{Name: "no credential, wrong header", Req: profile(), Header: header(orgID, "org_x", "if-match", "W/1"),
			Want: unauthenticated},
		{Name: "no credential, unknown header", Req: profile(), Header: header("x-service-org-id", "org_x"),
			Want: unauthenticated},
		{Name: "unknown header, no permission", As: s.user, Req: setPassword(other.user.UserID, "x"),
			Header: header("x-service-org-id", other.org), Want: invalid("x-service-org-id")},
		{Name: "invalid request, no permission", As: s.user, Req: bad, Want: invalid("password")},
		{
			Name:   "invalid request and headers, all at once",
			As:     s.user,
			Req:    bad,
			Header: header("if-match", "x", orgID, "a", orgID, "b"),
			Want:   invalid("password", "if-match", orgID),
		},
		{Name: "invalid request, unknown target", As: s.owner, Req: with(general("idp_x"), "name", ""),
			Want: invalid("name")},
		{
			Name:   "invalid request, disagreeing path",
			As:     s.owner,
			Req:    &signetv1.GetOrganizationRequest{OrgId: other.org},
			Header: header(orgID, s.org),
			Want:   invalid(orgID),
		},
		{Name: "no permission, unknown target", As: s.user, Req: setPassword("usr_x", "x"), Want: permissionDenied},
		{Name: "no permission, stale", As: s.user, Req: general(s.idp), Header: stale, Want: permissionDenied},
		{Name: "unknown target, stale", As: s.owner, Req: general("idp_x"), Header: stale, Want: noIDP},
		{Name: "wrong kind, stale", As: s.owner, Req: setPassword(robot.UserID, "x"), Header: stale, Want: notHuman},
		{Name: "wrong kind of oneself, stale", As: robot, Req: profile(), Header: stale, Want: notHuman},
		// The largest requests are not read from who could not do it anywhere.
		{Name: "invalid import, no permission anywhere", As: s.user, Req: &signetv1.ImportUsersRequest{},
			Want: permissionDenied},
		{Name: "invalid import, permission elsewhere", As: other.owner, Req: &signetv1.ImportUsersRequest{},
			Header: header(orgID, s.org), Want: invalid("users")},
		{Name: "invalid set-up, no permission", As: s.owner, Req: with(setup("x"), "roles", []string{"NO"}),
			Want: invalid("roles[0]")},
		{Name: "set-up of a taken domain, no permission", As: s.owner,
			Req: with(setup("x"), "org.domain", other.domain), Want: permissionDenied},
	}
}

// kindCases are about users and providers of the wrong kind.
func kindCases(t *testing.T, w *World) []Case {
	s := w.scene(t)
	robot := w.addUser(t, person{Org: s.org, Service: true})
	return []Case{
		{Name: "profile of a service", As: robot, Req: profile(), Want: notHuman},
		{Name: "password of a service", As: s.owner, Req: setPassword(robot.UserID, "x"), Want: notHuman},
		{Name: "own password of a service", As: robot, Req: changePassword("x", "y"), Want: notHuman},
		{
			Name: "a service reads itself",
			As:   robot,
			Req:  &signetv1.GetMyUserRequest{},
			Want: ok,
			Check: func(t *testing.T, a *Answer) {
				u := a.message.(*signetv1.GetMyUserResponse).GetUser()
				if u.GetService().GetName() != "Robot" || u.GetHuman() != nil {
					t.Errorf("got %v", u)
				}
			},
		},
	}
}

// ifMatchCases are about the precondition of updates.
func ifMatchCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	as := s.holder(t, iamOwner)
	malformed := []string{`W/"1"`, `W/1`, "w/1", `"1`, `1"`, "one", `""`, "-1", "+1", "01", `"01"`, "1.0", "0x1", "1,2",
		`"1", "2"`, "**", `"*"`,
		"18446744073709551616", "１", `'1'`}
	for i, op := range operations {
		if !op.rule.GetUpdates() {
			continue
		}
		req := s.sample(op)
		for j, value := range malformed {
			if (i+j)%5 != 0 {
				continue // the header is read in one place: each operation meets some of them
			}
			if strings.ContainsFunc(value, func(r rune) bool { return r > '~' }) {
				continue // not every content type can send it
			}
			cases = append(cases,
				Case{Name: op.name() + "/" + value, As: as, Req: req, Header: header("if-match", value),
					Want: invalid("if-match"), Sparse: true})
		}
		for _, value := range []string{"0", `"0"`, "999999", `"999999"`, "18446744073709551615"} {
			cases = append(cases,
				Case{Name: op.name() + "/" + value, As: as, Req: req, Header: header("if-match", value),
					Want: passed(op), Sparse: true})
		}
		cases = append(cases, Case{Name: op.name() + "/twice", As: as, Req: req,
			Header: header("if-match", "1", "if-match", "1"), Want: invalid("if-match")})
	}
	return append(cases, // elsewhere it says nothing
		Case{Name: "on a read", As: s.owner, Req: &signetv1.GetMyUserRequest{}, Header: stale, Want: ok},
		Case{Name: "on a creation", As: s.owner, Req: addJWT(), Header: stale, Want: ok})
}

// idempotencyKeyCases are about the form of the key.
func idempotencyKeyCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	long := strings.Repeat("k", 255)
	for _, op := range operations {
		if !op.rule.GetCreates() {
			continue
		}
		as := s.caller(op.name())
		for name, h := range map[string]Header{
			"empty": header("idempotency-key", ""), "256": header("idempotency-key", long+"k"),
			"a space": header("idempotency-key", "a b"),
			"twice":   header("idempotency-key", "a", "idempotency-key", "a"),
		} {
			cases = append(cases,
				Case{Name: op.name() + "/" + name, As: as, Req: s.sample(op), Header: h,
					Want: invalid("idempotency-key")})
		}
	}
	cases = append(cases,
		Case{Name: "255 characters", As: s.owner, Req: addJWT(), Header: header("idempotency-key", long), Want: ok},
		Case{Name: "all of visible ASCII", As: s.owner, Req: addJWT(),
			Header: header("idempotency-key", visibleASCII()), Want: ok},
		Case{Name: "says nothing on updates", As: s.owner, Req: general(s.idp),
			Header: header("idempotency-key", "a b"), Want: ok})
	return cases
}

func visibleASCII() string {
	var b strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}

// holdsMoreCases let lesser administrators try the passwords of greater ones.
func holdsMoreCases(t *testing.T, w *World) (cases []Case) {
	s, other := w.scene(t), w.elsewhere(t)
	covers := map[string][]string{ // who holds all that another holds, besides oneself
		iamOwner: {iamViewer, iamOrgManager, orgOwner, orgViewer, userManager, settingsManager, support,
			auditor, nothing},
		orgOwner: {orgViewer, userManager, settingsManager, auditor, nothing},
	}
	covers[userManager] = []string{nothing}
	for _, role := range allRoles {
		if may := rolesMay[role]; may == nil || !may("user.credential.write") {
			continue
		}
		as := s.holder(t, role)
		for _, target := range allRoles {
			want := targetHoldsMore
			for _, less := range append(covers[role], role) {
				if less == target {
					want = sequenceMismatch // past all checks of permission
				}
			}
			cases = append(cases, Case{Name: role + " sets the password of " + target, As: as,
				Req: setPassword(s.holder(t, target).UserID, "x"), Header: stale, Want: want})
		}
	}
	abroad := w.addUser(t, person{Org: s.org, Elsewhere: map[string][]access.Role{other.org: {access.OrgOwnerViewer}}})
	both := w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgOwner},
		Elsewhere: map[string][]access.Role{other.org: {access.OrgOwner}}})
	owner := s.holder(t, orgOwner)
	return append(cases,
		Case{Name: "a target with roles elsewhere, by an owner", As: s.owner, Req: setPassword(abroad.UserID, "x"),
			Header: stale, Want: sequenceMismatch},
		Case{Name: "a target with roles elsewhere, by a manager", As: s.holder(t, userManager),
			Req: setPassword(abroad.UserID, "x"), Header: stale, Want: targetHoldsMore},
		Case{Name: "a target with roles elsewhere that the caller holds too", As: both,
			Req: setPassword(abroad.UserID, "x"), Header: stale, Want: sequenceMismatch},
		Case{Name: "oneself", As: w.signedIn(t, owner), Req: setPassword(owner.UserID, "x"), Header: stale,
			Want: sequenceMismatch},
		Case{
			Name: "the first administrator",
			As:   w.addUser(t, person{Org: w.root.OrgID, Roles: []access.Role{access.OrgOwner}}),
			Req:  setPassword(w.first.UserID, "x"),
			Want: targetHoldsMore,
		},
	)
}

// firstRoles are the paths of the first n roles.
func firstRoles(n int) (fields []string) {
	for i := range n {
		fields = append(fields, "roles["+strconv.Itoa(i)+"]")
	}
	return fields
}

// fewInMessage: a message is for people.
func fewInMessage(t *testing.T, a *Answer) {
	if m := a.status.GetMessage(); len(m) > 1000 || !strings.HasSuffix(m, " more") ||
		strings.Count(m, "ORG_USER_MANAGER") != 1 {
		t.Errorf("the message is %s", m)
	}
}

// roleCases are about the roles of a set-up.
func roleCases(t *testing.T, w *World) []Case {
	req := setup("x")
	roles := func(r ...string) proto.Message { return with(req, "roles", r) }
	return []Case{
		{Name: "unknown", As: w.root, Req: roles("ORG_WIZARD"), Want: invalid("roles[0]")},
		{Name: "of the installation", As: w.root, Req: roles("ORG_OWNER", "IAM_OWNER"), Want: invalid("roles[1]")},
		{Name: "in other case", As: w.root, Req: roles("org_owner"), Want: invalid("roles[0]")},
		{Name: "with a space", As: w.root, Req: roles("ORG_OWNER "), Want: invalid("roles[0]")},
		{Name: "empty", As: w.root, Req: roles("ORG_OWNER", "", "ORG_OWNER"), Want: invalid("roles[1]")},
		{Name: "several wrong", As: w.root, Req: roles("A", "ORG_OWNER", "B"), Want: invalid("roles[0]", "roles[2]"),
			Check: func(t *testing.T, a *Answer) {
				if !strings.Contains(a.status.GetMessage(), `"B"`) ||
					!strings.Contains(a.status.GetMessage(), "ORG_USER_MANAGER") {
					t.Errorf("does not say which role is wrong and which there are: %s", a.status.GetMessage())
				}
			}},
		// The gRPC client of these tests takes no more than 8 KiB of trailers.
		{Name: "very many wrong", As: w.root, Req: roles(slices.Repeat([]string{wide(60)}, 60)...),
			Want: invalid(firstRoles(10)...), Check: fewInMessage},
		{Name: "as many as fit a request", As: w.root, Req: roles(make([]string, 100_000)...), Want: invalid("roles")},
	}
}
