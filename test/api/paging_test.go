package api_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
)

// lists tells whether an operation answers in pages.
func (op *operation) lists() bool { return op.md.Input().Fields().ByName("page_token") != nil }

// library is a place in which every list has more than one entry, and two who may read all of them.
type library struct {
	*scene
	reader, other *Actor
	second        string // another webhook
	team          string // another group
	project2      string // another project
}

func (w *World) library(t *testing.T) *library {
	l := &library{scene: w.newScene(t)}
	l.reader, l.other = l.holder(t, iamOwner), l.holder(t, iamOwner)
	done[*signetv1.AddJWTIdentityProviderResponse](t, &Client{w, w.rest}, l.owner, addJWT())
	rest := &Client{w, w.rest}
	second := done[*signetv1.AddApplicationResponse](t, rest, l.owner, addApp("Second")).GetAppId()
	for _, id := range []string{l.app, second} {
		done[*signetv1.ModifyApplicationResponse](t, rest, w.root,
			with(modifyApp(id, "all_organizations"), "allOrganizations", true), header(orgID, l.org))
		done[*signetv1.ApproveAudienceResponse](t, rest, l.owner,
			&signetv1.ApproveAudienceRequest{AppId: id, ClientId: w.scene(t).app})
	}
	for _, a := range []*Actor{l.reader, l.other, l.user, l.robot()} {
		more := *a
		for range 2 {
			w.giveToken(t, &more, secret.PAT, time.Hour)
			w.giveToken(t, &more, secret.Session, time.Hour)
			w.giveToken(t, &more, secret.Device, time.Hour)
		}
	}
	w.addUser(t, person{Org: l.org, Roles: []access.Role{access.OrgOwnerViewer}})
	l.failures(t)
	l.team = l.newGroup(t)
	w.newRole(t, l.org, sampleRole...)
	for _, id := range []string{l.group(), l.team} {
		for _, a := range []*Actor{l.reader, l.user, l.owner} {
			done[*signetv1.AddGroupMemberResponse](t, rest, l.owner,
				&signetv1.AddGroupMemberRequest{GroupId: id, UserId: a.UserID})
		}
	}
	l.projects(t)
	l.invitation()
	l.offer()
	(&Client{w, w.rest}).offerRoles(t, w.root, l.org, w.addUser(t, person{Org: w.there.org}).UserID, userManager)
	done[*signetv1.CreateInvitationResponse](t, rest, l.owner, l.sample(operationNamed(t, "CreateInvitation")))
	return l
}

// page asks for a page of one entry.
func page(req proto.Message, token string) proto.Message {
	return with(with(req, "pageSize", int32(1)), "pageToken", token)
}

// nextPageToken of an answer.
func nextPageToken(m proto.Message) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName("next_page_token")).String()
}

// entries of an answer.
func entries(m proto.Message) (all []proto.Message) {
	r := m.ProtoReflect()
	for i := range r.Descriptor().Fields().Len() {
		if fd := r.Descriptor().Fields().Get(i); fd.IsList() && fd.Message() != nil {
			for j := range r.Get(fd).List().Len() {
				all = append(all, r.Get(fd).List().Get(j).Message().Interface())
			}
		}
	}
	return all
}

// pageTokens are bound to who asks what about which organization, and cannot be made up.
func pageTokens(t *testing.T, w *World) {
	here, there := w.library(t), w.library(t)
	tokens := map[string]string{}
	for _, op := range operations {
		if !op.lists() {
			continue
		}
		a := w.send(t, w.rest, here.reader, page(here.sample(op), ""), nil)
		if a.status != nil {
			t.Errorf("%s: %s", op.name(), a.summary())
			continue
		}
		if tokens[op.name()] = nextPageToken(a.message); tokens[op.name()] == "" {
			t.Errorf("%s: a page of one entry is the last one: put two into World.library, so that its page tokens are tested", op.name())
		}
	}
	for _, op := range operations {
		token := tokens[op.name()]
		if token == "" {
			continue
		}
		t.Run(op.name(), func(t *testing.T) {
			req := page(here.sample(op), token)
			// It is good for what it was made for, whatever the size of the page, and more than once.
			for _, size := range []int32{1, 2, 100} {
				if a := w.send(t, w.rest, here.reader, with(req, "pageSize", size), nil); a.status != nil {
					t.Errorf("the page after the first: %s", a.summary())
				}
			}
			refuse := func(name string, as *Actor, req proto.Message, h Header) {
				t.Run(name, func(t *testing.T) {
					w.run(t, Case{Name: op.name() + name, As: as, Req: req, Header: h,
						Want: invalid("pageToken"), Sparse: true})
				})
			}
			for name, bad := range map[string]string{
				"made up": "x", "not base64": "%%%", "empty JSON": "e30", "truncated": token[:len(token)-2],
				"longer": token + "AA", "altered": altered(token),
				"upper case": strings.ToUpper(token), "the identifier of an object": here.user.UserID,
				"with a space": token + " ",
			} {
				refuse(name, here.reader, page(req, bad), nil)
			}
			refuse("of another caller", here.other, req, nil)
			for other, bad := range tokens {
				if other != op.name() && bad != "" {
					refuse("of "+other, here.reader, page(req, bad), nil)
				}
			}
			m := req.ProtoReflect()
			for i := range m.Descriptor().Fields().Len() {
				fd := m.Descriptor().Fields().Get(i)
				switch {
				case fd.Name() == "page_size" || fd.Name() == "page_token" || isParameter(op, fd.JSONName()):
				case fd.IsList() && fd.Name() == "types":
					refuse("of other types", here.reader, with(req, "types", []string{"user.*"}), nil)
				case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Timestamp":
					refuse("of another "+fd.JSONName(), here.reader,
						with(req, fd.JSONName(), timestamppb.Now().ProtoReflect()), nil)
				case fd.Kind() == protoreflect.BoolKind:
					refuse("of another "+fd.JSONName(), here.reader, with(req, fd.JSONName(), true), nil)
				case fd.Name() == "object_id": // its sample has a user, and both cannot be given
					refuse("of another "+fd.JSONName(), here.reader,
						with(with(req, "userId", nil), fd.JSONName(), "u"), nil)
				case fd.Kind() == protoreflect.StringKind:
					refuse("of another "+fd.JSONName(), here.reader, with(req, fd.JSONName(), "u"), nil)
				case fd.Kind() == protoreflect.BoolKind:
					refuse("of another "+fd.JSONName(), here.reader, with(req, fd.JSONName(), true), nil)
				case fd.Enum() != nil:
					refuse("of another "+fd.JSONName(), here.reader, with(req, fd.JSONName(), 1), nil)
				default:
					t.Errorf("page tokens are not tested against another %s: say here what that can be", fd.JSONName())
				}
			}
			if op.rule.GetScope() == signetv1.Scope_SCOPE_CONTEXT {
				refuse("of another organization", here.reader, page(there.sample(op), token), header(orgID, there.org))
			}
			if op.rule.GetScope() == signetv1.Scope_SCOPE_PATH {
				refuse("of another organization", here.reader, page(there.sample(op), token), nil)
			}
			if op.has("webhookId") {
				refuse("of another webhook", here.reader, with(req, "webhookId", here.second), nil)
			}
			if op.has("groupId") {
				refuse("of another group", here.reader, with(req, "groupId", here.team), nil)
			}
			if op.has("projectId") {
				refuse("of another project", here.reader, with(req, "projectId", here.project2), nil)
			}
			if op.has("userId") {
				refuse("of another user", here.reader, with(req, "userId", here.owner.UserID), nil)
			}
		})
	}
}

// listsStayInside follows every list to its end: it shows what is there once, and nothing of another organization.
func listsStayInside(t *testing.T, w *World) {
	here, there := w.library(t), w.library(t)
	guest := w.addUser(t, person{Org: there.org,
		Elsewhere: map[string][]access.Role{here.org: {access.OrgUserManager}}})
	// What each list of one organization must have at least.
	expected := map[string][]string{
		"ListUsers":               {here.owner.UserID, here.user.UserID, here.robot().UserID, here.reader.UserID},
		"ListIdentityProviders":   {here.idp},
		"ListApplications":        {here.app},
		"ListAudienceApprovals":   {here.app},
		"ListWebhooks":            {here.webhook(), here.second},
		"ListGroups":              {here.group(), here.team},
		"ListGroupMembers":        {here.reader.UserID, here.user.UserID, here.owner.UserID},
		"ListUserGroups":          {here.group(), here.team},
		"ListInvitations":         {here.invitation()},
		"ListOffers":              {here.offer()},
		"ListWebhookFailures":     {here.app + ".1"},
		"ListWebhookHeldEvents":   {here.app + ".2"},
		"ListOrganizationMembers": {here.owner.UserID, guest.UserID},
		"ListProjects":            {here.project(), here.project2},
		"ListProjectGrants":       {here.grant()},
		"ListGrantedProjects":     {here.granted()},
		"ListProjectUsers":        {here.owner.UserID, here.user.UserID},
	}
	for _, op := range operations {
		if !op.lists() {
			continue
		}
		t.Run(op.name(), func(t *testing.T) {
			seen := map[string]bool{}
			// An owner of the organization asks where that is enough.
			as := here.owner
			if scope := op.rule.GetScope(); scope == signetv1.Scope_SCOPE_SELF {
				as = here.reader
			}
			for i, token := 0, ""; i == 0 || token != ""; i++ {
				req := with(with(here.sample(op), "pageSize", int32(2)), "pageToken", token)
				a := w.send(t, w.wires[i%len(w.wires)], as, req, nil)
				if a.status != nil {
					t.Fatal(a.summary())
				}
				token = nextPageToken(a.message)
				found := entries(a.message)
				if len(found) > 2 {
					t.Errorf("%d entries on a page of two", len(found))
				}
				for _, e := range found {
					listed := e.ProtoReflect()
					// an entry can hold the object with more about it
					for listed.Descriptor().Fields().Get(0).Message() != nil {
						listed = listed.Get(listed.Descriptor().Fields().Get(0)).Message()
					}
					id := listed.Get(listed.Descriptor().Fields().Get(0)).String() // the identifier comes first
					if seen[id] {
						t.Errorf("%s is listed twice", id)
					}
					seen[id] = true
					_, isMember := e.(*signetv1.Member)
					if _, isGranted := e.(*signetv1.GrantedProject); isGranted {
						continue // it belongs to the organization that grants it
					}
					if d, has := e.(interface{ GetDetails() *signetv1.Details }); has &&
						op.rule.GetScope() != signetv1.Scope_SCOPE_SELF && !isMember {
						same(t, "owner of "+id, d.GetDetails().GetResourceOwner(), here.org)
					}
				}
				if op.rule.GetPermission() != "" && op.rule.GetScope() == signetv1.Scope_SCOPE_SELF && i > 5 {
					return // others add to the installation meanwhile; a few pages say enough
				}
			}
			for _, id := range expected[op.name()] {
				if !seen[id] {
					t.Errorf("%s is missing", id)
				}
			}
			for _, id := range []string{there.owner.UserID, there.user.UserID, there.robot().UserID, there.idp,
				there.app, there.org, there.group(), there.team} {
				if seen[id] && op.rule.GetScope() != signetv1.Scope_SCOPE_SELF {
					t.Errorf("%s of another organization is listed", id)
				}
			}
			if len(seen) < 2 {
				t.Errorf("%d entries: put two into World.library", len(seen))
			}
		})
	}
}
