// Package zitadel tries the client of ZITADEL's version 1 API as it is: it is a module of its own because of what that
// client needs.
package zitadel

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/zitadel/zitadel-go/v3/pkg/client"
	"github.com/zitadel/zitadel-go/v3/pkg/client/middleware"
	"github.com/zitadel/zitadel-go/v3/pkg/client/zitadel/admin"
	"github.com/zitadel/zitadel-go/v3/pkg/client/zitadel/auth"
	"github.com/zitadel/zitadel-go/v3/pkg/client/zitadel/idp"
	"github.com/zitadel/zitadel-go/v3/pkg/client/zitadel/management"
	"github.com/zitadel/zitadel-go/v3/pkg/zitadel"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
)

// The messages of the five operations, theirs and ours.
var messages = map[proto.Message]proto.Message{
	&auth.UpdateMyProfileRequest{}:              &signetv1.UpdateMyProfileRequest{},
	&auth.UpdateMyProfileResponse{}:             &signetv1.UpdateMyProfileResponse{},
	&management.UpdateOrgIDPJWTConfigRequest{}:  &signetv1.UpdateJWTIdentityProviderRequest{},
	&management.UpdateOrgIDPJWTConfigResponse{}: &signetv1.UpdateJWTIdentityProviderResponse{},
	&management.SetHumanPasswordRequest{}:       &signetv1.SetUserPasswordRequest{},
	&management.SetHumanPasswordResponse{}:      &signetv1.SetUserPasswordResponse{},
	&admin.SetUpOrgRequest{}:                    &signetv1.SetupOrganizationRequest{},
	&admin.SetUpOrgResponse{}:                   &signetv1.SetupOrganizationResponse{},
	&admin.UpdateIDPRequest{}:                   &signetv1.UpdateIdentityProviderRequest{},
	&admin.UpdateIDPResponse{}:                  &signetv1.UpdateIdentityProviderResponse{},
}

func TestTheMessagesAreEqualOnTheWire(t *testing.T) {
	for theirs, ours := range messages {
		equal(t, theirs.ProtoReflect().Descriptor(), ours.ProtoReflect().Descriptor())
	}
}

// equal compares numbers, names in JSON and types of all fields, and of what is in them.
func equal(t *testing.T, theirs, ours protoreflect.MessageDescriptor) {
	t.Helper()
	if theirs.Fields().Len() != ours.Fields().Len() {
		t.Errorf("%s has %d fields, %s has %d", theirs.FullName(), theirs.Fields().Len(), ours.FullName(),
			ours.Fields().Len())
	}
	for i := range theirs.Fields().Len() {
		a := theirs.Fields().Get(i)
		b := ours.Fields().ByNumber(a.Number())
		if b == nil || a.JSONName() != b.JSONName() || a.Kind() != b.Kind() || a.Cardinality() != b.Cardinality() {
			t.Errorf("%v is %v", a, b)
			continue
		}
		if a.Enum() != nil {
			equalEnums(t, a.Enum(), b.Enum())
		}
		if m := a.Message(); m != nil && m.FullName() != b.Message().FullName() {
			equal(t, m, b.Message())
		}
	}
}

func equalEnums(t *testing.T, theirs, ours protoreflect.EnumDescriptor) {
	t.Helper()
	for i := range theirs.Values().Len() {
		a := theirs.Values().Get(i)
		if b := ours.Values().ByNumber(a.Number()); b == nil || a.Name() != b.Name() {
			t.Errorf("%v is %v", a, b)
		}
	}
}

// connect makes a client as its documentation says.
func connect(t *testing.T, s *server.Server, token string) *client.Client {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(t.Context(), zitadel.New(u.Hostname(), zitadel.WithInsecure(u.Port())),
		client.WithAuth(client.PAT(token)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheFiveOperations(t *testing.T) {
	s := servertest.Start(t, server.Config{ZitadelV1: true}, t.Output())
	root := connect(t, s, s.FirstAdmin.Token)
	ours := api{t, s}

	made, err := root.AdminService().SetUpOrg(t.Context(), &admin.SetUpOrgRequest{
		Org: &admin.SetUpOrgRequest_Org{Name: "Acme", Domain: "acme.example"},
		User: &admin.SetUpOrgRequest_Human_{Human: &admin.SetUpOrgRequest_Human{
			UserName: "ada", Password: "Correct-Horse-1",
			Profile: &admin.SetUpOrgRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace",
				DisplayName: "Ada Lovelace", PreferredLanguage: "en"},
			Email: &admin.SetUpOrgRequest_Human_Email{Email: "ada@acme.example", IsEmailVerified: true},
		}},
	})
	if err != nil || made.GetOrgId() == "" || made.GetUserId() == "" || made.GetDetails().GetSequence() == 0 {
		t.Fatalf("%v %v", made, err)
	}
	inOrg := middleware.SetOrgID(t.Context(), made.GetOrgId())
	if _, err := root.ManagementService().SetHumanPassword(inOrg,
		&management.SetHumanPasswordRequest{UserId: made.GetUserId(), Password: "Another-Horse-2",
			NoChangeRequired: true}); err != nil {
		t.Fatal(err)
	}
	ada := connect(t, s, ours.signIn("ada@acme.example", "Another-Horse-2"))
	if _, err := ada.AuthService().UpdateMyProfile(t.Context(),
		&auth.UpdateMyProfileRequest{FirstName: "Augusta", LastName: "King", DisplayName: "Ada King"}); err != nil {
		t.Fatal(err)
	}

	provider := ours.addProvider(made.GetOrgId())
	if _, err := root.AdminService().UpdateIDP(t.Context(),
		&admin.UpdateIDPRequest{IdpId: provider, Name: "Portal 2",
			StylingType: idp.IDPStylingType_STYLING_TYPE_GOOGLE}); err != nil {
		t.Fatal(err)
	}
	config := &management.UpdateOrgIDPJWTConfigRequest{IdpId: provider, JwtEndpoint: "https://portal.example/2",
		Issuer: "portal", KeysEndpoint: "https://portal.example/keys", HeaderName: "x-auth-token"}
	if _, err := root.ManagementService().UpdateOrgIDPJWTConfig(inOrg, config); err != nil {
		t.Fatal(err)
	}

	t.Run("errors", func(t *testing.T) {
		for name, tt := range map[string]struct {
			call   func(ctx context.Context) error
			code   codes.Code
			reason string
		}{
			"invalid": {func(ctx context.Context) error {
				_, err := root.AdminService().SetUpOrg(ctx, &admin.SetUpOrgRequest{})
				return err
			}, codes.InvalidArgument, "INVALID_REQUEST"},
			"denied": {func(ctx context.Context) error {
				_, err := ada.AdminService().SetUpOrg(ctx, &admin.SetUpOrgRequest{
					Org: &admin.SetUpOrgRequest_Org{Name: "Mine"},
					User: &admin.SetUpOrgRequest_Human_{Human: &admin.SetUpOrgRequest_Human{
						UserName: "x", Password: "x",
						Profile: &admin.SetUpOrgRequest_Human_Profile{FirstName: "X", LastName: "X", DisplayName: "X"},
						Email:   &admin.SetUpOrgRequest_Human_Email{Email: "x@example.org"}}},
				})
				return err
			}, codes.PermissionDenied, "PERMISSION_DENIED"},
			"the provider of another organization": {func(ctx context.Context) error {
				_, err := root.ManagementService().UpdateOrgIDPJWTConfig(ctx, config)
				return err
			}, codes.NotFound, ""},
			"an unknown token": {func(ctx context.Context) error {
				_, err := connect(t, s, "sgn_pat_nothing").AuthService().UpdateMyProfile(ctx,
					&auth.UpdateMyProfileRequest{})
				return err
			}, codes.Unauthenticated, "UNAUTHENTICATED"},
			"another method": {func(ctx context.Context) error {
				_, err := root.ManagementService().GetUserByID(ctx,
					&management.GetUserByIDRequest{Id: made.GetUserId()})
				return err
			}, codes.Unimplemented, "NOT_SERVED_HERE"},
		} {
			t.Run(name, func(t *testing.T) {
				st := status.Convert(tt.call(t.Context()))
				reason := ""
				for _, d := range st.Details() {
					if info, is := d.(*errdetails.ErrorInfo); is {
						reason = info.GetReason()
					}
				}
				if st.Code() != tt.code || tt.reason != "" && reason != tt.reason {
					t.Errorf("%v %s: %s", st.Code(), reason, st.Message())
				}
			})
		}
	})
}

// The usual way in for programs of ZITADEL's customers: a key file of a service user. Its assertions have no jti.
func TestAKeyFile(t *testing.T) {
	s := servertest.Start(t, server.Config{ZitadelV1: true}, t.Output())
	ours := api{t, s}
	robot := ours.post("/v1/users/service", s.FirstAdmin.Token, s.FirstAdmin.OrgID,
		map[string]any{"userName": "robot", "name": "Robot"})["userId"].(string)
	ours.send(http.MethodPut, "/v1/orgs/"+s.FirstAdmin.OrgID+"/members/"+robot, s.FirstAdmin.Token, s.FirstAdmin.OrgID,
		map[string]any{"roles": []string{"ORG_OWNER"}})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	added := ours.post("/v1/users/"+robot+"/keys", s.FirstAdmin.Token, s.FirstAdmin.OrgID,
		map[string]any{"publicKey": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))})
	file, err := json.Marshal(map[string]any{"type": "serviceaccount", "keyId": added["keyId"], "userId": robot,
		"key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
			Bytes: x509.MarshalPKCS1PrivateKey(key)}))})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	provider := ours.addProvider(s.FirstAdmin.OrgID)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second client asks for its token in the same second
		c, err := client.New(t.Context(), zitadel.New(u.Hostname(), zitadel.WithInsecure(u.Port())),
			client.WithAuth(client.DefaultServiceUserAuthentication(path, "openid", client.ScopeZitadelAPI(),
				"signet.write", "signet.providers")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.AdminService().UpdateIDP(t.Context(),
			&admin.UpdateIDPRequest{IdpId: provider, Name: "Portal by key"}); err != nil {
			t.Error(err)
		}
	}
}

// api is our own, for what theirs does not have here.
type api struct {
	t *testing.T
	s *server.Server
}

func (a api) post(path, token, org string, body map[string]any) (answer map[string]any) {
	a.t.Helper()
	return a.send(http.MethodPost, path, token, org, body)
}

func (a api) send(method, path, token, org string, body map[string]any) (answer map[string]any) {
	a.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.s.URL()+path, bytes.NewReader(raw))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token},
		"X-Service-Orgid": {org}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		a.t.Fatalf("%s: %s %v %v", path, resp.Status, answer, err)
	}
	return answer
}

func (a api) signIn(name, password string) (token string) {
	a.t.Helper()
	return a.post("/v1/sessions", "", "", map[string]any{"loginName": name, "password": password})["token"].(string)
}

func (a api) addProvider(org string) (id string) {
	a.t.Helper()
	return a.post("/v1/idps/jwt", a.s.FirstAdmin.Token, org, map[string]any{
		"name":         "Portal",
		"issuer":       "portal",
		"jwtEndpoint":  "https://portal.example",
		"keysEndpoint": "https://portal.example/keys",
		"headerName":   "authorization",
	})["idpId"].(string)
}
