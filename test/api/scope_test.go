package api_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Operations against scopes: what an application needs is worked out here from the definition and the request as it is
// sent, and from nothing the server uses for that.

var (
	scopeRequired = refused(codes.PermissionDenied, "SCOPE_REQUIRED")
	generalScopes = []string{"signet.self", "signet.read", "signet.write"}
)

// scopesOf gives what a request needs when an application sends it; nothing at all where it may not.
func scopesOf(op *operation, req proto.Message) []string {
	if len(op.rule.GetApiScopes()) == 0 {
		return nil
	}
	needs := map[string]bool{}
	for _, scope := range op.rule.GetApiScopes() {
		needs[scope] = true
	}
	add := func(fd protoreflect.FieldDescriptor) {
		if scope, _ := proto.GetExtension(fd.Options(), signetv1.E_NeedsScope).(string); scope != "" {
			needs[scope] = true
		}
	}
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			add(fd)
			switch {
			case fd.Message() == nil:
			case fd.IsList():
				for i := range v.List().Len() {
					walk(v.List().Get(i).Message())
				}
			default:
				if mask, is := v.Message().Interface().(*fieldmaskpb.FieldMask); is {
					for _, path := range mask.GetPaths() {
						md := m.Descriptor()
						for name := range strings.SplitSeq(path, ".") {
							fd := md.Fields().ByName(protoreflect.Name(name))
							add(fd)
							md = fd.Message()
						}
					}
				}
				walk(v.Message())
			}
			return true
		})
	}
	walk(req.ProtoReflect())
	return slices.Sorted(maps.Keys(needs))
}

// enough tells whether scopes are all that is needed. Who may write may read.
func enough(given, needs []string) bool {
	for _, scope := range needs {
		if !slices.Contains(given, scope) && !(scope == "signet.read" && slices.Contains(given, "signet.write")) {
			return false
		}
	}
	return len(needs) > 0
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// accessToken gives an application a token to act for somebody.
func (w *World) accessToken(t *testing.T, a *Actor, audience string, scopes ...string) string {
	t.Helper()
	text, hash := secret.NewToken(secret.Access)
	w.hide(text)
	w.command(t, event.Command{
		Read: []event.Ref{user.Kind.Ref(a.UserID), org.Kind.Ref(a.OrgID)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, a.UserID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, a.OrgID)
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:       event.NewID("oat"),
				Hash:     hash,
				Kind:     string(secret.Access),
				UserID:   u.ID,
				Epoch:    u.Data.TokenEpoch,
				OrgEpoch: o.Data.Epoch,
				Created:  tx.Now(),
				Expires:  tx.Now() + time.Hour.Microseconds(),
				Data:     session.Given{Scopes: scopes, Audience: []string{audience}}.Text(),
			})
			return nil
		},
	})
	return text
}

// scopeCases try every operation with every scope alone, with the general ones together, with all, and with all but one
// of those it needs, for somebody who may do everything.
func scopeCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	owner := s.holder(t, iamOwner)
	with := func(scopes ...string) *Actor {
		return &Actor{UserID: owner.UserID, OrgID: owner.OrgID,
			Token: w.accessToken(t, owner, w.server.URL(), scopes...)}
	}
	type application struct {
		name   string
		scopes []string
		actor  *Actor
	}
	general, every := application{"the general scopes", generalScopes, with(generalScopes...)},
		application{"every scope", access.APIScopeNames, with(access.APIScopeNames...)}
	all := []application{{"no scope", nil, with()}, general, every}
	allBut := map[string]application{}
	for _, scope := range access.APIScopeNames {
		all = append(all, application{scope, []string{scope}, with(scope)})
		less := without(access.APIScopeNames, scope)
		if scope == "signet.read" {
			less = without(less, "signet.write") // which brings it
		}
		allBut[scope] = application{"all but " + scope, less, with(less...)}
	}
	add := func(op *operation, a application, what string, make func() proto.Message) {
		c := Case{Name: op.name() + what + "/an application with " + a.name, As: a.actor, Req: make(),
			Header: op.header(), Sparse: true}
		needs := scopesOf(op, c.Req)
		switch {
		case !enough(a.scopes, needs):
			c.Want = scopeRequired
			c.Check = func(t *testing.T, answer *Answer) {
				for _, scope := range needs {
					named := strings.Contains(strings.NewReplacer(",", " ", ":",
						" ").Replace(answer.status.GetMessage())+" ", " "+scope+" ")
					if named == enough(a.scopes, []string{scope}) {
						t.Errorf("the message does not name what is missing: %s", answer.status.GetMessage())
					}
				}
			}
		case a.name == every.name && what == "":
			c.Want = passed(op)
		default:
			c.Want = Want{but: scopeRequired.Reason}
		}
		if op.rule.GetCreates() || op.name() == "CreateInvitation" {
			c.Fresh = make
		}
		cases = append(cases, c)
	}
	for _, op := range operations {
		if op.rule.GetPublic() {
			continue
		}
		sample := func() proto.Message { return s.sample(op) }
		for _, a := range all {
			add(op, a, "", sample)
		}
		complete := func() proto.Message { return s.complete(op) }
		if extra := scopesOf(op, complete()); len(extra) > len(scopesOf(op, sample())) {
			add(op, general, " with everything set", complete)
			for _, scope := range extra {
				add(op, allBut[scope], " with everything set", complete)
			}
		}
	}
	return cases
}

// lesserApplicationCases let an application with just the scopes of an operation at users who hold more than these
// scopes allow, and let it give more than they allow.
func lesserApplicationCases(t *testing.T, w *World) (cases []Case) {
	s := w.newScene(t)
	owner := s.holder(t, iamOwner)
	greater := s.withOwners(t)
	for _, op := range operations {
		req := greater.sample(op)
		bound := &Actor{UserID: owner.UserID, OrgID: owner.OrgID}
		if op.protects() {
			bound.Token = w.accessToken(t, owner, w.server.URL(), scopesOf(op, req)...)
			cases = append(cases,
				Case{Name: op.name() + unlessListed, As: bound, Req: req, Header: op.header(), Want: targetHoldsMore,
					Sparse: true})
		}
	}
	granter := &Actor{UserID: owner.UserID, OrgID: owner.OrgID,
		Token: w.accessToken(t, owner, w.server.URL(), "signet.roles", "signet.write")}
	grantsMore := refused(codes.PermissionDenied, "GRANTS_MORE")
	cases = append(cases,
		Case{Name: "a role that holds more", As: granter,
			Req: &signetv1.SetOrganizationMemberRequest{OrgId: s.org, UserId: s.user.UserID,
				Roles: []string{userManager}}, Want: grantsMore},
		Case{Name: "a role in the installation that holds more", As: granter,
			Req:  &signetv1.SetInstallationMemberRequest{UserId: s.user.UserID, Roles: []string{iamOwner}},
			Want: grantsMore},
		Case{Name: "a role that holds less", As: granter,
			Req: &signetv1.SetOrganizationMemberRequest{OrgId: s.org, UserId: s.user.UserID,
				Roles: []string{orgViewer}}, Want: ok})
	s.holder(t, iamViewer)
	writer := &Actor{UserID: owner.UserID, OrgID: owner.OrgID,
		Token: w.accessToken(t, owner, w.server.URL(), "signet.write")}
	for _, name := range []string{"DeactivateOrganization", "RemoveOrganization"} {
		op := operationNamed(t, name)
		cases = append(cases, Case{Name: name, As: writer, Req: s.sample(op), Header: op.header(),
			Want: targetHoldsMore})
	}
	giver := &Actor{UserID: owner.UserID, OrgID: owner.OrgID,
		Token: w.accessToken(t, owner, w.server.URL(), "signet.api_access", "signet.read")}
	allow := func(scopes ...string) proto.Message {
		return &signetv1.SetApplicationAPIAccessRequest{AppId: s.app, Scopes: scopes}
	}
	return append(cases,
		Case{Name: "API access/what it was not given", As: giver, Req: allow("signet.read", "signet.passwords"),
			Want: scopeRequired},
		Case{Name: "API access/what it was given", As: giver, Req: allow("signet.read", "signet.api_access"), Want: ok},
	)
}
