package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/idp"
)

// modification has a value in every field, and a mask with these paths.
func modification(paths ...string) *signetv1.ModifyIdentityProviderRequest {
	return &signetv1.ModifyIdentityProviderRequest{IdpId: "idp_a", Name: "n", StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true,
		Jwt:        &signetv1.ModifyIdentityProviderRequest_JWT{JwtEndpoint: "e", Issuer: "i", KeysEndpoint: "k", HeaderName: "h", Audience: "a"},
		Oidc:       &signetv1.ModifyIdentityProviderRequest_OIDC{Issuer: "i", ClientId: "c", ClientSecret: "hush", Scopes: []string{"s"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
}

func TestAMaskAndTheValuesBesideItAgree(t *testing.T) {
	all := []string{"name", "stylingType", "autoRegister", "jwt.jwtEndpoint", "jwt.issuer", "jwt.keysEndpoint", "jwt.headerName", "jwt.audience",
		"oidc.issuer", "oidc.clientId", "oidc.clientSecret", "oidc.scopes"}
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
		{"every field by its name", modification("name", "styling_type", "auto_register", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "jwt.header_name", "jwt.audience",
			"oidc.issuer", "oidc.client_id", "oidc.client_secret", "oidc.scopes"), nil},
		{"parts as a whole, where the secret is not among them", modification("name", "styling_type", "auto_register", "jwt", "oidc"), []string{"oidc.clientSecret"}},
		{"parts as a whole and the secret", modification("name", "styling_type", "auto_register", "jwt", "oidc", "oidc.client_secret", "oidc.issuer", "name"), nil},
		{"values that are not named", modification("name"), without("name")},
		{"a field that there is not", empty("nam"), []string{"updateMask"}},
		{"fields that there are not, and one that is", empty("nam", "jwt.", "auto_register", "x"), []string{"updateMask"}},
		{"the identifier", empty("idp_id"), []string{"updateMask"}},
		{"the mask itself", empty("update_mask.paths"), []string{"updateMask"}},
		{"the name of JSON", empty("autoRegister"), []string{"updateMask"}},
		{"everything with a star", empty("*"), []string{"updateMask"}},
		{"below a field", empty("name.x"), []string{"updateMask"}},
		{"an empty path", empty(""), []string{"updateMask"}},
		{"fields that may be empty", empty("styling_type", "auto_register", "jwt.header_name", "jwt.audience", "oidc.scopes", "oidc.client_secret"), nil},
		{"fields that must not be empty", empty("name", "jwt", "oidc"), []string{"name", "jwt.jwtEndpoint", "jwt.issuer", "jwt.keysEndpoint", "oidc.issuer", "oidc.clientId"}},
		{"empty messages that are not named carry no value", &signetv1.ModifyIdentityProviderRequest{Jwt: &signetv1.ModifyIdentityProviderRequest_JWT{}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"auto_register"}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range (Checker{Clock: time.Now}).check(c.req) {
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
	for _, l := range modifiable.Leaves {
		t.Run(l.Path, func(t *testing.T) {
			got := modificationOf(modification(l.Path))
			if n := parts(got); len(n) != 1 {
				t.Errorf("it sets %q", n)
			}
			// Its value comes from its own field.
			bare := &signetv1.ModifyIdentityProviderRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{l.Path}}}
			if fmt.Sprint(parts(modificationOf(bare))) == fmt.Sprint(parts(got)) {
				t.Error("the value in the request does not matter")
			}
			only := proto.Clone(bare).ProtoReflect()
			m, from := only, modification().ProtoReflect()
			for _, step := range l.Steps[:len(l.Steps)-1] {
				m, from = m.Mutable(step).Message(), from.Get(step).Message()
			}
			last := l.Steps[len(l.Steps)-1]
			m.Set(last, from.Get(last))
			if alone := parts(modificationOf(only.Interface().(*signetv1.ModifyIdentityProviderRequest))); fmt.Sprint(alone) != fmt.Sprint(parts(got)) {
				t.Errorf("it takes its value from elsewhere: %q, not %q", alone, parts(got))
			}
		})
	}
	if n := len(parts(modificationOf(modification("name", "styling_type", "auto_register", "jwt", "oidc")))); n != len(modifiable.Leaves)-1 {
		t.Errorf("all but the secret are %d of %d", n, len(modifiable.Leaves))
	}
	if m := modificationOf(modification("oidc.client_secret")); m.OIDC != nil || *m.ClientSecret != "hush" {
		t.Errorf("the secret alone: %+v", m)
	}
}

// parts lists what a modification sets, with the values.
func parts(m idp.Modification) (set []string) {
	add := func(name string, value any) { set = append(set, fmt.Sprintf("%s=%v", name, value)) }
	text := func(name string, value *string) {
		if value != nil {
			add(name, *value)
		}
	}
	text("name", m.General.Name)
	if m.General.Styling != nil {
		add("styling", *m.General.Styling)
	}
	if m.General.AutoRegister != nil {
		add("autoRegister", *m.General.AutoRegister)
	}
	if j := m.JWT; j != nil {
		text("jwt endpoint", j.Endpoint)
		text("jwt issuer", j.Issuer)
		text("jwt keys", j.KeysEndpoint)
		text("jwt header", j.HeaderName)
		text("jwt audience", j.Audience)
	}
	if o := m.OIDC; o != nil {
		text("oidc issuer", o.Issuer)
		text("oidc client", o.ClientID)
		if o.Scopes != nil {
			add("oidc scopes", *o.Scopes)
		}
	}
	text("secret", m.ClientSecret)
	return set
}
