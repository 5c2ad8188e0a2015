package api

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/idp"
)

// ModifyIdentityProvider sets the named parts of a provider of the context organization.
func (s IdentityProviders) ModifyIdentityProvider(ctx context.Context, r *signetv1.ModifyIdentityProviderRequest) (*signetv1.ModifyIdentityProviderResponse, error) {
	info := call.From(ctx)
	d, err := idp.Modify(ctx, s.Store, s.Master, info.Permit, r.GetIdpId(), info.IfMatch, modificationOf(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyIdentityProviderResponse{Details: changed(d)}, nil
}

// modifiable are the fields that an update mask can name, from the definition.
var modifiable = leavesOf((&signetv1.ModifyIdentityProviderRequest{}).ProtoReflect().Descriptor(), nil)

// leaf is a field that holds no message.
type leaf struct {
	path  string // in the names of the definition, as masks have them
	json  string
	steps []protoreflect.FieldDescriptor
}

func leavesOf(md protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor) (leaves []leaf) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if len(above) == 0 && (fd.Name() == "idp_id" || fd.Name() == "update_mask") {
			continue
		}
		steps := append(slices.Clone(above), fd)
		if fd.Message() != nil {
			leaves = append(leaves, leavesOf(fd.Message(), steps)...)
			continue
		}
		l := leaf{steps: steps}
		for _, step := range steps {
			l.path += "." + string(step.Name())
			l.json += "." + step.JSONName()
		}
		l.path, l.json = l.path[1:], l.json[1:]
		leaves = append(leaves, l)
	}
	return leaves
}

// sent tells whether a message has a value for the leaf.
func (l leaf) sent(m protoreflect.Message) bool {
	for _, step := range l.steps {
		if !m.Has(step) {
			return false
		}
		if step.Message() != nil {
			m = m.Get(step).Message()
		}
	}
	return true
}

// in tells whether a path of a mask names the leaf, itself or with all of its message. A secret is only ever meant by
// its own name: who replaces a configuration as it was shown has no secret to send along.
func (l leaf) in(path string) bool {
	return l.path == path || strings.HasPrefix(l.path, path+".") && l.path != clientSecret
}

const clientSecret = "oidc.client_secret"

// neverEmpty are the fields that a provider cannot be without.
var neverEmpty = []string{"name", "jwt.jwt_endpoint", "jwt.issuer", "jwt.keys_endpoint", "oidc.issuer", "oidc.client_id"}

// checkModification relates an update mask to the values beside it. What is sent but not named is refused: to drop it in
// silence would lose data.
func checkModification(r *signetv1.ModifyIdentityProviderRequest) []errs.Violation {
	mask := r.GetUpdateMask().GetPaths()
	if len(mask) == 0 {
		return []errs.Violation{{Field: "updateMask", Message: "must name at least one field"}}
	}
	var wrong []errs.Violation
	for _, path := range mask {
		if !slices.ContainsFunc(modifiable, func(l leaf) bool { return l.in(path) }) {
			wrong = append(wrong, errs.Violation{Field: "updateMask", Message: "names a field that cannot be set: use " + modifiableNames})
			break
		}
	}
	m := r.ProtoReflect()
	for _, l := range modifiable {
		named := slices.ContainsFunc(mask, l.in)
		switch sent := l.sent(m); {
		case sent && !named:
			wrong = append(wrong, errs.Violation{Field: l.json, Message: "is not named in updateMask: name it, or leave it out"})
		case named && !sent && slices.Contains(neverEmpty, l.path):
			wrong = append(wrong, errs.Violation{Field: l.json, Message: "must not be empty"})
		}
	}
	return wrong
}

var modifiableNames = func() string {
	var names []string
	for _, l := range modifiable {
		names = append(names, l.json)
	}
	return strings.Join(names, ", ")
}()

// modificationOf keeps what the mask of a request names.
func modificationOf(r *signetv1.ModifyIdentityProviderRequest) idp.Modification {
	fields := map[string]bool{}
	for _, l := range modifiable {
		fields[l.path] = slices.ContainsFunc(r.GetUpdateMask().GetPaths(), l.in)
	}
	jwt, oidc := r.GetJwt(), r.GetOidc()
	m := idp.Modification{
		General: idp.Changed{
			Name:         named(fields, "name", r.GetName()),
			Styling:      named(fields, "styling_type", stylings.name(r.GetStylingType())),
			AutoRegister: named(fields, "auto_register", r.GetAutoRegister()),
		},
		ClientSecret: named(fields, clientSecret, oidc.GetClientSecret()),
	}
	ofJWT := idp.JWTChanged{
		Endpoint:     named(fields, "jwt.jwt_endpoint", jwt.GetJwtEndpoint()),
		Issuer:       named(fields, "jwt.issuer", jwt.GetIssuer()),
		KeysEndpoint: named(fields, "jwt.keys_endpoint", jwt.GetKeysEndpoint()),
		HeaderName:   named(fields, "jwt.header_name", jwt.GetHeaderName()),
		Audience:     named(fields, "jwt.audience", jwt.GetAudience()),
	}
	if ofJWT != (idp.JWTChanged{}) {
		m.JWT = &ofJWT
	}
	ofOIDC := idp.OIDCChanged{
		Issuer:   named(fields, "oidc.issuer", oidc.GetIssuer()),
		ClientID: named(fields, "oidc.client_id", oidc.GetClientId()),
		Scopes:   named(fields, "oidc.scopes", oidc.GetScopes()),
	}
	if ofOIDC != (idp.OIDCChanged{}) {
		m.OIDC = &ofOIDC
	}
	return m
}

// named gives a value where the mask names its field.
func named[T any](fields map[string]bool, path string, value T) *T {
	if fields[path] {
		return &value
	}
	return nil
}
