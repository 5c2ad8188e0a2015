package api_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// restricted makes somebody signed in who must change the password before anything else.
func (w *World) restricted(t *testing.T, s *scene) *Actor {
	t.Helper()
	a := s.holder(t, iamOwner)
	w.changeUser(t, a.UserID, user.PasswordSet{ChangeRequired: true})
	w.giveToken(t, a, secret.Session, time.Hour)
	return a
}

// revoked makes somebody whose token was taken away.
func (w *World) revoked(t *testing.T, s *scene) *Actor {
	t.Helper()
	a := s.holder(t, iamOwner)
	tokens, err := w.server.Store().TokensOf(t.Context(), a.UserID, string(secret.PAT), "", 10)
	if err != nil || len(tokens) != 1 {
		t.Fatalf("%v, %v", tokens, err)
	}
	w.command(t, event.Command{
		Write: []event.Ref{session.Kind.Ref(session.IDFor(a.UserID))},
		Decide: func(tx *event.Tx) error {
			tx.DropToken(tokens[0].ID)
			return nil
		},
	})
	return a
}

// credentialCases try every operation without a credential that counts.
func credentialCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	expired := *s.owner
	w.giveToken(t, &expired, secret.PAT, -time.Minute)
	over := *s.owner
	w.giveToken(t, &over, secret.Session, -time.Minute)
	real := s.owner.Token
	everywhere := map[string]Header{
		"nothing": {},
		"garbage": header("authorization", "Bearer garbage"),
		"expired": header("authorization", "Bearer "+expired.Token),
		"revoked": header("authorization", "Bearer "+w.revoked(t, s).Token),
	}
	restricted := w.restricted(t, s)
	everywhere["of an application, for others"] = header("authorization",
		"Bearer "+w.accessToken(t, s.holder(t, iamOwner), "https://other.example", access.APIScopeNames...))
	for _, op := range operations {
		if op.rule.GetPublic() {
			continue
		}
		for name, h := range everywhere {
			cases = append(cases,
				Case{Name: op.name() + "/" + name, Req: s.sample(op), Header: merge([]Header{h, op.header()}),
					Want: unauthenticated, Sparse: true})
		}
		if !op.rule.GetRestrictedSession() {
			cases = append(cases, Case{
				Name:   op.name() + "/password to be changed",
				As:     restricted,
				Req:    s.sample(op),
				Header: op.header(),
				Want:   changeRequired,
				Sparse: true,
			})
		}
	}
	// The way a credential is read does not depend on the operation.
	for name, h := range map[string]Header{
		"empty":                  header("authorization", ""),
		"no token":               header("authorization", "Bearer "),
		"truncated":              header("authorization", "Bearer "+real[:len(real)-1]),
		"longer":                 header("authorization", "Bearer "+real+"A"),
		"altered":                header("authorization", "Bearer "+altered(real)),
		"other kind":             header("authorization", "Bearer "+strings.Replace(real, "_pat_", "_ses_", 1)),
		"basic":                  header("authorization", "Basic "+real),
		"without scheme":         header("authorization", real),
		"twice":                  header("authorization", "Bearer "+real, "authorization", "Bearer "+real),
		"two in one":             header("authorization", "Bearer "+real+", Bearer "+real),
		"cookie":                 header("cookie", "authorization="+real+"; token="+real),
		"another header":         header("x-authorization", "Bearer "+real, "proxy-authorization", "Bearer "+real),
		"a session that is over": header("authorization", "Bearer "+over.Token),
		"a user's id":            header("authorization", "Bearer "+s.owner.UserID),
		"SQL":                    header("authorization", "Bearer ' OR '1'='1"),
		"space in front":         header("authorization", "Bearer  "+real),
	} {
		for _, name2 := range []string{"GetMyUser", "SetUserPassword", "UpdateIdentityProvider", "GetOrganization",
			"SetupOrganization"} {
			cases = append(cases,
				Case{Name: name2 + "/" + name, Req: s.sample(operationNamed(t, name2)), Header: h,
					Want: unauthenticated})
		}
	}
	return append(cases,
		Case{Name: "the scheme in other case", Req: &signetv1.GetMyUserRequest{},
			Header: header("authorization", "bEaReR "+real), Want: ok},
		Case{Name: "sign-in looks at no credential", Req: signIn(s.user.LoginName, w.password),
			Header: everywhere["garbage"], Want: ok})
}

// altered changes one digit of a token, so that its checksum is wrong.
func altered(token string) string {
	b := []byte(token)
	if b[20]++; b[20] == 'z'+1 || b[20] == 'Z'+1 || b[20] == '9'+1 {
		b[20] = 'A'
	}
	return string(b)
}

// unknownTargetCases look for what does not exist. A malformed identifier is an unknown one.
func unknownTargetCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	operator := w.signedIn(t, s.holder(t, iamOwner))
	ids := []string{"org_00000000000000000000000000000000", "usr_0198c0de00007000800000000000dead",
		"idp_0198c0de00007000800000000000dead",
		"1", "x", "me2", "null", "%", "a b", "a/b", "../" + s.user.UserID, "' OR ''='", "🙂", strings.Repeat("x", 3000),
		s.org + " ", strings.ToUpper(s.user.UserID), "\x00", s.user.UserID + "\x00", "\x00" + s.org}
	for _, op := range operations {
		var h Header
		if op.rule.GetScope() == signetv1.Scope_SCOPE_CONTEXT {
			h = header(orgID, s.org)
		}
		as := w.root
		if op.rule.GetProof() == signetv1.Proof_PROOF_RECENT_PERSON {
			as = operator
		}
		for _, param := range []string{"orgId", "userId", "idpId", "appId", "groupId", "sessionId", "tokenId",
			"keyId", "factorId"} {
			// these need a session, and have their stories
			if !op.has(param) || op.name() == "RemoveMyFactor" || op.name() == "RenameMyFactor" {
				continue
			}
			want := refused(codes.NotFound, anyReason)
			switch param {
			case "orgId":
				if want = noOrg; op.endsMembership() && op.target() == "orgId" {
					want = noMember // nobody learns which organizations there are
				}
			case op.target():
				want = op.missing()
			}
			for _, id := range ids {
				cases = append(cases, Case{
					Name:   op.name() + "/" + param + "/" + strings.ToValidUTF8(id[:min(len(id), 20)], ""),
					As:     as,
					Req:    with(s.sample(op), param, id),
					Header: h,
					Want:   want,
					Sparse: true,
				})
			}
		}
	}
	elsewhere := w.addUser(t, person{Org: s.org,
		Elsewhere: map[string][]access.Role{w.root.OrgID: {access.OrgSettingsManager}}})
	return append(cases,
		Case{Name: "unknown provider/by its organization's manager", As: s.owner, Req: general("idp_x"), Want: noIDP},
		Case{Name: "unknown provider/by a manager of other organizations only", As: elsewhere, Req: general("idp_x"),
			Want: permissionDenied},
		Case{Name: "an object of another kind", As: s.owner,
			Req: &signetv1.GetUserRequest{UserId: s.idp}, Want: noUser},
		Case{Name: "an organization as provider", As: s.owner, Req: general(s.org), Want: noIDP},
	)
}

// withOwners is the scene with users who own the organization.
func (s *scene) withOwners(t *testing.T) *scene {
	t.Helper()
	greater := *s
	greater.user = s.owner
	robot := s.w.addUser(t, person{Org: s.org, Service: true, Roles: []access.Role{access.OrgOwner}})
	greater.robot = func() *Actor { return robot }
	return &greater
}

// protectedUserCases let somebody who holds less at every operation that changes a user or an organization with such a
// user in it.
func protectedUserCases(t *testing.T, w *World) (cases []Case) {
	s := w.newScene(t)
	lesser := s.holder(t, userManager)
	greater := s.withOwners(t)
	for _, op := range operations {
		if op.protects() {
			cases = append(cases,
				Case{Name: op.name() + unlessListed, As: lesser, Req: greater.sample(op), Header: op.header(),
					Want: targetHoldsMore, Sparse: true})
		}
	}
	if len(cases) == 0 {
		t.Error("no operation changes a user")
	}
	s.holder(t, iamViewer)
	for _, name := range []string{"DeactivateOrganization", "RemoveOrganization"} {
		op := operationNamed(t, name)
		cases = append(cases, Case{Name: name, As: s.owner, Req: s.sample(op), Header: op.header(),
			Want: targetHoldsMore})
	}
	return cases
}
