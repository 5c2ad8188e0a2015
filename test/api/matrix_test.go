package api_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// The matrix: every operation, by everybody, on everything. What must come back is worked out here from the rule in the
// operation's descriptor and the contract's table of roles, and from nothing the server uses for that.

// The roles of the contract.
const (
	iamOwner        = "IAM_OWNER"
	iamViewer       = "IAM_OWNER_VIEWER"
	iamOrgManager   = "IAM_ORG_MANAGER"
	orgOwner        = "ORG_OWNER"
	orgViewer       = "ORG_OWNER_VIEWER"
	userManager     = "ORG_USER_MANAGER"
	settingsManager = "ORG_SETTINGS_MANAGER"
	support         = "IAM_SUPPORT"
	auditor         = "ORG_AUDITOR"
	nothing         = "nothing"
)

var allRoles = []string{iamOwner, iamViewer, iamOrgManager, orgOwner, orgViewer, userManager, settingsManager, support,
	auditor, nothing}

// rolesMay is the contract's table: what each role allows, in the organization where it is held or, for those of the
// installation, everywhere. A permission is named <what>.<verb>.
var rolesMay = map[string]func(permission string) bool{
	iamOwner:      func(string) bool { return true },
	iamViewer:     reads,
	iamOrgManager: func(p string) bool { return about("org", "member", "domain")(p) && p != "domain.release" },
	orgOwner:      inOneOrganization,
	orgViewer:     func(p string) bool { return reads(p) && inOneOrganization(p) },
	userManager: func(p string) bool {
		return about("user", "group", "invitation", "sign_in")(p) && inOneOrganization(p)
	},
	support: func(p string) bool { return p == "org.read" || p == "user.support" },
	auditor: func(p string) bool { return p == "audit.read" },
	settingsManager: func(p string) bool {
		return about("idp", "domain", "app", "project")(p) && inOneOrganization(p) && p != "project.role.write"
	},
}

func reads(permission string) bool { return strings.HasSuffix(permission, ".read") }

func about(things ...string) func(string) bool {
	return func(permission string) bool {
		thing, _, _ := strings.Cut(permission, ".")
		return slices.Contains(things, thing)
	}
}

func inOneOrganization(permission string) bool {
	return permission != "org.setup" && permission != "app.api_access.write" &&
		permission != "app.all_organizations.write" && permission != "user.support" && !about("installation", "signing")(permission)
}

// permissionsOf a role that can be granted, for the rule that nobody grants more than they hold.
var permissionsOf = map[string][]string{
	userManager: {"user.read", "user.write", "user.credential.write", "group.read", "group.write", "invitation.read",
		"invitation.write", "sign_in.read"},
}

// party is somebody with the roles they hold, by organization or access.Installation.
type party struct {
	*Actor
	name  string
	home  *scene // in the own organization
	roles map[string]string
	// permissions of a generated custom role, by organization or access.Installation
	custom map[string][]string
}

func (p *party) installed(permission string) bool {
	role := p.roles[access.Installation]
	return role != "" && rolesMay[role](permission) || slices.Contains(p.custom[access.Installation], permission)
}

func (p *party) may(permission, org string) bool {
	role := p.roles[org]
	return p.installed(permission) || role != "" && rolesMay[role](permission) ||
		slices.Contains(p.custom[org], permission)
}

// mayCall tells whether somebody may call an operation in an organization, by its permission or by a narrower one.
func (p *party) mayCall(op *operation, org string) bool {
	return slices.ContainsFunc(op.permissions(), func(permission string) bool { return p.may(permission, org) })
}

// mayCallAnywhere tells whether somebody may call an operation in every organization there is.
func (p *party) mayCallAnywhere(op *operation) bool {
	return slices.ContainsFunc(op.permissions(), p.installed)
}

// permissions are those that open an operation.
func (op *operation) permissions() []string {
	return append([]string{op.rule.GetPermission()}, op.rule.GetNarrower()...)
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

// situation is what a request names: the objects of an organization, and perhaps an organization in the header.
type situation struct {
	name   string
	of     *scene
	header string
	change func(op *operation, req proto.Message) proto.Message // nil: the sample as it is

	missing bool // the object it names is in no organization
	foreign bool // the user it names belongs to another organization than the one it names
}

const unknownOrg = "org_00000000000000000000000000000000"

// matrix is the set of the play.
type matrix struct {
	parties      []*party
	theirs, gone *scene // another organization; one that was removed
}

func newMatrix(t *testing.T, w *World) *matrix {
	m := &matrix{theirs: w.newScene(t), gone: w.newScene(t)}
	mine := w.newScene(t)
	for _, role := range allRoles {
		home, scope := mine, mine.org
		if strings.HasPrefix(role, "IAM_") {
			// Who holds roles in the installation protects the own organization from all who hold less.
			home, scope = w.newScene(t), access.Installation
		}
		p := &party{Actor: home.holder(t, role), name: role, home: home, roles: map[string]string{}}
		if role != nothing {
			p.roles[scope] = role
		}
		m.parties = append(m.parties, p)
	}
	guest := w.addUser(t, person{Org: mine.org,
		Elsewhere: map[string][]access.Role{m.theirs.org: {access.OrgOwner}, m.gone.org: {access.OrgOwner}}})
	m.parties = append(m.parties,
		&party{Actor: guest, name: "a guest", home: mine,
			roles: map[string]string{m.theirs.org: orgOwner, m.gone.org: orgOwner}})
	m.parties = append(m.parties, generatedParties(t, w, mine)...)
	m.gone.webhook()
	m.gone.group()
	m.gone.project()
	m.gone.grant()
	m.gone.granted()
	m.gone.offer()
	m.gone.invitation() // nothing can be made in it afterwards
	w.removeOrg(t, m.gone)
	return m
}

// removeOrg ends an organization with all that is in it.
func (w *World) removeOrg(t *testing.T, s *scene) {
	t.Helper()
	done[*signetv1.RemoveOrganizationResponse](t, &Client{w, w.rest}, w.root,
		&signetv1.RemoveOrganizationRequest{OrgId: s.org})
}

// situations that make a difference for an operation.
func (m *matrix) situations(op *operation, p *party) (all []situation) {
	all = append(all, situation{name: "own", of: p.home})
	if op.rule.GetPublic() {
		return all // it looks at nobody; its header has cases of its own
	}
	all = append(all,
		situation{name: "theirs, named by the header", of: m.theirs, header: m.theirs.org},
		situation{name: "an unknown organization in the header", of: p.home, header: unknownOrg},
		situation{name: "the installation in the header", of: p.home, header: access.Installation},
		situation{name: "removed, named by the header", of: m.gone, header: m.gone.org, missing: true})
	if op.target() == "" {
		return all // without the header nobody else's objects can be meant
	}
	all = append(all,
		situation{name: "theirs", of: m.theirs},
		situation{name: "removed", of: m.gone, missing: true},
		situation{
			name:    "unknown",
			of:      p.home,
			missing: true,
			change: func(op *operation, req proto.Message) proto.Message {
				return with(req, op.target(), "xyz_0198c0de00007000800000000000dead")
			},
		})
	if scope := op.rule.GetScope(); scope == signetv1.Scope_SCOPE_TARGET || scope == signetv1.Scope_SCOPE_PATH {
		all = append(all, situation{name: "theirs, and the own in the header", of: m.theirs, header: p.OrgID})
	}
	if op.has("orgId") && op.target() != "orgId" {
		all = append(all,
			situation{
				name: "the installation in the path",
				of:   p.home,
				change: func(_ *operation, req proto.Message) proto.Message {
					return with(req, "orgId", access.Installation)
				},
			},
			situation{
				name: "an unknown organization in the path",
				of:   p.home,
				change: func(_ *operation, req proto.Message) proto.Message {
					return with(req, "orgId", unknownOrg)
				},
			})
	}
	if op.has("orgId") && op.target() == "userId" {
		all = append(all,
			situation{
				name:    "a user of another organization",
				of:      p.home,
				foreign: true,
				change: func(_ *operation, req proto.Message) proto.Message {
					return with(req, op.target(), m.theirs.user.UserID)
				},
			})
	}
	return all
}

// has tells whether the path of the operation has a parameter.
func (op *operation) has(name string) bool { return isParameter(op, name) }

// target is the parameter that names an object: a user, an identity provider, an application, a project or what is in
// it, or else an organization.
func (op *operation) target() string {
	for _, name := range []string{"userId", "idpId", "appId", "webhookId", "groupId", "roleId", "grantId", "projectId",
		"invitationId", "offerId", "orgId"} {
		if op.has(name) {
			return name
		}
	}
	return ""
}

// missing is what somebody who may learns about a target that is not there.
func (op *operation) missing() Want {
	switch target := op.target(); {
	case op.endsMembership():
		return noMember // whoever is not there holds nothing either
	case target == "userId":
		return noUser
	case target == "idpId":
		return noIDP
	case target == "appId":
		return noApp
	case target == "webhookId":
		return noWebhook
	case target == "groupId":
		return noGroup
	case target == "roleId":
		return noCustomRole
	case target == "grantId":
		return noGrant
	case target == "projectId":
		return noProject
	case target == "invitationId":
		return noInvitation
	case target == "offerId":
		return noOffer
	}
	return noOrg
}

func (op *operation) endsMembership() bool {
	return op.md.Parent().Name() == "MemberService" &&
		(op.verb == "DELETE" || op.name() == "LeaveOrganization" || op.name() == "AcceptMyRoles")
}

// header that keeps an operation from changing what others look at.
func (op *operation) header() Header {
	if op.rule.GetUpdates() {
		return stale
	}
	return nil
}

var stale = header("if-match", "999999")

// expected is section 6 of the contract.
func (m *matrix) expected(op *operation, p *party, x *situation, req proto.Message) Want {
	permission, missing := op.rule.GetPermission(), op.missing()
	in := func(organization string) (Want, bool) {
		switch exists := organization == p.OrgID || organization == m.theirs.org; {
		case !p.mayCall(op, organization), !exists && !p.mayCallAnywhere(op):
			return permissionDenied, false
		case !exists:
			return noOrg, false
		}
		return Want{}, true
	}
	found := func(organization string) Want {
		switch {
		case x.missing && op.target() != "":
			return missing
		case organization != x.of.org && op.target() != "":
			return missing
		case x.foreign && !p.may("user.read", m.theirs.org) && !p.may("member.read", m.theirs.org):
			return missing
		}
		return passed(op)
	}
	switch op.rule.GetScope() {
	case signetv1.Scope_SCOPE_REQUEST:
		return passed(op)
	case signetv1.Scope_SCOPE_SELF:
		switch {
		case x.header != "" && x.header != p.OrgID:
			return invalid(orgID)
		case permission != "" && !p.mayCallAnywhere(op):
			return permissionDenied
		case op.rule.GetProof() != signetv1.Proof_PROOF_UNSPECIFIED:
			return passed(op) // a token is refused before anything is looked for
		}
		if op.md.Parent().Name() == "RoleService" { // no organization has what it is about
			otherwise := passed(op)
			if x.missing && x.change != nil && op.has("roleId") {
				otherwise = missing
			}
			return m.making(op, p, access.Installation, otherwise)
		}
		return m.granting(op, p, access.Installation, req, found(x.of.org))
	case signetv1.Scope_SCOPE_CONTEXT:
		organization := cmp.Or(x.header, p.OrgID)
		if refusal, may := in(organization); !may {
			return refusal
		}
		if op.rule.GetProof() == signetv1.Proof_PROOF_RECENT_PERSON {
			return passed(op) // a token is refused before anything is looked for
		}
		if op.name() == "SetGroupRoles" && !p.may("member.write", organization) {
			return permissionDenied // the roles of a group take the permission for roles, too
		}
		return m.granting(op, p, organization, req, found(organization))
	case signetv1.Scope_SCOPE_PATH:
		organization := parameter(req, "orgId")
		if x.header != "" && x.header != organization {
			return invalid(orgID)
		}
		if refusal, may := in(organization); !may {
			return refusal
		}
		want := m.releasing(op, p, organization,
			m.making(op, p, organization, m.granting(op, p, organization, req, found(organization))))
		if want.passed != nil && op.name() == "ResendInvitation" && !p.may(permission, organization) {
			return refused(codes.FailedPrecondition, "CODE_DELIVERY_NOT_CONFIGURED") // support never sees the link
		}
		return want
	case signetv1.Scope_SCOPE_TARGET:
		switch {
		case x.missing && p.may(permission, p.OrgID):
			return missing
		case x.missing, !p.may(permission, x.of.org):
			return permissionDenied
		case x.header != "" && x.header != x.of.org:
			return missing
		}
		return passed(op)
	}
	return Want{Reason: "the scope " + op.rule.GetScope().String() + " is not in the matrix: say here what it means"}
}

// granting: who grants a role must hold every permission in it, there, whoever it is for.
func (m *matrix) granting(op *operation, p *party, organization string, req proto.Message, otherwise Want) Want {
	fd := req.ProtoReflect().Descriptor().Fields().ByName("roles")
	if fd == nil {
		return otherwise
	}
	list := req.ProtoReflect().Get(fd).List()
	for i := range list.Len() {
		role := list.Get(i).String()
		needs := permissionsOf[role]
		if role == iamViewer {
			for _, permission := range access.Permissions() {
				if reads(string(permission)) {
					needs = append(needs, string(permission))
				}
			}
		}
		for _, permission := range needs {
			if !p.may(permission, organization) {
				return grantsMore
			}
		}
	}
	return otherwise
}

// making: who makes a custom role, or changes one, has all of its permissions. What a role has already is known only of
// one that is there.
func (m *matrix) making(op *operation, p *party, organization string, otherwise Want) Want {
	if op.md.Parent().Name() != "RoleService" || op.verb == "GET" || op.verb == "DELETE" && otherwise.passed == nil {
		return otherwise
	}
	for _, permission := range sampleRole {
		if !p.may(permission, organization) {
			return roleHoldsMore
		}
	}
	return otherwise
}

// releasing: the sample of RemoveDomain names a verified domain, which not everybody may take who may change domains.
func (m *matrix) releasing(op *operation, p *party, organization string, otherwise Want) Want {
	if op.name() == "RemoveDomain" && otherwise.passed != nil && !p.may("domain.release", organization) {
		return releaseDenied
	}
	return otherwise
}

// parameter reads a field of a request.
func parameter(req proto.Message, name string) string {
	m := req.ProtoReflect()
	return m.Get(field(m, name)).String()
}

// matrixCases are all of it.
func matrixCases(t *testing.T, w *World) (cases []Case) {
	m := newMatrix(t, w)
	for _, op := range operations {
		for _, p := range m.parties {
			if op.rule.GetPublic() && p.name != nothing {
				continue // it looks at no credential
			}
			for _, x := range m.situations(op, p) {
				fresh := func() proto.Message {
					req := x.of.sample(op)
					if x.change != nil {
						req = x.change(op, req)
					}
					return req
				}
				c := Case{Name: op.name() + "/" + p.name + "/" + x.name, As: p.Actor, Header: op.header(), Sparse: true}
				if x.header != "" {
					c.Header = merge([]Header{c.Header, header(orgID, x.header)})
				}
				c.Req = fresh()
				c.Want = m.expected(op, p, &x, c.Req)
				if op.rule.GetCreates() || op.rule.GetPublic() || op.name() == "CreateInvitation" {
					c.Fresh = fresh
				}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// passed is what somebody who may gets, whatever it is.
func passed(op *operation) Want { return Want{passed: op} }

// refusedSamples are the updates whose samples the state of their target refuses, which comes before the sequence.
var refusedSamples = map[string]string{
	"ReactivateUser": "USER_WRONG_STATE", "UnlockUser": "USER_WRONG_STATE",
	"ReactivateOrganization":     "ORGANIZATION_WRONG_STATE",
	"ReactivateIdentityProvider": "IDENTITY_PROVIDER_WRONG_STATE", "ReactivateApplication": "APPLICATION_WRONG_STATE",
	"ReactivateWebhook": "WEBHOOK_WRONG_STATE",
	"RemoveDomain":      "DOMAIN_IS_PRIMARY", "RemoveOrganizationMember": "MEMBER_NOT_FOUND",
	"RemoveInstallationMember": "MEMBER_NOT_FOUND",
	"RemoveApplicationKey":     "APPLICATION_KEY_NOT_FOUND", "ApproveAudience": "CLIENT_NOT_FOUND",
	"WithdrawAudience": "AUDIENCE_APPROVAL_NOT_FOUND",
	"RemoveServiceKey": "KEY_NOT_FOUND", "RemoveServiceWorkloadRule": "WORKLOAD_RULE_NOT_FOUND", "RemoveServiceSecret": "SECRET_NOT_FOUND",
	"RemoveUserFactor": "FACTOR_NOT_FOUND", "RequestUserFactorRemoval": "FACTOR_NOT_FOUND",
	"ConfirmUserLink": "LINK_NOT_FOUND", "RemoveUserLink": "LINK_NOT_FOUND",
	"SkipWebhookEvent":  "WEBHOOK_EVENT_NOT_FAILED",
	"RemoveGroupMember": "GROUP_MEMBER_NOT_FOUND", "RemoveProjectRole": "PROJECT_ROLE_NOT_FOUND",
	"AcceptServiceUserOffer": "OFFER_NOT_FOUND",
}

// mustHavePassed looks at the answer to somebody who may. Updates are sent with a sequence that no object has, so that
// none of them changes anything: they end there, or before that at the state of their target.
func (a *Answer) mustHavePassed(t *testing.T, op *operation) {
	t.Helper()
	fail := func(why string) {
		t.Helper()
		t.Errorf("%s: %s %s: got %s", a.wire, op.name(), why, a.summary())
	}
	switch a.reason() {
	case "UNAUTHENTICATED", "PERMISSION_DENIED", "TARGET_HOLDS_MORE", "PASSWORD_CHANGE_REQUIRED",
		"USER_NOT_FOUND", "ORGANIZATION_NOT_FOUND", "IDENTITY_PROVIDER_NOT_FOUND", "APPLICATION_NOT_FOUND",
		"WEBHOOK_NOT_FOUND",
		"GROUP_NOT_FOUND", "ROLE_NOT_FOUND", "PROJECT_NOT_FOUND", "PROJECT_GRANT_NOT_FOUND", "INVITATION_NOT_FOUND":
		fail("is allowed")
	case "INVALID_REQUEST":
		if !slices.Equal(a.fields(), []string{"code"}) { // no sample knows a code that is right
			fail("was sent a valid request")
		}
	}
	switch {
	case a.reason() == "SESSION_REQUIRED": // nobody may by a token, and there are stories of those who may
	case op.rule.GetUpdates():
		if want := cmp.Or(refusedSamples[op.name()], "SEQUENCE_MISMATCH"); a.reason() != want {
			fail("was sent an if-match that does not hold, and is to say " + want)
		}
	case op.rule.GetCreates(), op.verb == "GET", op.rule.GetPublic():
		if a.reason() == "INVALID_REQUEST" || a.reason() == "CODE_DELIVERY_NOT_CONFIGURED" {
			return // for want of a code, as seen above, or of a mail server
		}
		if op.name() == "CreateSessionThroughProvider" && a.reason() == "SIGN_IN_FAILED" {
			return // nobody has come back from a provider: see package hosted
		}
		if op.name() == "AcceptInvitation" && a.reason() == "INVITATION_LINK_UNKNOWN" {
			return // the sample has no link: see invitation_test.go
		}
		if a.reason() == "TOO_MANY_ROLES" {
			return // there is room for fifty, and the matrix adds more
		}
		if strings.Contains(op.name(), "Registration") && strings.HasPrefix(a.reason(), "REGISTRATION_") {
			return // it is off, and nobody has got a mail: see registration_test.go
		}
		if a.status != nil {
			fail("must succeed")
		}
	}
}
