package api_test

import (
	"testing"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func (c *Client) status(t *testing.T, as *Actor) *signetv1.GetStatusResponse {
	t.Helper()
	return done[*signetv1.GetStatusResponse](t, c, as, &signetv1.GetStatusRequest{})
}

func followerNamed(s *signetv1.GetStatusResponse, name string) *signetv1.FollowerStatus {
	for _, f := range s.GetFollowers() {
		if f.GetName() == name {
			return f
		}
	}
	return nil
}

// statusStory looks at an installation at a glance.
func statusStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	viewer := s.holder(t, iamViewer)
	told := c.status(t, viewer)
	engine := map[string]string{testdb.SQLite: "SQLite", testdb.Postgres: "PostgreSQL"}[c.w.db.Engine]
	same(t, "engine", told.GetNode().GetEngine(), engine)
	if up := told.GetNode().GetTime().AsTime().Sub(told.GetNode().GetStartTime().AsTime()); up <= 0 ||
		time.Since(told.GetNode().GetTime().AsTime()) > time.Minute {
		t.Errorf("%v", told.GetNode())
	}
	same(t, "mail", told.GetMail().GetConfigured() || followerNamed(told, "mail") != nil, false)
	if f := followerNamed(told, "logout"); f == nil || f.GetPosition()+f.GetLag() != told.GetLog().GetPosition() {
		t.Errorf("%v of %v", f, told.GetLog())
	}
	done[*signetv1.UpdateMyProfileResponse](t, c, s.user, profile())
	after := c.status(t, viewer)
	if after.GetLog().GetPosition() <= told.GetLog().GetPosition() {
		t.Errorf("%v, before %v", after.GetLog(), told.GetLog())
	}
	testkit.Await(t, "it is sealed",
		func() bool { return c.status(t, viewer).GetLog().GetSealedPosition() >= after.GetLog().GetPosition() })
	var signs *signetv1.SigningKeyStatus
	for _, k := range told.GetSigningKeys() {
		if k.GetAlgorithm() == "ES256" {
			signs = k
		}
	}
	if next := signs.GetNextRotation().AsTime(); signs.GetKeyId() == "" || next.Before(time.Now().Add(24*time.Hour)) ||
		next.After(time.Now().Add(100*24*time.Hour)) {
		t.Errorf("%v", told.GetSigningKeys())
	}
}

// troubles: what fails is seen at a glance.
func troubles(t *testing.T, w *World) {
	w, sink := withMail(t, w)
	c := &Client{w, w.rest}
	same(t, "mail", c.status(t, w.root).GetMail().GetConfigured(), true)
	sink.Fail(1000) // until somebody has looked
	done[*signetv1.SetupOrganizationResponse](t, c, w.root,
		with(setup(w.secret("founder")), "human.email.email", "founder@mail.example"))
	var f *signetv1.FollowerStatus
	testkit.Await(t, "a mail has failed", func() bool {
		f = followerNamed(c.status(t, w.root), "mail")
		return f.GetParked() == 1
	})
	if f.GetLastFailure() == "" || time.Since(f.GetLastFailureTime().AsTime()) > time.Minute ||
		f.GetNextRetry().AsTime().Before(f.GetLastFailureTime().AsTime()) {
		t.Errorf("%v", f)
	}
	sink.Fail(0)
	sink.Next(t)
	testkit.Await(t, "it has arrived", func() bool {
		f = followerNamed(c.status(t, w.root), "mail")
		return f.GetParked() == 0
	})
	same(t, "the last failure stays", f.GetLastFailure() != "" && f.GetNextRetry() == nil, true)
}
