package api_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/test/testkit"
)

// free are the operations of a session whose user has to change the password first, and those that look at no session.
var free = []string{"ChangeMyPassword", "EndSession", "CreateSession", "StartPasskeySignIn", "CreateSessionWithPasskey",
	"StartPasskeyProof", "ProveSecondFactor",
	"RequestPasswordReset", "ResetPassword", "StartProviderSignIn", "CreateSessionThroughProvider", "AcceptInvitation",
	"StartRegistration", "StartRegistrationPasskey", "FinishRegistration"}

// changeRequiredStory: a password set by somebody else has to be changed before anything else.
func changeRequiredStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, orgOwner)
	as.Password = c.w.secret("set")
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner, setPassword(as.UserID, as.Password))
	same(t, "shown to administrators", c.user(t, s.owner, as.UserID).GetHuman().GetPasswordChangeRequired(), true)
	in := c.session(t, as)
	same(t, "shown at sign-in", in.MustChange, true)
	for _, op := range operations {
		if !slices.Contains(free, op.name()) {
			c.refused(t, changeRequired, in, s.sample(op))
		}
	}
	c.refused(t, invalid("displayName"), in, with(profile(), "displayName", "")) // 400 comes before 403
	c.refused(t, noSession, in, &signetv1.EndSessionRequest{SessionId: "ses_x"})
	c.refused(t, invalid("newPassword"), in, changePassword(as.Password, strings.Repeat("x", 73)))
	c.refused(t, invalid("currentPassword"), in, changePassword("wrong", "kettle-brume"))

	second := c.session(t, as)
	next := c.w.secret("next")
	d := done[*signetv1.ChangeMyPasswordResponse](t, c, in, changePassword(as.Password, next))
	me := c.me(t, in)
	same(t, "the same token is a full one", me.GetUserId(), as.UserID)
	same(t, "no more change required", me.GetHuman().GetPasswordChangeRequired(), false)
	same(t, "sequence", me.GetDetails().GetSequence(), d.GetDetails().GetSequence())
	c.refused(t, unauthenticated, second, &signetv1.GetMyUserRequest{})
	as.Password = next
	same(t, "the new password needs no change", c.session(t, as).MustChange, false)

	// A restricted session can be ended.
	as.Password = c.w.secret("again")
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner, setPassword(as.UserID, as.Password))
	in = c.session(t, as)
	done[*signetv1.EndSessionResponse](t, c, in, &signetv1.EndSessionRequest{SessionId: in.SessionID})
	c.refused(t, unauthenticated, in, changePassword(as.Password, next))
}

// hasPasswordStory: whether somebody has a password or a secret is told with the user, to those who may read the user's
// second factors.
func hasPasswordStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	agent, there := c.w.newScene(t).holder(t, support), header(orgID, s.org)
	told := func(what, id string, password, secret *bool) {
		t.Helper()
		for _, as := range []*Actor{s.owner, agent} {
			got := done[*signetv1.GetUserResponse](t, c, as, &signetv1.GetUserRequest{UserId: id}, there)
			if !proto.Equal(got, &signetv1.GetUserResponse{User: got.GetUser(), HasPassword: password, HasSecret: secret}) {
				t.Errorf("%s: %v", what, got)
			}
		}
	}
	id := done[*signetv1.AddHumanUserResponse](t, c, s.owner, with(newPerson(unique("nia")), "password", "")).GetUserId()
	told("a person without a password", id, proto.Bool(false), nil)
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner, setPassword(id, c.w.secret("set")))
	told("a person with a password", id, proto.Bool(true), nil)

	robot := c.w.addUser(t, person{Org: s.org, Service: true}).UserID
	told("a service user without a secret", robot, nil, proto.Bool(false))
	c.w.hide(done[*signetv1.SetServiceSecretResponse](t, c, s.owner,
		&signetv1.SetServiceSecretRequest{UserId: robot}).GetSecret())
	told("a service user with a secret", robot, nil, proto.Bool(true))
	c.carryOut(t, s.owner, &signetv1.RemoveServiceSecretRequest{UserId: robot})
	told("a service user whose secret was removed", robot, nil, proto.Bool(false))

	rules := map[string]*signetv1.Rule{}
	for _, op := range operations {
		rules[op.name()] = op.rule
	}
	if !proto.Equal(rules["GetUser"], rules["ListUserFactors"]) {
		t.Errorf("a user is read by %v, and the user's factors by %v", rules["GetUser"], rules["ListUserFactors"])
	}
}

// setPasswordStory: setting somebody's password ends all they had, in every state but one.
func setPasswordStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	old := as.Password
	in := c.session(t, as)
	c.me(t, in)
	set := func(password string) *signetv1.SetUserPasswordRequest {
		return &signetv1.SetUserPasswordRequest{UserId: as.UserID, Password: password, NoChangeRequired: true}
	}
	as.Password = c.w.secret("set")
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner, set(as.Password))
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{}) // the personal access token
	c.refused(t, signInFailed, nil, signIn(as.LoginName, old))
	in = c.session(t, as)
	same(t, "noChangeRequired", in.MustChange, false)
	c.me(t, in)
	same(t, "shown to administrators", c.user(t, s.owner, as.UserID).GetHuman().GetPasswordChangeRequired(), false)

	// Whatever the state, but a removed user is gone.
	states := []struct {
		name      string
		into, out func(t *testing.T)
		state     signetv1.User_State
	}{
		{"inactive", func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Deactivated{}) },
			func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Reactivated{}) }, signetv1.User_STATE_INACTIVE},
		{"locked", func(t *testing.T) { c.w.changeUser(t, as.UserID, user.WasLocked{}) },
			func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Unlocked{}) }, signetv1.User_STATE_LOCKED},
	}
	for _, state := range states {
		state.into(t)
		as.Password = c.w.secret(state.name)
		done[*signetv1.SetUserPasswordResponse](t, c, s.owner, set(as.Password))
		same(t, state.name+": a password does not change the state",
			c.user(t, s.owner, as.UserID).GetState(), state.state)
		c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))
		state.out(t)
		c.session(t, as)
	}
	c.w.changeUser(t, as.UserID, user.WasRemoved{})
	c.refused(t, noUser, s.owner, set("x"))
	c.refused(t, noUser, s.owner, &signetv1.GetUserRequest{UserId: as.UserID})
	c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))

	// On oneself it ends one's own sessions and tokens too.
	self := s.holder(t, userManager)
	in = c.session(t, self)
	done[*signetv1.SetUserPasswordResponse](t, c, in, setPassword(self.UserID, c.w.secret("self")))
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	c.refused(t, unauthenticated, self, &signetv1.GetMyUserRequest{})
}

// changePasswordStory: changing one's own password ends the other sessions only.
func changePasswordStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	mine, other := c.session(t, as), c.session(t, as)
	next := c.w.secret("next")
	c.refused(t, invalid("currentPassword"), mine, changePassword("not "+as.Password, next))
	c.refused(t, sequenceMismatch, mine, changePassword(as.Password, next), stale)
	c.me(t, other)
	before := c.me(t, mine).GetDetails().GetSequence()
	d := done[*signetv1.ChangeMyPasswordResponse](t, c, mine, changePassword(as.Password, next))
	same(t, "one event", d.GetDetails().GetSequence(), before+1)
	c.me(t, mine)
	c.me(t, as) // the personal access token is not a session
	c.refused(t, unauthenticated, other, &signetv1.GetMyUserRequest{})
	c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))
	as.Password = next
	other = c.session(t, as)
	// A personal access token does not do, even with the password.
	c.refused(t, sessionRequired, as, changePassword(as.Password, as.Password))
	c.me(t, other)
	// Whoever wants ends the tokens too.
	done[*signetv1.ChangeMyPasswordResponse](t, c, mine,
		with(changePassword(as.Password, as.Password), "endTokens", true))
	c.me(t, mine)
	c.refused(t, unauthenticated, other, &signetv1.GetMyUserRequest{})
	c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
}

// longPasswordStory: no hash may cut a password short or fold characters together.
func longPasswordStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	as.Password = wide(71) + "é" // 286 bytes; the last character has a twin of two
	c.w.hide(as.Password)
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner,
		with(setPassword(as.UserID, as.Password), "noChangeRequired", true))
	for _, wrong := range []string{wide(71) + "è", wide(71) + "e\u0301", wide(72), wide(71)} {
		c.refused(t, signInFailed, nil, signIn(as.LoginName, wrong))
	}
	in := c.session(t, as)
	next := wide(70) + "ab"
	done[*signetv1.ChangeMyPasswordResponse](t, c, in, changePassword(as.Password, next))
	c.refused(t, signInFailed, nil, signIn(as.LoginName, next+"c"))
	as.Password = next
	c.session(t, as)
	// Eight characters are enough, and white space is kept.
	as.Password = " kettle "
	c.refused(t, invalid("newPassword"), in, changePassword(next, "kettle "))
	c.refused(t, invalid("newPassword"), in, changePassword(next, "Password1"))
	done[*signetv1.ChangeMyPasswordResponse](t, c, in, changePassword(next, as.Password))
	c.refused(t, signInFailed, nil, signIn(as.LoginName, " kettle  "))
	c.session(t, as)
}

// endSessionStory: people end their own sessions, one by one.
func endSessionStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	one, two := c.session(t, as), c.session(t, as)
	end := func(id string) proto.Message { return &signetv1.EndSessionRequest{SessionId: id} }
	c.refused(t, noSession, s.owner, end(one.SessionID))
	c.refused(t, noSession, c.w.root, end(one.SessionID))
	c.refused(t, unauthenticated, nil, end(one.SessionID))
	c.me(t, one)
	done[*signetv1.EndSessionResponse](t, c, two, end(one.SessionID)) // another one of one's own
	c.refused(t, unauthenticated, one, &signetv1.GetMyUserRequest{})
	c.refused(t, unauthenticated, one, end(one.SessionID))
	c.refused(t, noSession, two, end(one.SessionID))
	done[*signetv1.EndSessionResponse](t, c, two, end(two.SessionID))
	c.refused(t, unauthenticated, two, end(two.SessionID))
	c.me(t, as)
}

// endedMeanwhile: a call that is under way when its session ends sets no password, although it was let in before.
func endedMeanwhile(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	for _, over := range []wire{restWire{client, w.rest.base}, webWire{client, w.rest.base}} {
		in := c.session(t, s.holder(t, userManager))
		target := w.addUser(t, person{Org: s.org, Domain: s.domain})
		known, ended, answered := make(chan struct{}), make(chan struct{}), make(chan *Answer, 1)
		go func() {
			defer close(answered)
			answered <- w.send(t, pausedWire{over, func() { close(known); <-ended }}, in,
				setPassword(target.UserID, w.secret("late")), nil)
		}()
		select {
		case <-known:
		case a := <-answered:
			t.Fatalf("%s: answered before the body was asked for: %s", over.name(), a.summary())
		}
		done[*signetv1.EndSessionResponse](t, c, in, &signetv1.EndSessionRequest{SessionId: in.SessionID})
		close(ended)
		a := testkit.Receive(t, answered, "the call is answered")
		if a == nil || a.status == nil {
			t.Fatalf("%s: the password was set", over.name())
		}
		a.mustBe(t, unauthenticated)
		c.me(t, target) // nothing happened to the user
	}
}

// pausedWire sends the body of a request once the server asks for it, which it does when it knows the caller, and pause
// has returned.
type pausedWire struct {
	wire
	pause func()
}

func (p pausedWire) call(ctx context.Context, op *operation, req proto.Message, h Header) (*Answer, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: p.pause})
	return p.wire.call(ctx, op, req, merge([]Header{h, {"expect": {"100-continue"}}}))
}
