package api_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/user"
)

// free are the operations of a session whose user has to change the password first, and those that look at no session.
var free = []string{"ChangeMyPassword", "EndSession", "CreateSession", "StartPasskeySignIn", "CreateSessionWithPasskey", "StartPasskeyProof", "ProveSecondFactor",
	"RequestPasswordReset", "ResetPassword"}

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
	c.refused(t, invalid("currentPassword"), in, changePassword("wrong", "x"))

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
		{"inactive", func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Deactivated{}) }, func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Reactivated{}) }, signetv1.User_STATE_INACTIVE},
		{"locked", func(t *testing.T) { c.w.changeUser(t, as.UserID, user.WasLocked{}) }, func(t *testing.T) { c.w.changeUser(t, as.UserID, user.Unlocked{}) }, signetv1.User_STATE_LOCKED},
	}
	for _, state := range states {
		state.into(t)
		as.Password = c.w.secret(state.name)
		done[*signetv1.SetUserPasswordResponse](t, c, s.owner, set(as.Password))
		same(t, state.name+": a password does not change the state", c.user(t, s.owner, as.UserID).GetState(), state.state)
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
	done[*signetv1.ChangeMyPasswordResponse](t, c, mine, with(changePassword(as.Password, as.Password), "endTokens", true))
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
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner, with(setPassword(as.UserID, as.Password), "noChangeRequired", true))
	for _, wrong := range []string{wide(71) + "è", wide(71) + "e\u0301", wide(72), wide(71)} {
		c.refused(t, signInFailed, nil, signIn(as.LoginName, wrong))
	}
	in := c.session(t, as)
	next := wide(72)
	done[*signetv1.ChangeMyPasswordResponse](t, c, in, changePassword(as.Password, next))
	c.refused(t, signInFailed, nil, signIn(as.LoginName, wide(73)))
	as.Password = next
	c.session(t, as)
	// One character is enough, and white space is kept.
	as.Password = " "
	done[*signetv1.ChangeMyPasswordResponse](t, c, in, changePassword(next, as.Password))
	c.refused(t, signInFailed, nil, signIn(as.LoginName, "  "))
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

// endedWhileHashing: calls that wait for their password to be hashed are refused once their session has ended.
func endedWhileHashing(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	in := c.session(t, s.holder(t, userManager))
	// So many that most of them are still in the queue when the first one is done.
	calls := 10 * runtime.GOMAXPROCS(0)
	targets := make([]*Actor, calls)
	for i := range targets {
		targets[i] = w.addUser(t, person{Org: s.org, Domain: s.domain})
	}
	answers := make([]*Answer, calls)
	late := make([]bool, calls) // answered after it was seen that the session is no more
	first := make(chan struct{}, calls)
	var ended atomic.Bool
	var wait sync.WaitGroup
	for i := range calls {
		wait.Go(func() {
			answers[i] = w.send(t, w.wires[i%len(w.wires)], in, setPassword(targets[i].UserID, w.secret("late")), nil)
			late[i] = ended.Load()
			first <- struct{}{}
		})
	}
	<-first
	done[*signetv1.EndSessionResponse](t, c, in, &signetv1.EndSessionRequest{SessionId: in.SessionID})
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	ended.Store(true)
	wait.Wait()
	succeeded, refusals := 0, 0
	for i, a := range answers {
		switch {
		case a.status != nil:
			a.mustBe(t, unauthenticated)
			refusals++
			// Nothing happened to the user.
			c.me(t, targets[i])
		case late[i]:
			succeeded++
		}
	}
	// A few had been hashed, and looked at once more, just before; their commands were running or their answers on the way.
	if refusals == 0 || succeeded > calls/3 {
		t.Errorf("of %d calls %d were refused, and %d succeeded after the session had ended", calls, refusals, succeeded)
	}
}
