package user_test

import (
	"context"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var hasher = secret.NewCheapHasher()

func permit(t *testing.T, org string, m access.Memberships) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_admin", RequestID: "req_1", Memberships: m}).In(org, access.CredentialWrite)
	must(t, err)
	return p
}

func TestASetPasswordEndsEverythingAndLeavesOnlyAFactInTheLog(t *testing.T) {
	for _, c := range []struct {
		name           string
		changeRequired bool
		payload        string
	}{
		{"to be changed at the next sign-in", true, `{"changeRequired":true}`},
		{"to be kept", false, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			mark := s.Mark()
			// 72 characters in four bytes each, with a tail that a shortening hash would not see.
			password := strings.Repeat("🔑", 71) + "!"
			d, err := user.SetPassword(t.Context(), s, hasher,
				permit(t, "org_a", access.Memberships{"org_a": {access.OrgUserManager}}), "usr_a", event.IfMatch{},
				user.NewPassword{Password: password, ChangeRequired: c.changeRequired})
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: "user.password_set.v1", Payload: c.payload})
			u := eventtest.State(t, s, user.Kind, "usr_a")
			if p := u.Data.Password; p.Version != 1 || p.ChangeRequired != c.changeRequired ||
				u.Data.SessionEpoch != 1 || u.Data.TokenEpoch != 1 {
				t.Errorf("state %+v", u.Data)
			}
			if d.Sequence != 2 || d != u.Details() {
				t.Errorf("details %+v", d)
			}
			row, err := s.Row(t.Context(), user.PasswordRow("usr_a"))
			must(t, err)
			if ok, _, err := hasher.Verify(t.Context(), row.Value, password); !ok || err != nil {
				t.Errorf("the password does not match what is stored (%v)", err)
			}
			if s.Stored(t, password) {
				t.Error("the password itself is stored")
			}
			events, err := s.Events(t.Context(), 0, 10)
			must(t, err)
			for _, e := range events {
				if strings.Contains(string(e.Payload), "argon2") ||
					strings.Contains(string(e.Payload), string(row.Value)) {
					t.Errorf("the hash is in the event %s", e.Type)
				}
			}
			for _, f := range s.Since(t, 0) {
				if strings.Contains(f.Personal, "argon2") {
					t.Errorf("the hash is in the personal part of %s", f.Type)
				}
			}
			if doc, _ := s.Record(t.Context(), user.Kind.Ref("usr_a")); strings.Contains(string(doc.Doc), "argon2") {
				t.Error("the hash is in the state")
			}
		})
	}
}

func TestAPasswordIsSetInEveryStateButRemoved(t *testing.T) {
	for _, c := range []struct {
		name    string
		facts   []event.Fact[user.User]
		refusal *errs.Error
		state   user.State
	}{
		{"inactive", []event.Fact[user.User]{user.Deactivated{}}, nil, user.Inactive},
		{"locked", []event.Fact[user.User]{user.WasLocked{}}, nil, user.Locked},
		{"removed", []event.Fact[user.User]{user.WasRemoved{}}, user.ErrNotFound, user.Removed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			eventtest.Given(t, s, user.Kind, "usr_a", "", nil, c.facts...)
			_, err := user.SetPassword(t.Context(), s, hasher,
				permit(t, "org_a", access.Memberships{"org_a": {access.OrgUserManager}}), "usr_a", event.IfMatch{},
				user.NewPassword{Password: "x"})
			eventtest.As(t, err, c.refusal)
			if got := eventtest.State(t, s, user.Kind, "usr_a").Data.State; got != c.state {
				t.Errorf("the state became %s", got)
			}
		})
	}
}

func TestAPasswordIsOnlySetByWhoeverMay(t *testing.T) {
	manager := access.Memberships{"org_a": {access.OrgUserManager}}
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	must(t, service(t, s, "usr_robot", "org_a", "robot"))
	for id, holds := range map[string]access.Memberships{
		"usr_owner":   owner,
		"usr_manager": manager,
		"usr_abroad":  {"org_a": {access.OrgUserManager}, "org_b": {access.OrgUserManager}},
		"usr_viewer":  {access.Installation: {access.IAMOwnerViewer}},
		"usr_iam":     iam,
	} {
		must(t, human(t, s, id, "org_a", user.NewHuman{UserName: id, Email: "x@y", Profile: jo.Profile}))
		for scope, roles := range holds {
			eventtest.Given(t, s, user.Kind, id, "", nil, user.MembershipSet{Scope: scope, Roles: roles})
		}
	}
	robotIsOwner := func(t *testing.T) {
		eventtest.Given(t, s, user.Kind, "usr_robot", "", nil,
			user.MembershipSet{Scope: access.Installation, Roles: []access.Role{access.IAMOwner}})
	}
	moved := errs.New(errs.Aborted, event.SequenceMismatch, "")
	for _, c := range []struct {
		name    string
		before  func(*testing.T)
		permit  access.Permit
		id      string
		match   event.IfMatch
		refusal *errs.Error
	}{
		{"a manager sets that of a plain user", nil, permit(t, "org_a", manager), "usr_a",
			event.IfMatch{Set: true, Sequence: 1}, nil},
		{"a manager sets that of an equal", nil, permit(t, "org_a", manager), "usr_manager", event.IfMatch{}, nil},
		{"a manager does not set that of an owner", nil, permit(t, "org_a", manager), "usr_owner", event.IfMatch{},
			access.ErrTargetHoldsMore},
		{"an owner sets that of somebody with a role in another organization", nil, permit(t, "org_a", owner),
			"usr_abroad", event.IfMatch{}, nil},
		{"a manager does not, also with the same roles", nil,
			permit(t, "org_a", access.Memberships{"org_a": {access.OrgUserManager}, "org_b": {access.OrgUserManager}}),
			"usr_abroad", event.IfMatch{},
			access.ErrHasRolesElsewhere},
		{"an owner of the other organization finds nobody", nil,
			permit(t, "org_b", access.Memberships{"org_b": {access.OrgOwner}}), "usr_abroad", event.IfMatch{},
			user.ErrNotFound},
		{"an owner does not set that of somebody who may read the installation", nil, permit(t, "org_a", owner),
			"usr_viewer", event.IfMatch{}, access.ErrTargetHoldsMore},
		{"an owner does not set that of an owner of the installation", nil, permit(t, "org_a", owner), "usr_iam",
			event.IfMatch{}, access.ErrTargetHoldsMore},
		{"an owner of the installation sets everybody's", nil, permit(t, "org_a", iam), "usr_iam",
			event.IfMatch{}, nil},
		{"a permit of another organization finds nobody", nil, permit(t, "org_b", iam), "usr_a", event.IfMatch{},
			user.ErrNotFound},
		{"no permit finds nobody", nil, access.Permit{}, "usr_a", event.IfMatch{}, user.ErrNotFound},
		{"an unknown user", nil, permit(t, "org_a", iam), "usr_x", event.IfMatch{}, user.ErrNotFound},
		{"a service user has no password", nil, permit(t, "org_a", manager), "usr_robot", event.IfMatch{},
			user.ErrNotHuman},
		{"the permission is asked before the type", robotIsOwner, permit(t, "org_a", manager), "usr_robot",
			event.IfMatch{}, access.ErrTargetHoldsMore},
		{"another sequence", nil, permit(t, "org_a", manager), "usr_a", event.IfMatch{Set: true, Sequence: 1}, moved},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				c.before(t)
			}
			before := s.Fingerprint()
			_, err := user.SetPassword(t.Context(), s, hasher, c.permit, c.id, c.match, user.NewPassword{Password: "x"})
			eventtest.As(t, err, c.refusal)
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
}

// meanwhile lets something happen between the look before hashing and the command.
type meanwhile struct {
	event.Store
	happens func()
}

func (m *meanwhile) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	r, err := m.Store.Record(ctx, ref)
	m.happens()
	return r, err
}

func TestWhatHappensWhileThePasswordIsHashedCounts(t *testing.T) {
	manager := access.Memberships{"org_a": {access.OrgUserManager}}
	for _, c := range []struct {
		name    string
		fact    event.Fact[user.User]
		match   event.IfMatch
		refusal *errs.Error
	}{
		{"the user was removed", user.WasRemoved{}, event.IfMatch{}, user.ErrNotFound},
		{"the user became an owner", user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}},
			event.IfMatch{}, access.ErrTargetHoldsMore},
		{"the user moved on", user.Deactivated{}, event.IfMatch{Set: true, Sequence: 1},
			errs.New(errs.Aborted, event.SequenceMismatch, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			m := &meanwhile{Store: s, happens: func() { eventtest.Given(t, s, user.Kind, "usr_a", "", nil, c.fact) }}
			_, err := user.SetPassword(t.Context(), m, hasher, permit(t, "org_a", manager), "usr_a", c.match,
				user.NewPassword{Password: "x"})
			eventtest.As(t, err, c.refusal)
			if row, _ := s.Row(t.Context(), user.PasswordRow("usr_a")); row != nil {
				t.Error("a hash was stored")
			}
		})
	}
}

func TestAPasswordIsNotSetByACallerWhoMayNoLongerOnceItIsHashed(t *testing.T) {
	owner := access.Memberships{"org_a": {access.OrgOwner}}
	manager := access.Memberships{"org_a": {access.OrgUserManager}}
	for _, c := range []struct {
		name    string
		renewed func(*testing.T) (access.Permit, error)
		refusal *errs.Error
	}{
		{"still may", func(t *testing.T) (access.Permit, error) { return permit(t, "org_a", owner), nil }, nil},
		{"the credential has ended",
			func(*testing.T) (access.Permit, error) { return access.Permit{}, access.ErrUnauthenticated },
			access.ErrUnauthenticated},
		{"the permission is gone", func(*testing.T) (access.Permit, error) { return access.Permit{}, access.ErrDenied },
			access.ErrDenied},
		{"holds less than the user now",
			func(t *testing.T) (access.Permit, error) { return permit(t, "org_a", manager), nil },
			access.ErrTargetHoldsMore},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
			must(t, human(t, s, "usr_a", "org_a", jo))
			eventtest.Given(t, s, user.Kind, "usr_a", "", nil,
				user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}})
			before := s.Fingerprint()
			asked := 0
			p := permit(t, "org_a", owner).Renewing(func(context.Context) (access.Permit, error) {
				if asked++; s.Fingerprint() != before {
					t.Error("the command came first")
				}
				return c.renewed(t)
			})
			set := func(ctx context.Context) error {
				_, err := user.SetPassword(ctx, s, hasher, p, "usr_a", event.IfMatch{}, user.NewPassword{Password: "x"})
				return err
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := set(gone); err == nil || asked != 0 {
				t.Errorf("asked %d times before the password was hashed (%v)", asked, err)
			}
			eventtest.As(t, set(t.Context()), c.refusal)
			if wrote := s.Fingerprint() != before; asked != 1 || wrote != (c.refusal == nil) {
				t.Errorf("asked %d times, wrote: %t", asked, wrote)
			}
		})
	}
}

// An organization reads in its own log that somebody with roles there got a credential at home: once in a while for
// each kind, so that home cannot fill it.
func TestHostsReadThatACredentialWasSet(t *testing.T) {
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	for _, id := range []string{"org_b", "org_gone", "org_quiet"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	eventtest.Given(t, s, org.Kind, "org_gone", "", nil, org.WasRemoved{})
	must(t, human(t, s, "usr_a", "org_a", jo))
	owner := permit(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	set := func() {
		t.Helper()
		_, err := user.SetPassword(t.Context(), s, hasher, owner, "usr_a", event.IfMatch{},
			user.NewPassword{Password: "x"})
		must(t, err)
	}
	told := func() (facts []eventtest.Fact) {
		mark := s.Mark()
		set()
		for _, f := range s.Since(t, mark) {
			if f.Object != "usr_a" {
				facts = append(facts, f)
			}
		}
		return facts
	}
	if got := told(); got != nil {
		t.Errorf("about somebody without roles elsewhere: %v", got)
	}
	for _, id := range []string{"org_b", "org_gone", "org_unknown"} {
		eventtest.Given(t, s, user.Kind, "usr_a", "", nil,
			user.MembershipSet{Scope: id, Roles: []access.Role{access.OrgOwnerViewer}})
	}
	// a guest without roles
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.MembershipSet{Scope: "org_quiet", Stays: true})
	want := eventtest.Fact{Object: "org_b", Type: "org.guest_credential_set.v1",
		Payload: `{"userId":"usr_a","org":"org_a","event":"user.password_set.v1"}`}
	if got := told(); len(got) != 1 || got[0] != want {
		t.Errorf("told %v", got)
	}
	if got := told(); got != nil {
		t.Errorf("at once again: %v", got)
	}
}

// A code that an administrator is shown is a way to a credential, although it is no event of the user.
func TestHostsReadThatACodeWasShown(t *testing.T) {
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	eventtest.Given(t, s, org.Kind, "org_b", "org_b", nil, org.Added{Name: "b"})
	n := jo
	n.EmailVerified, n.PhoneVerified = false, false
	must(t, human(t, s, "usr_a", "org_a", n))
	owner := permit(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
	want := map[user.Contact]event.Type{user.ByEmail: "user.email_verified.v1", user.ByPhone: "user.phone_verified.v1"}
	create := func(by user.Contact) {
		t.Helper()
		_, err := user.CreateCode(t.Context(), s, s.Master, owner, "usr_a", by)
		must(t, err)
	}
	mark := s.Mark()
	for by := range want {
		create(by)
	}
	s.Then(t, mark)
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil,
		user.MembershipSet{Scope: "org_b", Roles: []access.Role{access.OrgOwnerViewer}})
	for by, leadsTo := range want {
		mark := s.Mark()
		create(by)
		s.Then(t, mark, eventtest.Fact{Object: "org_b", Type: "org.guest_credential_set.v1",
			Payload: `{"userId":"usr_a","org":"org_a","event":"` + string(leadsTo) + `"}`})
		mark = s.Mark()
		create(by)
		s.Then(t, mark)
	}
}
