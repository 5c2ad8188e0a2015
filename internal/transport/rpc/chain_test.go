package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	profile = &signetv1.UpdateMyProfileRequest{FirstName: "Ada", LastName: "King", DisplayName: "Ada King"}

	getMe   = ask{"UserService/GetMyUser", "GET", "/v1/users/me", &signetv1.GetMyUserRequest{}, nil}
	getUser = ask{"UserService/GetUser", "GET", "/v1/users/usr_9", &signetv1.GetUserRequest{UserId: "usr_9"}, nil}
	getOrg  = ask{"OrganizationService/GetOrganization", "GET", "/v1/orgs/org_x",
		&signetv1.GetOrganizationRequest{OrgId: "org_x"}, nil}
	putProfile  = ask{"UserService/UpdateMyProfile", "PUT", "/v1/users/me/profile", profile, nil}
	setPassword = ask{"UserService/SetUserPassword", "POST", "/v1/users/usr_9/password",
		&signetv1.SetUserPasswordRequest{UserId: "usr_9", Password: "secret"}, nil}
	changeMine = ask{"UserService/ChangeMyPassword", "PUT", "/v1/users/me/password",
		&signetv1.ChangeMyPasswordRequest{CurrentPassword: "a", NewPassword: "b"}, nil}
	updateIDP = ask{"IdentityProviderService/UpdateIdentityProvider", "PUT", "/v1/idps/idp_9",
		&signetv1.UpdateIdentityProviderRequest{IdpId: "idp_9", Name: "n"}, nil}
	signIn = ask{"SessionService/CreateSession", "POST", "/v1/sessions",
		&signetv1.CreateSessionRequest{LoginName: "ada", Password: "pw"}, nil}
	setupOrg = ask{"OrganizationService/SetupOrganization", "POST", "/v1/orgs/_setup",
		&signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: "o"},
			Human: &signetv1.SetupOrganizationRequest_Human{UserName: "u", Password: "p",
				Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "a", LastName: "b"},
				Email:   &signetv1.SetupOrganizationRequest_Human_Email{Email: "a@b"}},
		}, nil}
)

func (a ask) as(token string, more ...string) ask {
	a.header = bearerOf(token, more...)
	return a
}

func (a ask) with(h http.Header) ask {
	a.header = h
	return a
}

func (a ask) sending(m proto.Message) ask {
	a.msg = m
	return a
}

// TestRefusals holds that a refusal is the same in every protocol: code, reason, message and violations.
func TestRefusals(t *testing.T) {
	const (
		invalid, denied, unauthenticated, notFound = 3, 7, 16, 5

		unknownHeader = "is not a header of this API: to name an organization, send x-service-orgid"
	)
	l := newLab(t, func(c *Config) {
		c.Check = func(req proto.Message, _ call.Rules) (found []errs.Violation, err error) {
			if r, ok := req.(*signetv1.SetupOrganizationRequest); ok && slices.Contains(r.GetRoles(), "WRONG") {
				found = append(found, errs.Violation{Field: "roles[1]", Message: "is not a role of an organization"},
					errs.Violation{Field: "org", Message: "is complained about twice"})
			}
			return found, nil
		}
	})
	l.fake.err = errs.New(errs.NotFound, "USER_UNKNOWN", "there is no such user — check the id: 100 %")
	long := strings.Repeat("ä", 201)
	for _, tt := range []struct {
		name       string
		ask        ask
		code       int32
		http       int
		reason     errs.Reason
		violations map[string]string
	}{
		{"no credential", getMe, unauthenticated, 401, access.Unauthenticated, nil},
		{"an unknown token", getMe.as("stranger"), unauthenticated, 401, access.Unauthenticated, nil},
		{"another scheme", getMe.with(http.Header{"Authorization": {"Basic b3duZXI6"}}), unauthenticated, 401,
			access.Unauthenticated, nil},
		{"a token without a scheme", getMe.with(http.Header{"Authorization": {"owner"}}), unauthenticated, 401,
			access.Unauthenticated, nil},
		{"two tokens in one header", getMe.with(http.Header{"Authorization": {"Bearer owner, Bearer owner"}}),
			unauthenticated, 401, access.Unauthenticated, nil},
		{"two headers", getMe.with(http.Header{"Authorization": {"Bearer owner", "Bearer owner"}}), unauthenticated,
			401, access.Unauthenticated, nil},
		{"a space too many", getMe.with(http.Header{"Authorization": {"Bearer  owner"}}), unauthenticated, 401,
			access.Unauthenticated, nil},
		{"a cookie is no credential", getMe.with(http.Header{"Cookie": {"token=owner"}}), unauthenticated, 401,
			access.Unauthenticated, nil},
		{"no credential comes before an invalid request", putProfile.sending(&signetv1.UpdateMyProfileRequest{}),
			unauthenticated, 401, access.Unauthenticated, nil},
		{"an invalid request comes before a missing permission",
			setPassword.as("nobody").sending(&signetv1.SetUserPasswordRequest{UserId: "usr_9"}),
			invalid, 400, errs.InvalidRequest, map[string]string{"password": "must not be empty"}},
		{"an invalid request comes before a restricted session",
			putProfile.as("restricted").sending(&signetv1.UpdateMyProfileRequest{FirstName: "a", LastName: "b"}),
			invalid, 400, errs.InvalidRequest, map[string]string{"displayName": "must not be empty"}},
		{"no permission", setPassword.as("nobody"), denied, 403, access.PermissionDenied, nil},
		{"no permission in the organization of the header", setPassword.as("owner", "x-service-orgid", "org_x"), denied,
			403, access.PermissionDenied, nil},
		{"no permission in the organization of the path", getOrg.as("owner"), denied, 403,
			access.PermissionDenied, nil},
		{"an organization permission is none in the installation", setupOrg.as("owner"), denied, 403,
			access.PermissionDenied, nil},
		{"a session that must change its password", getMe.as("restricted"), denied, 403,
			access.PasswordChangeRequired, nil},
		{"all fields at once",
			putProfile.as("owner", "if-match", `W/"1"`, "x-service-orgid",
				"org_x").sending(&signetv1.UpdateMyProfileRequest{
				LastName: long, NickName: proto.String(""), PreferredLanguage: "0123456789a", Gender: 9,
			}), invalid, 400, errs.InvalidRequest, map[string]string{
				"firstName": "must not be empty", "lastName": "must have at most 200 characters",
				"nickName":    "must not be empty",
				"displayName": "must not be empty", "preferredLanguage": "must have at most 10 characters",
				"gender":   "must be one of GENDER_FEMALE, GENDER_MALE, GENDER_DIVERSE",
				"if-match": `must not be a weak tag: send "<sequence>" without W/`,
				orgHeader:  "must be your own organization, or be left out: this operation cannot address another one",
			}},
		{"nested fields have a path", setupOrg.as("admin").sending(&signetv1.SetupOrganizationRequest{
			Human: &signetv1.SetupOrganizationRequest_Human{
				Profile: &signetv1.SetupOrganizationRequest_Human_Profile{LastName: "b"},
				Phone:   &signetv1.SetupOrganizationRequest_Human_Phone{}}, Roles: []string{"ORG_OWNER", "WRONG"},
		}), invalid, 400, errs.InvalidRequest, map[string]string{
			"org": "is required", "human.userName": "must not be empty", "human.password": "must not be empty",
			"human.profile.firstName": "must not be empty", "human.email": "is required",
			"human.phone.phone": "must not be empty", "roles[1]": "is not a role of an organization",
		}},
		{"a header that disagrees with the path", getOrg.as("admin", "x-service-orgid", "org_y"), invalid, 400,
			errs.InvalidRequest,
			map[string]string{orgHeader: "must be the organization that the request names, or be left out"}},
		{"a header that disagrees with the request", signIn.with(http.Header{"X-Service-Orgid": {"org_a"}}).sending(
			&signetv1.CreateSessionRequest{LoginName: "ada", Password: "pw", OrgId: "org_b"}), invalid, 400,
			errs.InvalidRequest,
			map[string]string{orgHeader: "must be the same as orgId, or be left out"}},
		{"a repeated organization", getUser.as("owner", "x-service-orgid", "org_own", "x-service-orgid", "org_own"),
			invalid, 400, errs.InvalidRequest,
			map[string]string{orgHeader: "must be sent only once"}},
		{"headers with a name of ours that there are not", getUser.as("owner", "x-service-org-id", "org_x",
			"X-SERVICE-ORG", "", "x-service-orgid", "org_own", "x-other-service", "org_x"), invalid, 400,
			errs.InvalidRequest,
			map[string]string{"x-service-org-id": unknownHeader, "x-service-org": unknownHeader}},
		{"such a header where there is no caller", signIn.with(http.Header{"X-Service-Organization": {"org_a"}}),
			invalid, 400, errs.InvalidRequest, map[string]string{"x-service-organization": unknownHeader}},
		{"such a header without a credential", getMe.with(http.Header{"X-Service-Org-Id": {"org_a"}}),
			unauthenticated, 401, access.Unauthenticated, nil},
		{"such a header without permission", setPassword.as("nobody", "x-service-org-id", "org_x"), invalid, 400,
			errs.InvalidRequest, map[string]string{"x-service-org-id": unknownHeader}},
		{"a repeated if-match", setPassword.as("owner", "if-match", "1", "if-match", "1"), invalid, 400,
			errs.InvalidRequest,
			map[string]string{"if-match": "must be sent only once"}},
		{"a list in if-match", setPassword.as("owner", "if-match", `"1", "2"`), invalid, 400, errs.InvalidRequest,
			map[string]string{"if-match": `must be the sequence last seen, such as "7", or *`}},
		{"a signed if-match", setPassword.as("owner", "if-match", "+1"), invalid, 400, errs.InvalidRequest,
			map[string]string{"if-match": `must be the sequence last seen, such as "7", or *`}},
		{"an empty if-match", setPassword.as("owner", "if-match", ""), invalid, 400, errs.InvalidRequest,
			map[string]string{"if-match": `must be the sequence last seen, such as "7", or *`}},
		{"a long idempotency key", setupOrg.as("admin", "idempotency-key", strings.Repeat("k", 256)), invalid, 400,
			errs.InvalidRequest,
			map[string]string{"idempotency-key": "must have 1 to 255 visible ASCII characters"}},
		{"a space in an idempotency key", setupOrg.as("admin", "idempotency-key", "a b"), invalid, 400,
			errs.InvalidRequest,
			map[string]string{"idempotency-key": "must have 1 to 255 visible ASCII characters"}},
		{"a repeated idempotency key", setupOrg.as("admin", "idempotency-key", "a", "idempotency-key", "a"), invalid,
			400, errs.InvalidRequest,
			map[string]string{"idempotency-key": "must be sent only once"}},
		{"a NUL in a string", putProfile.as("owner").sending(&signetv1.UpdateMyProfileRequest{FirstName: "a\x00",
			LastName: "b", DisplayName: "c"}),
			invalid, 400, errs.InvalidRequest, map[string]string{"firstName": strict.ProblemNUL}},
		{"a NUL deep in a message", setupOrg.as("admin").sending(&signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: "a\x00"}, Roles: []string{"ORG_OWNER", "\x00"}}),
			invalid, 400, errs.InvalidRequest,
			map[string]string{"human": "is required", "org.name": strict.ProblemNUL, "roles[1]": strict.ProblemNUL}},
		{"a body that is too large",
			putProfile.as("owner").sending(&signetv1.UpdateMyProfileRequest{FirstName: strings.Repeat("x", maxBody)}),
			8, 413, BodyTooLarge, nil},
		{"what the operation refuses", getUser.as("admin", "x-request-id", "ask-operation"), notFound, 404,
			"USER_UNKNOWN", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.fake.info = nil
			var first *outcome
			l.everywhere(t, tt.ask, func(t *testing.T, o outcome) {
				if o.code != tt.code || o.reason != string(tt.reason) || !maps.Equal(o.violations, tt.violations) {
					t.Errorf("got code %d, reason %s, violations %q", o.code, o.reason, o.violations)
				}
				if o.http != 0 && o.http != tt.http {
					t.Errorf("got HTTP status %d", o.http)
				}
				if first == nil {
					first = &o
				}
				if o.message != first.message || o.message == "" {
					t.Errorf("the message is %q here and %q there", o.message, first.message)
				}
				if got := o.header.Get("Www-Authenticate"); (got == "Bearer") != (tt.code == unauthenticated) {
					t.Errorf("www-authenticate is %q", got)
				}
				if id := o.header.Get("X-Request-Id"); id == "" || id != o.requestID {
					t.Errorf("the request id is %q in the header and %q in the body", id, o.requestID)
				}
			})
			if tt.reason != "USER_UNKNOWN" && l.fake.info != nil {
				t.Error("the operation ran all the same")
			}
		})
	}
}

func TestAPermitIsRenewedByAskingForTheCallerAgain(t *testing.T) {
	type found struct {
		caller *access.Caller
		err    error
	}
	before := found{caller: callers["owner"]}
	for _, tt := range []struct {
		name   string
		after  found
		code   int32
		reason errs.Reason
	}{
		{"nothing has changed", before, 0, ""},
		{"the credential has ended", found{err: access.ErrUnauthenticated}, 16, access.Unauthenticated},
		{"nobody is found any more", found{}, 16, access.Unauthenticated},
		{"the role is gone", found{caller: callers["nobody"]}, 7, access.PermissionDenied},
		{"the role is another one", found{caller: &access.Caller{UserID: "usr_1", OrgID: "org_own",
			Memberships: access.Memberships{"org_own": {access.OrgSettingsManager}}}}, 7, access.PermissionDenied},
		{"the caller has moved, and holds the role there only", found{
			caller: &access.Caller{UserID: "usr_1", OrgID: "org_x",
				Memberships: access.Memberships{"org_x": {access.OrgOwner}}},
		}, 7, access.PermissionDenied},
		{"the password has to be changed", found{caller: callers["restricted"]}, 7, access.PasswordChangeRequired},
		{"storage is away", found{err: errors.New("dial tcp: connection refused")}, 13, Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var now atomic.Pointer[found]
			l := newLab(t, func(c *Config) {
				c.Authenticate = func(_ context.Context, token string) (*access.Caller, error) {
					if token != "owner" {
						t.Errorf("asked for %q", token)
					}
					f := now.Load()
					return f.caller, f.err
				}
			})
			l.fake.hook = func(ctx context.Context) error {
				old := call.From(ctx).Permit
				now.Store(&tt.after)
				permit, err := old.Renew(ctx)
				if err == nil && (permit.Org() != "org_own" || permit.Origin() != old.Origin()) {
					t.Errorf("renewed for %q by %+v", permit.Org(), permit.Origin())
				}
				if err == nil { // once more, as for the first time
					now.Store(&found{err: access.ErrUnauthenticated})
					if _, err := permit.Renew(ctx); !errors.Is(err, access.ErrUnauthenticated) {
						t.Errorf("the second renewal: %v", err)
					}
				}
				return err
			}
			l.everywhere(t, setPassword.as("owner"), func(t *testing.T, o outcome) {
				if o.code != tt.code || o.reason != string(tt.reason) {
					t.Errorf("got %d %s", o.code, o.reason)
				}
			}, func() { now.Store(&before) })
		})
	}
}

func TestACredentialIsUsedByWhatIsCarriedOutOnly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		caller string
		fails  error // in the operation
		used   int64
	}{
		{"it was carried out", "owner", nil, 1},
		{"the operation refused", "owner", errs.New(errs.NotFound, "USER_NOT_FOUND", "nobody"), 0},
		{"the operation broke", "owner", errors.New("broken"), 0},
		{"the caller may not", "nobody", nil, 0},
		{"the session is restricted", "restricted", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var used atomic.Int64
			l := newLab(t, func(c *Config) {
				c.Authenticate = func(context.Context, string) (*access.Caller, error) {
					caller := *callers[tt.caller]
					caller.Used = func() { used.Add(1) }
					return &caller, nil
				}
			})
			l.fake.hook = func(context.Context) error { return tt.fails }
			l.everywhere(t, setPassword.as(tt.caller), func(t *testing.T, o outcome) {
				if got := used.Load(); got != tt.used || (o.code == 0) != (tt.used > 0) {
					t.Errorf("answered %d, used %d times", o.code, got)
				}
			}, func() { used.Store(0) })
		})
	}
}

func TestNothingIsSaidAboutTheInsideOfWhatIsWrongItself(t *testing.T) {
	violations := func(fields ...string) (all []errs.Violation) {
		for _, f := range fields {
			all = append(all, errs.Violation{Field: f, Message: "is wrong"})
		}
		return all
	}
	for _, tt := range []struct {
		name        string
		found, want []string
	}{
		{"the object first", []string{"org", "org.name", "org.domain"}, []string{"org"}},
		{"the object last", []string{"org.name", "human.email.email", "human"}, []string{"human", "org.name"}},
		{"deep inside", []string{"human", "human.profile.firstName"}, []string{"human"}},
		{"a list", []string{"roles", "roles[1]", "roles[1].x"}, []string{"roles"}},
		{"an element of a list", []string{"roles[1]", "roles[1].x", "roles[10].x"},
			[]string{"roles[1]", "roles[10].x"}},
		{"in the order of names and numbers", []string{"b", "roles[10]", "a[2].z", "roles[9]", "roles", "a[2].b", "a"},
			[]string{"a", "b", "roles"}},
		{"numbers inside", []string{"a[10].b", "a[9].c[11]", "a[9].c[2]", "a[9].b", "a[9]x", "ab"},
			[]string{"a[9].b", "a[9].c[2]", "a[9].c[11]", "a[9]x", "a[10].b", "ab"}},
		{"a name that begins alike is another one", []string{"org", "orgId", "organization.name"},
			[]string{"org", "orgId", "organization.name"}},
		{"the body as a whole holds no field in this sense", []string{"", "org.name"}, []string{"", "org.name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, v := range firstOfEach(violations(tt.found...)) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	l := newLab(t)
	o := l.rest(t, l.h1, "POST", "/v1/orgs/_setup",
		`{"org":1,"human":{"profile":[],"email":{"email":"a@b"},"userName":"u","password":"p"}}`, bearerOf("admin"))
	if got := slices.Sorted(maps.Keys(o.violations)); !slices.Equal(got, []string{"human.profile", "org"}) {
		t.Errorf("got %q", o.violations)
	}
}

// What is too long is not read: the work of a grammar grows with its text.
func TestLengthsComeBeforeGrammars(t *testing.T) {
	read := false
	l := newLab(t, func(c *Config) {
		c.Check = func(proto.Message, call.Rules) ([]errs.Violation, error) {
			read = true
			return []errs.Violation{{Field: "org.domain", Message: "is no domain"}}, nil
		}
	})
	setUp := func(domain string) ask {
		m := proto.CloneOf(setupOrg.msg.(*signetv1.SetupOrganizationRequest))
		m.Org.Domain = domain
		return setupOrg.as("admin").sending(m)
	}
	for domain, want := range map[string]string{strings.Repeat("ä", 200): "is no domain",
		strings.Repeat("ä", maxCheapRequest): "must have at most 200 characters"} {
		l.everywhere(t, setUp(domain), func(t *testing.T, o outcome) {
			if short := want == "is no domain"; o.code != 3 ||
				!maps.Equal(o.violations, map[string]string{"org.domain": want}) || read != short {
				t.Errorf("%d characters: %d %v, read: %v", len(domain)/2, o.code, o.violations, read)
			}
			read = false
		})
	}
}

// Clients of gRPC refuse more than 8 KiB of headers and trailers, each counted with 32 bytes on top.
func TestARefusalFitsIntoTrailers(t *testing.T) {
	for name, word := range map[string]string{
		"letters": strings.Repeat("R", 60), "letters of four bytes": strings.Repeat("𝕊", 60),
		"escapes":                       strings.Repeat(`\U0010ffff`, 60),
		"what percent-encoding triples": strings.Repeat("%", 60), "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []errs.Violation
			for i := range 60 {
				wrong = append(wrong,
					errs.Violation{Field: "roles[" + strconv.Itoa(i) + "]",
						Message: `"` + word + `" is not a role of organizations`})
			}
			wrong[0].Message += ": use one of ORG_OWNER, ORG_OWNER_VIEWER, ORG_SETTINGS_MANAGER, ORG_USER_MANAGER"
			l := newLab(t, func(c *Config) {
				c.Check = func(proto.Message, call.Rules) ([]errs.Violation, error) { return wrong, nil }
			})
			var first *outcome
			l.everywhere(t, setupOrg.as("admin"), func(t *testing.T, o outcome) {
				if first == nil {
					first = &o
				}
				if o.code != 3 || len(o.violations) < 2 || o.violations["roles[0]"] != wrong[0].Message ||
					!maps.Equal(o.violations, first.violations) ||
					o.message != first.message ||
					!strings.HasPrefix(o.message, "the request is not valid: roles[0] ") ||
					!strings.HasSuffix(o.message, " more") {
					t.Errorf("got %d, %d violations: %s", o.code, len(o.violations), o.message)
				}
			})
			size := 0
			for _, f := range statusTrailer(statusOf(errs.Invalid(firstOfEach(wrong)...), strings.Repeat("r", 64))) {
				size += len(f[0]) + len(f[1]) + 32
			}
			if size > 8<<10-700 {
				t.Errorf("%d bytes of trailers", size)
			}
		})
	}
}

// TestOperationSees holds what an accepted request looks like to the operation.
func TestOperationSees(t *testing.T) {
	l := newLab(t)
	permit := func(caller, org string, p access.Permission) access.Permit {
		c := *callers[caller]
		c.RequestID = "r-1"
		permit, err := c.In(org, p)
		if err != nil {
			t.Fatal(err)
		}
		return permit
	}
	type seen struct {
		org     string // header
		permit  access.Permit
		ifMatch event.IfMatch
		key     string
		user    string
	}
	for _, tt := range []struct {
		name string
		ask  ask
		want seen
	}{
		{"the caller's own organization without a header", setPassword.as("owner"),
			seen{permit: permit("owner", "org_own", access.CredentialWrite), user: "usr_1"}},
		{"an empty header is none", setPassword.as("owner", "x-service-orgid", ""),
			seen{permit: permit("owner", "org_own", access.CredentialWrite), user: "usr_1"}},
		{"the organization of the header", setPassword.as("admin", "x-service-orgid", "org_x"),
			seen{org: "org_x", permit: permit("admin", "org_x", access.CredentialWrite), user: "usr_3"}},
		{"the organization of the path", getOrg.as("admin", "x-service-orgid", "org_x"),
			seen{org: "org_x", permit: permit("admin", "org_x", access.OrgRead), user: "usr_3"}},
		{"the installation", setupOrg.as("admin", "idempotency-key", "k~!"),
			seen{permit: permit("admin", access.Installation, access.OrgSetup), key: "k~!", user: "usr_3"}},
		{"no permit where the target decides", updateIDP.as("nobody", "x-service-orgid", "org_z"),
			seen{org: "org_z", user: "usr_2"}},
		{"one's own header on a call about oneself", getMe.as("nobody", "x-service-orgid", "org_own"),
			seen{org: "org_own", user: "usr_2"}},
		{"a restricted session may change its password", changeMine.as("restricted"), seen{user: "usr_4"}},
		{"a quoted sequence", setPassword.as("owner", "if-match", `"7"`),
			seen{permit: permit("owner", "org_own", access.CredentialWrite),
				ifMatch: event.IfMatch{Set: true, Sequence: 7}, user: "usr_1"}},
		{"a bare sequence", setPassword.as("owner", "if-match", "18446744073709551615"),
			seen{permit: permit("owner", "org_own", access.CredentialWrite),
				ifMatch: event.IfMatch{Set: true, Sequence: 1<<64 - 1}, user: "usr_1"}},
		{"any sequence", setPassword.as("owner", "if-match", "*"),
			seen{permit: permit("owner", "org_own", access.CredentialWrite), user: "usr_1"}},
		{"no if-match on a read, no idempotency key on an update",
			getMe.as("nobody", "if-match", "W/nonsense", "idempotency-key", ""), seen{user: "usr_2"}},
		{"a public operation ignores credentials", signIn.as("broken"), seen{}},
		{"the scheme in other letters", getMe.with(http.Header{"Authorization": {"bEARER nobody"}}),
			seen{user: "usr_2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ask.header.Set("X-Request-Id", "r-1")
			l.everywhere(t, tt.ask, func(t *testing.T, o outcome) {
				if o.code != 0 || l.fake.info == nil {
					t.Fatalf("refused: %d %s", o.code, o.message)
				}
				i := l.fake.info
				got := seen{org: i.OrgHeader, permit: i.Permit, ifMatch: i.IfMatch, key: i.IdempotencyKey}
				if i.Caller != nil {
					got.user = i.Caller.UserID
				}
				if got.org != tt.want.org || got.permit.Org() != tt.want.permit.Org() ||
					got.permit.Origin() != tt.want.permit.Origin() ||
					got.ifMatch != tt.want.ifMatch || got.key != tt.want.key || got.user != tt.want.user {
					t.Errorf("got  %+v\nwant %+v", got, tt.want)
				}
				if !proto.Equal(l.fake.req, tt.ask.msg) {
					t.Errorf("got the request %v", l.fake.req)
				}
				if i.RequestID != "r-1" || o.header.Get("X-Request-Id") != "r-1" ||
					i.Procedure != "signet.v1."+tt.ask.procedure || !i.Peer.IsLoopback() || i.UserAgent == "" {
					t.Errorf("got the description %+v", i)
				}
				l.fake.info = nil
			})
			for token, c := range callers {
				if c.RequestID != "" {
					t.Errorf("the shared caller %s was changed", token)
				}
			}
		})
	}
}

// TestUnknownHeadersCostNothing holds that the search for them does not allocate where there are none.
func TestUnknownHeadersCostNothing(t *testing.T) {
	h := bearerOf("owner", "content-type", "application/json", "x-service-orgid", "org_own", "x-request-id", "r-1")
	if n := testing.AllocsPerRun(100, func() { unknownHeaders(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHeaderFillsTheRequest(t *testing.T) {
	l := newLab(t)
	l.everywhere(t, signIn.with(http.Header{"X-Service-Orgid": {"org_a"}}), func(t *testing.T, o outcome) {
		if got := l.fake.req.(*signetv1.CreateSessionRequest).GetOrgId(); o.code != 0 || got != "org_a" {
			t.Errorf("orgId is %q: %s", got, o.message)
		}
	})
}

func TestAnswerHeaders(t *testing.T) {
	const successor = `</v1/idps/idp_9>; rel="successor-version"`
	l := newLab(t)
	for _, tt := range []struct {
		name                    string
		ask                     ask
		etag, deprecation, link string
	}{
		{"a read has an entity tag", getUser.as("owner"), `"7"`, "", ""},
		{"a read about oneself too", getMe.as("owner"), `"7"`, "", ""},
		{"a change has none", putProfile.as("owner"), "", "", ""},
		{"a deprecated operation says since when and what to use instead", updateIDP.as("owner"), "",
			"@1791763200", successor},
		{"and says so when it refuses", updateIDP.as("nobody"), "", "@1791763200", successor},
		{"but not before it has read what it is about", updateIDP.as("stranger"), "", "@1791763200", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.everywhere(t, tt.ask, func(t *testing.T, o outcome) {
				if got := o.header.Get("Etag"); got != tt.etag {
					t.Errorf("etag is %q", got)
				}
				if got := o.header.Get("Deprecation"); got != tt.deprecation {
					t.Errorf("deprecation is %q", got)
				}
				if got := o.header.Get("Link"); got != tt.link {
					t.Errorf("link is %q", got)
				}
				if got := o.header.Get("Cache-Control"); got != "no-store" {
					t.Errorf("cache-control is %q", got)
				}
			})
		})
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	l := newLab(t)
	l.fake.err = &errs.Error{Kind: errs.ResourceExhausted, Reason: "SIGN_IN_THROTTLED", Message: "wait",
		RetryAfter: 1200 * time.Millisecond}
	l.everywhere(t, signIn, func(t *testing.T, o outcome) {
		if o.code != 8 || o.retry != 1200*time.Millisecond || o.header.Get("Retry-After") != "2" ||
			o.http != 0 && o.http != 429 {
			t.Errorf("got %+v", o)
		}
	})
}

func TestRequestIDs(t *testing.T) {
	l := newLab(t)
	for sent, kept := range map[string]bool{
		"abc-DEF_1.2": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "": false, "a b": false,
		"ä": false, "a,b": false,
	} {
		o := l.rest(t, l.h1, "GET", "/v1/users/me", "", bearerOf("owner", "x-request-id", sent))
		if got := o.header.Get("X-Request-Id"); (got == sent) != kept || !web.IsRequestID(got) {
			t.Errorf("%q became %q", sent, got)
		}
	}
	if o := l.rest(t, l.h1, "GET", "/nowhere", "",
		http.Header{"X-Request-Id": {"a", "b"}}); o.header.Get("X-Request-Id") == "a" || o.requestID == "" {
		t.Errorf("a repeated id was taken: %+v", o)
	}
}

// TestInternalErrorsAreNotShown covers bugs of every sort: what happened is in the log, under the request id, and
// nowhere else.
func TestInternalErrorsAreNotShown(t *testing.T) {
	l := newLab(t)
	for name, hook := range map[string]func(context.Context) error{
		"a plain error": func(context.Context) error {
			return errors.New("pq: relation hush does not exist")
		},
		"an error that is declared internal": func(context.Context) error {
			return errs.New(errs.Internal, "HUSH", "hush")
		},
		"a panic":                func(context.Context) error { panic("hush") },
		"a panic of the runtime": func(ctx context.Context) error { return ctx.Value("hush").(error) },
		"an inner timeout": func(context.Context) error {
			return errors.Join(errors.New("hush"), context.DeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.fake.hook = hook
			l.everywhere(t, getMe.as("owner"), func(t *testing.T, o outcome) {
				if o.code != 13 || o.reason != "INTERNAL" || o.http != 0 && o.http != 500 ||
					strings.Contains(o.message, "hush") || strings.Contains(string(o.body), "hush") {
					t.Errorf("got %+v", o)
				}
				line := lineWith(l.logs(), o.requestID)
				if !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "cause=") {
					t.Errorf("the log says %q", line)
				}
				if strings.Contains(name, "panic") && !strings.Contains(line, "chain_test.go") {
					t.Errorf("the log has no stack: %q", line)
				}
			})
		})
	}
	t.Run("a failure to look the credential up", func(t *testing.T) {
		l.everywhere(t, getMe.as("broken"), func(t *testing.T, o outcome) {
			if o.code != 13 || strings.Contains(o.message, "10.0.0.5") {
				t.Errorf("got %+v", o)
			}
		})
	})
}

func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func TestTimeLimit(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	t.Run("an operation that takes too long", func(t *testing.T) {
		l := newLab(t, func(c *Config) { c.TimeLimit = 20 * time.Millisecond })
		l.fake.hook = wait
		l.everywhere(t, getMe.as("owner"), func(t *testing.T, o outcome) {
			if o.code != 4 || o.reason != "DEADLINE_EXCEEDED" || o.http != 0 && o.http != 504 {
				t.Errorf("got %+v", o)
			}
		})
	})
	l := newLab(t)
	t.Run("a caller's own deadline is shorter", func(t *testing.T) {
		l.fake.hook = wait
		raw, _ := proto.Marshal(getMe.msg)
		for _, client := range []*http.Client{l.h1, l.h2} {
			o := l.frame(t, client, "application/grpc-web+proto", "UserService/GetMyUser", frameOf(0, raw),
				bearerOf("owner", "grpc-timeout", "20m"))
			if o.code != 4 || o.reason != "DEADLINE_EXCEEDED" {
				t.Errorf("got %+v", o)
			}
		}
	})
	l.fake.hook = nil
	t.Run("an operation whose time is over is not begun", func(t *testing.T) {
		l.fake.info = nil
		o := l.frame(t, l.h1, "application/grpc-web", "UserService/GetMyUser", frameOf(0, nil),
			bearerOf("owner", "grpc-timeout", "0n"))
		if o.code != 4 || l.fake.info != nil {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("a malformed deadline", func(t *testing.T) {
		for _, timeout := range []string{"", "1", "S", "123456789S", "-1S", "1.5S", "1s", "1 S"} {
			o := l.frame(t, l.h1, "application/grpc-web", "UserService/GetMyUser", frameOf(0, nil),
				bearerOf("owner", "grpc-timeout", timeout))
			if o.code != 3 || o.violations["grpc-timeout"] == "" {
				t.Errorf("%q: got %+v", timeout, o)
			}
		}
	})
	t.Run("the longest deadline", func(t *testing.T) {
		o := l.frame(t, l.h1, "application/grpc-web", "UserService/GetMyUser", frameOf(0, nil),
			bearerOf("owner", "grpc-timeout", "99999999H"))
		if o.code != 0 {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("a body that does not arrive", func(t *testing.T) {
		l := newLab(t, func(c *Config) { c.TimeLimit = 50 * time.Millisecond })
		for name, client := range map[string]*http.Client{"HTTP/1.1": l.h1, "HTTP/2": l.h2} {
			for _, contentType := range []string{"application/json", "application/grpc-web"} {
				t.Run(name+" "+contentType, func(t *testing.T) {
					body := &slowBody{first: []byte{0, 0}, closed: make(chan struct{})}
					path := "/v1/users/me/profile"
					method := "PUT"
					if contentType != "application/json" {
						method, path = "POST", "/signet.v1.UserService/UpdateMyProfile"
					}
					r, _ := http.NewRequest(method, l.url+path, body)
					r.Header = bearerOf("owner", "content-type", contentType)
					resp, err := client.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					answer, _ := io.ReadAll(resp.Body)
					if contentType == "application/json" && resp.StatusCode != 504 ||
						contentType != "application/json" && !bytes.Contains(answer, []byte("grpc-status: 4\r\n")) {
						t.Errorf("got %s %s", resp.Status, answer)
					}
					testkit.Await(t, "a request after it is answered in its time", func() bool {
						return l.rest(t, client, "GET", "/v1/users/me", "", bearerOf("owner")).http == 200
					})
				})
			}
		}
	})
}

// slowBody sends a few bytes and then nothing until it is closed.
type slowBody struct {
	first  []byte
	closed chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	<-b.closed
	return 0, errors.New("closed")
}

func (b *slowBody) Close() error { close(b.closed); return nil }
