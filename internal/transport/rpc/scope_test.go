package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
)

// scoped reads what the definition says about the scopes of an operation.
func scoped(t *testing.T, service, method protoreflect.Name) *operation {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("signet.v1." + protoreflect.FullName(service) + "." +
		protoreflect.FullName(method))
	if err != nil {
		t.Fatal(err)
	}
	md := d.(protoreflect.MethodDescriptor)
	input, err := protoregistry.GlobalTypes.FindMessageByName(md.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	op := &operation{procedure: string(service) + "/" + string(method),
		rule: proto.GetExtension(md.Options(), signetv1.E_Rule).(*signetv1.Rule), input: input}
	if err := errors.Join(op.checkRule(), op.readScopes()); err != nil {
		t.Fatal(err)
	}
	return op
}

func TestWhatARequestSetsNeedsScopesToo(t *testing.T) {
	mask := func(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }
	email := func(verified bool) *signetv1.SetupOrganizationRequest_Human_Email {
		return &signetv1.SetupOrganizationRequest_Human_Email{Email: "a@b", IsEmailVerified: verified}
	}
	imported := func(users ...*signetv1.ImportUsersRequest_User) *signetv1.ImportUsersRequest {
		return &signetv1.ImportUsersRequest{Users: users}
	}
	for _, c := range []struct {
		name            string
		service, method protoreflect.Name
		req             proto.Message
		needs           string // besides signet.write
	}{
		{"nothing that matters", "UserService", "AddServiceUser", &signetv1.AddServiceUserRequest{UserName: "a"}, ""},
		{"two of the operation itself", "UserService", "AddHumanUser",
			&signetv1.AddHumanUserRequest{UserName: "a", Email: email(false), NoChangeRequired: true},
			"signet.contacts"},
		{"a field", "UserService", "AddHumanUser", &signetv1.AddHumanUserRequest{Password: "p"},
			"signet.contacts signet.passwords"},
		{"a field inside", "UserService", "AddHumanUser", &signetv1.AddHumanUserRequest{Email: email(true)},
			"signet.contacts"},
		{"several", "UserService", "AddHumanUser",
			&signetv1.AddHumanUserRequest{Password: "p",
				Phone: &signetv1.SetupOrganizationRequest_Human_Phone{IsPhoneVerified: true}},
			"signet.contacts signet.passwords"},
		{"elements without", "UserService", "ImportUsers",
			imported(&signetv1.ImportUsersRequest_User{UserName: "a"}, &signetv1.ImportUsersRequest_User{}), ""},
		{"one element of a list", "UserService", "ImportUsers",
			imported(&signetv1.ImportUsersRequest_User{}, &signetv1.ImportUsersRequest_User{},
				&signetv1.ImportUsersRequest_User{PasswordHash: "$2b$"}), "signet.passwords"},
		{"inside an element", "UserService", "ImportUsers",
			imported(&signetv1.ImportUsersRequest_User{Phone: &signetv1.ImportUsersRequest_User_Phone{Verified: true}}),
			"signet.contacts"},
		{"a mask that names something else", "ApplicationService", "ModifyApplication",
			&signetv1.ModifyApplicationRequest{AppId: "a", Name: "n", UpdateMask: mask("name")}, ""},
		{"a list", "ApplicationService", "ModifyApplication",
			&signetv1.ModifyApplicationRequest{RedirectUris: []string{"https://a"}, UpdateMask: mask("redirect_uris")},
			"signet.redirects"},
		{"named without a value", "ApplicationService", "ModifyApplication",
			&signetv1.ModifyApplicationRequest{UpdateMask: mask("name", "consent_required", "all_organizations")},
			"signet.all_organizations signet.approvals"},
		{"named by something inside", "ApplicationService", "ModifyApplication",
			&signetv1.ModifyApplicationRequest{UpdateMask: mask("auth_method.x")}, "signet.app_credentials"},
		{"a name that only begins alike", "ApplicationService", "ModifyApplication",
			&signetv1.ModifyApplicationRequest{UpdateMask: mask("auth_methods", "auth")}, ""},
		{"several of the operation itself", "OrganizationService", "SetupOrganization",
			&signetv1.SetupOrganizationRequest{Org: &signetv1.SetupOrganizationRequest_Org{Domain: "a.example"}},
			"signet.roles signet.domains"},
	} {
		t.Run(c.name, func(t *testing.T) {
			op := scoped(t, c.service, c.method)
			with := func(scopes ...string) *access.Caller {
				return &access.Caller{Scopes: append([]string{}, scopes...)}
			}
			all := append(strings.Fields(c.needs), "signet.write")
			if err := op.within(with(all...), c.req); err != nil {
				t.Errorf("with all it needs: %v", err)
			}
			if err := op.within(&access.Caller{}, c.req); err != nil {
				t.Errorf("a person: %v", err)
			}
			for i, missing := range all {
				err := op.within(with(slices.Delete(slices.Clone(all), i, i+1)...), c.req)
				if want := access.ErrScopes(access.ScopesNamed(missing)); err == nil || err.Error() != want.Error() {
					t.Errorf("without %s: %v", missing, err)
				}
			}
		})
	}
}

func TestAnOperationWithoutScopesIsNotForApplications(t *testing.T) {
	op := scoped(t, "UserService", "ChangeMyPassword")
	if err := op.within(&access.Caller{Scopes: access.APIScopeNames},
		&signetv1.ChangeMyPasswordRequest{}); err != access.ErrNotForApplications {
		t.Errorf("got %v", err)
	}
	if err := op.within(&access.Caller{}, &signetv1.ChangeMyPasswordRequest{}); err != nil {
		t.Errorf("a person: %v", err)
	}
}

func TestScopesThatCannotBeEnforced(t *testing.T) {
	input := (&signetv1.GetUserRequest{}).ProtoReflect().Type()
	permission := &signetv1.Rule_Permission{Permission: "user.read"}
	for name, rule := range map[string]*signetv1.Rule{
		"an unknown one":       {Who: permission, ApiScopes: []string{"signet.raed"}},
		"one of somebody else": {Who: permission, ApiScopes: []string{"signet.read", "openid"}},
		"an empty one":         {Who: permission, ApiScopes: []string{""}},
		"public":               {Who: &signetv1.Rule_Public{Public: true}, ApiScopes: []string{"signet.read"}},
		"a restricted session": {Who: permission, RestrictedSession: true, ApiScopes: []string{"signet.read"}},
		"an unproven session":  {Who: permission, UnprovenSession: true, ApiScopes: []string{"signet.read"}},
		"what needs a recent proof": {Who: &signetv1.Rule_Authenticated{Authenticated: true},
			Proof: signetv1.Proof_PROOF_RECENT, ApiScopes: []string{"signet.self"}},
	} {
		if err := (&operation{rule: rule, input: input}).readScopes(); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestAPermissionNeedsTheScopesOfAllThatCanBeDoneWithIt(t *testing.T) {
	ops := map[string]*operation{}
	for _, name := range []protoreflect.Name{"GetUser", "AddHumanUser", "LockUser", "SetUserPassword", "GetMyUser"} {
		ops[string(name)] = scoped(t, "UserService", name)
	}
	needs := needsOf(ops)
	if len(needs) != 4+len(access.BesideOperations) || needs["user.read"] != access.ReadScope ||
		needs["user.support"] != access.ReadScope|access.WriteScope ||
		needs["user.write"] != access.WriteScope|access.PasswordsScope|access.ContactsScope ||
		needs["user.credential.write"] != access.PasswordsScope {
		t.Errorf("got %v", needs)
	}
	ops["new"] = &operation{permissions: []access.Permission{access.UserWrite}}
	if needs, held := needsOf(ops)["user.write"]; held {
		t.Errorf("an operation that is not for applications left %v", needs.Names())
	}
}

func TestTheChainHoldsAnApplicationToItsScopes(t *testing.T) {
	scopes := []string{"signet.write"}
	l := newLab(t, func(c *Config) {
		c.Authenticate = func(_ context.Context, _ string) (*access.Caller, error) {
			caller := *callers["admin"]
			caller.Scopes = scopes
			return &caller, nil
		}
	})
	body := `{"password":"p"}`
	if o := l.rest(t, l.h1, "POST", "/v1/users/usr_9/password", body, bearerOf("any")); o.http != 403 ||
		o.reason != "SCOPE_REQUIRED" || !strings.Contains(o.message, "signet.passwords") {
		t.Fatalf("%+v", o)
	}
	scopes = append(scopes, "signet.passwords")
	var renewed error
	l.fake.hook = func(ctx context.Context) error {
		permit := call.From(ctx).Permit
		if !permit.Holds(access.OrgRead, "org_own") ||
			!permit.HoldsFor(access.PasswordsScope, access.CredentialWrite, "org_own") ||
			permit.Holds(access.CredentialWrite, "org_own") || permit.Holds(access.IDPWrite, "org_own") ||
			permit.Covers(access.Memberships{"org_own": {access.OrgOwner}}) == nil {
			t.Error("the permit does not hold what the scopes allow")
		}
		scopes = []string{"signet.write"} // the token was made anew with less, say
		_, renewed = permit.Renew(ctx)
		return nil
	}
	if o := l.rest(t, l.h1, "POST", "/v1/users/usr_9/password", body, bearerOf("any")); o.http != 200 {
		t.Errorf("with the scope: %+v", o)
	}
	if renewed == nil {
		t.Error("a permit was renewed without the scope")
	}
}
