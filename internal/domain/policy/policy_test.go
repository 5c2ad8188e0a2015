package policy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/syntax"
)

func TestWhereNothingIsSetTheDefaultsCount(t *testing.T) {
	want := Policy{PasswordMinLength: 8, CommonPasswordsRefused: true, PasswordsOf: People, NetworkAttempts: 5,
		NetworkWaitSeconds: 900, AccountAttempts: 50, AccountWaitSeconds: 10, SessionSeconds: 43200}
	s := Effective(Policy{}, Policy{})
	if !reflect.DeepEqual(s.Policy, want) {
		t.Errorf("got %+v", s.Policy)
	}
	if s.SessionLife() != 12*time.Hour || s.SessionIdle() != 0 || s.NetworkWait() != 15*time.Minute ||
		s.AccountWait() != 10*time.Second {
		t.Errorf("got %v, %v, %v, %v", s.SessionLife(), s.SessionIdle(), s.NetworkWait(), s.AccountWait())
	}
}

// Each value, set by the installation and by an organization in every way: what is stricter counts, and a default is
// the installation's.
func TestAnOrganizationCanAskForMoreButNotForLess(t *testing.T) {
	for _, c := range []struct {
		field                  string
		installation, org, out int64 // 0: not set
	}{
		{"PasswordMinLength", 8, 0, 8},
		{"PasswordMinLength", 0, 0, 8},
		{"PasswordMinLength", 2, 0, 2},
		{"PasswordMinLength", 0, 2, 8},
		{"PasswordMinLength", 0, 8, 8},
		{"PasswordMinLength", 8, 12, 12},
		{"PasswordMinLength", 12, 8, 12},
		{"NetworkAttempts", 10, 0, 10},
		{"NetworkAttempts", 10, 3, 3},
		{"NetworkAttempts", 3, 10, 3},
		{"NetworkAttempts", 0, 3, 3},
		{"NetworkAttempts", 0, 10, 5},
		{"NetworkWaitSeconds", 60, 0, 60},
		{"NetworkWaitSeconds", 60, 100, 100},
		{"NetworkWaitSeconds", 100, 60, 100},
		{"NetworkWaitSeconds", 0, 60, 900},
		{"NetworkWaitSeconds", 0, 3600, 3600},
		{"AccountAttempts", 100, 0, 100},
		{"AccountAttempts", 100, 20, 20},
		{"AccountAttempts", 20, 100, 20},
		{"AccountAttempts", 0, 20, 20},
		{"AccountAttempts", 0, 100, 50},
		{"AccountWaitSeconds", 1, 0, 1},
		{"AccountWaitSeconds", 1, 30, 30},
		{"AccountWaitSeconds", 30, 1, 30},
		{"AccountWaitSeconds", 0, 1, 10},
		{"AccountWaitSeconds", 0, 30, 30},
		{"SessionSeconds", 86400, 0, 86400},
		{"SessionSeconds", 86400, 300, 300},
		{"SessionSeconds", 300, 86400, 300},
		{"SessionSeconds", 0, 300, 300},
		{"SessionSeconds", 0, 86400, 43200},
		{"SessionIdleSeconds", 600, 0, 600},
		{"SessionIdleSeconds", 0, 600, 600},
		{"SessionIdleSeconds", 600, 60, 60},
		{"SessionIdleSeconds", 60, 600, 60},
		{"RememberDeviceSeconds", 0, 0, 0},
		{"RememberDeviceSeconds", 0, 600, 0},
		{"RememberDeviceSeconds", 600, 0, 600},
		{"RememberDeviceSeconds", 600, 60, 60},
		{"RememberDeviceSeconds", 60, 600, 60},
	} {
		var i, o Policy
		reflect.ValueOf(&i).Elem().FieldByName(c.field).SetInt(c.installation)
		reflect.ValueOf(&o).Elem().FieldByName(c.field).SetInt(c.org)
		if got := reflect.ValueOf(Effective(i, o).Policy).FieldByName(c.field).Int(); got != c.out {
			t.Errorf("%s of %d and %d is %d, want %d", c.field, c.installation, c.org, got, c.out)
		}
	}
	for _, field := range []string{"SecondFactorRequired", "DevicesNotRemembered"} {
		for _, c := range [][3]bool{{false, false, false}, {true, false, true}, {false, true, true},
			{true, true, true}} {
			var i, o Policy
			reflect.ValueOf(&i).Elem().FieldByName(field).SetBool(c[0])
			reflect.ValueOf(&o).Elem().FieldByName(field).SetBool(c[1])
			if got := reflect.ValueOf(Effective(i, o).Policy).FieldByName(field).Bool(); got != c[2] {
				t.Errorf("%s of %t and %t is %t", field, c[0], c[1], got)
			}
		}
	}
}

// full has another value in every field than the zero value.
func full(t *testing.T) Policy {
	t.Helper()
	var p Policy
	fill(reflect.ValueOf(&p).Elem())
	return p
}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			fill(f)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			f.Index(0).SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString(string(Everybody))
		default:
			f.SetInt(int64(i + 1))
		}
	}
}

// fieldsOf counts those of a policy.
func fieldsOf(t reflect.Type) (n int) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Type.Kind() == reflect.Struct {
			n += fieldsOf(f.Type)
		} else {
			n++
		}
	}
	return n
}

func TestHowPeopleMaySignIn(t *testing.T) {
	for _, c := range []struct {
		name      string
		policy    SignIn
		allowed   []Way
		providers string // of a and b
	}{
		{"nothing is set", SignIn{}, Ways, "ab"},
		{"passwords only", SignIn{SignInMethods: []Way{WithPassword}}, []Way{WithPassword}, ""},
		{"providers only", SignIn{SignInMethods: []Way{WithProvider}}, []Way{WithProvider}, "ab"},
		{"one provider only", SignIn{SignInMethods: []Way{WithProvider}, Providers: []string{"b"}},
			[]Way{WithProvider}, "b"},
		{"one provider and everything else", SignIn{Providers: []string{"a"}}, Ways, "a"},
		{"a provider that is of no use", SignIn{SignInMethods: []Way{WithPasskey}, Providers: []string{"a"}},
			[]Way{WithPasskey}, ""},
	} {
		for _, w := range Ways {
			if c.policy.Allows(w) != slices.Contains(c.allowed, w) {
				t.Errorf("%s: %s", c.name, w)
			}
		}
		for _, id := range []string{"a", "b"} {
			if c.policy.AllowsProvider(id) != strings.Contains(c.providers, id) {
				t.Errorf("%s: provider %s", c.name, id)
			}
		}
	}
	if s := Effective(Policy{SignIn: SignIn{SignInMethods: []Way{WithPassword}}},
		Policy{SignIn: SignIn{DefaultProvider: "a"}}); s.SignInMethods != nil || s.DefaultProvider != "a" {
		t.Errorf("how people sign in is for their organization to say, but %+v", s.SignIn)
	}
	for _, next := range []SignIn{{SignInMethods: Ways[:1]}, {Providers: []string{"a"}}, {DefaultProvider: "a"},
		{SecondFactorProviders: []string{"a"}}, {RegistersFromDefault: true}} {
		if since := (Policy{}).DiffTo(Policy{SignIn: next}).Since(); since != 3 {
			t.Errorf("%+v is known since %d", next, since)
		}
	}
	if since := (Policy{}).DiffTo(Policy{SessionSeconds: 300}).Since(); since != 0 {
		t.Errorf("the life of sessions is known since %d", since)
	}
}

func TestAChangeHoldsWhatDiffersAndNothingElse(t *testing.T) {
	p := full(t)
	for _, c := range []struct {
		name     string
		from, to Policy
		fields   int
	}{
		{"nothing", p, p, 0},
		{"everything is set", Policy{}, p, fieldsOf(reflect.TypeOf(p))},
		{"everything is taken back", p, Policy{}, fieldsOf(reflect.TypeOf(p))},
		{"one value", Policy{}, Policy{PasswordMinLength: 8}, 1},
		{"one value is taken back", Policy{SecondFactorRequired: true, SessionSeconds: 300},
			Policy{SessionSeconds: 300}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := json.Marshal(c.from.DiffTo(c.to))
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			var change Diff
			if err := json.Unmarshal(text, &fields); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &change); err != nil {
				t.Fatal(err)
			}
			got := c.from
			change.Apply(&got)
			if !reflect.DeepEqual(got, c.to) || len(fields) != c.fields {
				t.Errorf("%s leads to %+v", text, got)
			}
		})
	}
}

func TestWhichPasswordsAreTaken(t *testing.T) {
	long, common := Policy{PasswordMinLength: 8}, Policy{CommonPasswordsRefused: true} // from before there was a choice
	whose := func(p Policy, whose Whose) Policy {
		p.PasswordsOf = whose
		return p
	}
	for _, c := range []struct {
		name          string
		policy, org   Policy
		password      string
		chosen, given bool
	}{
		{"none", Policy{}, Policy{}, "", false, false},
		{"one character by default", Policy{}, Policy{}, "ŋ", false, true},
		{"seven characters by default", Policy{}, Policy{}, "kx7-uvø", false, true},
		{"eight characters by default", Policy{}, Policy{}, "kx7-uvøz", true, true},
		{"a common one by default", Policy{}, Policy{}, "iloveyou", false, true},
		{"characters count, not bytes", Policy{}, Policy{}, "éàüöñçß", false, true},
		{"too long", Policy{}, Policy{}, strings.Repeat("kx7-uvøz", 9) + "!", false, false},
		{"as long as can be", Policy{}, Policy{}, strings.Repeat("kx7-uvøz", 9), true, true},
		{"too short for a policy from before", long, Policy{}, "kx7-uvø", false, false},
		{"common for a policy from before", long, Policy{}, "iloveyou", false, true},
		{"refused by a policy from before", common, Policy{}, "Passw0rd!", false, false},
		{"short for a policy from before", common, Policy{}, "kx7-uvø", false, true},
		{"too short for an organization from before", Policy{}, long, "kx7-uvø", false, false},
		{"too short for people only", whose(long, People), Policy{}, "kx7-uvø", false, true},
		{"common for people only", whose(common, People), Policy{}, "Passw0rd!", false, true},
		{"too short for everybody", whose(long, Everybody), Policy{}, "kx7-uvø", false, false},
		{"common for everybody, by default", whose(long, Everybody), Policy{}, "Passw0rd!", false, false},
		{"the defaults for everybody", whose(Policy{}, Everybody), Policy{}, "kx7-uvø", false, false},
		{"an organization binds its administrators", whose(long, People), whose(Policy{}, Everybody),
			"kx7-uvø", false, false},
		{"an organization does not free its administrators", whose(long, Everybody), whose(Policy{}, People),
			"kx7-uvø", false, false},
		{"the installation asks for less", whose(Policy{PasswordMinLength: 3}, People), Policy{}, "kx7", true, true},
		{"an organization asks for more", whose(Policy{PasswordMinLength: 3}, People),
			whose(Policy{PasswordMinLength: 10}, People), "kx7-uvøz", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Effective(c.policy, c.org)
			for _, by := range []struct {
				who   string
				rules PasswordRules
				taken bool
			}{{"people", s.Chosen(), c.chosen}, {"administrators", s.Given(), c.given}} {
				wrong := by.rules.Violations("human.password", c.password)
				if taken := len(wrong) == 0; taken != by.taken {
					t.Errorf("of %s: got %v", by.who, wrong)
				}
				for _, w := range wrong {
					if w.Field != "human.password" || w.Message == "" ||
						c.password != "" && strings.Contains(w.Message, c.password) {
						t.Errorf("of %s: got %+v", by.who, w)
					}
				}
			}
		})
	}
}

func TestPasswordsThatAreGuessedFirst(t *testing.T) {
	for _, p := range []string{
		"password", "PASSWORD", "Password1", "Password123!", "p@ssw0rd", "P@$$w0rd2024", "ｐａｓｓｗｏｒｄ", "123456",
		"123456789", "987654321", "111111", "qwerty", "qwertyuiop", "QWERTY123",
		"1q2w3e4r", "1qaz2wsx", "zaq12wsx", "asdfghjkl", "abc123", "abcdefgh", "letmein", "welcome1", "We1come!",
		"admin", "admin@123", "adminadmin", "iloveyou", "monkey12", "Summer2025!", "Winter24",
		"liverpool1", "Michael1987", "dragon", "trustno1", "München2023", "MÜNCHEN", "contraseña1", "01011990",
		"1990-01-01", "31.12.85", "aaaaaaaa", "zzz", "x", "123123", "123321", "qweasdzxc", "654321", "00000000",
		"secret", "changeme",
		"4dm1n", "testtest", "hunter2", "passwordpassword",
	} {
		if !Common(p) {
			t.Errorf("%q is not common", p)
		}
	}
	for _, p := range []string{
		"", "vq7-kettle-brume", "correct donkey battery", "Ahk3ooj8Oa", "blåbærgrød er rødt", "tr0ub4dor&3x",
		"passwordless entry", "kept-4-monkeys", "93847501", "20251340", "aaaaaaab", "my dog is called frida",
	} {
		if Common(p) {
			t.Errorf("%q is common", p)
		}
	}
}

func TestTheListOfWordsIsInOrder(t *testing.T) {
	list := strings.Split(strings.TrimSuffix(words, "\n"), "\n")
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Error("it is not sorted, or says something twice")
	}
	for _, w := range list {
		if w == "" || syntax.NameKey(w) != w {
			t.Errorf("%q is not in the form that is looked for", w)
		}
	}
	// All of them with all endings are what is refused.
	if n := len(list) * (len(endings()) + 1); n < 10_000 {
		t.Errorf("only %d passwords are known", n)
	}
}

func BenchmarkCommon(b *testing.B) {
	for b.Loop() {
		Common("vq7-kettle-brume")
	}
}
