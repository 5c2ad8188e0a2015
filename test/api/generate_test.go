package api_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// sample is a valid request for an operation, aimed at the objects of the scene. It is made from the descriptor:
// identifiers by their names, other required fields by their names and rules. What that cannot make is in samples.
func (s *scene) sample(op *operation) proto.Message {
	if special := samples[op.name()]; special != nil {
		return special(s)
	}
	return s.generate(op, false)
}

// complete is a sample in which every field has a value.
func (s *scene) complete(op *operation) proto.Message {
	if op.name() == "AddOIDCIdentityProvider" { // what is of one preset excludes what is of another
		return &signetv1.AddOIDCIdentityProviderRequest{
			Name:       "Sample",
			Issuer:     "https://sample.example",
			ClientId:   "Sample",
			Parameters: []*signetv1.IdentityProviderParameter{{Name: "sample", Value: "Sample"}},
			Claims:     &signetv1.IdentityProviderClaims{Email: "sample"},
		}
	}
	switch op.name() {
	case "ProveSecondFactor", "ResetPassword", "SetApplicationClaimMappings": // its fields exclude each other
		return s.sample(op)
	case "FinishRegistration": // a password or a passkey
		return &signetv1.FinishRegistrationRequest{
			Token:            "sample",
			Password:         s.w.secret("sample"),
			UserName:         "Sample",
			PasskeyName:      "Sample",
			AcceptedTermsUri: "https://sample.example",
			Profile: &signetv1.FinishRegistrationRequest_Profile{FirstName: "Ada", LastName: "Lovelace",
				NickName: "Ada", DisplayName: "Ada", PreferredLanguage: "en"},
		}
	case "SetOrganizationPolicy", "PreviewOrganizationPolicy": // what is found at an address is not any text
		return with(with(s.generate(op, true), "policy.termsUri", "https://sample.example"), "policy.privacyUri",
			"https://sample.example")
	case "SetInstallationPolicy": // some fields of a policy are for organizations only
		return s.sample(op)
	}
	made := s.generate(op, true)
	if special := samples[op.name()]; special != nil {
		proto.Merge(made, special(s))
	}
	return made
}

func (s *scene) generate(op *operation, all bool) proto.Message {
	m := op.input.New()
	g := &generator{scene: s, op: op, all: all}
	g.fill(m)
	return m.Interface()
}

// generator fills the request of an operation.
type generator struct {
	*scene
	op  *operation
	all bool // optional fields too
}

func (g *generator) fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case isParameter(g.op, fd.JSONName()) && m.Descriptor() == g.op.md.Input():
			m.Set(fd, protoreflect.ValueOfString(g.identifier(fd)))
		case g.op.verb == "GET" || !g.all && !required(fd):
			// A list without conditions is a valid request, and so is what leaves out what may be left out.
		case fd.IsList() && fd.Kind() == protoreflect.EnumKind:
			m.Mutable(fd).List().Append(protoreflect.ValueOfEnum(1))
		case fd.IsList() && fd.Message() != nil:
			g.fill(m.Mutable(fd).List().AppendMutable().Message())
		case fd.IsList():
			list := m.Mutable(fd).List()
			for _, text := range g.elements(fd) {
				list.Append(protoreflect.ValueOfString(text))
			}
		case fd.Message() != nil:
			switch fd.Message().FullName() {
			case "google.protobuf.Timestamp":
				m.Set(fd, protoreflect.ValueOfMessage(timestamppb.New(time.Now().Add(24*time.Hour)).ProtoReflect()))
			case "google.protobuf.FieldMask":
				m.Set(fd, protoreflect.ValueOfMessage((&fieldmaskpb.FieldMask{Paths: g.mask(m)}).ProtoReflect()))
			default:
				g.fill(m.Mutable(fd).Message())
			}
		case fd.Kind() == protoreflect.StringKind:
			m.Set(fd, protoreflect.ValueOfString(g.text(fd)))
		case fd.Kind() == protoreflect.EnumKind && fd.Name() == "preset" &&
			strings.Contains(string(m.Descriptor().Name()), "OAuth"):
			m.Set(fd, protoreflect.ValueOfEnum(signetv1.IdentityProviderPreset_IDENTITY_PROVIDER_PRESET_GITHUB.Number()))
		case fd.Kind() == protoreflect.EnumKind:
			m.Set(fd, protoreflect.ValueOfEnum(1))
		}
	}
}

// required tells whether the rules of a field want a value.
func required(fd protoreflect.FieldDescriptor) bool {
	if fd.HasOptionalKeyword() {
		return false
	}
	rules, _ := proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
	return rules.GetRequired() || rules.GetString().GetMinLen() > 0 || rules.GetRepeated().GetMinItems() > 0
}

// identifier is what a parameter of the path names: an object of the scene, or something of such an object that is not
// there.
func (g *generator) identifier(fd protoreflect.FieldDescriptor) string {
	switch fd.Name() {
	case "user_id":
		if g.op.aboutServices() {
			return g.robot().UserID
		}
		return g.user.UserID
	case "org_id":
		return g.org
	case "idp_id":
		return g.idp
	case "app_id":
		return g.app
	case "webhook_id":
		return g.webhook()
	case "project_id":
		return g.project()
	case "group_id":
		return g.group()
	case "role_id":
		if g.op.rule.GetScope() == signetv1.Scope_SCOPE_SELF {
			return g.w.role
		}
		return g.role
	case "grant_id":
		if g.op.has("projectId") {
			return g.grant()
		}
		return g.granted()
	case "invitation_id":
		return g.invitation()
	case "offer_id":
		if !g.op.has("userId") {
			return g.offer()
		}
	case "domain":
		return g.domain
	}
	prefix, _, _ := strings.Cut(string(fd.Name()), "_")
	return prefix[:min(3, len(prefix))] + "_0198c0de00007000800000000000dead"
}

// aboutServices tells of operations that people are no target of.
func (op *operation) aboutServices() bool {
	return op.md.Parent().Name() == "CredentialService" || strings.Contains(op.name(), "Service")
}

// text is a value for a field, by what its name promises.
func (g *generator) text(fd protoreflect.FieldDescriptor) string {
	name := string(fd.Name())
	switch {
	case name == "email", name == "address":
		return unique("mail") + "@mail.example"
	case name == "project_id":
		return g.project()
	case name == "granted_org_id":
		return g.another()
	case name == "password_hash":
		return "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
	case name == "phone", name == "number":
		return "+49-30-1234"
	case name == "domain":
		return unique("sample") + ".example"
	case name == "user_name":
		return unique("sample")
	case name == "public_key":
		return publicKey()
	case name == "key_set":
		return `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}]}`
	case name == "name" && fd.Parent().Name() == "WorkloadClaim":
		return "sub"
	case name == "url":
		return "https://sample.example/" + name
	case name == "event_id":
		return g.app + ".1"
	case name == "preferred_language":
		return "de-CH"
	case name == "password" || strings.HasSuffix(name, "_password") || strings.HasSuffix(name, "_secret"):
		return g.w.secret("sample")
	case name == "issuer" || strings.HasSuffix(name, "_endpoint") || strings.HasSuffix(name, "_uri"):
		return "https://sample.example/" + name
	}
	return "Sample"
}

// elements are the values of a list of texts.
func (g *generator) elements(fd protoreflect.FieldDescriptor) []string {
	switch {
	case fd.Name() == "roles" && g.op.rule.GetScope() == signetv1.Scope_SCOPE_SELF &&
		g.op.rule.GetPermission() == "installation.write":
		return []string{iamViewer}
	case fd.Name() == "roles":
		return []string{userManager}
	case strings.HasSuffix(string(fd.Name()), "_uris"):
		return []string{"https://sample.example/" + string(fd.Name())}
	case fd.Name() == "types":
		return []string{"user.*", "org.renamed.v1"}
	case fd.Name() == "organization_ids":
		return []string{g.org}
	case fd.Name() == "permissions":
		return sampleRole
	case g.op.name() == "SetApplicationAPIAccess":
		return []string{"signet.self"}
	}
	return []string{"sample"}
}

// mask names the first text of a message that is no identifier, or all fields that have a value.
func (g *generator) mask(m protoreflect.Message) []string {
	if g.all {
		var paths []string
		for _, f := range fieldsOf(m.Descriptor(), "") {
			if (f.fd.Message() == nil || f.fd.IsList()) && !isParameter(g.op, f.path) { // of messages, what is in them
				paths = append(paths,
					capital.ReplaceAllStringFunc(f.path, func(c string) string { return "_" + strings.ToLower(c) }))
			}
		}
		return paths
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Kind() == protoreflect.StringKind && !isParameter(g.op, fd.JSONName()) {
			m.Set(fd, protoreflect.ValueOfString(g.text(fd)))
			return []string{string(fd.Name())}
		}
	}
	return nil
}

// capital begins a word in a JSON name.
var capital = regexp.MustCompile(`[A-Z]`)

// publicKey is one that a service user could have.
var publicKey = sync.OnceValue(func() string {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
})

// everythingCovered sees whether all operations have a valid request. A session that must change its password is
// refused after the request was looked at, and before anything is done.
func everythingCovered(t *testing.T, w *World) {
	if len(operations) < 13 {
		t.Fatalf("only %d operations were found", len(operations))
	}
	s := w.scene(t)
	restricted := w.restricted(t, s)
	for _, op := range operations {
		if op.rule.GetPublic() || op.rule.GetRestrictedSession() {
			continue // these have their stories
		}
		for name, req := range map[string]proto.Message{"sample": s.sample(op), "complete sample": s.complete(op)} {
			a := w.send(t, w.grpc, restricted, req, nil)
			if a.reason() == "INVALID_REQUEST" {
				t.Errorf("the %s of %s is not valid: teach generator.text or .elements (generate_test.go) what fields of that name hold, or add a request to samples (samples_test.go)\n%s",
					name, op.name(), a.summary())
				continue
			}
			a.mustBe(t, changeRequired)
		}
	}
	for name := range samples {
		operationNamed(t, name)
	}
}
