package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// metadataStory: pairs that programs keep with objects.
func metadataStory(t *testing.T, c *Client) {
	s, away := c.w.newScene(t), c.w.elsewhere(t)
	type read interface {
		proto.Message
		GetMetadata() []*signetv1.MetadataPair
		GetDetails() *signetv1.Details
	}
	for name, x := range map[string]struct {
		get  func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read)
		set  func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message
		done func(t *testing.T, req proto.Message, h ...Header)
		none Want
	}{
		"user": {
			func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read) {
				return &signetv1.GetUserMetadataRequest{UserId: s.user.UserID},
					func(t *testing.T, as *Actor, req proto.Message) read {
						return done[*signetv1.GetUserMetadataResponse](t, c, as, req)
					}
			},
			func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message {
				return &signetv1.SetUserMetadataRequest{UserId: s.user.UserID, Set: pairs, Remove: remove}
			},
			func(t *testing.T, req proto.Message, h ...Header) {
				done[*signetv1.SetUserMetadataResponse](t, c, s.owner, req, h...)
			}, noUser},
		"service user": {
			func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read) {
				return &signetv1.GetUserMetadataRequest{UserId: s.robot().UserID},
					func(t *testing.T, as *Actor, req proto.Message) read {
						return done[*signetv1.GetUserMetadataResponse](t, c, as, req)
					}
			},
			func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message {
				return &signetv1.SetUserMetadataRequest{UserId: s.robot().UserID, Set: pairs, Remove: remove}
			},
			func(t *testing.T, req proto.Message, h ...Header) {
				done[*signetv1.SetUserMetadataResponse](t, c, s.owner, req, h...)
			}, noUser},
		"organization": {
			func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read) {
				return &signetv1.GetOrganizationMetadataRequest{OrgId: s.org},
					func(t *testing.T, as *Actor, req proto.Message) read {
						return done[*signetv1.GetOrganizationMetadataResponse](t, c, as, req)
					}
			},
			func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message {
				return &signetv1.SetOrganizationMetadataRequest{OrgId: s.org, Set: pairs, Remove: remove}
			},
			func(t *testing.T, req proto.Message, h ...Header) {
				done[*signetv1.SetOrganizationMetadataResponse](t, c, s.owner, req, h...)
			}, permissionDenied},
		"application": {
			func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read) {
				return &signetv1.GetApplicationMetadataRequest{AppId: s.app},
					func(t *testing.T, as *Actor, req proto.Message) read {
						return done[*signetv1.GetApplicationMetadataResponse](t, c, as, req)
					}
			},
			func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message {
				return &signetv1.SetApplicationMetadataRequest{AppId: s.app, Set: pairs, Remove: remove}
			},
			func(t *testing.T, req proto.Message, h ...Header) {
				done[*signetv1.SetApplicationMetadataResponse](t, c, s.owner, req, h...)
			}, noApp},
		"project": {
			func(s *scene) (proto.Message, func(t *testing.T, as *Actor, req proto.Message) read) {
				return &signetv1.GetProjectMetadataRequest{ProjectId: s.project()},
					func(t *testing.T, as *Actor, req proto.Message) read {
						return done[*signetv1.GetProjectMetadataResponse](t, c, as, req)
					}
			},
			func(s *scene, pairs []*signetv1.MetadataPair, remove ...string) proto.Message {
				return &signetv1.SetProjectMetadataRequest{ProjectId: s.project(), Set: pairs, Remove: remove}
			},
			func(t *testing.T, req proto.Message, h ...Header) {
				done[*signetv1.SetProjectMetadataResponse](t, c, s.owner, req, h...)
			}, noProject},
	} {
		t.Run(name, func(t *testing.T) {
			pair := func(key, value string) *signetv1.MetadataPair {
				return &signetv1.MetadataPair{Key: key, Value: value}
			}
			get, show := x.get(s)
			has := func(want ...*signetv1.MetadataPair) {
				t.Helper()
				got := show(t, s.owner, get).GetMetadata()
				if len(got) != len(want) {
					t.Fatalf("it has %v", got)
				}
				for i := range want {
					sameMessage(t, "pair", got[i], want[i])
				}
			}
			has()
			x.done(t, x.set(s, []*signetv1.MetadataPair{pair("b", "1"), pair("a.B_c-1", "Zürich <&>")}))
			has(pair("a.B_c-1", "Zürich <&>"), pair("b", "1"))
			x.done(t, x.set(s, []*signetv1.MetadataPair{pair("b", "2")}, "a.B_c-1", "missing"))
			has(pair("b", "2"))
			c.refused(t, invalid("set[0].key", "set[1].value", "remove[0]"), s.owner,
				x.set(s, []*signetv1.MetadataPair{pair("a b", "1"), pair("c", "")}, "/"))
			c.refused(t, refused(codes.FailedPrecondition, "METADATA_TOO_LARGE"), s.owner, x.set(s, large()))
			has(pair("b", "2"))
			there, _ := x.get(away)
			c.refused(t, x.none, s.owner, there)
			c.refused(t, x.none, s.owner, x.set(away, []*signetv1.MetadataPair{pair("b", "2")}))
			for _, role := range []string{userManager, settingsManager} {
				c.refused(t, permissionDenied, s.holder(t, role), get)
				c.refused(t, permissionDenied, s.holder(t, role), x.set(s, []*signetv1.MetadataPair{pair("b", "3")}))
			}
			c.refused(t, permissionDenied, s.user, get) // not even their own
			show(t, s.holder(t, orgViewer), get)
			c.refused(t, permissionDenied, s.holder(t, orgViewer), x.set(s, nil, "b"))
			x.done(t, x.set(s, nil, "b"))
			has()
		})
	}
	mine := &signetv1.SetUserMetadataRequest{UserId: s.user.UserID,
		Set: []*signetv1.MetadataPair{{Key: "a", Value: "b"}}}
	done[*signetv1.SetUserMetadataResponse](t, c, s.owner, mine)
	done[*signetv1.RemoveUserResponse](t, c, s.owner, &signetv1.RemoveUserRequest{UserId: s.user.UserID})
	c.refused(t, noUser, s.owner, &signetv1.GetUserMetadataRequest{UserId: s.user.UserID})
}

// large is more than an object can have.
func large() (pairs []*signetv1.MetadataPair) {
	value := make([]byte, 1000)
	for i := range value {
		value[i] = 'x'
	}
	for i := range 17 {
		pairs = append(pairs, &signetv1.MetadataPair{Key: "large." + string(rune('a'+i)), Value: string(value)})
	}
	return pairs
}
