package api_test

import (
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
)

// keyReused is the refusal of a key that belongs to another request.
var keyReused = Want{Code: codes.InvalidArgument, Reason: "IDEMPOTENCY_KEY_REUSED", Fields: []string{"idempotency-key"}}

func key(value string) Header { return header("idempotency-key", value) }

// idempotencyStory: a key gives the first answer again, to the same caller who still may.
func idempotencyStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	k := unique("key")
	add := func(as *Actor, req proto.Message, key string) *signetv1.AddJWTIdentityProviderResponse {
		t.Helper()
		return done[*signetv1.AddJWTIdentityProviderResponse](t, c, as, req, header("idempotency-key", key))
	}
	first := add(s.owner, addJWT(), k)
	// Changing what was created does not change the answer.
	done[*signetv1.UpdateIdentityProviderResponse](t, c, s.owner, general(first.GetIdpId()))
	sameMessage(t, "the answer again", add(s.owner, addJWT(), k), first)
	if add(s.owner, addJWT(), k+"2").GetIdpId() == first.GetIdpId() {
		t.Error("another key gave the same provider")
	}
	for _, other := range []proto.Message{with(addJWT(), "name", "Other"), with(addJWT(), "autoRegister", false),
		with(addJWT(), "headerName", nil)} {
		c.refused(t, keyReused, s.owner, other, key(k))
	}
	// Naming one's own organization says nothing new; another organization makes it another request.
	sameMessage(t, "with the header",
		done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, addJWT(), key(k), header(orgID, s.org)), first)
	both := c.w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgOwner},
		Elsewhere: map[string][]access.Role{c.w.there.org: {access.OrgOwner}}})
	add(both, addJWT(), k)
	c.refused(t, keyReused, both, addJWT(), key(k), header(orgID, c.w.there.org))

	// Another caller has keys of their own.
	second := s.holder(t, settingsManager)
	theirs := add(second, addJWT(), k)
	if theirs.GetIdpId() == first.GetIdpId() {
		t.Error("a key gave somebody else's answer")
	}
	// Whoever has lost the permission gets nothing again; with it, the answer is still there.
	c.w.changeUser(t, second.UserID, user.MembershipSet{Scope: s.org})
	c.refused(t, permissionDenied, second, addJWT(), key(k))
	c.w.changeUser(t, second.UserID, user.MembershipSet{Scope: s.org, Roles: []access.Role{access.OrgOwner}})
	sameMessage(t, "with the permission again", add(second, addJWT(), k), theirs)

	// The key is for one operation.
	req := setup(c.w.secret("once"))
	made := done[*signetv1.SetupOrganizationResponse](t, c, c.w.root, req, key(k))
	sameMessage(t, "set-up again", done[*signetv1.SetupOrganizationResponse](t, c, c.w.root, req, key(k)), made)
	c.refused(t, keyReused, c.w.root, with(req, "human.password", c.w.secret("once")), key(k))

	// A failure is not kept.
	k = unique("key")
	c.refused(t, domainTaken, c.w.root, with(req, "org.domain", s.domain), key(k))
	c.refused(t, invalid("org.name"), c.w.root, with(req, "org.name", ""), key(k))
	done[*signetv1.SetupOrganizationResponse](t, c, c.w.root, req, key(k))

	// A public operation has no keys: each sign-in is a session of its own.
	one, two := c.send(t, nil, signIn(s.user.LoginName, c.w.password), key(k)),
		c.send(t, nil, signIn(s.user.LoginName, c.w.password), key(k))
	if one.message.(*signetv1.CreateSessionResponse).GetToken() == two.message.(*signetv1.CreateSessionResponse).GetToken() {
		t.Error("a sign-in was repeated from memory, with its token")
	}
}

// idempotencyAcross: it is the same operation, whatever content type the second try comes by.
func idempotencyAcross(t *testing.T, w *World) {
	s := w.scene(t)
	k := unique("key")
	var first *signetv1.AddJWTIdentityProviderResponse
	for _, wire := range w.wires {
		c := &Client{w, wire}
		got := done[*signetv1.AddJWTIdentityProviderResponse](t, c, s.owner, addJWT(), key(k))
		if first == nil {
			first = got
		}
		sameMessage(t, wire.name(), got, first)
		c.refused(t, keyReused, s.owner, with(addJWT(), "issuer", "other"), key(k))
	}
}

// idempotencyTwins: of several requests at once, one creates and all get its answer.
func idempotencyTwins(t *testing.T, w *World) {
	req := setup(w.secret("twins"))
	k := unique("key")
	answers := make([]*Answer, 6)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = w.send(t, w.wires[i%len(w.wires)], w.root, req, key(k)) })
	}
	wait.Wait()
	for _, a := range answers {
		a.mustBe(t, ok)
		if !t.Failed() {
			sameMessage(t, "twin", a.message, answers[0].message)
		}
	}
	// Without a key, they are different organizations.
	c := &Client{w, w.rest}
	other := done[*signetv1.SetupOrganizationResponse](t, c, w.root, req)
	if other.GetOrgId() == answers[0].message.(*signetv1.SetupOrganizationResponse).GetOrgId() {
		t.Error("without a key it was the same organization")
	}
}
