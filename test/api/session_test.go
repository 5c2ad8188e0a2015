package api_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
)

func (c *Client) mySessions(t *testing.T, as *Actor) []*signetv1.Session {
	t.Helper()
	return done[*signetv1.ListMySessionsResponse](t, c, as, &signetv1.ListMySessionsRequest{}).GetSessions()
}

func (c *Client) sessionsOf(t *testing.T, as *Actor, id string) []*signetv1.Session {
	t.Helper()
	return done[*signetv1.ListUserSessionsResponse](t, c, as,
		&signetv1.ListUserSessionsRequest{UserId: id}).GetSessions()
}

// mySessionStory: people see their sessions and end all but the one they are in.
func mySessionStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	same(t, "none at first", len(c.mySessions(t, as)), 0)
	one, two := c.session(t, as), c.session(t, as)
	listed := c.mySessions(t, two)
	if len(listed) != 2 || listed[0].GetSessionId() != one.SessionID || listed[0].GetIsCurrent() ||
		listed[1].GetSessionId() != two.SessionID || !listed[1].GetIsCurrent() {
		t.Fatalf("listed %v", listed)
	}
	if life := listed[0].GetExpirationDate().AsTime().Sub(listed[0].GetCreationDate().AsTime()); life != 12*time.Hour {
		t.Errorf("a session is said to live for %v", life)
	}
	// What is over is not listed.
	over := *as
	c.w.giveToken(t, &over, secret.Session, -time.Minute)
	same(t, "sessions that count", len(c.mySessions(t, as)), 2)

	before := c.me(t, two).GetDetails().GetSequence()
	c.refused(t, sequenceMismatch, two, &signetv1.EndMySessionsRequest{}, stale)
	c.me(t, one)
	d := done[*signetv1.EndMySessionsResponse](t, c, two, &signetv1.EndMySessionsRequest{})
	same(t, "one event", d.GetDetails().GetSequence(), before+1)
	c.refused(t, unauthenticated, one, &signetv1.GetMyUserRequest{})
	c.me(t, two)
	c.me(t, as) // tokens stay
	if listed = c.mySessions(t, two); len(listed) != 1 || !listed[0].GetIsCurrent() {
		t.Errorf("left: %v", listed)
	}
	// Once more, with nothing to end: the session still lives on, and it is an event all the same.
	d = done[*signetv1.EndMySessionsResponse](t, c, two, &signetv1.EndMySessionsRequest{})
	same(t, "one more event", d.GetDetails().GetSequence(), before+2)
	c.refused(t, noSession, two, &signetv1.EndSessionRequest{SessionId: one.SessionID})
	// Through a token there is no session to keep.
	done[*signetv1.EndMySessionsResponse](t, c, as, &signetv1.EndMySessionsRequest{})
	c.refused(t, unauthenticated, two, &signetv1.GetMyUserRequest{})
	same(t, "none is left", len(c.mySessions(t, as)), 0)
	c.me(t, c.session(t, as))
	// A service user has none to end, which is fine.
	done[*signetv1.EndMySessionsResponse](t, c, c.w.addUser(t, person{Org: s.org, Service: true}),
		&signetv1.EndMySessionsRequest{})
}

// userSessionStory: administrators see and end the sessions of those who hold no more than they do.
func userSessionStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org})
	var all []*Actor
	for range 5 {
		all = append(all, c.w.signedIn(t, as))
	}
	var seen []string
	list := &signetv1.ListUserSessionsRequest{UserId: as.UserID, PageSize: 2}
	for pages := 1; ; pages++ {
		page := done[*signetv1.ListUserSessionsResponse](t, c, s.owner, list)
		for _, session := range page.GetSessions() {
			seen = append(seen, session.GetSessionId())
			same(t, "somebody else's session is not the one that calls", session.GetIsCurrent(), false)
		}
		if list.PageToken = page.GetNextPageToken(); list.PageToken == "" {
			same(t, "pages", pages, 3)
			break
		}
	}
	if !slices.IsSorted(seen) || len(slices.Compact(seen)) != 5 {
		t.Errorf("the pages hold %q", seen)
	}

	end := func(user, session string) proto.Message {
		return &signetv1.EndUserSessionRequest{UserId: user, SessionId: session}
	}
	token := c.tokensOf(t, s.owner, as.UserID)[0].GetTokenId()
	for _, id := range []string{"ses_x", token} {
		c.refused(t, noSession, s.owner, end(as.UserID, id))
	}
	c.refused(t, noSession, s.owner, end(s.user.UserID, seen[0]))
	sequence := c.user(t, s.owner, as.UserID).GetDetails().GetSequence()
	done[*signetv1.EndUserSessionResponse](t, c, s.owner, end(as.UserID, seen[2]))
	c.refused(t, noSession, s.owner, end(as.UserID, seen[2]))
	c.refused(t, unauthenticated, all[2], &signetv1.GetMyUserRequest{})
	c.me(t, all[3])
	same(t, "sessions", len(c.sessionsOf(t, s.owner, as.UserID)), 4)
	same(t, "the user's own sequence has not moved", c.user(t, s.owner, as.UserID).GetDetails().GetSequence(), sequence)

	endAll := &signetv1.EndUserSessionsRequest{UserId: as.UserID}
	c.refused(t, sequenceMismatch, s.owner, endAll, stale)
	c.me(t, all[0])
	d := done[*signetv1.EndUserSessionsResponse](t, c, s.owner, endAll)
	same(t, "one event", d.GetDetails().GetSequence(), sequence+1)
	for _, in := range all {
		c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	}
	c.me(t, as) // tokens stay
	same(t, "none is left", len(c.sessionsOf(t, s.owner, as.UserID)), 0)
	c.refused(t, noSession, s.owner, end(as.UserID, seen[0]))

	// On oneself it ends one's own session, too.
	self := c.w.signedIn(t, c.w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgUserManager}}))
	same(t, "the one that calls", c.sessionsOf(t, self, self.UserID)[0].GetIsCurrent(), true)
	done[*signetv1.EndUserSessionsResponse](t, c, self, &signetv1.EndUserSessionsRequest{UserId: self.UserID})
	c.refused(t, unauthenticated, self, &signetv1.GetMyUserRequest{})
	// A removed user has nothing that could be seen or ended.
	c.w.changeUser(t, as.UserID, user.WasRemoved{})
	for _, req := range []proto.Message{list, endAll, end(as.UserID, seen[0]),
		&signetv1.ListUserTokensRequest{UserId: as.UserID}} {
		c.refused(t, noUser, s.owner, with(req, "userId", as.UserID))
	}
}

// atOnce sends a request many times at once, over all content types, and counts the answers.
func atOnce(t *testing.T, w *World, n int, as *Actor, req proto.Message, others ...Want) (succeeded int) {
	t.Helper()
	answers := make([]*Answer, n)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = w.send(t, w.wires[i%len(w.wires)], as, req, nil) })
	}
	wait.Wait()
	for _, a := range answers {
		if a.status == nil {
			succeeded++
		} else if !slices.ContainsFunc(others,
			func(o Want) bool { return o.Code == a.code() && o.Reason == a.reason() }) {
			t.Errorf("one answer is %s", a.summary())
		}
	}
	return succeeded
}

// revokedOnce: of many revocations at once one succeeds, and the token is dead after any answer.
func revokedOnce(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	target := c.tokensOf(t, s.owner, s.user.UserID)[0].GetTokenId()
	c.me(t, s.user) // it is in memory now, where there is such a thing
	same(t, "revocations", atOnce(t, w, 64, s.owner,
		&signetv1.RevokeUserTokenRequest{UserId: s.user.UserID, TokenId: target}, noToken), 1)
	c.refused(t, unauthenticated, s.user, &signetv1.GetMyUserRequest{})
	same(t, "tokens", len(c.tokensOf(t, s.owner, s.user.UserID)), 0)
	// Once by its own user: then it is gone for whoever was next.
	robot := w.addUser(t, person{Org: s.org, Service: true})
	own := c.myTokens(t, robot)[0].GetTokenId()
	same(t, "revocations", atOnce(t, w, 64, robot, &signetv1.RevokeMyTokenRequest{TokenId: own}, noToken,
		unauthenticated), 1)
}

// endedOnce: the same for sessions.
func endedOnce(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	in := w.signedIn(t, s.user)
	id := c.mySessions(t, in)[0].GetSessionId()
	same(t, "ends", atOnce(t, w, 64, s.owner,
		&signetv1.EndUserSessionRequest{UserId: s.user.UserID, SessionId: id}, noSession), 1)
	c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
	in = w.signedIn(t, s.user)
	id = c.mySessions(t, in)[0].GetSessionId()
	same(t, "ends", atOnce(t, w, 64, in, &signetv1.EndSessionRequest{SessionId: id}, noSession, unauthenticated), 1)
}

// endingEachOther: when two sessions end all others at once, one of them is left.
func endingEachOther(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	contention := refused(codes.Aborted, "CONTENTION")
	for range 20 {
		as := w.addUser(t, person{Org: s.org})
		var wait sync.WaitGroup
		rivals := []*Actor{w.signedIn(t, as), w.signedIn(t, as), w.signedIn(t, as)}
		for i, in := range rivals {
			wait.Go(func() {
				a := w.send(t, w.wires[i], in, &signetv1.EndMySessionsRequest{}, nil)
				if a.status != nil && a.reason() != contention.Reason && a.reason() != unauthenticated.Reason {
					t.Errorf("one answer is %s", a.summary())
				}
			})
		}
		wait.Wait()
		same(t, "sessions left", len(c.mySessions(t, as)), 1)
	}
}
