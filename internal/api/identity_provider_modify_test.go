package api

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/idp"
)

// modification has a value in every field, and a mask with these paths.
func modification(paths ...string) *signetv1.ModifyIdentityProviderRequest {
	claims := &signetv1.IdentityProviderClaims{UserName: "u", FirstName: "f", LastName: "l", NickName: "n",
		Email: "e", Language: "g"}
	parameters := []*signetv1.IdentityProviderParameter{{Name: "p", Value: "v"}}
	post := signetv1.IdentityProviderClientAuth_IDENTITY_PROVIDER_CLIENT_AUTH_CLIENT_SECRET_POST
	return &signetv1.ModifyIdentityProviderRequest{
		IdpId:        "idp_a",
		Name:         "n",
		StylingType:  signetv1.StylingType_STYLING_TYPE_GOOGLE,
		AutoRegister: true,
		LinkByEmail:  true,
		Jwt: &signetv1.ModifyIdentityProviderRequest_JWT{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k",
			HeaderName: "h", Audience: "a"},
		Oidc: &signetv1.ModifyIdentityProviderRequest_OIDC{
			Issuer:       "i",
			ClientId:     "c",
			ClientSecret: "hush",
			Scopes:       []string{"s"},
			Preset:       signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GOOGLE,
			ClientAuth:   post,
			FormPost:     true,
			Parameters:   parameters,
			Claims:       claims,
			Tenants:      []string{"t"},
			TeamId:       "t",
			KeyId:        "k",
		},
		Oauth: &signetv1.ModifyIdentityProviderRequest_OAuth{
			AuthorizationEndpoint: "a",
			TokenEndpoint:         "t",
			UserEndpoint:          "u",
			EmailsEndpoint:        "m",
			ClientId:              "c",
			ClientSecret:          "hush",
			Scopes:                []string{"s"},
			Preset:                signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GITHUB,
			ClientAuth:            post,
			Parameters:            parameters,
			Subject:               "s",
			Claims:                claims,
		},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
	}
}

// allJSON are all fields that can be named, as violations have them.
func allJSON() (names []string) {
	for _, l := range modifiableProvider.Leaves() {
		name := ""
		for _, step := range l.Steps {
			name += "." + step.JSONName()
		}
		names = append(names, name[1:])
	}
	return names
}

func allPaths() (paths []string) {
	for _, l := range modifiableProvider.Leaves() {
		paths = append(paths, l.Path)
	}
	return paths
}

func TestAMaskAndTheValuesBesideItAgree(t *testing.T) {
	all := allJSON()
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(names, s) })
	}
	empty := func(paths ...string) *signetv1.ModifyIdentityProviderRequest {
		return &signetv1.ModifyIdentityProviderRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
	}
	for _, c := range []struct {
		name string
		req  *signetv1.ModifyIdentityProviderRequest
		want []string
	}{
		{"no mask", &signetv1.ModifyIdentityProviderRequest{Name: "n"}, []string{"updateMask"}},
		{"a mask that names nothing", modification(), []string{"updateMask"}},
		{"every field by its name", modification(allPaths()...), nil},
		{"parts as a whole, where the secret is not among them",
			modification("name", "styling_type", "auto_register", "jwt", "oidc", "oauth", "link_by_email"),
			[]string{"oidc.clientSecret", "oauth.clientSecret"}},
		{"parts as a whole and the secret",
			modification("name", "styling_type", "auto_register", "jwt", "oidc", "oidc.client_secret", "oidc.issuer",
				"name", "link_by_email", "oauth", "oauth.client_secret"), nil},
		{"values that are not named", modification("name"), without("name")},
		{"a field that there is not", empty("nam"), []string{"updateMask"}},
		{"fields that there are not, and one that is", empty("nam", "jwt.", "auto_register", "x"),
			[]string{"updateMask"}},
		{"the identifier", empty("idp_id"), []string{"updateMask"}},
		{"the mask itself", empty("update_mask.paths"), []string{"updateMask"}},
		{"the name of JSON", empty("autoRegister"), []string{"updateMask"}},
		{"everything with a star", empty("*"), []string{"updateMask"}},
		{"below a field", empty("name.x"), []string{"updateMask"}},
		{"an empty path", empty(""), []string{"updateMask"}},
		{"fields that may be empty",
			empty("styling_type", "auto_register", "jwt.header_name", "jwt.audience", "oidc.scopes",
				"oidc.client_secret", "oidc.parameters", "oidc.claims", "oidc.tenants", "oidc.preset", "oauth.subject",
				"oauth.emails_endpoint"), nil},
		{"fields that must not be empty", empty("name", "jwt", "oidc", "oauth"),
			[]string{"name", "jwt.jwtEndpoint", "jwt.issuer", "jwt.keysEndpoint", "oidc.issuer", "oidc.clientId",
				"oauth.authorizationEndpoint", "oauth.tokenEndpoint", "oauth.userEndpoint", "oauth.clientId"}},
		{"a parameter that is there twice", &signetv1.ModifyIdentityProviderRequest{
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"oidc.parameters", "oauth.parameters"}},
			Oidc:       &signetv1.ModifyIdentityProviderRequest_OIDC{Parameters: []*signetv1.IdentityProviderParameter{{Name: "a"}, {Name: "b"}, {Name: "a"}}},
			Oauth:      &signetv1.ModifyIdentityProviderRequest_OAuth{Parameters: []*signetv1.IdentityProviderParameter{{Name: "a"}, {Name: "a"}}},
		}, []string{"oidc.parameters[2].name", "oauth.parameters[1].name"}},
		{"what the protocol owns", &signetv1.ModifyIdentityProviderRequest{
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"oidc.parameters", "oauth.claims.email"}},
			Oidc:       &signetv1.ModifyIdentityProviderRequest_OIDC{Parameters: []*signetv1.IdentityProviderParameter{{Name: "state"}}},
			Oauth:      &signetv1.ModifyIdentityProviderRequest_OAuth{Claims: &signetv1.IdentityProviderClaims{Email: "sub"}},
		}, []string{"oidc.parameters", "oauth.claims.email"}},
		{"empty messages that are not named carry no value",
			&signetv1.ModifyIdentityProviderRequest{Jwt: &signetv1.ModifyIdentityProviderRequest_JWT{},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"auto_register"}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range checkProvider(c.req) {
				got = append(got, v.Field)
				if v.Message == "" || strings.Contains(v.Message, "hush") {
					t.Errorf("%s: %q", v.Field, v.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Every field that a mask can name has to arrive, alone.
func TestAMaskPicksItsFields(t *testing.T) {
	for _, l := range modifiableProvider.Leaves() {
		t.Run(l.Path, func(t *testing.T) {
			got := providerModification(modification(l.Path))
			if n := parts(got); len(n) != 1 {
				t.Errorf("it sets %q", n)
			}
			// Its value comes from its own field.
			bare := &signetv1.ModifyIdentityProviderRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{l.Path}}}
			if fmt.Sprint(parts(providerModification(bare))) == fmt.Sprint(parts(got)) {
				t.Error("the value in the request does not matter")
			}
			only := proto.Clone(bare).ProtoReflect()
			m, from := only, modification().ProtoReflect()
			for _, step := range l.Steps[:len(l.Steps)-1] {
				m, from = m.Mutable(step).Message(), from.Get(step).Message()
			}
			last := l.Steps[len(l.Steps)-1]
			m.Set(last, from.Get(last))
			if alone := parts(providerModification(only.Interface().(*signetv1.ModifyIdentityProviderRequest))); fmt.Sprint(alone) != fmt.Sprint(parts(got)) {
				t.Errorf("it takes its value from elsewhere: %q, not %q", alone, parts(got))
			}
		})
	}
	if n := len(parts(providerModification(modification("name", "styling_type", "auto_register", "link_by_email", "jwt",
		"oidc", "oauth")))); n != len(modifiableProvider.Leaves())-2 {
		t.Errorf("all but the secrets are %d of %d", n, len(modifiableProvider.Leaves()))
	}
	if m := providerModification(modification("oidc.client_secret")); m.OIDC != nil || *m.OIDCSecret != "hush" {
		t.Errorf("the secret alone: %+v", m)
	}
}

// parts lists what a modification sets, with the values.
func parts(m idp.Modification) (set []string) {
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[idp.Answered](): // not of the request
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(name+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case v.Kind() == reflect.Pointer && v.IsNil():
		case v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct:
			walk(name, v.Elem())
		default:
			set = append(set, fmt.Sprintf("%s=%v", name, v.Elem()))
		}
	}
	walk("", reflect.ValueOf(m))
	return set
}
