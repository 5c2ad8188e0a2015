package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// newInstallation is that of membertest.
func newInstallation(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind, app.Kind, oauth.Kind,
		webhook.Kind, project.Kind, project.GrantKind, project.AccessKind, group.Kind,
		invitation.Kind, member.OfferKind, role.Kind)
	membertest.Given(t, s)
	return s
}

var iam = access.Memberships{access.Installation: {access.IAMOwner}}

// in is the permit of somebody who holds something.
func in(t testing.TB, org string, holds access.Memberships) access.Permit {
	t.Helper()
	caller := &access.Caller{UserID: "usr_me", RequestID: "req_1", Memberships: holds}
	p, err := caller.In(org, access.OrgWrite)
	if err != nil {
		p, err = caller.In(org, access.UserWrite)
	}
	must(t, err)
	return p
}

type userChange = func(context.Context, event.Store, access.Permit, string, event.IfMatch) (event.Details, error)

var userChanges = map[string]userChange{"deactivate": lifecycle.DeactivateUser, "reactivate": lifecycle.ReactivateUser,
	"lock": lifecycle.LockUser, "unlock": lifecycle.UnlockUser, "remove": lifecycle.RemoveUser}

func TestTheLifeOfAUser(t *testing.T) {
	states := map[user.State][]event.Fact[user.User]{user.Active: nil, user.Inactive: {user.Deactivated{}},
		user.Locked: {user.WasLocked{}}}
	for _, c := range []struct {
		change string
		from   []user.State
		to     user.State
		fact   event.Type
	}{
		{"deactivate", []user.State{user.Active}, user.Inactive, "user.deactivated.v1"},
		{"reactivate", []user.State{user.Inactive}, user.Active, "user.reactivated.v1"},
		{"lock", []user.State{user.Active}, user.Locked, "user.locked.v1"},
		{"unlock", []user.State{user.Locked}, user.Active, "user.unlocked.v1"},
		{"remove", []user.State{user.Active, user.Inactive, user.Locked}, user.Removed, "user.removed.v1"},
	} {
		for state, facts := range states {
			t.Run(c.change+" from "+string(state), func(t *testing.T) {
				s := newInstallation(t)
				membertest.User(t, s, "usr_a", "org_a", nil, facts...)
				before := eventtest.State(t, s, user.Kind, "usr_a")
				mark := s.Mark()
				d, err := userChanges[c.change](t.Context(), s, in(t, "org_a", iam), "usr_a", event.IfMatch{})
				if !slices.Contains(c.from, state) {
					eventtest.Refused(t, err, errs.FailedPrecondition, lifecycle.UserWrongState)
					s.Then(t, mark)
					return
				}
				must(t, err)
				s.Then(t, mark, eventtest.Fact{Object: "usr_a", Type: c.fact, Payload: `{}`})
				u := eventtest.State(t, s, user.Kind, "usr_a")
				if u.Data.State != c.to || d != u.Details() {
					t.Errorf("state %s, details %+v", u.Data.State, d)
				}
				if ended := u.Data.SessionEpoch > before.Data.SessionEpoch &&
					u.Data.TokenEpoch > before.Data.TokenEpoch; ended != (c.to != user.Active) {
					t.Errorf("sessions and tokens have ended: %t", ended)
				}
			})
		}
	}
}

func TestWhoMayChangeTheLifeOfAUser(t *testing.T) {
	manager := access.Memberships{"org_a": {access.OrgUserManager}}
	for name, change := range userChanges {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_boss", "org_a", access.Memberships{"org_a": {access.OrgOwner}})
			membertest.User(t, s, "usr_guest", "org_a", access.Memberships{"org_b": {access.OrgOwnerViewer}})
			membertest.User(t, s, "usr_b", "org_b", nil)
			membertest.User(t, s, "usr_gone", "org_a", nil, user.WasRemoved{})
			membertest.User(t, s, "usr_a", "org_a", nil)
			before := s.Fingerprint()
			guest := access.ErrHasRolesElsewhere // only an owner gives access to such an account
			if name != "reactivate" && name != "unlock" {
				guest = errs.New(errs.Aborted, event.SequenceMismatch, "") // who is past all other checks
			}
			for id, want := range map[string]*errs.Error{"usr_boss": access.ErrTargetHoldsMore, "usr_guest": guest,
				"usr_b": user.ErrNotFound, "usr_gone": user.ErrNotFound, "usr_x": user.ErrNotFound} {
				_, err := change(t.Context(), s, in(t, "org_a", manager), id, event.IfMatch{Set: true, Sequence: 99})
				eventtest.As(t, err, want)
			}
			_, err := change(t.Context(), s, in(t, "org_a", iam), "usr_a", event.IfMatch{Set: true, Sequence: 99})
			if name == "reactivate" || name == "unlock" {
				eventtest.Refused(t, err, errs.FailedPrecondition, lifecycle.UserWrongState)
			} else {
				eventtest.Refused(t, err, errs.Aborted, event.SequenceMismatch)
			}
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
}

func TestTheLastOwnerIsNeverSwitchedOff(t *testing.T) {
	for name, change := range userChanges {
		if name == "reactivate" || name == "unlock" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			permit := in(t, "org_d", iam)
			before := s.Fingerprint()
			_, err := change(t.Context(), s, permit, "usr_root", event.IfMatch{})
			eventtest.As(t, err, member.ErrLastOwner)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
			membertest.Owner(t, s, "usr_o", "org_a")
			_, err = change(t.Context(), s, permit, "usr_root", event.IfMatch{})
			must(t, err)
			owners := eventtest.State(t, s, installation.Kind, installation.ID).Data.Owners
			want := []string{"usr_root", "usr_o"}
			if name == "remove" {
				want = want[1:]
			}
			if !slices.Equal(owners, want) {
				t.Errorf("owners %v, want %v", owners, want)
			}
			_, err = change(t.Context(), s, in(t, "org_a", iam), "usr_o", event.IfMatch{})
			eventtest.As(t, err, member.ErrLastOwner)
		})
	}
}

// Who owns the own organization alone ends only by somebody with a role in the installation. Another organization that
// loses its last owner is told so.
func TestTheLastOwnerOfAnOrganizationEndsByTheInstallationOnly(t *testing.T) {
	both := access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwner}}
	for name, change := range userChanges {
		if name == "reactivate" || name == "unlock" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_a", "org_a", both)
			before := s.Fingerprint()
			_, err := change(t.Context(), s, in(t, "org_a", both), "usr_a", event.IfMatch{})
			eventtest.As(t, err, member.ErrLastOrgOwner)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
			membertest.User(t, s, "usr_b", "org_a", access.Memberships{"org_a": {access.OrgOwner}})
			membertest.User(t, s, "usr_c", "org_a", access.Memberships{"org_b": {access.OrgOwner}})
			home := access.Memberships{"org_a": {access.OrgOwner}} // nothing is asked of what they hold elsewhere
			lost := func(id string, as access.Memberships) (told []string) {
				t.Helper()
				mark := s.Mark()
				_, err := change(t.Context(), s, in(t, "org_a", as), id, event.IfMatch{})
				must(t, err)
				for _, f := range s.Since(t, mark) {
					if string(f.Type) == "org.owner_lost.v1" {
						if f.Payload != fmt.Sprintf(`{"userId":%q,"org":"org_a"}`, id) {
							t.Errorf("told %s", f.Payload)
						}
						told = append(told, f.Object)
					}
				}
				return told
			}
			if told := lost("usr_a", home); told != nil {
				t.Errorf("each has another owner, and %v were told", told)
			}
			if told := lost("usr_c", home); !slices.Equal(told, []string{"org_b"}) {
				t.Errorf("told were %v", told)
			}
			if told := lost("usr_b", iam); !slices.Equal(told, []string{"org_a"}) {
				t.Errorf("told were %v", told)
			}
			ids, err := member.Ownerless(t.Context(), s, both)
			if must(t, err); !slices.Equal(ids, []string{"org_a", "org_b"}) {
				t.Errorf("without an owner: %v", ids)
			}
		})
	}
}

func TestARemovedUserLeavesNothingSecret(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", access.Memberships{"org_a": {access.OrgOwner}, "org_b": {access.OrgOwner}})
	s.GivenRow(event.Row{RowKey: user.PasswordRow("usr_a"), Value: []byte("hash")})
	for _, kind := range []secret.TokenKind{secret.Session, secret.PAT, secret.Access} {
		for i := range 150 {
			_, hash := secret.NewToken(kind)
			s.GivenToken(event.Token{ID: fmt.Sprint(kind, i), Hash: hash, UserID: "usr_a", Kind: string(kind),
				Name: "jo's telephone", Expires: event.Micros(s.Now()) + 1e9})
		}
	}
	for _, row := range user.SecretRows("usr_a") {
		s.GivenRow(event.Row{RowKey: row, Value: []byte("something")})
	}
	_, err := lifecycle.RemoveUser(t.Context(), s, in(t, "org_a", iam), "usr_a", event.IfMatch{})
	must(t, err)
	gone(t, s, "usr_a")
	membertest.User(t, s, "usr_2", "org_a", nil) // the world works on
	if holder, err := s.Holder(t.Context(), user.NameClaim("org_a", "usr_a")); err != nil || holder != "" {
		t.Errorf("the name belongs to %q, %v", holder, err)
	}
	for _, scope := range []string{"org_a", "org_b"} {
		if members, _, err := user.Kind.List(t.Context(), s,
			event.Query{Group: user.MembersOf(scope), Limit: 10}); err != nil || len(members) > 0 {
			t.Errorf("members of %s: %v, %v", scope, members, err)
		}
	}
}

// gone demands that a user is removed and has neither password nor tokens.
func gone(t *testing.T, r event.Reader, id string) {
	t.Helper()
	u, err := user.Kind.Read(t.Context(), r, id)
	must(t, err)
	if u == nil || u.Data.State != user.Removed || len(u.Data.Memberships) > 0 {
		t.Errorf("%s is still there: %+v", id, u)
	}
	if row, err := r.Row(t.Context(), user.PasswordRow(id)); err != nil || row != nil {
		t.Errorf("%s has a password: %v", id, err)
	}
	for _, row := range user.SecretRows(id) {
		if kept, err := r.Row(t.Context(), row); err != nil || kept != nil {
			t.Errorf("%s has %s: %v", id, row.Key, err)
		}
	}
	for _, kind := range []secret.TokenKind{secret.Session, secret.PAT, secret.Access} {
		if tokens, err := r.TokensOf(t.Context(), id, string(kind), "", 10); err != nil || len(tokens) > 0 {
			t.Errorf("%s has tokens: %v, %v", id, tokens, err)
		}
	}
}

type orgChange = func(context.Context, event.Store, access.Permit, event.IfMatch) (event.Details, error)

var orgChanges = map[string]orgChange{
	"deactivate": lifecycle.DeactivateOrganization,
	"reactivate": lifecycle.ReactivateOrganization,
	"remove":     lifecycle.RemoveOrganization,
}

func TestTheLifeOfAnOrganization(t *testing.T) {
	states := map[org.State][]event.Fact[org.Org]{org.Active: nil, org.Inactive: {org.Deactivated{}},
		org.Removed: {org.WasRemoved{}}}
	for _, c := range []struct {
		change string
		from   []org.State
		to     org.State
		fact   event.Type
	}{
		{"deactivate", []org.State{org.Active}, org.Inactive, "org.deactivated.v1"},
		{"reactivate", []org.State{org.Inactive}, org.Active, "org.reactivated.v1"},
		{"remove", []org.State{org.Active, org.Inactive}, org.Removed, "org.removed.v1"},
	} {
		for state, facts := range states {
			t.Run(c.change+" from "+string(state), func(t *testing.T) {
				s := newInstallation(t)
				if facts != nil {
					eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, facts...)
				}
				mark, sequence := s.Mark(), eventtest.State(t, s, org.Kind, "org_a").Sequence
				permit := in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}})
				_, mismatch := orgChanges[c.change](t.Context(), s, permit, event.IfMatch{Set: true, Sequence: 99})
				d, err := orgChanges[c.change](t.Context(), s, permit, event.IfMatch{Set: true, Sequence: sequence})
				switch {
				case state == org.Removed:
					eventtest.As(t, err, org.ErrNotFound)
					s.Then(t, mark)
				case !slices.Contains(c.from, state):
					eventtest.Refused(t, err, errs.FailedPrecondition, lifecycle.OrganizationWrongState)
					if !strings.Contains(err.Error(), strings.ToUpper(string(state))) {
						t.Errorf("the refusal does not say the state: %v", err)
					}
					s.Then(t, mark)
				default:
					must(t, err)
					eventtest.Refused(t, mismatch, errs.Aborted, event.SequenceMismatch)
					s.Then(t, mark, eventtest.Fact{Object: "org_a", Type: c.fact, Payload: `{}`})
					if o := eventtest.State(t, s, org.Kind, "org_a"); o.Data.State != c.to || d != o.Details() {
						t.Errorf("state %s, details %+v", o.Data.State, d)
					}
				}
			})
		}
	}
}

func TestWhoMayEndAnOrganization(t *testing.T) {
	ownerOfA := access.Memberships{"org_a": {access.OrgOwner}}
	manager := access.Memberships{access.Installation: {access.IAMOrgManager}}
	for _, name := range []string{"deactivate", "remove"} {
		for _, c := range []struct {
			name  string
			org   string
			me    access.Memberships
			given func(t *testing.T, s *eventtest.Store)
			want  *errs.Error
		}{
			{"its owner", "org_a", ownerOfA, nil, nil},
			{"its owner, while somebody elsewhere holds more", "org_a", ownerOfA,
				func(t *testing.T, s *eventtest.Store) { membertest.Owner(t, s, "usr_o", "org_b") }, nil},
			{"its owner, while a user in it holds more in the installation", "org_a", ownerOfA,
				func(t *testing.T, s *eventtest.Store) { membertest.Owner(t, s, "usr_o", "org_a") },
				access.ErrTargetHoldsMore},
			{"its owner, while a user in it sees more", "org_a", ownerOfA, func(t *testing.T, s *eventtest.Store) {
				membertest.User(t, s, "usr_o", "org_a",
					access.Memberships{access.Installation: {access.IAMOwnerViewer}})
			}, access.ErrTargetHoldsMore},
			{"its owner, while a user in it holds more elsewhere", "org_a", ownerOfA,
				func(t *testing.T, s *eventtest.Store) {
					membertest.User(t, s, "usr_o", "org_a", access.Memberships{"org_b": {access.OrgOwner}})
				}, nil},
			{"a manager, while its like is in it", "org_a", manager,
				func(t *testing.T, s *eventtest.Store) { membertest.User(t, s, "usr_o", "org_a", manager) }, nil},
			{"an owner of the installation", "org_a", iam,
				func(t *testing.T, s *eventtest.Store) { membertest.Owner(t, s, "usr_o", "org_a") }, nil},
			{"the default organization", "org_d", iam,
				func(t *testing.T, s *eventtest.Store) { membertest.Owner(t, s, "usr_o", "org_a") },
				lifecycle.ErrDefaultOrganization},
			{"the default organization by its owner", "org_d", access.Memberships{"org_d": {access.OrgOwner}}, nil,
				access.ErrTargetHoldsMore},
			{"the organization of the last owners who can act", "org_a", iam, func(t *testing.T, s *eventtest.Store) {
				membertest.Owner(t, s, "usr_o", "org_a")
				membertest.Owner(t, s, "usr_p", "org_a")
				eventtest.Given(t, s, user.Kind, "usr_root", "org_d", nil, user.WasLocked{})
			}, member.ErrLastOwner},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s := newInstallation(t)
				if c.given != nil {
					c.given(t, s)
				}
				before := s.Fingerprint()
				_, err := orgChanges[name](t.Context(), s, in(t, c.org, c.me), event.IfMatch{})
				eventtest.As(t, err, c.want)
				if changed := s.Fingerprint() != before; changed != (c.want == nil) {
					t.Errorf("something was written: %t", changed)
				}
			})
		}
	}
	s := newInstallation(t)
	_, err := lifecycle.RemoveOrganization(t.Context(), s, access.Permit{}, event.IfMatch{})
	eventtest.As(t, err, access.ErrDenied)
}

// meddling does something behind a command's back, once: after it was made and before it runs.
type meddling struct {
	event.Store
	between func()
}

func (m *meddling) Do(ctx context.Context, c event.Command) error {
	if between := m.between; between != nil {
		m.between = nil
		between()
	}
	return m.Store.Do(ctx, c)
}

func TestWhatIsGrantedWhileAnOrganizationEndsCounts(t *testing.T) {
	s := newInstallation(t)
	membertest.User(t, s, "usr_a", "org_a", nil)
	m := &meddling{s, func() {
		permit, err := (&access.Caller{UserID: "usr_root", Memberships: iam}).In(access.Installation,
			access.SystemWrite)
		must(t, err)
		members, err := member.OfInstallation(permit)
		must(t, err)
		_, err = members.Set(t.Context(), s, "usr_a", event.IfMatch{}, []string{"IAM_OWNER_VIEWER"})
		must(t, err)
	}}
	_, err := lifecycle.RemoveOrganization(t.Context(), m,
		in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}}), event.IfMatch{})
	eventtest.As(t, err, access.ErrTargetHoldsMore)
}

func TestAnOwnerWhoCannotActAnyMoreIsNotRestedOn(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, s *eventtest.Store){
		"locked": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_o", "org_a", nil, user.WasLocked{})
		},
		"no owner": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, user.Kind, "usr_o", "org_a", nil, user.MembershipSet{Scope: access.Installation})
		},
		"in an inactive organization": func(t *testing.T, s *eventtest.Store) {
			eventtest.Given(t, s, org.Kind, "org_a", "org_a", nil, org.Deactivated{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.Owner(t, s, "usr_o", "org_a")
			m := &meddling{s, func() { lose(t, s) }}
			_, err := lifecycle.LockUser(t.Context(), m, in(t, "org_d", iam), "usr_root", event.IfMatch{})
			eventtest.As(t, err, member.ErrLastOwner)
		})
	}
	t.Run("somebody who became an owner meanwhile", func(t *testing.T) {
		s := newInstallation(t)
		membertest.User(t, s, "usr_a", "org_a", nil)
		m := &meddling{s, func() {
			eventtest.Given(t, s, user.Kind, "usr_a", "org_a", nil,
				user.MembershipSet{Scope: access.Installation, Roles: iam[access.Installation]})
			eventtest.Given(t, s, installation.Kind, installation.ID, "", nil, installation.OwnerAdded{UserID: "usr_a"})
		}}
		_, err := lifecycle.RemoveUser(t.Context(), m, in(t, "org_a", iam), "usr_a", event.IfMatch{})
		must(t, err)
		if owners := eventtest.State(t, s, installation.Kind, installation.ID).Data.Owners; !slices.Equal(owners,
			[]string{"usr_root"}) {
			t.Errorf("owners %v", owners)
		}
	})
}

// An organization whose people own others ends all the same. Those that are left without an owner are told once.
func TestTheEndOfAnOrganizationTellsThoseThatItsPeopleOwned(t *testing.T) {
	for name, change := range map[string]func(context.Context, event.Store, access.Permit,
		event.IfMatch) (event.Details, error){
		"deactivate": lifecycle.DeactivateOrganization, "remove": lifecycle.RemoveOrganization,
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_1", "org_a", access.Memberships{"org_b": {access.OrgOwner}})
			membertest.User(t, s, "usr_2", "org_a",
				access.Memberships{"org_b": {access.OrgOwner}, "org_a": {access.OrgOwner}})
			mark := s.Mark()
			end := func(change func(context.Context, event.Store, access.Permit,
				event.IfMatch) (event.Details, error)) (told []eventtest.Fact) {
				t.Helper()
				_, err := change(t.Context(), s, in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}}),
					event.IfMatch{})
				must(t, err)
				for _, f := range s.Since(t, mark) {
					if string(f.Type) == "org.owner_lost.v1" {
						told = append(told, f)
					}
				}
				mark = s.Mark()
				return told
			}
			want := eventtest.Fact{Object: "org_b", Type: "org.owner_lost.v1", Payload: `{"org":"org_a"}`}
			if told := end(change); len(told) != 1 || told[0] != want {
				t.Errorf("told %v", told)
			}
			if name == "deactivate" {
				if told := end(lifecycle.RemoveOrganization); told != nil {
					t.Errorf("told again: %v", told)
				}
			}
		})
		t.Run(name+", and another owner remains", func(t *testing.T) {
			s := newInstallation(t)
			membertest.User(t, s, "usr_1", "org_a",
				access.Memberships{"org_b": {access.OrgOwner}, "org_a": {access.OrgOwner}})
			membertest.User(t, s, "usr_2", "org_b", access.Memberships{"org_b": {access.OrgOwner}})
			mark := s.Mark()
			_, err := change(t.Context(), s, in(t, "org_a", access.Memberships{"org_a": {access.OrgOwner}}),
				event.IfMatch{})
			must(t, err)
			if facts := s.Since(t, mark); len(facts) != 1 {
				t.Errorf("recorded %v", facts)
			}
		})
	}
}
