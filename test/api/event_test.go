package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
)

// eventCases are requests that make no sense.
func eventCases(t *testing.T, w *World) []Case {
	s := w.scene(t)
	list, stream := &signetv1.ListEventsRequest{}, &signetv1.StreamEventsRequest{}
	old := &timestamppb.Timestamp{Seconds: -5}
	return []Case{
		{Name: "list/an object and a user", As: s.owner,
			Req: with(with(list, "objectId", s.idp), "userId", s.user.UserID), Want: invalid("userId")},
		{Name: "stream/an object and a user", As: s.owner,
			Req: with(with(stream, "objectId", s.idp), "userId", s.user.UserID), Want: invalid("userId")},
		{
			Name: "list/types that are none",
			As:   s.owner,
			Req:  with(list, "types", []string{"user.*", "user", "user.nothing.v1", "*", "use.*"}),
			Want: invalid("types[1]", "types[2]", "types[3]", "types[4]"),
		},
		{Name: "stream/types that are none", As: s.owner, Req: with(stream, "types", []string{""}),
			Want: invalid("types[0]")},
		{Name: "list/too many types", As: s.owner, Req: with(list, "types", slices.Repeat([]string{"user.*"}, 21)),
			Want: invalid("types")},
		{Name: "list/times before there was any", As: s.owner,
			Req: with(with(list, "from", old.ProtoReflect()), "to", old.ProtoReflect()), Want: invalid("from", "to")},
		{Name: "list/times in the wrong order", As: s.owner,
			Req: with(with(list, "from", timestamppb.New(time.Unix(5, 0)).ProtoReflect()), "to",
				timestamppb.New(time.Unix(5, 0)).ProtoReflect()), Want: invalid("to")},
		{Name: "list/an order that is none", As: s.owner, Req: with(list, "order", 9), Want: invalid("order")},
		{Name: "list/a page that is too large", As: s.owner, Req: with(list, "pageSize", int32(501)),
			Want: invalid("pageSize")},
		{Name: "stream/a cursor that is none", As: s.owner, Req: with(stream, "cursor", "AAAA"),
			Want: invalid("cursor")},
		{Name: "stream/a cursor that is no text of ours", As: s.owner, Req: with(stream, "cursor", "% %"),
			Want: invalid("cursor")},
		{Name: "stream/a cursor that is too long", As: s.owner, Req: with(stream, "cursor", strings.Repeat("A", 501)),
			Want: invalid("cursor")},
		{Name: "list/everything, for the owner of one organization", As: s.owner,
			Req: with(list, "allOrganizations", true), Want: permissionDenied},
		{Name: "stream/everything, for the owner of one organization", As: s.owner,
			Req: with(stream, "allOrganizations", true), Want: permissionDenied},
		{Name: "list/everything, for the installation's", As: w.root,
			Req: with(list, "allOrganizations", true), Want: ok},
		{Name: "stream/everything, for the installation's", As: w.root,
			Req: with(stream, "allOrganizations", true), Want: ok},
	}
}

// listEvents follows the pages of a list to its end.
func (c *Client) listEvents(t *testing.T, as *Actor, req *signetv1.ListEventsRequest,
	h ...Header) (all []*signetv1.Event) {
	t.Helper()
	for token := ""; ; {
		page := done[*signetv1.ListEventsResponse](t, c, as, with(req, "pageToken", token), h...)
		all = append(all, page.GetEvents()...)
		if token = page.GetNextPageToken(); token == "" {
			return all
		}
	}
}

func typesOf(events []*signetv1.Event) (types []string) {
	for _, e := range events {
		types = append(types, e.GetType())
	}
	return types
}

func sameTypes(t *testing.T, what string, got []*signetv1.Event, want ...string) {
	t.Helper()
	if have := typesOf(got); !slices.Equal(have, want) {
		t.Errorf("%s: got %q, want %q", what, have, want)
	}
}

func eventStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	before := time.Now().Add(-time.Minute)
	c.session(t, s.user)
	c.refused(t, signInFailed, nil, signIn(s.user.LoginName, "wrong"))
	done[*signetv1.UpdateMyProfileResponse](t, c, s.user, profile())
	done[*signetv1.DeactivateUserResponse](t, c, s.owner, &signetv1.DeactivateUserRequest{UserId: s.user.UserID})

	about := c.listEvents(t, s.owner,
		&signetv1.ListEventsRequest{UserId: s.user.UserID,
			Order: signetv1.EventOrder_EVENT_ORDER_OLDEST_FIRST, PageSize: 2})
	sameTypes(t, "about the user, the oldest first", about, "user.human_added.v1", "user.password_set.v1",
		"sign_in.token_issued.v1",
		"sign_in.succeeded.v1", "sign_in.failed.v1", "user.profile_changed.v1", "user.deactivated.v1")
	newest := c.listEvents(t, s.owner, &signetv1.ListEventsRequest{UserId: s.user.UserID, PageSize: 3})
	slices.Reverse(newest)
	for i := range newest {
		sameMessage(t, "the same in the other order", newest[i], about[i])
	}
	failed := about[4]
	same(t, "who caused a failed sign-in", failed.GetActor(), "system")
	if got := failed.GetPayload().String(); !strings.Contains(got, "wrong_password") || !strings.Contains(got, "pwd") {
		t.Errorf("the reason is missing: %s", got)
	}
	changed := about[5]
	want := &signetv1.Event{
		EventId:    s.user.UserID + ".3",
		ObjectId:   s.user.UserID,
		ObjectType: "user",
		Sequence:   3,
		OrgId:      s.org,
		Type:       "user.profile_changed.v1",
		Actor:      s.user.UserID,
		RequestId:  changed.GetRequestId(),
		Time:       changed.GetTime(),
		Payload:    changed.GetPayload(),
		Personal:   changed.GetPersonal(),
	}
	sameMessage(t, "an event", changed, want)
	if personal := changed.GetPersonal().String(); !strings.Contains(personal, "Lovelace") ||
		strings.Contains(changed.GetPayload().String(), "Lovelace") || changed.GetRequestId() == "" {
		t.Errorf("%v", changed)
	}

	sameTypes(t, "of the user alone",
		c.listEvents(t, s.owner,
			&signetv1.ListEventsRequest{ObjectId: s.user.UserID,
				Types: []string{"user.deactivated.v1", "user.profile_changed.v1"}}),
		"user.deactivated.v1", "user.profile_changed.v1")
	sameTypes(t, "of a kind", c.listEvents(t, s.owner,
		&signetv1.ListEventsRequest{UserId: s.user.UserID, Types: []string{"sign_in.*"}}),
		"sign_in.failed.v1", "sign_in.succeeded.v1", "sign_in.token_issued.v1")
	sameTypes(t, "by the user",
		c.listEvents(t, s.owner, &signetv1.ListEventsRequest{Actor: s.user.UserID, Types: []string{"user.*"}}),
		"user.profile_changed.v1")
	sameTypes(t, "by the owner, about users",
		c.listEvents(t, s.owner, &signetv1.ListEventsRequest{Actor: s.owner.UserID, Types: []string{"user.*"}}),
		"user.deactivated.v1")
	sameTypes(t, "from then on",
		c.listEvents(t, s.owner, &signetv1.ListEventsRequest{ObjectId: s.user.UserID, From: changed.GetTime()}),
		"user.deactivated.v1", "user.profile_changed.v1")
	sameTypes(t, "until then",
		c.listEvents(t, s.owner,
			&signetv1.ListEventsRequest{ObjectId: s.user.UserID, From: timestamppb.New(before), To: changed.GetTime()}),
		"user.password_set.v1", "user.human_added.v1")
	sameTypes(t, "long ago", c.listEvents(t, s.owner, &signetv1.ListEventsRequest{To: timestamppb.New(before)}))

	// Nothing of another organization, in either direction, whatever is asked for.
	other := c.w.elsewhere(t)
	for _, req := range []*signetv1.ListEventsRequest{{ObjectId: s.user.UserID}, {UserId: s.user.UserID},
		{Actor: s.owner.UserID}, {ObjectId: s.org}, {ObjectId: s.app}} {
		sameTypes(t, "to another organization's owner", c.listEvents(t, other.owner, req))
		c.refused(t, permissionDenied, other.owner, req, header(orgID, s.org))
		if req.GetActor() == "" {
			if len(c.listEvents(t, c.w.root, req, header(orgID, s.org))) == 0 ||
				len(c.listEvents(t, c.w.root, with(req, "allOrganizations", true))) == 0 {
				t.Errorf("%v: the installation's owner finds nothing", req)
			}
		}
	}
	for _, e := range c.listEvents(t, s.owner, &signetv1.ListEventsRequest{}) {
		if e.GetOrgId() != s.org {
			t.Errorf("%v is of another organization", e)
		}
	}
	guest := c.w.addUser(t, person{Org: other.org, Elsewhere: map[string][]access.Role{s.org: {access.OrgOwnerViewer}}})
	if len(c.listEvents(t, guest, &signetv1.ListEventsRequest{ObjectId: s.user.UserID}, header(orgID, s.org))) == 0 {
		t.Error("a guest who may finds nothing")
	}
	c.refused(t, permissionDenied, guest, &signetv1.ListEventsRequest{})
}

// installationEvents are for those who may read in the whole installation.
func installationEvents(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	owner := w.addUser(t, person{Org: w.root.OrgID, Roles: []access.Role{access.OrgOwner}})
	for _, req := range []*signetv1.ListEventsRequest{{Types: []string{"installation.*", "signing.*"}},
		{ObjectId: "installation"}} {
		sameTypes(t, "to the owner of the default organization", c.listEvents(t, owner, req))
		sameTypes(t, "to who may, in the default organization", c.listEvents(t, w.root, req))
		if found := c.listEvents(t, w.root, with(req, "allOrganizations", true)); len(found) == 0 ||
			found[0].GetOrgId() != "installation" {
			t.Errorf("%v: %v", req, found)
		}
	}
}

func streamStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	change := func(nick string) {
		t.Helper()
		done[*signetv1.UpdateMyProfileResponse](t, c, s.user, with(profile(), "nickName", nick))
	}
	nickOf := func(e *signetv1.Event) string {
		return e.GetPersonal().GetFields()["nickName"].GetStringValue()
	}
	req := &signetv1.StreamEventsRequest{ObjectId: s.user.UserID}
	r := c.tune(t, s.owner, req)
	var cursor string
	for _, nick := range []string{"one", "two"} {
		change(nick)
		e, at := r.event(t)
		cursor = at
		if nickOf(e) != nick {
			t.Errorf("%v", e)
		}
		listed := c.listEvents(t, s.owner,
			&signetv1.ListEventsRequest{ObjectId: s.user.UserID, PageSize: 1,
				Types: []string{"user.profile_changed.v1"}})
		sameMessage(t, "the same in the list", e, listed[0])
	}
	r.stop()
	change("three")
	change("four")
	r = c.tune(t, s.owner, with(req, "cursor", cursor))
	for _, nick := range []string{"three", "four"} {
		if e, _ := r.event(t); nickOf(e) != nick {
			t.Errorf("after it broke off: %v", e)
		}
	}
	r.stop()
	// All of it, from a time on; and only what is asked for.
	r = c.tune(t, s.owner, &signetv1.StreamEventsRequest{UserId: s.user.UserID, Types: []string{"user.*"},
		From: timestamppb.New(time.Now().Add(-time.Hour))})
	for _, want := range []string{"user.human_added.v1", "user.password_set.v1", "user.profile_changed.v1"} {
		if e, _ := r.event(t); e.GetType() != want {
			t.Errorf("got %v, want %s", e, want)
		}
	}
	r.stop()
}

// streamEndStory takes away, in every way, what somebody follows events by.
func streamEndStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	for _, way := range []struct {
		name string
		want Want
		end  func(a *Actor)
	}{
		{"the token is revoked", unauthenticated, func(a *Actor) {
			id := done[*signetv1.ListMyTokensResponse](t, c, a,
				&signetv1.ListMyTokensRequest{}).GetTokens()[0].GetTokenId()
			done[*signetv1.RevokeMyTokenResponse](t, c, a, &signetv1.RevokeMyTokenRequest{TokenId: id})
		}},
		{"the user is switched off", unauthenticated, func(a *Actor) {
			done[*signetv1.DeactivateUserResponse](t, c, s.owner, &signetv1.DeactivateUserRequest{UserId: a.UserID})
		}},
		{"the role is taken away", permissionDenied, func(a *Actor) {
			done[*signetv1.RemoveOrganizationMemberResponse](t, c, s.owner,
				&signetv1.RemoveOrganizationMemberRequest{OrgId: s.org, UserId: a.UserID})
		}},
	} {
		a := s.holder(t, orgViewer)
		r := c.tune(t, a, &signetv1.StreamEventsRequest{Types: []string{"user.*", "sign_in.*"}})
		way.end(a)
		// Whatever comes next is not for them any more.
		done[*signetv1.UpdateMyProfileResponse](t, c, s.user, with(profile(), "nickName", "after "+way.name))
		end := r.end(t)
		end.wire = c.wire.name()
		t.Run(way.name, func(t *testing.T) { end.mustBe(t, way.want) })
	}
}

// restrictedStream: a session that has to change its password follows nothing any more.
func restrictedStream(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	s := w.scene(t)
	a := s.holder(t, orgViewer)
	w.giveToken(t, a, secret.Session, time.Hour)
	r := c.tune(t, a, &signetv1.StreamEventsRequest{ObjectId: a.UserID})
	w.changeUser(t, a.UserID, user.PasswordSet{ChangeRequired: true})
	if end := r.end(t); end.status == nil {
		t.Error("it goes on")
	}
}
