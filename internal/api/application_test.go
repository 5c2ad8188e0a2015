package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// appModification has a value in every field, and a mask with these paths.
func appModification(paths ...string) *signetv1.ModifyApplicationRequest {
	return &signetv1.ModifyApplicationRequest{
		AppId:      "app_a",
		Name:       "n",
		AuthMethod: signetv1.AuthMethod_AUTH_METHOD_PRIVATE_KEY_JWT,
		GrantTypes: []signetv1.GrantType{signetv1.GrantType_GRANT_TYPE_DEVICE_CODE,
			signetv1.GrantType_GRANT_TYPE_REFRESH_TOKEN},
		RedirectUris:         []string{"https://a.example/r"},
		PostLogoutUris:       []string{"https://a.example/p"},
		BackChannelLogoutUri: "https://a.example/b",
		InitiateLoginUri:     "https://a.example/s",
		KeySetUri:            "https://a.example/k",
		TokenFormat:          signetv1.TokenFormat_TOKEN_FORMAT_JWT,
		SigningAlgorithm:     signetv1.SigningAlgorithm_SIGNING_ALGORITHM_RS256,
		AccessTokenSeconds:   301,
		RefreshTokenSeconds:  302,
		ConsentRequired:      true,
		AllOrganizations:     true,
		ExactAuthMethod:      true,

		PushedRequestsRequired: true,
		DpopRequired:           true,

		IdTokenClaims: signetv1.IDTokenClaims_ID_TOKEN_CLAIMS_SCOPES,
		UpdateMask:    &fieldmaskpb.FieldMask{Paths: paths},
	}
}

var appFields = []string{"name", "auth_method", "grant_types", "redirect_uris", "post_logout_uris",
	"back_channel_logout_uri", "key_set_uri", "token_format",
	"signing_algorithm", "access_token_seconds", "refresh_token_seconds", "consent_required", "all_organizations",
	"exact_auth_method", "id_token_claims", "initiate_login_uri", "pushed_requests_required", "dpop_required"}

// Every field that a mask can name has to arrive, alone.
func TestAMaskPicksItsFieldsOfAnApplication(t *testing.T) {
	var paths []string
	for _, l := range modifiableApp.Leaves() {
		paths = append(paths, l.Path)
		t.Run(l.Path, func(t *testing.T) {
			got := appParts(changeOf(appModification(l.Path)))
			bare := &signetv1.ModifyApplicationRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{l.Path}}}
			if empty := appParts(changeOf(bare)); len(got) != 1 || len(empty) != 1 || got[0] == empty[0] {
				t.Errorf("it sets %q, and without a value %q", got, empty)
			}
			only := proto.Clone(bare).ProtoReflect()
			only.Set(l.Steps[0], appModification().ProtoReflect().Get(l.Steps[0]))
			if alone := appParts(changeOf(only.Interface().(*signetv1.ModifyApplicationRequest))); fmt.Sprint(alone) != fmt.Sprint(got) {
				t.Errorf("it takes its value from elsewhere: %q, not %q", alone, got)
			}
		})
	}
	if !slices.Equal(paths, appFields) {
		t.Errorf("a mask can name %q", paths)
	}
}

// appParts lists what a change sets, with the values.
func appParts(c app.SettingsChanged) (set []string) {
	var a app.App
	c.Apply(&a)
	add := func(name string, is bool, value any) {
		if is {
			set = append(set, fmt.Sprintf("%s=%v", name, value))
		}
	}
	add("name", c.Name != nil, a.Name)
	add("method", c.AuthMethod != nil, a.AuthMethod)
	add("grants", c.GrantTypes != nil, a.GrantTypes)
	add("redirect", c.RedirectURIs != nil, a.RedirectURIs)
	add("post logout", c.PostLogoutURIs != nil, a.PostLogoutURIs)
	add("back channel", c.BackChannelLogoutURI != nil, a.BackChannelLogoutURI)
	add("start", c.InitiateLoginURI != nil, a.InitiateLoginURI)
	add("key set", c.KeySetURI != nil, a.KeySetURI)
	add("format", c.TokenFormat != nil, a.TokenFormat)
	add("algorithm", c.SigningAlgorithm != nil, a.SigningAlgorithm)
	add("access", c.AccessTokenSeconds != nil, a.AccessTokenSeconds)
	add("refresh", c.RefreshTokenSeconds != nil, a.RefreshTokenSeconds)
	add("consent", c.ConsentRequired != nil, a.ConsentRequired)
	add("all", c.AllOrganizations != nil, a.AllOrganizations)
	add("exact", c.ExactAuthMethod != nil, a.ExactAuthMethod)
	add("pushed", c.PushedRequired != nil, a.PushedRequired)
	add("dpop", c.DPoPRequired != nil, a.DPoPRequired)
	add("claims", c.IDTokenClaims != nil, a.IDTokenClaims)
	return set
}

func TestWhatIsWrongWithARequestAboutAnApplication(t *testing.T) {
	web := signetv1.ApplicationType_APPLICATION_TYPE_WEB
	past := event.Time(1)
	for _, c := range []struct {
		name string
		req  proto.Message
		want []string
	}{
		{"every field by its name", appModification(appFields...), nil},
		{"values that are not named", appModification("name", "redirect_uris"),
			[]string{"authMethod", "grantTypes", "postLogoutUris", "backChannelLogoutUri", "keySetUri", "tokenFormat",
				"signingAlgorithm", "accessTokenSeconds", "refreshTokenSeconds", "consentRequired", "allOrganizations",
				"exactAuthMethod", "idTokenClaims", "initiateLoginUri",
				"pushedRequestsRequired", "dpopRequired"}},
		{"the identifier and the type",
			&signetv1.ModifyApplicationRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"app_id", "type"}}},
			[]string{"updateMask"}},
		{"no name", &signetv1.ModifyApplicationRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"name"}}},
			[]string{"name"}},
		{"what may be empty", &signetv1.ModifyApplicationRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: appFields[1:]}}, nil},
		{"an address that no type may have",
			&signetv1.ModifyApplicationRequest{RedirectUris: []string{"https://a.example", "data:x"},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"redirect_uris"}}},
			[]string{"redirectUris[1]"}},
		{"an address that some type may have",
			&signetv1.ModifyApplicationRequest{RedirectUris: []string{"com.example.app:/b"},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"redirect_uris"}}}, nil},
		{"a new one", &signetv1.AddApplicationRequest{Type: web, RedirectUris: []string{"https://a.example"}}, nil},
		{"a new one that nobody can come back to", &signetv1.AddApplicationRequest{Type: web},
			[]string{"redirectUris"}},
		{"a new one without a type", &signetv1.AddApplicationRequest{RedirectUris: []string{"http://a.example"}},
			[]string{"redirectUris[0]"}},
		{"scopes", &signetv1.SetApplicationAPIAccessRequest{Scopes: []string{"signet.self", "openid"}},
			[]string{"scopes[1]"}},
		{"a key", &signetv1.AddApplicationKeyRequest{PublicKey: "x"}, []string{"publicKey"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range (Checker{Clock: func() time.Time { return past }}).check(c.req) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
