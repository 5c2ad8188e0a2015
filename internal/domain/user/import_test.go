package user_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

const joHash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"

// crowd is n people with names that begin alike.
func crowd(n int, prefix string) (people user.Import) {
	for i := range n {
		one := user.Imported{NewHuman: jo}
		one.UserName = fmt.Sprint(prefix, i)
		people = append(people, one)
	}
	return people
}

func TestAnImportedPersonIsOneFactAndTheHashIsBesideIt(t *testing.T) {
	const facts = `{"userName":"Jo","profile":{"firstName":"Jo","lastName":"Doe","nickName":"J","displayName":"Jo D.",` +
		`"preferredLanguage":"de-CH","gender":"diverse"},"email":"Jo@Example.org",` +
		`"phone":"+41-44-555(01)23;ext=7","phoneNormal":"+41445550123"}`
	for _, c := range []struct {
		name    string
		person  user.Imported
		payload string
		want    user.Password
	}{
		{"without a password", user.Imported{NewHuman: jo, ChangeRequired: true},
			`{"emailVerified":true,` + vouched + `,"phoneVerified":true}`, user.Password{}},
		{"with a hash", user.Imported{NewHuman: jo, PasswordHash: joHash},
			`{"emailVerified":true,` + vouched + `,"phoneVerified":true,"password":true}`, user.Password{Version: 1}},
		{"with a hash that has to be replaced", user.Imported{NewHuman: jo, PasswordHash: joHash, ChangeRequired: true},
			`{"emailVerified":true,` + vouched + `,"phoneVerified":true,"password":true,"changeRequired":true}`,
			user.Password{Version: 1, ChangeRequired: true}},
	} {
		for name, run := range map[string]func(user.Import, context.Context, event.Store, access.Permit,
			event.Once) ([]user.Added, error){
			"together": user.Import.Together, "each": user.Import.Each,
		} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				s := place(t)
				mark := s.Mark()
				added, err := run(user.Import{c.person}, t.Context(), s, permit(t, "org_a", manager), event.Once{})
				must(t, err)
				s.Then(t, mark,
					eventtest.Fact{Object: added[0].ID, Type: "user.human_imported.v1", Payload: c.payload,
						Personal: facts})
				u := eventtest.State(t, s, user.Kind, added[0].ID)
				if u.Data.Password != c.want || added[0].Details != u.Details() {
					t.Errorf("%+v, %+v", u, added[0].Details)
				}
				row, err := s.Row(t.Context(), user.PasswordRow(u.ID))
				must(t, err)
				if (row != nil) != (c.person.PasswordHash != "") || row != nil && string(row.Value) != joHash {
					t.Errorf("the hash: %v", row)
				}
			})
		}
	}
}

func TestWhatIsWrongWithAnImportedPerson(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *user.Imported)
		want   []string
	}{
		{"nothing", func(*user.Imported) {}, nil},
		{"no phone and no hash", func(p *user.Imported) { p.Phone, p.PasswordHash = "", "" }, nil},
		{"an address that is none", func(p *user.Imported) { p.Email = "Jo <jo@example.org>" },
			[]string{"email.address"}},
		{"a number that is none", func(p *user.Imported) { p.Phone = "044" }, []string{"phone.number"}},
		{"a password instead of a hash", func(p *user.Imported) { p.PasswordHash = "opensesame" },
			[]string{"passwordHash"}},
		{"a hash that takes hours", func(p *user.Imported) { p.PasswordHash = "$2b$31" + joHash[6:] },
			[]string{"passwordHash"}},
		{"everything", func(p *user.Imported) { p.Email, p.Phone, p.PasswordHash = "jo", "044", "opensesame" },
			[]string{"email.address", "phone.number", "passwordHash"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := user.Imported{NewHuman: jo, PasswordHash: joHash}
			c.change(&p)
			var got []string
			for _, v := range p.Violations() {
				got = append(got, v.Field)
				if strings.Contains(v.Message, "opensesame") || strings.Contains(v.Message, joHash[6:]) {
					t.Errorf("it quotes the hash: %s", v.Message)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAHashTakesThePermissionToSetPasswords(t *testing.T) {
	s := place(t)
	settings := access.Memberships{"org_a": {access.OrgSettingsManager}}
	p, err := (&access.Caller{UserID: "usr_admin", Memberships: settings}).In("org_a", access.IDPWrite)
	must(t, err)
	people := crowd(3, "a")
	people[2].PasswordHash = joHash
	_, err = people.Together(t.Context(), s, p, event.Once{})
	eventtest.As(t, err, access.ErrDenied)
	_, err = people.Each(t.Context(), s, p, event.Once{})
	eventtest.As(t, err, access.ErrDenied)
	_, err = people[:2].Each(t.Context(), s, p, event.Once{})
	must(t, err)
}

func TestNobodyIsImportedIntoAnOrganizationThatIsGone(t *testing.T) {
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind)
	_, err := crowd(1, "a").Together(t.Context(), s, permit(t, "org_a", manager), event.Once{})
	eventtest.As(t, err, org.ErrNotFound)
	_, err = crowd(1, "a").Each(t.Context(), s, permit(t, "org_a", manager), event.Once{})
	eventtest.As(t, err, org.ErrNotFound)
}

// TestAnImportThatIsCutOffGoesOn: what was done under a key is not done again, and the rest is.
func TestAnImportThatIsCutOffGoesOn(t *testing.T) {
	s := place(t)
	once := event.Once{Key: "k", Request: []byte("r"), Expires: 1 << 60}
	people := crowd(250, "a")
	people[120].UserName = people[10].UserName
	away := errors.New("away")
	limited := &limitedStore{Store: s, left: 2, failure: away}
	if _, err := people.Each(t.Context(), limited, permit(t, "org_a", manager), once); !errors.Is(err, away) {
		t.Fatal(err)
	}
	if n := s.Mark(); n > 300 {
		t.Fatalf("%d events: it was not cut off", n)
	}
	added, err := people.Each(t.Context(), s, permit(t, "org_a", manager), once)
	must(t, err)
	mark := s.Mark()
	again, err := people.Each(t.Context(), s, permit(t, "org_a", manager), once)
	must(t, err)
	if s.Mark() != mark {
		t.Error("the repetition has written something")
	}
	seen := map[string]bool{}
	for i, a := range added {
		if a != again[i] || seen[a.ID] || (a.ID == "") != (i == 120) {
			t.Errorf("%d: %+v, then %+v", i, a, again[i])
		}
		seen[a.ID] = true
		if a.ID != "" && eventtest.State(t, s, user.Kind, a.ID).Data.UserName != people[i].UserName {
			t.Errorf("%d is somebody else", i)
		}
	}
}

// TestAnImportStopsWhenTheCallerMayNoLonger: a long import asks again before every part.
func TestAnImportStopsWhenTheCallerMayNoLonger(t *testing.T) {
	s := place(t)
	asked := 0
	p := permit(t, "org_a", manager)
	p = p.Renewing(func(context.Context) (access.Permit, error) {
		if asked++; asked == 2 {
			return access.Permit{}, access.ErrDenied
		}
		return permit(t, "org_a", manager), nil
	})
	before := s.Mark()
	_, err := crowd(350, "a").Each(t.Context(), s, p, event.Once{})
	eventtest.As(t, err, access.ErrDenied)
	if n := len(s.Since(t, before)); n != 200 {
		t.Errorf("%d were imported", n)
	}
}

// limitedStore fails after some commands.
type limitedStore struct {
	event.Store
	left    int
	failure error
}

func (s *limitedStore) Do(ctx context.Context, c event.Command) error {
	if s.left--; s.left < 0 {
		return s.failure
	}
	return s.Store.Do(ctx, c)
}

func TestAnApplicationSetsPasswordsOnlyWithTheirScope(t *testing.T) {
	with := func(scopes ...string) access.Permit {
		p, err := (&access.Caller{UserID: "usr_admin", Memberships: manager, Scopes: scopes}).In("org_a",
			access.UserWrite)
		must(t, err)
		return p
	}
	people := crowd(3, "a")
	people[2].PasswordHash = joHash
	for _, c := range []struct {
		permit  access.Permit
		refusal *errs.Error
	}{{with("signet.write", "signet.credentials", "signet.contacts"), access.ErrDenied},
		{with("signet.write", "signet.passwords"), nil}} {
		s := place(t)
		_, err := people.Each(t.Context(), s, c.permit, event.Once{})
		eventtest.As(t, err, c.refusal)
		_, err = user.CreateHuman{NewHuman: jo, Password: "x"}.Do(t.Context(), s, hasher, c.permit, event.Once{})
		eventtest.As(t, err, c.refusal)
	}
	_, err := user.CreateHuman{NewHuman: jo}.Do(t.Context(), place(t), hasher, with("signet.write"), event.Once{})
	must(t, err)
}

func TestATriedImportCreatesNobody(t *testing.T) {
	s := place(t)
	p := permit(t, "org_a", manager)
	_, err := crowd(1, "a").Together(t.Context(), s, p, event.Once{})
	must(t, err)
	mark := s.Mark()
	people := append(crowd(1, "a"), crowd(2, "b")...)
	tried, err := people.Try(t.Context(), s, p, false)
	must(t, err)
	if len(tried) != 3 || tried[0].ID != "" || tried[1].ID == "" || tried[2].ID == "" {
		t.Errorf("got %+v", tried)
	}
	_, err = people.Try(t.Context(), s, p, true)
	eventtest.Refused(t, err, errs.AlreadyExists, user.UserNameTaken)
	_, err = people.Try(t.Context(), s, permit(t, "org_gone", access.Memberships{"org_gone": {access.OrgOwner}}), false)
	eventtest.As(t, err, org.ErrNotFound)
	s.Then(t, mark)
}
