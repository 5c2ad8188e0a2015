package user_test

import (
	"context"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// operation is a change of somebody else's user.
type operation struct {
	name      string
	protected bool        // only for whoever holds all that the user holds
	only      *errs.Error // what a user of the other type is refused with; nil: either type will do
	do        func(ctx context.Context, s event.Store, p access.Permit, id string,
		m event.IfMatch) (event.Details, error)
}

var operations = []operation{
	{"profile", false, user.ErrNotHuman,
		func(ctx context.Context, s event.Store, p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return user.ReplaceProfileOf(ctx, s, p, id, m, jo.Profile)
		}},
	{"service", false, user.ErrNotService,
		func(ctx context.Context, s event.Store, p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return user.ReplaceService(ctx, s, p, id, m, "N", "D")
		}},
	{"user name", true, nil, func(ctx context.Context, s event.Store, p access.Permit, id string,
		m event.IfMatch) (event.Details, error) {
		return user.SetUserName(ctx, s, p, id, m, "renamed")
	}},
	{"e-mail", true, user.ErrNotHuman,
		func(ctx context.Context, s event.Store, p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return user.SetEmail(ctx, s, p, id, m, "new@example.org", true)
		}},
	{"phone", true, user.ErrNotHuman,
		func(ctx context.Context, s event.Store, p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return user.SetPhone(ctx, s, p, id, m, "+1", true)
		}},
	{"no phone", true, user.ErrNotHuman,
		func(ctx context.Context, s event.Store, p access.Permit, id string, m event.IfMatch) (event.Details, error) {
			return user.RemovePhone(ctx, s, p, id, m)
		}},
}

func TestWhoMayChangeAUser(t *testing.T) {
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	moved := errs.New(errs.Aborted, event.SequenceMismatch, "")
	for _, op := range operations {
		right, other := "usr_a", "usr_robot"
		if op.only == user.ErrNotService {
			right, other = other, right
		}
		holdsMore := access.ErrTargetHoldsMore
		if !op.protected {
			holdsMore = nil
		}
		for _, c := range []struct {
			name    string
			given   []event.Fact[user.User]
			permit  access.Permit
			id      string
			match   event.IfMatch
			refusal *errs.Error
		}{
			{"a manager changes a plain user", nil, permit(t, "org_a", manager), right,
				event.IfMatch{Set: true, Sequence: 1}, nil},
			{"an inactive one too", []event.Fact[user.User]{user.Deactivated{}}, permit(t, "org_a", manager), right,
				event.IfMatch{}, nil},
			{"somebody who holds more",
				[]event.Fact[user.User]{user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}},
				permit(t, "org_a", manager), right, event.IfMatch{}, holdsMore},
			{"a permit of another organization finds nobody", nil, permit(t, "org_b", iam), right, event.IfMatch{},
				user.ErrNotFound},
			{"no permit finds nobody", nil, access.Permit{}, right, event.IfMatch{}, user.ErrNotFound},
			{"an unknown user", nil, permit(t, "org_a", iam), "usr_x", event.IfMatch{}, user.ErrNotFound},
			{"a removed user", []event.Fact[user.User]{user.WasRemoved{}}, permit(t, "org_a", iam), right,
				event.IfMatch{}, user.ErrNotFound},
			{"the other type, before the sequence", nil, permit(t, "org_a", manager), other,
				event.IfMatch{Set: true, Sequence: 9}, op.only},
			{"another sequence", nil, permit(t, "org_a", manager), right, event.IfMatch{Set: true, Sequence: 9}, moved},
		} {
			if c.id == other && op.only == nil {
				continue
			}
			t.Run(op.name+"/"+c.name, func(t *testing.T) {
				s := eventtest.New(t, user.Kind)
				must(t, human(t, s, "usr_a", "org_a", jo))
				must(t, service(t, s, "usr_robot", "org_a", "robot"))
				if c.given != nil {
					eventtest.Given(t, s, user.Kind, right, "", nil, c.given...)
				}
				before := s.Fingerprint()
				d, err := op.do(t.Context(), s, c.permit, c.id, c.match)
				eventtest.As(t, err, c.refusal)
				if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
					t.Errorf("wrote: %t", wrote)
				}
				if c.refusal == nil && d != eventtest.State(t, s, user.Kind, c.id).Details() {
					t.Errorf("details %+v", d)
				}
			})
		}
	}
}

func TestAProfileIsReplacedBySomebodyElse(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	mark := s.Mark()
	to := user.Profile{FirstName: "A", LastName: "Doe", DisplayName: "Ä"}
	_, err := user.ReplaceProfileOf(t.Context(), s, permit(t, "org_a", manager), "usr_a", event.IfMatch{}, to)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.profile_changed.v1", Payload: `{}`,
		Personal: `{"firstName":"A","nickName":"","displayName":"Ä","nameKey":"ä","preferredLanguage":"","gender":""}`})
}

func TestAServiceUserIsDescribedAnew(t *testing.T) {
	for _, c := range []struct{ name, to, description, personal string }{
		{"nothing differs: an event without content", "Robot", "does things", ""},
		{"the name", "RÖBOT", "does things", `{"name":"RÖBOT","nameKey":"röbot"}`},
		{"the name in another case", "ROBOT", "does things", `{"name":"ROBOT"}`},
		{"a description that is left out is empty afterwards", "Robot", "", `{"description":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, user.Kind)
			must(t, service(t, s, "usr_robot", "org_a", "robot"))
			mark := s.Mark()
			_, err := user.ReplaceService(t.Context(), s, permit(t, "org_a", manager), "usr_robot", event.IfMatch{},
				c.to, c.description)
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_robot", Type: "user.service_changed.v1", Payload: `{}`,
				Personal: c.personal})
			if got := eventtest.State(t, s, user.Kind, "usr_robot").Data.Service; got.Name != c.to ||
				got.Description != c.description {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAUserNameMovesItsClaim(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	must(t, service(t, s, "usr_robot", "org_a", "robot"))
	p := permit(t, "org_a", manager)
	set := func(id, name string, match ...event.IfMatch) error {
		_, err := user.SetUserName(t.Context(), s, p, id, append(match, event.IfMatch{})[0], name)
		return err
	}
	before := s.Fingerprint()
	eventtest.As(t, set("usr_a", "ROBOT"), user.ErrUserNameTaken)
	// The name is looked at before the sequence.
	stale := event.IfMatch{Set: true, Sequence: 9}
	eventtest.As(t, set("usr_a", "ROBOT", stale), user.ErrUserNameTaken)
	eventtest.Refused(t, set("usr_a", "R2", stale), errs.Aborted, event.SequenceMismatch)
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
	mark := s.Mark()
	must(t, set("usr_a", "JO"))
	must(t, set("usr_a", "JO"))
	must(t, set("usr_a", "Zoë"))
	must(t, set("usr_robot", "jo")) // it is free now
	eventtest.As(t, set("usr_robot", "ZOË"), user.ErrUserNameTaken)
	fact := func(id, personal string) eventtest.Fact {
		return eventtest.Fact{Object: id, Type: "user.user_name_changed.v1", Payload: `{}`, Personal: personal}
	}
	s.Then(t, mark, fact("usr_a", `{"userName":"JO"}`), fact("usr_a", ``),
		fact("usr_a", `{"userName":"Zoë","userNameKey":"zoë"}`),
		fact("usr_robot", `{"userName":"jo","userNameKey":"jo"}`))
	for name, want := range map[string]string{"zoë": "usr_a", "jo": "usr_robot", "robot": ""} {
		if got, err := s.Holder(t.Context(), user.NameClaim("org_a", name)); got != want || err != nil {
			t.Errorf("%s belongs to %q (%v)", name, got, err)
		}
	}
}
