package lifecycle_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/lifecycle"
)

// invited puts an invitation into an organization; by is who has accepted it, if anybody has.
func invited(t *testing.T, s *eventtest.Store, id, in, by string) {
	t.Helper()
	facts := []event.Fact[invitation.Invitation]{invitation.Added{Inviter: "usr_me",
		Personal: invitation.Invited{Email: id + "@mail.test", EmailKey: id + "@mail.test"}},
		invitation.Sent{Link: 1, Life: 1, Expires: 1, Inviter: "usr_me"}}
	if by != "" {
		facts = append(facts, invitation.WasAccepted{UserID: by})
	}
	eventtest.Given(t, s, invitation.Kind, id, in, []event.Claim{invitation.EmailClaim(in, id+"@mail.test")}, facts...)
}

// left tells what is left of the address of an invitation: in the state, and in the log.
func left(t *testing.T, s *eventtest.Store, id string) (state, log bool) {
	t.Helper()
	events, err := s.EventsOf(t.Context(), id, 1, 1)
	must(t, err)
	row, err := s.Row(t.Context(), event.RowKey{Table: event.Keys, Key: events[0].KeyID})
	must(t, err)
	return eventtest.State(t, s, invitation.Kind, id).Data.Email != "", row != nil
}

func TestAnInvitationForgetsTheAddressWithItsUser(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	membertest.User(t, s, "usr_b", "org_a", nil)
	invited(t, s, "inv_1", "org_a", "usr_a")
	invited(t, s, "inv_2", "org_b", "usr_a")
	invited(t, s, "inv_3", "org_b", "usr_b")
	_, err := lifecycle.RemoveUser(t.Context(), s, in(t, "org_a", iam), "usr_a", event.IfMatch{})
	must(t, err)
	for id, want := range map[string]bool{"inv_1": false, "inv_2": false, "inv_3": true} {
		if state, log := left(t, s, id); state != want || log != want {
			t.Errorf("%s: the address is in the state: %t, and in the log: %t", id, state, log)
		}
	}
}

// listing counts the lists that are read.
type listing struct {
	event.Store
	lists int
}

func (l *listing) List(ctx context.Context, q event.Query) (event.Page, error) {
	l.lists++
	return l.Store.List(ctx, q)
}

func TestNothingIsLookedForAboutAUserOutOfReach(t *testing.T) {
	s := &listing{Store: newInstallation(t)}
	membertest.User(t, s, "usr_b", "org_b", nil)
	for _, id := range []string{"usr_b", "usr_nobody"} {
		_, err := lifecycle.RemoveUser(t.Context(), s, in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}}),
			id, event.IfMatch{})
		eventtest.As(t, err, user.ErrNotFound)
	}
	if s.lists > 0 {
		t.Errorf("%d lists were read", s.lists)
	}
}

func TestInvitationsGoWithTheirOrganization(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_b", "org_b", nil)
	membertest.User(t, s, "usr_a", "org_a", nil)
	invited(t, s, "inv_1", "org_b", "")
	invited(t, s, "inv_2", "org_b", "usr_a")
	invited(t, s, "inv_3", "org_a", "usr_b") // a user of it who was invited elsewhere
	invited(t, s, "inv_4", "org_a", "")
	_, err := lifecycle.RemoveOrganization(t.Context(), s,
		in(t, "org_b", access.Memberships{access.Installation: {access.IAMOwner}}), event.IfMatch{})
	must(t, err)
	must(t, lifecycle.NewCleaner(s, slog.New(slog.DiscardHandler)).Clean(t.Context()))
	for id, want := range map[string]bool{"inv_1": false, "inv_2": false, "inv_3": false, "inv_4": true} {
		if state, log := left(t, s, id); state != want || log != want {
			t.Errorf("%s: the address is in the state: %t, and in the log: %t", id, state, log)
		}
	}
	if i := eventtest.State(t, s, invitation.Kind, "inv_1"); i.Data.State != invitation.Removed {
		t.Errorf("%+v", i.Data)
	}
}

func TestOffersGoWithTheirOrganization(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	for id, by := range map[string]string{"ofr_1": "org_b", "ofr_2": "org_d"} {
		eventtest.Given(t, s, member.OfferKind, id, by, []event.Claim{member.OfferClaim(by, "usr_a")},
			member.OfferMade{UserID: "usr_a", Giver: "usr_me", Expires: 1})
	}
	_, err := lifecycle.RemoveOrganization(t.Context(), s,
		in(t, "org_b", access.Memberships{access.Installation: {access.IAMOwner}}), event.IfMatch{})
	must(t, err)
	must(t, lifecycle.NewCleaner(s, slog.New(slog.DiscardHandler)).Clean(t.Context()))
	for id, want := range map[string]member.OfferState{"ofr_1": member.OfferRemoved, "ofr_2": member.OfferOpen} {
		if o := eventtest.State(t, s, member.OfferKind, id); o.Data.State != want {
			t.Errorf("%s: %+v", id, o.Data)
		}
	}
}

func TestCustomRolesGoWithTheirOrganization(t *testing.T) {
	s := newInstallation(t)
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	ids := map[string]string{}
	for _, scope := range []string{"org_b", "org_d"} {
		made, err := role.Add(t.Context(), s, in(t, scope, iam),
			role.New{Name: "r", Permissions: []string{"user.read"}}, event.Once{})
		must(t, err)
		ids[scope] = made.ID
	}
	_, err := lifecycle.RemoveOrganization(t.Context(), s, in(t, "org_b", iam), event.IfMatch{})
	must(t, err)
	must(t, lifecycle.NewCleaner(s, slog.New(slog.DiscardHandler)).Clean(t.Context()))
	for scope, want := range map[string]role.State{"org_b": role.Removed, "org_d": role.Active} {
		if o := eventtest.State(t, s, role.Kind, ids[scope]); o.Data.State != want {
			t.Errorf("the role of %s is %s", scope, o.Data.State)
		}
	}
}
