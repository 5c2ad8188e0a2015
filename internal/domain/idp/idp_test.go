package idp_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	general = idp.General{Name: "Corp", NameKey: "corp", Styling: idp.Google, AutoRegister: true}
	jwt     = idp.JWT{Endpoint: "https://corp.example/jwt", Issuer: "corp", KeysEndpoint: "https://corp.example/keys",
		HeaderName: "x-corp", Audience: "us"}
	oidc = idp.OIDC{Issuer: "https://oidc.example", ClientID: "signet", HasClientSecret: true,
		Scopes: []string{"groups"}}
	ownerA   = permit("org_a")
	iamOwner = access.Memberships{access.Installation: {access.IAMOwner}}
	moved    = errs.New(errs.Aborted, event.SequenceMismatch, "")
)

// permit is that of an owner of the installation.
func permit(org string) access.Permit {
	caller := &access.Caller{UserID: "usr_iam", Memberships: iamOwner}
	p, err := caller.In(org, access.IDPWrite)
	if err != nil {
		panic(err)
	}
	return p
}

// vouchedFor is the fact that the owner of the installation answers for a provider.
func vouchedFor(id string) eventtest.Fact {
	return eventtest.Fact{Object: id, Type: "idp.vouched.v1",
		Payload: `{"by":"usr_iam","roles":{"installation":["IAM_OWNER"]}}`}
}

// world has an active, an inactive and a removed JWT provider of org_a, one of OpenID Connect with a secret, one of
// org_b, and one of an organization that is gone.
func world(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, org.Kind, idp.Kind)
	for _, id := range []string{"org_a", "org_b", "org_gone"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	eventtest.Given(t, s, org.Kind, "org_gone", "", nil, org.WasRemoved{})
	for id, owner := range map[string]string{"idp_active": "org_a", "idp_inactive": "org_a", "idp_gone": "org_a",
		"idp_foreign": "org_b", "idp_orphan": "org_gone"} {
		eventtest.Given(t, s, idp.Kind, id, owner, nil, idp.JWTAdded{General: general, JWT: jwt})
	}
	// the log takes such facts from here on
	eventtest.Given(t, s, idp.Kind, "idp_foreign", "", nil, idp.Vouched{By: "usr_b"})
	eventtest.Given(t, s, idp.Kind, "idp_inactive", "", nil, idp.Deactivated{})
	eventtest.Given(t, s, idp.Kind, "idp_gone", "", nil, idp.WasRemoved{})
	eventtest.Given(t, s, idp.Kind, "idp_oidc", "org_a", nil, idp.OIDCAdded{General: general, OIDC: oidc})
	s.GivenRow(event.Row{RowKey: idp.SecretRow("idp_oidc"), Value: []byte("sealed")})
	return s
}

var must = testkit.Must

func TestTheGeneralConfigurationIsReplacedAndOnlyWhatDiffersIsRecorded(t *testing.T) {
	for _, c := range []struct {
		name    string
		to      idp.General
		payload string
	}{
		{"nothing differs: an event without content", general, `{}`},
		{"another name", idp.General{Name: "Other", NameKey: "other", Styling: idp.Google, AutoRegister: true},
			`{"name":"Other","nameKey":"other"}`},
		{"another spelling", idp.General{Name: "CORP", NameKey: "corp", Styling: idp.Google, AutoRegister: true},
			`{"name":"CORP"}`},
		{"what is left out goes back to its default", idp.General{Name: "Corp", NameKey: "corp"},
			`{"styling":"","autoRegister":false}`},
		{"everything", idp.General{Name: " ", NameKey: " "},
			`{"name":" ","nameKey":" ","styling":"","autoRegister":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			s.Advance(time.Second)
			mark := s.Mark()
			d, err := idp.Replace(t.Context(), s, ownerA, "idp_active", event.IfMatch{}, c.to)
			must(t, err)
			s.Then(t, mark, eventtest.Fact{Object: "idp_active", Type: "idp.changed.v1", Payload: c.payload})
			p := eventtest.State(t, s, idp.Kind, "idp_active")
			if p.Data.General != c.to {
				t.Errorf("general %+v", p.Data.General)
			}
			if *p.Data.JWT != jwt {
				t.Errorf("the JWT configuration changed: %+v", p.Data.JWT)
			}
			if d.Sequence != 2 || d != p.Details() || d.Org != "org_a" {
				t.Errorf("details %+v", d)
			}
		})
	}
}

func TestTheJWTConfigurationIsReplacedAndOnlyWhatDiffersIsRecorded(t *testing.T) {
	for _, c := range []struct {
		name    string
		to      idp.JWT
		payload string
	}{
		{"nothing differs: an event without content", jwt, `{}`},
		{"a header name left out is empty afterwards",
			idp.JWT{Endpoint: jwt.Endpoint, Issuer: jwt.Issuer, KeysEndpoint: jwt.KeysEndpoint}, `{"headerName":""}`},
		{"everything, stored as sent", idp.JWT{Endpoint: "a", Issuer: "b ", KeysEndpoint: "FTP://c", HeaderName: "D"},
			`{"endpoint":"a","issuer":"b ","keysEndpoint":"FTP://c","headerName":"D"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := world(t)
			mark := s.Mark()
			d, err := idp.ReplaceJWT(t.Context(), s, ownerA, "idp_active", event.IfMatch{}, c.to)
			must(t, err)
			// Nobody has answered for it before, so that whoever sends the same values does.
			s.Then(t, mark, eventtest.Fact{Object: "idp_active", Type: "idp.jwt_changed.v1", Payload: c.payload},
				vouchedFor("idp_active"))
			p := eventtest.State(t, s, idp.Kind, "idp_active")
			to := c.to
			to.Audience = "us" // the request has no field for it
			if *p.Data.JWT != to {
				t.Errorf("JWT %+v", p.Data.JWT)
			}
			if p.Data.General != general {
				t.Errorf("the general configuration changed: %+v", p.Data.General)
			}
			if d.Sequence != 3 || d != p.Details() {
				t.Errorf("details %+v", d)
			}
		})
	}
}

func TestWhichProvidersCanBeChanged(t *testing.T) {
	for _, c := range []struct {
		name              string
		permit            access.Permit
		id                string
		match             event.IfMatch
		general, ofTheJWT *errs.Error
	}{
		{"an active one", ownerA, "idp_active", event.IfMatch{}, nil, nil},
		{"an inactive one", ownerA, "idp_inactive", event.IfMatch{}, nil, nil},
		{"not a removed one", ownerA, "idp_gone", event.IfMatch{}, idp.ErrNotFound, idp.ErrNotFound},
		{"not one of another organization", ownerA, "idp_foreign", event.IfMatch{}, idp.ErrNotFound, idp.ErrNotFound},
		{"not an unknown one", ownerA, "idp_x", event.IfMatch{}, idp.ErrNotFound, idp.ErrNotFound},
		{"not without a permit", access.Permit{}, "idp_active", event.IfMatch{}, idp.ErrNotFound, idp.ErrNotFound},
		{"one of another type has a general configuration only", ownerA, "idp_oidc", event.IfMatch{}, nil,
			idp.ErrNotJWT},
		{"the wrong type comes before the wrong sequence", ownerA, "idp_oidc", event.IfMatch{Set: true, Sequence: 9},
			moved, idp.ErrNotJWT},
		{"not at another sequence", ownerA, "idp_active", event.IfMatch{Set: true, Sequence: 2}, moved, moved},
		{"at the sequence last seen", ownerA, "idp_inactive", event.IfMatch{Set: true, Sequence: 2}, nil, nil},
	} {
		for what, refusal := range map[string]*errs.Error{"general": c.general, "jwt": c.ofTheJWT} {
			t.Run(c.name+"/"+what, func(t *testing.T) {
				s := world(t)
				before := s.Fingerprint()
				var err error
				if what == "general" {
					_, err = idp.Replace(t.Context(), s, c.permit, c.id, c.match, general)
				} else {
					_, err = idp.ReplaceJWT(t.Context(), s, c.permit, c.id, c.match, jwt)
				}
				eventtest.As(t, err, refusal)
				if wrote := s.Fingerprint() != before; wrote != (refusal == nil) {
					t.Errorf("wrote: %t", wrote)
				}
			})
		}
	}
}

func TestAChangeNeverChangesTheState(t *testing.T) {
	s := world(t)
	_, err := idp.Replace(t.Context(), s, ownerA, "idp_inactive", event.IfMatch{}, general)
	must(t, err)
	_, err = idp.ReplaceJWT(t.Context(), s, ownerA, "idp_inactive", event.IfMatch{}, jwt)
	must(t, err)
	if got := eventtest.State(t, s, idp.Kind, "idp_inactive").Data.State; got != idp.Inactive {
		t.Errorf("it became %s", got)
	}
}

func TestThePermissionForAnUpdateByIdIsThatOfTheOwner(t *testing.T) {
	settings := []access.Role{access.OrgSettingsManager}
	callers := map[string]*access.Caller{
		"the owner's administrator": {OrgID: "org_a", Memberships: access.Memberships{"org_a": settings}},
		"another administrator":     {OrgID: "org_b", Memberships: access.Memberships{"org_b": settings}},
		"a guest administrator":     {OrgID: "org_b", Memberships: access.Memberships{"org_a": settings}},
		"the installation's owner": {OrgID: "org_b",
			Memberships: access.Memberships{access.Installation: {access.IAMOwner}}},
		"the installation's viewer": {OrgID: "org_b",
			Memberships: access.Memberships{access.Installation: {access.IAMOwnerViewer}}},
		"the organization manager": {OrgID: "org_b",
			Memberships: access.Memberships{access.Installation: {access.IAMOrgManager}}},
		"the owner's user manager": {OrgID: "org_a",
			Memberships: access.Memberships{"org_a": {access.OrgUserManager}}},
		"somebody without any rights": {OrgID: "org_a"},
		"a member of what is gone":    {OrgID: "org_a", Memberships: access.Memberships{"org_gone": settings}},
	}
	for _, c := range []struct {
		caller, id, named string
		refusal           *errs.Error
	}{
		{"the owner's administrator", "idp_active", "", nil},
		{"the owner's administrator", "idp_active", "org_a", nil},
		{"the owner's administrator", "idp_active", "org_b", idp.ErrNotFound},
		{"the owner's administrator", "idp_foreign", "", access.ErrDenied},
		{"the owner's administrator", "idp_foreign", "org_a", access.ErrDenied},
		{"the owner's administrator", "idp_x", "", idp.ErrNotFound},
		{"the owner's administrator", "idp_gone", "", idp.ErrNotFound},
		{"the owner's administrator", "idp_orphan", "", idp.ErrNotFound},
		{"another administrator", "idp_active", "", access.ErrDenied},
		{"another administrator", "idp_active", "org_a", access.ErrDenied},
		{"another administrator", "idp_x", "", idp.ErrNotFound},
		{"a guest administrator", "idp_active", "", nil},
		{"a guest administrator", "idp_x", "", access.ErrDenied},
		{"the installation's owner", "idp_active", "", nil},
		{"the installation's owner", "idp_foreign", "org_b", nil},
		{"the installation's owner", "idp_active", "org_b", idp.ErrNotFound},
		{"the installation's owner", "idp_x", "", idp.ErrNotFound},
		{"the installation's owner", "idp_orphan", "", idp.ErrNotFound},
		{"the installation's owner", "idp_orphan", "org_gone", idp.ErrNotFound},
		{"the installation's viewer", "idp_active", "", access.ErrDenied},
		{"the installation's viewer", "idp_x", "", access.ErrDenied},
		{"the organization manager", "idp_active", "", access.ErrDenied},
		{"the organization manager", "idp_x", "", access.ErrDenied},
		{"the owner's user manager", "idp_active", "", access.ErrDenied},
		{"the owner's user manager", "idp_x", "", access.ErrDenied},
		{"somebody without any rights", "idp_active", "", access.ErrDenied},
		{"somebody without any rights", "idp_gone", "", access.ErrDenied},
		{"a member of what is gone", "idp_orphan", "", access.ErrDenied},
		{"somebody without any rights", "' --", "", access.ErrDenied},
	} {
		t.Run(c.caller+" and "+c.id+" named "+c.named, func(t *testing.T) {
			permit, err := idp.PermitByOwner(t.Context(), world(t), callers[c.caller], c.id, c.named, time.Now())
			eventtest.As(t, err, c.refusal)
			if reaches := permit.Reaches("org_a") || permit.Reaches("org_b"); reaches != (c.refusal == nil) {
				t.Errorf("the permit reaches something: %t", reaches)
			}
		})
	}
}

func TestANewProviderIsActiveAndBelongsToThePermitsOrganization(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	added, err := idp.AddJWT(t.Context(), s, ownerA, event.Once{}, general, jwt, false)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: added.ID, Type: "idp.jwt_added.v1",
		Payload: `{"general":{"name":"Corp","nameKey":"corp","styling":"google","autoRegister":true},"jwt":{"endpoint":"https://corp.example/jwt",` +
			`"issuer":"corp","keysEndpoint":"https://corp.example/keys","headerName":"x-corp","audience":"us"}}`},
		vouchedFor(added.ID))
	p, err := idp.Get(t.Context(), s, ownerA, added.ID)
	must(t, err)
	if p.Data.State != idp.Active || p.Org != "org_a" || added.Details != p.Details() || added.Details.Sequence != 2 {
		t.Errorf("got %+v, details %+v", p, added.Details)
	}
	again, err := idp.AddJWT(t.Context(), s, ownerA, event.Once{}, general, jwt, false)
	if err != nil || again.ID == added.ID {
		t.Errorf("names need not be unique: %v", err)
	}
}

func TestAProviderNeedsAnOrganizationThatExists(t *testing.T) {
	for _, id := range []string{"org_x", "org_gone"} {
		t.Run(id, func(t *testing.T) {
			s := world(t)
			mark := s.Mark()
			_, err := idp.AddJWT(t.Context(), s, permit(id), event.Once{}, general, jwt, false)
			eventtest.As(t, err, org.ErrNotFound)
			s.Then(t, mark)
		})
	}
}

func TestAProviderIsAddedOnceUnderOneKey(t *testing.T) {
	s := world(t)
	once := event.Once{Key: "k", Request: []byte("request"), Expires: event.Micros(s.Now().Add(24 * time.Hour))}
	first, err := idp.AddJWT(t.Context(), s, ownerA, once, general, jwt, false)
	must(t, err)
	before := s.Fingerprint()
	again, err := idp.AddJWT(t.Context(), s, ownerA, once, general, jwt, false)
	if err != nil || again != first {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
	if s.Fingerprint() != before {
		t.Error("the second one wrote something")
	}
}

func TestAProviderIsReadWithinThePermitsOrganization(t *testing.T) {
	s := world(t)
	for id, refusal := range map[string]*errs.Error{"idp_active": nil, "idp_inactive": nil, "idp_oidc": nil,
		"idp_gone": idp.ErrNotFound, "idp_foreign": idp.ErrNotFound, "idp_x": idp.ErrNotFound} {
		t.Run(id, func(t *testing.T) {
			_, err := idp.Get(t.Context(), s, ownerA, id)
			eventtest.As(t, err, refusal)
		})
	}
}
