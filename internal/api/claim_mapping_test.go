package api

import (
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
)

func TestClaimMappingsHaveTheBoundsOfTheDefinition(t *testing.T) {
	rulesOf := func(m proto.Message, field protoreflect.Name) *validate.FieldRules {
		fd := m.ProtoReflect().Descriptor().Fields().ByName(field)
		return proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
	}
	for field, most := range map[protoreflect.Name]uint64{"constant": app.MaxClaimText, "begins_with": app.MaxClaimText,
		"prefix": app.MaxClaimPrefix} {
		if got := rulesOf(&signetv1.ClaimMapping{}, field).GetString().GetMaxLen(); got != most {
			t.Errorf("%s: %d, not %d", field, got, most)
		}
	}
	if got := rulesOf(&signetv1.ClaimMapping{}, "only").GetRepeated().GetMaxItems(); got != app.MaxClaimOnly {
		t.Errorf("only: %d", got)
	}
	if got := rulesOf(&signetv1.SetApplicationClaimMappingsRequest{}, "mappings").GetRepeated().GetMaxItems(); got !=
		app.MaxClaimMappings {
		t.Errorf("mappings: %d", got)
	}
}

// Every word of the rules has a number in the definition, and every number a word.
func TestEveryPartOfAClaimMappingHasANumber(t *testing.T) {
	for _, e := range []struct {
		of    protoreflect.EnumDescriptor
		words int
	}{
		{signetv1.ClaimMapping_Source(0).Descriptor(), len(claimSourceNames)},
		{signetv1.ClaimMapping_Shape(0).Descriptor(), len(claimShapes)},
		{signetv1.ClaimMapping_Target(0).Descriptor(), len(claimTargets)},
	} {
		if got := e.of.Values().Len() - 1; got != e.words { // but for the unspecified one
			t.Errorf("%s has %d values, and %d words", e.of.FullName(), got, e.words)
		}
	}
	for number, source := range claimSourceNames {
		m := &signetv1.ClaimMapping{Source: number, Claim: "x", Targets: []signetv1.ClaimMapping_Target{1}}
		switch source {
		case app.FromMetadata:
			m.MetadataKey = "k"
		case app.FromConstant:
			m.Constant = "c"
		}
		if wrong := app.ClaimMappingViolations(claimMappings([]*signetv1.ClaimMapping{m})); len(wrong) > 0 {
			t.Errorf("%s: %v", number, wrong)
		}
	}
}
