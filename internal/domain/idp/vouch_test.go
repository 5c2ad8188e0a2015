package idp_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// by is the permit of somebody with these roles, in org_a.
func by(t *testing.T, user string, roles access.Memberships) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: user, OrgID: "org_a", Memberships: roles}).In("org_a", access.IDPWrite)
	must(t, err)
	return p
}

var (
	orgOwner    = access.Memberships{"org_a": {access.OrgOwner}}
	settings    = access.Memberships{"org_a": {access.OrgSettingsManager}}
	github      = idp.OAuth{Preset: idp.GitHubPreset, ClientID: "signet"}
	otherGitHub = idp.OAuth{AuthorizationEndpoint: "a", TokenEndpoint: "t", UserEndpoint: "u", ClientID: "c"}
)

// Whoever changes what decides about who signs in answers for the provider. Names, styles, registration and repetitions
// do not count.
func TestWhatMakesSomebodyAnswerForAProvider(t *testing.T) {
	client := func(c idp.ClientChanged) *idp.OIDCChanged { return &idp.OIDCChanged{ClientChanged: c} }
	oauth := func(c idp.ClientChanged) *idp.OAuthChanged { return &idp.OAuthChanged{ClientChanged: c} }
	for _, c := range []struct {
		name   string
		id     string
		m      idp.Modification
		counts bool
	}{
		{"name", "idp_jwt", idp.Modification{General: idp.Changed{Name: new("n")}}, false},
		{"style", "idp_jwt", idp.Modification{General: idp.Changed{Styling: new(idp.Styling(""))}}, false},
		{"registration", "idp_jwt", idp.Modification{General: idp.Changed{AutoRegister: new(false)}}, false},
		{"linking by e-mail", "idp_jwt", idp.Modification{General: idp.Changed{LinkByEmail: new(true)}}, true},
		{"linking by e-mail as it is", "idp_jwt",
			idp.Modification{General: idp.Changed{LinkByEmail: new(false)}}, false},
		{"JWT: endpoint", "idp_jwt", idp.Modification{JWT: &idp.JWTChanged{Endpoint: new("x")}}, true},
		{"JWT: issuer", "idp_jwt", idp.Modification{JWT: &idp.JWTChanged{Issuer: new("x")}}, true},
		{"JWT: keys", "idp_jwt", idp.Modification{JWT: &idp.JWTChanged{KeysEndpoint: new("x")}}, true},
		{"JWT: header", "idp_jwt", idp.Modification{JWT: &idp.JWTChanged{HeaderName: new("x")}}, true},
		{"JWT: audience", "idp_jwt", idp.Modification{JWT: &idp.JWTChanged{Audience: new("x")}}, true},
		{"JWT: all as it is", "idp_jwt",
			idp.Modification{JWT: &idp.JWTChanged{Endpoint: &jwt.Endpoint, Issuer: &jwt.Issuer,
				KeysEndpoint: &jwt.KeysEndpoint, HeaderName: &jwt.HeaderName, Audience: &jwt.Audience}}, false},
		{"OIDC: issuer", "idp_o",
			idp.Modification{OIDC: &idp.OIDCChanged{Issuer: new("https://oidc.example/other")}}, true},
		{"OIDC: client", "idp_o", idp.Modification{OIDC: client(idp.ClientChanged{ClientID: new("x")})}, true},
		{"OIDC: scopes", "idp_o", idp.Modification{OIDC: client(idp.ClientChanged{Scopes: &[]string{"x"}})}, true},
		{"OIDC: preset", "idp_o",
			idp.Modification{OIDC: client(idp.ClientChanged{Preset: new(idp.GooglePreset)})}, true},
		{"OIDC: authentication", "idp_o",
			idp.Modification{OIDC: client(idp.ClientChanged{ClientAuth: new(idp.PrivateKeyJWT)})}, true},
		{"OIDC: parameters", "idp_o",
			idp.Modification{OIDC: client(idp.ClientChanged{Parameters: &idp.Parameters{"a": "b"}})}, true},
		{"OIDC: claims", "idp_o",
			idp.Modification{OIDC: client(idp.ClientChanged{Claims: &idp.ClaimsChanged{Email: new("mail")}})}, true},
		{"OIDC: form", "idp_o", idp.Modification{OIDC: &idp.OIDCChanged{FormPost: new(true)}}, true},
		{"OIDC: tenants", "idp_google",
			idp.Modification{OIDC: &idp.OIDCChanged{Tenants: &[]string{"b.example"}}}, true},
		{"OIDC: another secret", "idp_o", idp.Modification{OIDCSecret: new("x")}, true},
		{"OIDC: the same secret, which nobody can compare", "idp_o", idp.Modification{OIDCSecret: new("old")}, true},
		{"OIDC: no secret", "idp_o", idp.Modification{OIDCSecret: new("")}, true},
		{"OIDC: no secret where there is none", "idp_google", idp.Modification{OIDCSecret: new("")}, false},
		{"OIDC: all as it is", "idp_google", idp.Modification{
			OIDC: &idp.OIDCChanged{
				Issuer:   new("https://accounts.google.com"),
				Tenants:  &[]string{"a.example"},
				FormPost: new(false),
				TeamID:   new(""),
				KeyID:    new(""),
				ClientChanged: idp.ClientChanged{
					ClientID:   new("g"),
					Scopes:     &[]string{"profile", "email"},
					Preset:     new(idp.GooglePreset),
					ClientAuth: new(idp.SecretInHeader),
					Parameters: &idp.Parameters{"a": "b"},
					Claims: &idp.ClaimsChanged{
						UserName:  new(""),
						FirstName: new(""),
						LastName:  new(""),
						NickName:  new(""),
						Email:     new(""),
						Language:  new("lang"),
					},
				},
			},
		}, false},
		{"OAuth: authorization", "idp_oauth",
			idp.Modification{OAuth: &idp.OAuthChanged{AuthorizationEndpoint: new("x")}}, true},
		{"OAuth: token", "idp_oauth", idp.Modification{OAuth: &idp.OAuthChanged{TokenEndpoint: new("x")}}, true},
		{"OAuth: user", "idp_oauth", idp.Modification{OAuth: &idp.OAuthChanged{UserEndpoint: new("x")}}, true},
		{"OAuth: addresses", "idp_oauth", idp.Modification{OAuth: &idp.OAuthChanged{EmailsEndpoint: new("x")}}, true},
		{"OAuth: subject", "idp_oauth", idp.Modification{OAuth: &idp.OAuthChanged{Subject: new("number")}}, true},
		{"OAuth: client", "idp_oauth", idp.Modification{OAuth: oauth(idp.ClientChanged{ClientID: new("x")})}, true},
		{"OAuth: claims", "idp_oauth",
			idp.Modification{OAuth: oauth(idp.ClientChanged{Claims: &idp.ClaimsChanged{NickName: new("x")}})}, true},
		{"OAuth: secret", "idp_oauth", idp.Modification{OAuthSecret: new("x")}, true},
		{"OAuth: as it is", "idp_oauth",
			idp.Modification{OAuth: &idp.OAuthChanged{TokenEndpoint: new("t"),
				ClientChanged: idp.ClientChanged{Parameters: &idp.Parameters{}, Scopes: &[]string{}}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			first := idp.Vouched{By: "usr_first", Roles: iamOwner}
			eventtest.Given(t, s, idp.Kind, "idp_jwt", "org_a", nil, idp.JWTAdded{General: general, JWT: jwt}, first)
			eventtest.Given(t, s, idp.Kind, "idp_o", "org_a", nil, idp.OIDCAdded{General: general, OIDC: oidc}, first)
			eventtest.Given(t, s, idp.Kind, "idp_google", "org_a", nil, idp.OIDCAdded{
				General: general,
				OIDC: idp.OIDC{
					Issuer:     "https://accounts.google.com",
					ClientID:   "g",
					Scopes:     []string{"profile", "email"},
					Preset:     idp.GooglePreset,
					Tenants:    []string{"a.example"},
					Parameters: idp.Parameters{"a": "b"},
					Claims:     idp.Claims{Language: "lang"},
				},
			}, first)
			eventtest.Given(t, s, idp.Kind, "idp_oauth", "org_a", nil,
				idp.OAuthAdded{General: general, OAuth: otherGitHub}, first)
			_, err := idp.Modify(t.Context(), s, s.Master, by(t, "usr_second", iamOwner), c.id, event.IfMatch{}, c.m)
			must(t, err)
			want, fields := idp.Changer{UserID: "usr_first", Roles: iamOwner, Version: 1}, 0
			if c.counts {
				want, fields = idp.Changer{UserID: "usr_second", Roles: iamOwner, Version: 2,
					Earlier: []access.Answer{{UserID: "usr_first", Roles: iamOwner}}}, 1
			}
			got := *eventtest.State(t, s, idp.Kind, c.id).Data.Changer
			want.Fields = got.Fields
			if !reflect.DeepEqual(got, want) || len(got.Fields) != fields {
				t.Errorf("%+v answers for it, want %+v", got, want)
			}
		})
	}
}

func TestTheOldUpdatesMakeSomebodyAnswerForAProviderToo(t *testing.T) {
	s := world(t)
	who := func() *idp.Changer { return eventtest.State(t, s, idp.Kind, "idp_active").Data.Changer }
	_, err := idp.Replace(t.Context(), s, ownerA, "idp_active", event.IfMatch{}, idp.General{Name: "Other"})
	must(t, err)
	if got := who(); got != nil {
		t.Errorf("another name: %+v", got)
	}
	for _, again := range []string{"where nobody does", "where somebody does"} {
		_, err = idp.ReplaceJWT(t.Context(), s, ownerA, "idp_active", event.IfMatch{}, jwt)
		must(t, err)
		if got := who(); got == nil || got.Version != 1 {
			t.Errorf("the same values again, %s: %+v", again, got)
		}
	}
	to := jwt
	to.KeysEndpoint = "https://evil.example/keys"
	_, err = idp.ReplaceJWT(t.Context(), s, by(t, "usr_s", settings), "idp_active", event.IfMatch{}, to)
	must(t, err)
	if got := who(); got == nil ||
		!reflect.DeepEqual(*got,
			idp.Changer{UserID: "usr_s", Roles: settings, Version: 2, Fields: []string{"jwt.keysEndpoint"},
				Earlier: []access.Answer{{UserID: "usr_iam", Roles: iamOwner}}}) {
		t.Errorf("other keys: %+v", got)
	}
}

func TestAProviderIsOfferedIfItIsActiveAndSomebodyAnswersForIt(t *testing.T) {
	s := world(t)
	offered := func(id string) bool { return eventtest.State(t, s, idp.Kind, id).Data.Offered() }
	if offered("idp_active") {
		t.Error("one from before is offered")
	}
	eventtest.Given(t, s, idp.Kind, "idp_active", "", nil, idp.Vouched{By: "usr_a"})
	eventtest.Given(t, s, idp.Kind, "idp_inactive", "", nil, idp.Vouched{By: "usr_a"})
	if !offered("idp_active") || offered("idp_inactive") {
		t.Errorf("active %t, inactive %t", offered("idp_active"), offered("idp_inactive"))
	}
	_, err := idp.Remove(t.Context(), s, ownerA, "idp_active", event.IfMatch{})
	must(t, err)
	if p := eventtest.State(t, s, idp.Kind, "idp_active").Data; p.Offered() || p.Changer != nil {
		t.Errorf("a removed one: %+v", p)
	}
}

func TestOnlyWhoSetsPoliciesSwitchesLinkingByEmail(t *testing.T) {
	linked := general
	linked.LinkByEmail = true
	for _, c := range []struct {
		name    string
		roles   access.Memberships
		refusal *errs.Error
	}{
		{"the settings manager", settings, idp.ErrLinkByEmail},
		{"the owner", orgOwner, nil},
		{"the installation's owner", iamOwner, nil},
		{"an owner elsewhere", access.Memberships{"org_a": {access.OrgSettingsManager}, "org_b": {access.OrgOwner}},
			idp.ErrLinkByEmail},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			permit := by(t, "usr_x", c.roles)
			eventtest.Given(t, s, idp.Kind, "idp_on", "org_a", nil, idp.JWTAdded{General: linked, JWT: jwt})
			before := s.Fingerprint()
			for what, err := range map[string]error{
				"on": second(idp.Modify(t.Context(), s, s.Master, permit, "idp_active", event.IfMatch{},
					idp.Modification{General: idp.Changed{LinkByEmail: new(true)}})),
				"off": second(idp.Modify(t.Context(), s, s.Master, permit, "idp_on", event.IfMatch{},
					idp.Modification{General: idp.Changed{LinkByEmail: new(false)}})),
				"a new JWT":  second(idp.AddJWT(t.Context(), s, permit, event.Once{}, linked, jwt, false)),
				"a new OIDC": second(idp.AddOIDC(t.Context(), s, s.Master, permit, event.Once{}, linked, oidc, "", false)),
				"a new OAuth": second(idp.AddOAuth(t.Context(), s, s.Master, permit, event.Once{}, linked,
					otherGitHub, "", false)),
				"with another": second(idp.Modify(t.Context(), s, s.Master, permit, "idp_inactive", event.IfMatch{},
					idp.Modification{General: idp.Changed{Name: new("n"), LinkByEmail: new(true)}})),
			} {
				t.Run(what, func(t *testing.T) { eventtest.As(t, err, c.refusal) })
			}
			if wrote := s.Fingerprint() != before; wrote != (c.refusal == nil) {
				t.Errorf("wrote: %t", wrote)
			}
		})
	}
	// As it is, anybody may send it; and the old update leaves it alone.
	s := world(t)
	eventtest.Given(t, s, idp.Kind, "idp_on", "org_a", nil, idp.JWTAdded{General: linked, JWT: jwt})
	_, err := idp.Modify(t.Context(), s, s.Master, by(t, "usr_x", settings), "idp_on", event.IfMatch{},
		idp.Modification{General: idp.Changed{LinkByEmail: new(true)}})
	must(t, err)
	_, err = idp.Replace(t.Context(), s, by(t, "usr_x", settings), "idp_on", event.IfMatch{}, idp.General{Name: "n"})
	must(t, err)
	if !eventtest.State(t, s, idp.Kind, "idp_on").Data.General.LinkByEmail {
		t.Error("it was switched off")
	}
}

func second[T any](_ T, err error) error { return err }

// found is a checker that finds these problems, after something else happened.
type found struct {
	problems  []idp.Problem
	meanwhile func()
	called    *int
}

func (f found) Check(context.Context, *event.Object[idp.Provider]) []idp.Problem {
	if f.called != nil {
		*f.called++
	}
	if f.meanwhile != nil {
		f.meanwhile()
	}
	return f.problems
}

func TestWhoAnswersForAProviderAfterACheck(t *testing.T) {
	warning, problem := idp.Problem{Check: "clock", Message: "m", Hint: "h", Warning: true},
		idp.Problem{Check: "issuer", Message: "m", Hint: "h"}
	for _, c := range []struct {
		name     string
		vouched  bool
		problems []idp.Problem
		adopt    bool
		passed   bool
		then     string
	}{
		{"nobody before", false, nil, false, true, "usr_iam"},
		{"nobody before, and warnings", false, []idp.Problem{warning}, false, true, "usr_iam"},
		{"nobody before, and a problem", false, []idp.Problem{warning, problem}, false, false, ""},
		{"nobody before, and a problem, whatever is asked for", false, []idp.Problem{problem}, true, false, ""},
		{"somebody before stays", true, nil, false, true, "usr_first"},
		{"somebody before is replaced where that is asked for", true, []idp.Problem{warning}, true, true, "usr_iam"},
		{"somebody before stays with a problem", true, []idp.Problem{problem}, true, false, "usr_first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			if c.vouched {
				eventtest.Given(t, s, idp.Kind, "idp_active", "", nil, idp.Vouched{By: "usr_first", Roles: orgOwner})
			}
			seen := event.IfMatch{Set: c.vouched, Sequence: eventtest.State(t, s, idp.Kind, "idp_active").Sequence}
			got, err := idp.Check(t.Context(), s, found{problems: c.problems}, ownerA, "idp_active", seen, c.adopt)
			must(t, err)
			p := eventtest.State(t, s, idp.Kind, "idp_active")
			if got.Passed != c.passed || !reflect.DeepEqual(got.Problems, c.problems) || got.Details != p.Details() {
				t.Errorf("got %+v", got)
			}
			who := ""
			if p.Data.Changer != nil {
				who = p.Data.Changer.UserID
			}
			if who != c.then {
				t.Errorf("%q answers for it", who)
			}
		})
	}
}

func TestWhichChecksAreRefused(t *testing.T) {
	renewed := func() access.Permit {
		return ownerA.Renewing(func(context.Context) (access.Permit, error) {
			return access.Permit{}, access.ErrDenied
		})
	}
	for _, c := range []struct {
		name    string
		permit  access.Permit
		id      string
		match   event.IfMatch
		none    bool
		change  bool
		called  int
		refusal *errs.Error
	}{
		{"a foreign one", ownerA, "idp_foreign", event.IfMatch{}, false, false, 0, idp.ErrNotFound},
		{"a removed one", ownerA, "idp_gone", event.IfMatch{}, false, false, 0, idp.ErrNotFound},
		{"a foreign one without a checker", ownerA, "idp_foreign", event.IfMatch{}, true, false, 0, idp.ErrNotFound},
		{"without a checker", ownerA, "idp_active", event.IfMatch{}, true, false, 0, idp.ErrNoChecker},
		{"at another sequence, before anybody is called", ownerA, "idp_active", event.IfMatch{Set: true, Sequence: 9},
			false, false, 0, moved},
		{"changed meanwhile", ownerA, "idp_active", event.IfMatch{}, false, true, 1, moved},
		{"changed meanwhile, with the sequence seen before", ownerA, "idp_active",
			event.IfMatch{Set: true, Sequence: 1}, false, true, 1, moved},
		{"the permission was taken away meanwhile", renewed(), "idp_active", event.IfMatch{}, false, false, 1,
			access.ErrDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			called := 0
			checker := idp.Checker(found{called: &called, meanwhile: func() {
				if c.change {
					eventtest.Given(t, s, idp.Kind, c.id, "", nil, idp.JWTChanged{Issuer: new("evil")})
				}
			}})
			if c.none {
				checker = nil
			}
			_, err := idp.Check(t.Context(), s, checker, c.permit, c.id, c.match, true)
			eventtest.As(t, err, c.refusal)
			if called != c.called {
				t.Errorf("called %d times", called)
			}
			if who := eventtest.State(t, s, idp.Kind, c.id).Data.Changer; who != nil && who.UserID != "usr_b" {
				t.Errorf("%+v answers for it", who)
			}
		})
	}
}

// An editor answers for what they changed and sent, and for nothing that others changed before and they did not look
// at.
func TestAnEditorAnswersForNoSettingThatTheyDidNotSee(t *testing.T) {
	const id = "idp_jwt"
	keys := "https://evil.example/keys"
	type step struct {
		name    string
		do      func(*eventtest.Store, access.Permit) error
		by      string
		as      access.Memberships
		left    map[string][]string // to be confirmed, by who changed it
		version int64
	}
	modify := func(m idp.Modification) func(*eventtest.Store, access.Permit) error {
		return func(s *eventtest.Store, p access.Permit) error {
			return second(idp.Modify(t.Context(), s, s.Master, p, id, event.IfMatch{}, m))
		}
	}
	replace := func(j idp.JWT) func(*eventtest.Store, access.Permit) error {
		return func(s *eventtest.Store, p access.Permit) error {
			return second(idp.ReplaceJWT(t.Context(), s, p, id, event.IfMatch{}, j))
		}
	}
	adopt := func(s *eventtest.Store, p access.Permit) error {
		seen := event.IfMatch{Set: true, Sequence: eventtest.State(t, s, idp.Kind, id).Sequence}
		return second(idp.Check(t.Context(), s, found{}, p, id, seen, true))
	}
	base := idp.JWT{Endpoint: jwt.Endpoint, Issuer: jwt.Issuer, KeysEndpoint: jwt.KeysEndpoint}
	turned := base
	turned.KeysEndpoint = keys
	setKeys := modify(idp.Modification{JWT: &idp.JWTChanged{KeysEndpoint: &keys}})
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"another setting", []step{
			{"less: keys", setKeys, "usr_s", settings, nil, 2},
			{"more: header", modify(idp.Modification{JWT: &idp.JWTChanged{HeaderName: new("x")}}), "usr_o", orgOwner,
				map[string][]string{"usr_s": {"jwt.keysEndpoint"}}, 3},
			{"more: name", modify(idp.Modification{General: idp.Changed{Name: new("n")}}), "usr_o", orgOwner,
				map[string][]string{"usr_s": {"jwt.keysEndpoint"}}, 3},
			{"most: issuer", modify(idp.Modification{JWT: &idp.JWTChanged{Issuer: new("x")}}), "usr_i", iamOwner,
				map[string][]string{
					"usr_s":     {"jwt.keysEndpoint"},
					"usr_first": {"jwt.jwtEndpoint"},
					"usr_o":     {"jwt.headerName"},
				}, 4},
			{"most: confirms", adopt, "usr_i", iamOwner, nil, 5},
		}},
		{"the same setting", []step{
			{"less: keys", setKeys, "usr_s", settings, nil, 2},
			{"more: keys", modify(idp.Modification{JWT: &idp.JWTChanged{KeysEndpoint: new("x")}}), "usr_o",
				orgOwner, nil, 3},
		}},
		{"the same value", []step{
			{"less: keys", setKeys, "usr_s", settings, nil, 2},
			{"more: sends them", setKeys, "usr_o", orgOwner, nil, 2},
			{"less: sends them", setKeys, "usr_s", settings, nil, 2},
		}},
		{"all settings", []step{
			{"less: keys", setKeys, "usr_s", settings, nil, 2},
			{"most: replaces all", replace(jwt), "usr_i", iamOwner, nil, 3},
		}},
		{"all settings as they are", []step{
			{"less: keys", setKeys, "usr_s", settings, nil, 2},
			{"most: replaces all", replace(turned), "usr_i", iamOwner, nil, 2},
		}},
		{"all but one that the request does not carry", []step{
			{"less: audience", modify(idp.Modification{JWT: &idp.JWTChanged{Audience: new("x")}}), "usr_s",
				settings, nil, 2},
			{"most: replaces all", replace(turned), "usr_i", iamOwner,
				map[string][]string{"usr_s": {"jwt.audience"}}, 3},
		}},
		{"somebody with as much, in turns", []step{
			{"one", setKeys, "usr_1", orgOwner, nil, 2},
			{"another", modify(idp.Modification{JWT: &idp.JWTChanged{Issuer: new("x")}}), "usr_2", orgOwner, nil, 3},
			{"one again", modify(idp.Modification{JWT: &idp.JWTChanged{Issuer: new("y")}}), "usr_1", orgOwner, nil, 4},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			eventtest.Given(t, s, idp.Kind, id, "org_a", nil, idp.JWTAdded{General: general, JWT: base},
				idp.Vouched{By: "usr_first", Roles: orgOwner})
			for _, step := range c.steps {
				must(t, step.do(s, by(t, step.by, step.as)))
				p := eventtest.State(t, s, idp.Kind, id).Data
				left := map[string][]string{}
				for _, a := range p.Unconfirmed() {
					left[a.UserID] = a.Fields
				}
				if len(left)+len(step.left) > 0 && !reflect.DeepEqual(left, step.left) ||
					p.Changer.Version != step.version {
					t.Errorf("%s: %v is to be confirmed, version %d: %+v", step.name, left,
						p.Changer.Version, p.Changer)
				}
				if least := p.Changer.All(func(roles access.Memberships) bool {
					return roles.Cover(step.as)
				}); least != (step.left == nil) {
					t.Errorf("%s: the provider's word is worth what the editor holds: %t", step.name, least)
				}
			}
		})
	}
}

// Who answers for a provider is recorded if that is new. A change by the same person is one event, and a version all
// the same.
func TestWhoAnswersIsRecordedOnce(t *testing.T) {
	s := world(t)
	eventtest.Given(t, s, idp.Kind, "idp_jwt", "org_a", nil, idp.JWTAdded{General: general, JWT: jwt},
		idp.Vouched{By: "usr_o", Roles: orgOwner})
	for _, c := range []struct {
		name, issuer, by string
		as               access.Memberships
		events           uint64
		version          int64
	}{
		{"the same person", "one", "usr_o", orgOwner, 1, 2},
		{"again", "two", "usr_o", orgOwner, 1, 3},
		{"with other roles", "three", "usr_o", iamOwner, 2, 4},
		{"somebody else", "four", "usr_other", iamOwner, 2, 5},
		{"with the same settings, which is an event too", "four", "usr_other", iamOwner, 1, 5},
	} {
		before := eventtest.State(t, s, idp.Kind, "idp_jwt").Sequence
		m := idp.Modification{JWT: &idp.JWTChanged{Issuer: &c.issuer}}
		must(t, second(idp.Modify(t.Context(), s, s.Master, by(t, c.by, c.as), "idp_jwt", event.IfMatch{}, m)))
		p := eventtest.State(t, s, idp.Kind, "idp_jwt")
		who := p.Data.Changer
		if got := uint64(p.Sequence - before); got != c.events || who.Version != c.version ||
			who.UserID != c.by && c.events > 0 {
			t.Errorf("%s: %d events, version %d, %s answers", c.name, got, who.Version, who.UserID)
		}
	}
}

func TestOnlyASeenConfigurationIsAdopted(t *testing.T) {
	s := world(t)
	eventtest.Given(t, s, idp.Kind, "idp_active", "", nil, idp.Vouched{By: "usr_first", Roles: settings})
	adopt := func(p access.Permit, match event.IfMatch) error {
		return second(idp.Check(t.Context(), s, found{}, p, "idp_active", match, true))
	}
	eventtest.As(t, adopt(ownerA, event.IfMatch{}), idp.ErrUnseen)
	eventtest.As(t, adopt(ownerA, event.IfMatch{Set: true, Sequence: 1}), moved)
	must(t, adopt(ownerA, event.IfMatch{Set: true, Sequence: 2}))
	must(t, adopt(ownerA, event.IfMatch{})) // it is the caller's own word
}
