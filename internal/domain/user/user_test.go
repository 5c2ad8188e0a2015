package user_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

var jo = user.NewHuman{
	UserName: "Jo", Email: "Jo@Example.org", EmailVerified: true, Phone: "+41-44-555(01)23;ext=7", PhoneVerified: true,
	Profile: user.Profile{FirstName: "Jo", LastName: "Doe", NickName: "J", DisplayName: "Jo D.",
		PreferredLanguage: "de-CH", Gender: user.Diverse},
}

// human puts a person into an organization.
func human(t *testing.T, s *eventtest.Store, id, org string, n user.NewHuman) error {
	t.Helper()
	return s.Do(t.Context(), event.Command{Write: []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim(org, strings.ToLower(n.UserName))},
		Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, id, org, &n); return err }})
}

// service puts a service user into an organization.
func service(t *testing.T, s *eventtest.Store, id, org, name string) error {
	t.Helper()
	return s.Do(t.Context(), event.Command{
		Write:  []event.Ref{user.Kind.Ref(id)},
		Claims: []event.Claim{user.NameClaim(org, strings.ToLower(name))},
		Decide: func(tx *event.Tx) error {
			_, err := user.AddService(tx, id, org, name, "Robot", "does things")
			return err
		},
	})
}

var must = testkit.Must

func TestAPersonIsRecordedAsSentWithTheKeysNextToIt(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	zoë := user.NewHuman{UserName: "ZOË", Profile: user.Profile{FirstName: "Zoë", LastName: "Ä"},
		Email: "Zoe@xn--4ca.example"}
	must(t, s.Do(t.Context(), event.Command{
		Write:  []event.Ref{user.Kind.Ref("usr_b")},
		Claims: []event.Claim{user.NameClaim("org_a", "zoë")},
		Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, "usr_b", "org_a", &zoë); return err },
	}))
	s.Then(t, 0, eventtest.Fact{
		Object:  "usr_a",
		Type:    "user.human_added.v1",
		Payload: `{"emailVerified":true,` + vouched + `,"phoneVerified":true}`,
		Personal: `{"userName":"Jo","profile":{"firstName":"Jo","lastName":"Doe","nickName":"J","displayName":"Jo D.",` +
			`"preferredLanguage":"de-CH","gender":"diverse"},"email":"Jo@Example.org","phone":"+41-44-555(01)23;ext=7","phoneNormal":"+41445550123"}`,
	}, // plain texts have plain keys
		eventtest.Fact{
			Object:  "usr_b",
			Type:    "user.human_added.v1",
			Payload: `{}`,
			Personal: `{"userName":"ZOË","userNameKey":"zoë","profile":{"firstName":"Zoë","lastName":"Ä"},` +
				`"nameKey":"zoë ä","email":"Zoe@xn--4ca.example"}`,
		})
	u := eventtest.State(t, s, user.Kind, "usr_a")
	if u.Data.State != user.Active || u.Data.Human.Phone.Number != jo.Phone || !u.Data.Human.Phone.Verified ||
		u.Data.Human.Email.Address != jo.Email {
		t.Errorf("state %+v", u.Data)
	}
}

func TestNothingPersonalIsInTheClear(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	words := []string{"the user name", "address@example.org", "+41-44-555(01)23;ext=7", "+41445550123",
		"the first name", "the last name", "the nickname", "the display name", "de-Latn-CH", "diverse"}
	must(t, human(t, s, "usr_a", "org_a", user.NewHuman{UserName: words[0], Email: words[1], Phone: words[2],
		Profile: user.Profile{FirstName: words[4], LastName: words[5], NickName: words[6], DisplayName: words[7],
			PreferredLanguage: words[8], Gender: user.Diverse}}))
	events, err := s.Events(t.Context(), 0, 10)
	must(t, err)
	for _, word := range words {
		if !s.Stored(t, word) {
			t.Errorf("%q is not recorded at all", word)
		}
		for _, e := range events {
			if strings.Contains(string(e.Payload)+string(e.Sealed), word) {
				t.Errorf("%q can be read in the log", word)
			}
		}
	}
}

func TestADisplayNameIsMadeWhereNoneIsGiven(t *testing.T) {
	long := strings.Repeat("ß", 200)
	for _, c := range []struct {
		name              string
		first, last, sent string
		want              string
	}{
		{"first name, one space, last name", "Jo", "Doe", "", "Jo Doe"},
		{"one that is given stays", "Jo", "Doe", "D.", "D."},
		{"the result may be longer than 200 characters", long, long, "", long + " " + long},
		{"nothing is trimmed", " Jo ", " Doe ", "", " Jo   Doe "},
		{"a space is a display name", "Jo", "Doe", " ", " "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventtest.New(t, user.Kind)
			n := jo
			n.Profile = user.Profile{FirstName: c.first, LastName: c.last, DisplayName: c.sent}
			must(t, human(t, s, "usr_a", "org_a", n))
			if got := eventtest.State(t, s, user.Kind, "usr_a").Data.Human.Profile.DisplayName; got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAPersonWithoutAPhoneHasNoVerifiedOne(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	n := jo
	n.Phone, n.EmailVerified = "", false
	must(t, human(t, s, "usr_a", "org_a", n))
	if got := s.Since(t, 0)[0].Payload; got != `{}` {
		t.Errorf("payload %s", got)
	}
	if u := eventtest.State(t, s, user.Kind, "usr_a"); u.Data.Human.Phone != nil {
		t.Errorf("phone %+v", u.Data.Human.Phone)
	}
}

func TestWrongAddressesAreNamedAllAtOnce(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	n := jo
	n.Email, n.Phone = "Jo <jo@example.org>", "044 555"
	eventtest.Refused(t, human(t, s, "usr_a", "org_a", n), errs.InvalidArgument, errs.InvalidRequest,
		"email.email", "phone.phone")
	s.Then(t, 0)
}

func TestUserNamesAreUniqueWithinAnOrganizationByTheirKey(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	other := jo
	other.UserName = "JO"
	eventtest.As(t, human(t, s, "usr_b", "org_a", other), user.ErrUserNameTaken)
	eventtest.As(t, service(t, s, "usr_b", "org_a", "jo"), user.ErrUserNameTaken)
	eventtest.As(t, human(t, s, "usr_c", "org_b", other), nil)

	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.WasRemoved{})
	eventtest.As(t, human(t, s, "usr_d", "org_a", other), nil)
}

func TestWhatEndsSessionsAndTokens(t *testing.T) {
	for _, c := range []struct {
		name             string
		fact             event.Fact[user.User]
		sessions, tokens int64
		state            user.State
	}{
		{"a password that was set ends both", user.PasswordSet{}, 1, 1, user.Active},
		{"one's own change of the password ends sessions only", user.PasswordChanged{}, 1, 0, user.Active},
		{"deactivating ends both", user.Deactivated{}, 1, 1, user.Inactive},
		{"locking ends both", user.WasLocked{}, 1, 1, user.Locked},
		{"removing ends both", user.WasRemoved{}, 1, 1, user.Removed},
		{"reactivating brings nothing back", user.Reactivated{}, 0, 0, user.Active},
		{"unlocking brings nothing back", user.Unlocked{}, 0, 0, user.Active},
		{"a profile ends nothing", user.ProfileChanged{}, 0, 0, user.Active},
		{"another name ends nothing", user.UserNameChanged{}, 0, 0, user.Active},
		{"another e-mail address ends nothing", user.EmailChanged{}, 0, 0, user.Active},
		{"another phone number ends nothing", user.PhoneChanged{}, 0, 0, user.Active},
		{"roles end nothing", user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}}, 0,
			0, user.Active},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := user.User{Standing: user.Standing{State: user.Active, SessionEpoch: 4, TokenEpoch: 7},
				Human: &user.Human{}}
			c.fact.Apply(&u)
			if u.SessionEpoch != 4+c.sessions || u.TokenEpoch != 7+c.tokens || u.State != c.state {
				t.Errorf("session epoch 4 -> %d, token epoch 7 -> %d, %s", u.SessionEpoch, u.TokenEpoch, u.State)
			}
		})
	}
}

func TestNothingPersonalIsLeftOfARemovedUser(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.PasswordSet{},
		user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}},
		user.EmailVerified{}, user.PhoneVerified{}, user.WasRemoved{})
	got, err := json.Marshal(eventtest.State(t, s, user.Kind, "usr_a").Data)
	must(t, err)
	if string(got) != `{"state":"removed","sessionEpoch":2,"tokenEpoch":2}` {
		t.Errorf("left: %s", got)
	}
	found, err := s.RecordsWhere(t.Context(), "user", "org_a", user.VerifiedEmail, user.EmailDigest("jo@example.org"),
		user.FirstByEmail, 2)
	if len(found) != 0 || err != nil {
		t.Errorf("the e-mail still finds %d users (%v)", len(found), err)
	}
}

func TestAUserIsReadWithinThePermitsOrganization(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	must(t, human(t, s, "usr_gone", "org_a", user.NewHuman{UserName: "gone", Email: "g@x", Profile: jo.Profile}))
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	iam := access.Memberships{access.Installation: {access.IAMOwner}}
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		refusal *errs.Error
	}{
		{"one's own organization", permit(t, "org_a", iam), "usr_a", nil},
		{"another organization", permit(t, "org_b", iam), "usr_a", user.ErrNotFound},
		{"the installation is not the owner", permit(t, access.Installation, iam), "usr_a", user.ErrNotFound},
		{"no permit", access.Permit{}, "usr_a", user.ErrNotFound},
		{"a removed user", permit(t, "org_a", iam), "usr_gone", user.ErrNotFound},
		{"an unknown id", permit(t, "org_a", iam), "usr_x", user.ErrNotFound},
		{"a malformed id", permit(t, "org_a", iam), "' OR 1=1 --", user.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := user.Get(t.Context(), s, c.permit, c.id)
			eventtest.As(t, err, c.refusal)
			if (u != nil) != (c.refusal == nil) {
				t.Errorf("got %+v", u)
			}
		})
	}
}

func TestTheCallersOwnUserIsFoundUntilItIsRemoved(t *testing.T) {
	s := eventtest.New(t, user.Kind)
	must(t, human(t, s, "usr_a", "org_a", jo))
	caller := &access.Caller{UserID: "usr_a", OrgID: "org_a"}
	u, err := user.Self(t.Context(), s, caller)
	if err != nil || u.ID != "usr_a" {
		t.Errorf("got %+v, %v", u, err)
	}
	eventtest.Given(t, s, user.Kind, "usr_a", "", nil, user.WasRemoved{})
	_, err = user.Self(t.Context(), s, caller)
	eventtest.As(t, err, user.ErrNotFound)
}
