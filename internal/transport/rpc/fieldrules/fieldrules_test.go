package fieldrules_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/rpc/fieldrules"
	"github.com/signet-idm/signet/internal/transport/strict"
)

func TestARangeIsSaidInFewWords(t *testing.T) {
	var rules fieldrules.Rules
	found, _, err := rules.Check(&signetv1.SetInstallationPolicyRequest{Policy: &signetv1.Policy{PasswordMinLength: 73,
		NetworkWaitSeconds: 59, SessionSeconds: 300}})
	want := []errs.Violation{{Field: "policy.passwordMinLength", Message: "must be from 0 to 72"},
		{Field: "policy.networkWaitSeconds", Message: "must be from 60 to 3600"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v", found, err)
	}
}

// requests are the requests of all services and what is in their lists: an operation may look at those itself, see
// call.Info.Check.
func requests() (out []protoreflect.MessageDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				md := file.Services().Get(i).Methods().Get(j).Input()
				out = append(out, md)
				for k := range md.Fields().Len() {
					if fd := md.Fields().Get(k); fd.IsList() && fd.Message() != nil {
						out = append(out, fd.Message())
					}
				}
			}
		}
		return true
	})
	return out
}

// TestEveryRuleIsKnown: a server reads the rules of a request when the first one comes, so nobody would learn before
// that of a rule in the proto files that it does not know.
func TestEveryRuleIsKnown(t *testing.T) {
	if len(requests()) < 200 {
		t.Fatalf("only %d requests", len(requests()))
	}
	if err := new(fieldrules.Rules).Compile(requests()...); err != nil {
		t.Error(err)
	}
}

// TestProtovalidateSaysTheSame judges many requests, good and bad, by protovalidate as well.
func TestProtovalidateSaysTheSame(t *testing.T) {
	all := requests()
	validator, err := protovalidate.New(protovalidate.WithMessageDescriptors(all...), protovalidate.WithDisableLazy())
	if err != nil {
		t.Fatal(err)
	}
	rounds := 200
	if testing.Short() {
		rounds = 10
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var rules fieldrules.Rules
	seen := map[string]bool{}
	judged, good := 0, 0
	for _, md := range all {
		mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
		if err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			req := mt.New()
			if round > 0 {
				// the more is filled with bad values, the less of it is looked at
				fill(random, req, 1/float64(1+round%5), 0)
			}
			got, gotLong, err := rules.Check(req.Interface())
			want, wantLong, wantErr := oracle(validator, req.Interface(), seen)
			if err != nil || wantErr != nil || gotLong != wantLong || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: got %v, %v, %v\nprotovalidate says %v, %v, %v", seed, md.FullName(), got,
					gotLong, err, want, wantLong, wantErr)
			}
			judged++
			if len(got) == 0 {
				good++
			}
		}
	}
	for _, rule := range []string{"required", "string.min_len", "string.max_len", "repeated.min_items",
		"repeated.max_items", "repeated.unique", "int32.gte_lte", "int64.gte_lte",
		"enum.defined_only", "enum.not_in"} {
		if !seen[rule] && !testing.Short() {
			t.Errorf("seed %d: nothing has broken %s", seed, rule)
		}
	}
	t.Logf("%d requests, %d good", judged, good)
}

// oracle says with protovalidate what Check says.
func oracle(validator protovalidate.Validator, req proto.Message,
	seen map[string]bool) (found []errs.Violation, tooLong bool, err error) {
	broken, ok := errors.AsType[*protovalidate.ValidationError](validator.Validate(req))
	if !ok {
		return nil, false, validator.Validate(req)
	}
	for _, v := range broken.Violations {
		seen[v.Proto.GetRuleId()] = true
		found = append(found, errs.Violation{Field: strict.JSONPath(req.ProtoReflect().Descriptor(),
			protovalidate.FieldPathString(v.Proto.GetField())), Message: inWords(v)})
		if id := v.Proto.GetRuleId(); id == "string.max_len" || id == "repeated.max_items" {
			tooLong = true
		}
	}
	return found, tooLong, nil
}

func inWords(v *protovalidate.Violation) string {
	count := func(least, what string) string {
		n := v.RuleValue.Uint()
		if n == 1 {
			what = strings.TrimSuffix(what, "s")
		}
		return "must have " + least + " " + strconv.FormatUint(n, 10) + " " + what
	}
	switch v.Proto.GetRuleId() {
	case "required":
		return "is required"
	case "string.min_len", "repeated.min_items":
		if v.RuleValue.Uint() == 1 {
			return "must not be empty"
		}
		if v.Proto.GetRuleId() == "string.min_len" {
			return count("at least", "characters")
		}
		return count("at least", "elements")
	case "string.max_len":
		return count("at most", "characters")
	case "repeated.max_items":
		return count("at most", "elements")
	case "int32.gte_lte":
		if r, err := protovalidate.ResolveFieldRules(v.FieldDescriptor); err == nil {
			return fmt.Sprintf("must be from %d to %d", r.GetInt32().GetGte(), r.GetInt32().GetLte())
		}
	case "enum.defined_only":
		if v.FieldDescriptor != nil && v.FieldDescriptor.Enum() != nil {
			return "must be one of " + strict.EnumNames(v.FieldDescriptor.Enum())
		}
	}
	return v.Proto.GetMessage()
}

// fill sets some fields of a message, to values at the bounds of their rules; wild is how many of them may be outside.
func fill(random *rand.Rand, m protoreflect.Message, wild float64, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if random.IntN(8) == 0 || fd.Message() != nil && depth > 4 {
			continue
		}
		rules := &validate.FieldRules{}
		if r, err := protovalidate.ResolveFieldRules(fd); err == nil && r != nil {
			rules = r
		}
		switch {
		case fd.IsMap():
			for range random.IntN(3) {
				if fd.MapValue().Message() == nil && fd.MapKey().Kind() == protoreflect.StringKind {
					m.Mutable(fd).Map().Set(protoreflect.ValueOfString(fmt.Sprint("k", random.IntN(9))).MapKey(),
						scalar(random, fd.MapValue(), &validate.FieldRules{}, wild))
				}
			}
		case fd.IsList():
			r := rules.GetRepeated()
			n := int(r.GetMinItems()) + random.IntN(3)
			if random.Float64() < wild/4 {
				n = max(0, int(r.GetMinItems())-1)
				if r.GetMaxItems() > 0 && r.GetMaxItems() < 120 && random.IntN(2) == 0 {
					n = int(r.GetMaxItems()) + random.IntN(2)
				}
			}
			list := m.Mutable(fd).List()
			for range n {
				if fd.Message() != nil {
					e := list.NewElement()
					fill(random, e.Message(), wild, depth+1)
					list.Append(e)
					continue
				}
				list.Append(scalar(random, fd, r.GetItems(), wild))
				if random.IntN(6) == 0 {
					list.Append(list.Get(0))
				}
			}
		case fd.Message() != nil:
			fill(random, m.Mutable(fd).Message(), wild, depth+1)
		default:
			m.Set(fd, scalar(random, fd, rules, wild))
		}
	}
}

func scalar(random *rand.Rand, fd protoreflect.FieldDescriptor, rules *validate.FieldRules,
	wild float64) protoreflect.Value {
	outside := random.Float64() < wild/3
	bounded := func(least, most int64) int64 {
		if outside {
			return []int64{0, -1, least - 1, most + 1, math.MaxInt32, math.MinInt32}[random.IntN(6)]
		}
		return []int64{least, most, least + (most-least)/2}[random.IntN(3)]
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		r := rules.GetString()
		n := int64(random.IntN(4)) + int64(r.GetMinLen())
		if r.GetMaxLen() > 0 && r.GetMaxLen() < 5000 && random.IntN(4) == 0 {
			n = int64(r.GetMaxLen())
			if outside {
				n++
			}
		} else if outside {
			n = max(0, int64(r.GetMinLen())-1)
		}
		return protoreflect.ValueOfString(strings.Repeat([]string{"a", "é", "𝄞"}[random.IntN(3)], int(n)))
	case protoreflect.EnumKind:
		if outside {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(3) * 40))
		}
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(random.IntN(values.Len())).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(bounded(int64(rules.GetInt32().GetGte()),
			int64(rules.GetInt32().GetLte()))))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(bounded(rules.GetInt64().GetGte(), rules.GetInt64().GetLte()))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(random.Uint64N(4))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(random.Uint32N(4))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(random.Float64())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("b"))
	default:
		panic(fd.FullName())
	}
}

// TestManyAskAtOnce: the first requests of a kind may come together.
func TestManyAskAtOnce(t *testing.T) {
	var rules fieldrules.Rules
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, md := range requests() {
				mt, _ := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
				if _, _, err := rules.Check(mt.New().Interface()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestUnknownRulesAreRefused: a rule that nobody enforces must not look as if somebody did.
func TestUnknownRulesAreRefused(t *testing.T) {
	text, number, message := descriptorpb.FieldDescriptorProto_TYPE_STRING,
		descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	for _, c := range []struct {
		of       descriptorpb.FieldDescriptorProto_Type
		repeated bool
		rules    *validate.FieldRules
		want     string
	}{
		{text, false, validate.FieldRules_builder{String: validate.StringRules_builder{MinLen: new(uint64(3))}.Build()}.Build(), ""},
		{text, false, validate.FieldRules_builder{String: validate.StringRules_builder{Pattern: new("a+")}.Build()}.Build(), "buf.validate.StringRules.pattern is not known"},
		{text, false, validate.FieldRules_builder{CelExpression: []string{"this != ''"}}.Build(),
			"buf.validate.FieldRules.cel_expression is not known"},
		{text, false, validate.FieldRules_builder{Int32: validate.Int32Rules_builder{Gte: new(int32(3))}.Build()}.Build(), "another kind of field: int32"},
		{number, false, validate.FieldRules_builder{Int32: validate.Int32Rules_builder{Gt: new(int32(3))}.Build()}.Build(), "Int32Rules.gt is not known"},
		{number, false, validate.FieldRules_builder{Int32: validate.Int32Rules_builder{Gte: new(int32(3)),
			Lte: new(int32(2))}.Build()}.Build(), "ends before it begins"},
		{number, true, validate.FieldRules_builder{Int32: validate.Int32Rules_builder{Gte: new(int32(3))}.Build()}.Build(), "another kind of field: int32"},
		{text, true, validate.FieldRules_builder{Repeated: validate.RepeatedRules_builder{Items: validate.FieldRules_builder{String: validate.StringRules_builder{Email: new(true)}.Build()}.Build()}.Build()}.Build(),
			"buf.validate.StringRules.email is not known"},
		{text, true, validate.FieldRules_builder{Repeated: validate.RepeatedRules_builder{Items: validate.FieldRules_builder{Required: new(true)}.Build()}.Build()}.Build(), "an element that is required"},
		{number, true, validate.FieldRules_builder{Repeated: validate.RepeatedRules_builder{Items: validate.FieldRules_builder{Ignore: validate.Ignore_IGNORE_IF_ZERO_VALUE.Enum()}.Build()}.Build()}.Build(), "may be empty and is a int32"},
		{message, true, validate.FieldRules_builder{Repeated: validate.RepeatedRules_builder{Unique: new(true)}.Build()}.Build(), "must differ and are a message"},
	} {
		options := &descriptorpb.FieldOptions{}
		proto.SetExtension(options, validate.E_Field, c.rules)
		fd := &descriptorpb.FieldDescriptorProto{Name: new("f"), Number: new(int32(1)), Type: c.of.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Options: options}
		if c.repeated {
			fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if c.of == message {
			fd.TypeName = new(".odd.M")
		}
		file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name:    new("odd.proto"),
			Package: new("odd"),
			Syntax:  new("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: new("M"),
				Field: []*descriptorpb.FieldDescriptorProto{fd}}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = new(fieldrules.Rules).Compile(file.Messages().Get(0))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v", c.rules, err)
		}
	}
}

// BenchmarkCheck judges a request of average size.
func BenchmarkCheck(b *testing.B) {
	req := &signetv1.AddApplicationRequest{
		Name:         "N",
		Type:         signetv1.ApplicationType_APPLICATION_TYPE_WEB,
		AuthMethod:   signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC,
		GrantTypes:   []signetv1.GrantType{signetv1.GrantType_GRANT_TYPE_AUTHORIZATION_CODE},
		RedirectUris: []string{"https://app.example.org/callback", "https://app.example.org/other"},
	}
	b.Run("ours", func(b *testing.B) {
		var rules fieldrules.Rules
		b.ReportAllocs()
		for b.Loop() {
			if found, _, err := rules.Check(req); err != nil || len(found) > 0 {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("protovalidate", func(b *testing.B) {
		validator, err := protovalidate.New(protovalidate.WithMessageDescriptors(req.ProtoReflect().Descriptor()))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := validator.Validate(req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if err := new(fieldrules.Rules).Compile(req.ProtoReflect().Descriptor()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
