package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/access"
	"github.com/signet-idm/signet/internal/secret"
)

// The roles of the contract.
const (
	iamOwner        = "IAM_OWNER"
	iamViewer       = "IAM_OWNER_VIEWER"
	iamOrgManager   = "IAM_ORG_MANAGER"
	orgOwner        = "ORG_OWNER"
	orgViewer       = "ORG_OWNER_VIEWER"
	userManager     = "ORG_USER_MANAGER"
	settingsManager = "ORG_SETTINGS_MANAGER"
	nothing         = "nothing"
)

var allRoles = []string{iamOwner, iamViewer, iamOrgManager, orgOwner, orgViewer, userManager, settingsManager, nothing}

// right says which roles may call an operation on an object of the caller's own organization.
type right struct {
	roles  []string
	header Header // sent along, to stop short of expensive work
	passed Want   // what somebody who may gets
}

var (
	everybody   = allRoles
	readUsers   = []string{iamOwner, iamViewer, orgOwner, orgViewer, userManager}
	readOrgs    = []string{iamOwner, iamViewer, iamOrgManager, orgOwner, orgViewer}
	readIDPs    = []string{iamOwner, iamViewer, orgOwner, orgViewer, settingsManager}
	writeIDPs   = []string{iamOwner, orgOwner, settingsManager}
	credentials = []string{iamOwner, orgOwner, userManager}
	stale       = header("if-match", "999999")
)

// rights is section 6 of the contract, by operation. Every operation must be in it.
var rights = map[string]right{
	"UpdateMyProfile":           {roles: everybody},
	"ChangeMyPassword":          {roles: everybody, header: stale, passed: sequenceMismatch},
	"GetMyUser":                 {roles: everybody},
	"GetUser":                   {roles: readUsers},
	"SetUserPassword":           {roles: credentials, header: stale, passed: sequenceMismatch},
	"SetupOrganization":         {roles: []string{iamOwner, iamOrgManager}},
	"GetOrganization":           {roles: readOrgs},
	"UpdateJWTIdentityProvider": {roles: writeIDPs},
	"UpdateIdentityProvider":    {roles: writeIDPs},
	"AddJWTIdentityProvider":    {roles: writeIDPs},
	"GetIdentityProvider":       {roles: readIDPs},
	"CreateSession":             {roles: everybody},
	"EndSession":                {roles: everybody, passed: noSession},
}

// holder makes a user who holds a role, in the organization or in the installation.
func (s *scene) holder(t *testing.T, role string) *Actor {
	p := person{Org: s.org, Domain: s.domain}
	switch {
	case role == nothing:
	case strings.HasPrefix(role, "IAM_"):
		p.Elsewhere = map[string][]access.Role{access.Installation: {access.Role(role)}}
	default:
		p.Roles = []access.Role{access.Role(role)}
	}
	return s.w.addUser(t, p)
}

// matrixCases try every operation with every role.
func matrixCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	for _, role := range allRoles {
		as := s.holder(t, role)
		for _, op := range operations {
			r := rights[op.name()]
			if samples[op.name()] == nil || op.rule.GetPublic() && role != nothing {
				continue // everythingCovered speaks of the first; the second looks at no credential
			}
			want := permissionDenied
			if slices.Contains(r.roles, role) {
				want = r.passed
			}
			cases = append(cases, Case{Name: op.name() + "/" + role, As: as, Req: samples[op.name()](s), Header: r.header, Want: want})
		}
	}
	return cases
}

// credentialCases try every operation without a credential that counts.
func credentialCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	expired := *s.owner
	w.giveToken(t, &expired, secret.PAT, -time.Minute)
	over := *s.owner
	w.giveToken(t, &over, secret.Session, -time.Minute)
	real := s.owner.Token
	bearers := map[string]Header{
		"nothing":                {},
		"empty":                  header("authorization", ""),
		"no token":               header("authorization", "Bearer "),
		"garbage":                header("authorization", "Bearer garbage"),
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
		"expired":                header("authorization", "Bearer "+expired.Token),
		"a session that is over": header("authorization", "Bearer "+over.Token),
		"a user's id":            header("authorization", "Bearer "+s.owner.UserID),
		"SQL":                    header("authorization", "Bearer ' OR '1'='1"),
		"space in front":         header("authorization", "Bearer  "+real),
	}
	for _, op := range operations {
		if op.rule.GetPublic() || samples[op.name()] == nil {
			continue
		}
		for name, h := range bearers {
			cases = append(cases, Case{Name: op.name() + "/" + name, Req: samples[op.name()](s), Header: h, Want: unauthenticated})
		}
	}
	return append(cases,
		Case{Name: "the scheme in other case", Req: &signetv1.GetMyUserRequest{}, Header: header("authorization", "bEaReR "+real), Want: ok},
		Case{Name: "sign-in looks at no credential", Req: signIn(s.user.LoginName, w.password), Header: bearers["garbage"], Want: ok})
}

// altered changes one digit of a token, so that its checksum is wrong.
func altered(token string) string {
	b := []byte(token)
	if b[20]++; b[20] == 'z'+1 || b[20] == 'Z'+1 || b[20] == '9'+1 {
		b[20] = 'A'
	}
	return string(b)
}

// tenancyCases aim at objects of another organization, with and without the header.
func tenancyCases(t *testing.T, w *World) (cases []Case) {
	mine, theirs := w.scene(t), w.elsewhere(t)
	guest := w.addUser(t, person{Org: mine.org, Elsewhere: map[string][]access.Role{theirs.org: {access.OrgOwner}}})
	toThem, unknown := header("x-service-orgid", theirs.org), header("x-service-orgid", "org_00000000000000000000000000000000")
	for _, op := range operations {
		sample := samples[op.name()]
		if op.rule.GetPermission() == "" || op.rule.GetScope() == signetv1.Scope_SCOPE_SELF || sample == nil {
			continue
		}
		req, r := sample(theirs), rights[op.name()]
		missing := missingTarget[op.name()]
		add := func(name string, as *Actor, h Header, want Want) {
			cases = append(cases, Case{Name: op.name() + "/" + name, As: as, Req: req, Header: merge([]Header{h, r.header}), Want: want})
		}
		switch op.rule.GetScope() {
		case signetv1.Scope_SCOPE_CONTEXT:
			add("a stranger who says so", mine.owner, toThem, permissionDenied)
			add("a stranger in a made-up organization", mine.owner, unknown, permissionDenied)
			add("a guest with rights who says so", guest, toThem, r.passed)
			add("a guest who does not say so", guest, nil, permissionDenied)
			add("the installation's owner who says so", w.root, toThem, r.passed)
			add("the installation's owner in a made-up organization", w.root, unknown, madeUpOrg(op, missing))
			add("the installation's owner in the installation itself", w.root, header("x-service-orgid", access.Installation), madeUpOrg(op, missing))
			if missing.Reason != "" { // it has a target
				add("a stranger who does not", mine.owner, nil, missing)
				add("the installation's owner who does not", w.root, nil, missing)
			}
		case signetv1.Scope_SCOPE_TARGET:
			add("a stranger", mine.owner, nil, permissionDenied)
			add("a stranger who says so", mine.owner, toThem, permissionDenied)
			add("a stranger who says own", mine.owner, header("x-service-orgid", mine.org), permissionDenied)
			add("a guest with rights", guest, nil, r.passed)
			add("a guest with rights who says so", guest, toThem, r.passed)
			add("a guest with rights who says own", guest, header("x-service-orgid", mine.org), missing)
			add("the installation's owner", w.root, nil, r.passed)
			add("the installation's owner who says so", w.root, toThem, r.passed)
			add("the installation's owner who says own", w.root, header("x-service-orgid", w.root.OrgID), missing)
		case signetv1.Scope_SCOPE_PATH:
			add("a stranger", mine.owner, nil, permissionDenied)
			add("a stranger who says so", mine.owner, toThem, permissionDenied)
			add("a guest with rights", guest, nil, r.passed)
			add("the installation's owner", w.root, nil, r.passed)
			add("a header that disagrees", w.root, header("x-service-orgid", mine.org), invalid("x-service-orgid"))
		default:
			t.Errorf("%s has the scope %v: say here what tenancy means for it", op.name(), op.rule.GetScope())
		}
	}
	return cases
}

// missingTarget is what a caller who may learns about a target that is not there; operations without a target have none.
var missingTarget = map[string]Want{
	"GetUser": noUser, "SetUserPassword": noUser, "UpdateJWTIdentityProvider": noIDP, "UpdateIdentityProvider": noIDP,
	"GetIdentityProvider": noIDP, "GetOrganization": noOrg, "EndSession": noSession,
}

func madeUpOrg(op *operation, missing Want) Want {
	if op.rule.GetCreates() {
		return noOrg
	}
	return missing
}

// unknownTargetCases look for what does not exist. A malformed identifier is an unknown one.
func unknownTargetCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	ids := []string{"org_00000000000000000000000000000000", "usr_0198c0de00007000800000000000dead", "idp_0198c0de00007000800000000000dead",
		"1", "x", "me2", "null", "%", "a b", "a/b", "../" + s.user.UserID, "' OR ''='", "🙂", strings.Repeat("x", 3000), s.org + " ", strings.ToUpper(s.user.UserID), "\x00", s.user.UserID + "\x00", "\x00" + s.org}
	for _, op := range operations {
		sample := samples[op.name()]
		if !strings.Contains(op.path, "{") || sample == nil {
			continue
		}
		var param string
		for _, path := range textFields(op) {
			if isParameter(op, path) {
				param = path
			}
		}
		want, known := missingTarget[op.name()]
		if !known {
			t.Errorf("%s has a target: say in missingTarget what it answers where there is none", op.name())
		}
		for _, id := range ids {
			cases = append(cases, Case{Name: op.name() + "/" + strings.ToValidUTF8(id[:min(len(id), 20)], ""), As: w.root,
				Req: with(sample(s), param, id), Want: want})
		}
		// Who may not do it at all does not learn that it is not there.
		if op.rule.GetPermission() != "" {
			cases = append(cases, Case{Name: op.name() + "/by somebody without rights", As: s.user,
				Req: with(sample(s), param, ids[1]), Want: permissionDenied})
		}
	}
	elsewhere := w.addUser(t, person{Org: s.org, Elsewhere: map[string][]access.Role{w.root.OrgID: {access.OrgSettingsManager}}})
	nowhere := &signetv1.GetOrganizationRequest{OrgId: "org_x"}
	return append(cases,
		Case{Name: "unknown organization/IAM_OWNER_VIEWER", As: s.holder(t, iamViewer), Req: nowhere, Want: noOrg},
		Case{Name: "unknown organization/IAM_ORG_MANAGER", As: s.holder(t, iamOrgManager), Req: nowhere, Want: noOrg},
		Case{Name: "unknown organization/ORG_OWNER", As: s.owner, Req: nowhere, Want: permissionDenied},
		Case{Name: "unknown organization/of the installation, but without the right", As: s.holder(t, iamViewer), Req: addJWT(),
			Header: header(orgID, "org_x"), Want: permissionDenied},
		Case{Name: "unknown provider/by its organization's manager", As: s.owner, Req: general("idp_x"), Want: noIDP},
		Case{Name: "unknown provider/by a manager of other organizations only", As: elsewhere, Req: general("idp_x"), Want: permissionDenied},
		Case{Name: "an object of another kind", As: s.owner, Req: &signetv1.GetUserRequest{UserId: s.idp}, Want: noUser},
		Case{Name: "an organization as provider", As: s.owner, Req: general(s.org), Want: noIDP},
	)
}
