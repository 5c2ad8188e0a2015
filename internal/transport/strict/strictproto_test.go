package strict

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
)

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A message that comes in parts is decoded into one, whose lists have the elements of all parts.
func TestListsAreCountedOverAllPartsOfAMessage(t *testing.T) {
	scopes := func(n int) []byte {
		return encoded(t, &signetv1.ModifyIdentityProviderRequest{Oidc: &signetv1.ModifyIdentityProviderRequest_OIDC{Scopes: slices.Repeat([]string{"a"}, n)}})
	}
	d := NewProto((&signetv1.ModifyIdentityProviderRequest{}).ProtoReflect().Descriptor())
	want := []errs.Violation{{Field: "oidc.scopes", Message: TooManyElements(1000)}}
	for name, c := range map[string]struct {
		raw     []byte
		tooMany bool
	}{
		"as many as may be, in two parts": {bytes.Repeat(scopes(500), 2), false},
		"one more, in two parts":          {append(scopes(500), scopes(501)...), true},
		"each in a part of its own":       {bytes.Repeat(scopes(1), 1001), true},
		"all in one":                      {scopes(1001), true},
	} {
		var req signetv1.ModifyIdentityProviderRequest
		found, complete := d.Unmarshal(c.raw, &req, nil)
		if complete == c.tooMany || len(req.GetOidc().GetScopes()) > 1000 || c.tooMany && !slices.Equal(found, want) {
			t.Errorf("%s: %v, %d are read", name, found, len(req.GetOidc().GetScopes()))
		}
	}
}

// lists is a message with a list of each kind of number, packed and not, and with a list of messages of that type.
func lists(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	message := &descriptorpb.DescriptorProto{Name: proto.String("Lists")}
	field := func(name string, kind descriptorpb.FieldDescriptorProto_Type, packed bool) {
		fd := &descriptorpb.FieldDescriptorProto{
			Name:     &name,
			JsonName: &name,
			Number:   proto.Int32(int32(len(message.Field) + 1)),
			Type:     &kind,
			Label:    descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(),
		}
		if kind == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE {
			fd.TypeName = proto.String(".Lists")
		} else {
			fd.Options = &descriptorpb.FieldOptions{Packed: &packed}
		}
		message.Field = append(message.Field, fd)
	}
	for _, kind := range []descriptorpb.FieldDescriptorProto_Type{descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
		descriptorpb.FieldDescriptorProto_TYPE_SFIXED32,
		descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
		descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
		descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_INT32,
		descriptorpb.FieldDescriptorProto_TYPE_BOOL} {
		name := strings.ToLower(strings.TrimPrefix(kind.String(), "TYPE_"))
		field(name, kind, true)
		field(name+"Apart", kind, false)
	}
	field("lists", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, false)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("lists.proto"),
		Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{message}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// Numbers are counted as they are decoded, whatever their bytes are: packed or not, and whichever of it the definition
// says.
func TestNumbersAreCountedAsTheyAreDecoded(t *testing.T) {
	const most = 1000
	md := lists(t)
	d := NewProto(md)
	sizes := map[protoreflect.Kind]int{
		protoreflect.Fixed32Kind:  4,
		protoreflect.Sfixed32Kind: 4,
		protoreflect.FloatKind:    4,
		protoreflect.Fixed64Kind:  8,
		protoreflect.Sfixed64Kind: 8,
		protoreflect.DoubleKind:   8,
		protoreflect.Int32Kind:    1,
		protoreflect.BoolKind:     1,
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.Message() != nil {
			continue
		}
		fill := []byte{0, 1, 0xff}
		if sizes[fd.Kind()] == 1 {
			fill = []byte{0, 1} // 0xff has another byte behind it
		}
		for _, c := range fill {
			for _, n := range []int{most, most + 1} {
				raw := protowire.AppendBytes(protowire.AppendTag(nil, fd.Number(), protowire.BytesType),
					bytes.Repeat([]byte{c}, n*sizes[fd.Kind()]))
				into := dynamicpb.NewMessage(md)
				found, complete := d.Unmarshal(raw, into, nil)
				if complete != (n <= most) || complete && into.Get(fd).List().Len() != n {
					t.Errorf("%d of %s, of bytes %#x: %v, %d are read", n, fd.Name(), c, found,
						into.Get(fd).List().Len())
				}
			}
		}
	}
}

// Each element of a list has lists of its own, and the refusal says which of them is too long.
func TestListsOfElementsAreCountedApart(t *testing.T) {
	md := lists(t)
	element := func(n int) []byte {
		inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, 4*n))
		return protowire.AppendBytes(protowire.AppendTag(nil, md.Fields().ByName("lists").Number(),
			protowire.BytesType), inner)
	}
	for name, c := range map[string]struct {
		raw   []byte
		field string
	}{
		"as long as they may be": {bytes.Repeat(element(1000), 3), ""},
		"one is too long":        {append(element(1000), element(1001)...), "lists[1].fixed32"},
	} {
		found, complete := NewProto(md).Unmarshal(c.raw, dynamicpb.NewMessage(md), nil)
		if complete != (c.field == "") || !complete && (len(found) != 1 || found[0].Field != c.field) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
