package api_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/life/invitation"
)

// One order for every operation: credential, request, permission, existence, state, if-match. That permission comes
// before existence is in the matrix, which asks everybody about everything; here are the other steps.

// requestOrderCases send every operation a header that is not valid: without a credential, and without permission.
func requestOrderCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	twice := header(orgID, s.org, orgID, s.org)
	for _, op := range operations {
		if op.rule.GetPublic() {
			continue
		}
		invalidRequest := invalid(orgID)
		if op.name() == "ImportUsers" {
			invalidRequest = permissionDenied // its large bodies are not read from who could not do it anywhere
		}
		cases = append(cases,
			Case{Name: op.name() + "/no credential", Req: s.sample(op), Header: twice,
				Want: unauthenticated, Sparse: true},
			Case{Name: op.name() + "/no permission", As: s.user, Req: s.sample(op), Header: twice,
				Want: invalidRequest, Sparse: true})
	}
	return cases
}

// changesForAll tells of operations that change what other tests look at.
func (op *operation) changesForAll() bool {
	return slices.Contains([]string{"SetInstallationPolicy", "RotateSigningKeys", "UpdateInstallationRole",
		"RemoveInstallationRole", "UpdateOrganizationRole", "RemoveOrganizationRole"}, op.name())
}

// condition is a state of what an update is about, and somebody who may update it.
type condition struct {
	name string
	make func(t *testing.T, w *World, op *operation) (as *Actor, req proto.Message)
}

func inScene(change func(t *testing.T, s *scene, req proto.Message) proto.Message) func(*testing.T, *World,
	*operation) (*Actor, proto.Message) {
	return func(t *testing.T, w *World, op *operation) (*Actor, proto.Message) {
		s := w.scene(t)
		req := s.sample(op)
		if change != nil {
			req = change(t, s, req)
		}
		return w.signedIn(t, s.holder(t, iamOwner)), req
	}
}

// conditions that an object of an operation can be in.
func (op *operation) conditions() []condition {
	switch op.target() {
	case "orgId": // it may be its end
		in := func(facts ...func(*testing.T, *scene)) func(*testing.T, *World, *operation) (*Actor, proto.Message) {
			return func(t *testing.T, w *World, op *operation) (*Actor, proto.Message) {
				s := w.newScene(t)
				for _, happens := range facts {
					happens(t, s)
				}
				return w.signedIn(t, w.elsewhere(t).holder(t, iamOwner)), s.sample(op)
			}
		}
		return []condition{{"active", in()},
			{"inactive", in(func(t *testing.T, s *scene) { s.w.changeOrg(t, s.org, org.Deactivated{}) })}}
	case "userId":
		becomes := func(facts ...func(*World, *testing.T, string)) func(t *testing.T, s *scene,
			req proto.Message) proto.Message {
			return func(t *testing.T, s *scene, req proto.Message) proto.Message {
				for _, happens := range facts {
					happens(s.w, t, parameter(req, "userId"))
				}
				return req
			}
		}
		return []condition{
			{"active", inScene(nil)},
			{"inactive", inScene(becomes(func(w *World, t *testing.T, id string) {
				w.changeUser(t, id, user.Deactivated{})
			}))},
			{"locked", inScene(becomes(func(w *World, t *testing.T, id string) {
				w.changeUser(t, id, user.WasLocked{})
			}))},
			{"a person", inScene(func(_ *testing.T, s *scene, req proto.Message) proto.Message {
				return with(req, "userId", s.user.UserID)
			})},
			{"a service", inScene(func(_ *testing.T, s *scene, req proto.Message) proto.Message {
				return with(req, "userId", s.robot().UserID)
			})},
		}
	case "idpId":
		return []condition{{"active", inScene(nil)},
			{"inactive", inScene(func(t *testing.T, s *scene, req proto.Message) proto.Message {
				change(t, s.w, idp.Kind, s.idp, idp.Deactivated{})
				return req
			})}}
	case "appId":
		return []condition{{"active", inScene(nil)},
			{"inactive", inScene(func(t *testing.T, s *scene, req proto.Message) proto.Message {
				change(t, s.w, app.Kind, s.app, app.Deactivated{})
				return req
			})}}
	case "groupId":
		return []condition{{"active", inScene(nil)}}
	case "invitationId":
		return []condition{{"pending", inScene(nil)},
			{"withdrawn", inScene(func(t *testing.T, s *scene, req proto.Message) proto.Message {
				change(t, s.w, invitation.Kind, s.invitation(), invitation.WasWithdrawn{})
				return req
			})}}
	case "offerId":
		return []condition{{"open", inScene(nil)},
			{"withdrawn", inScene(func(t *testing.T, s *scene, req proto.Message) proto.Message {
				change(t, s.w, member.OfferKind, s.offer(), member.OfferWasWithdrawn{})
				return req
			})}}
	case "webhookId":
		return []condition{{"active", inScene(nil)},
			{"inactive", inScene(func(t *testing.T, s *scene, req proto.Message) proto.Message {
				change(t, s.w, webhook.Kind, s.webhook(), webhook.Deactivated{})
				return req
			})}}
	}
	return []condition{{"a person", inScene(nil)},
		{"a service", func(t *testing.T, w *World, op *operation) (*Actor, proto.Message) {
			s := w.scene(t)
			return s.robot(), s.sample(op)
		}}}
}

// sequenceComesLast sends every update to objects in every state, with an if-match that does not hold and then without
// one. Whatever refuses it without refuses it with; only where nothing does, the sequence is what is wrong.
func sequenceComesLast(t *testing.T, w *World) {
	reached := map[string]bool{}
	for i, op := range operations {
		if !op.rule.GetUpdates() || op.rule.GetPublic() || op.changesForAll() {
			continue
		}
		for _, c := range op.conditions() {
			t.Run(op.name()+"/"+c.name, func(t *testing.T) {
				as, req := c.make(t, w, op)
				wire := w.wires[i%len(w.wires)]
				with, without := w.send(t, wire, as, req, stale), w.send(t, wire, as, req, nil)
				if without.status == nil {
					reached[op.name()] = true
					with.mustBe(t, sequenceMismatch)
					return
				}
				with.mustBe(t, Want{Code: without.code(), Reason: without.reason(), Fields: without.fields()})
			})
		}
	}
	t.Logf("%d updates could be made", len(reached))
}
