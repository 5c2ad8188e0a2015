package strict_test

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// kindsType has a field of every type that can be read. Scalar fields are named after their type, lists have _list
// behind it, members of the oneof start with one_. otherType has some that cannot.
var kindsType, otherType = buildKinds()

func buildKinds() (kinds, other protoreflect.MessageDescriptor) {
	var fields strings.Builder
	number := 0
	add := func(name, label, typ, rest string) {
		number++
		fmt.Fprintf(&fields, "field { name: %q number: %d label: LABEL_%s type: TYPE_%s %s }\n", name, number,
			label, typ, rest)
	}
	const color = `type_name: ".kinds.Color"`
	for _, typ := range strings.Fields(`int64 uint64 int32 uint32 fixed64 fixed32 sfixed32 sfixed64 sint32 sint64 bool string`) {
		add(typ+"_field", "OPTIONAL", strings.ToUpper(typ), "")
		add(typ+"_list", "REPEATED", strings.ToUpper(typ), "")
	}
	add("color", "OPTIONAL", "ENUM", color)
	add("color_list", "REPEATED", "ENUM", color)
	for _, pair := range [][2]string{
		{"time", "google.protobuf.Timestamp"}, {"span", "google.protobuf.Duration"},
		{"mask", "google.protobuf.FieldMask"},
		{"any", "google.protobuf.Any"}, {"struct", "google.protobuf.Struct"},
		{"wrapped", "google.protobuf.StringValue"},
		{"again", "kinds.Kinds"},
	} {
		name, typ := pair[0], pair[1]
		add(name, "OPTIONAL", "MESSAGE", fmt.Sprintf("type_name: %q", "."+typ))
		add(name+"_list", "REPEATED", "MESSAGE", fmt.Sprintf("type_name: %q", "."+typ))
	}
	add("one_text", "OPTIONAL", "STRING", "oneof_index: 0")
	add("one_flag", "OPTIONAL", "BOOL", "oneof_index: 0")
	add("one_time", "OPTIONAL", "MESSAGE", `oneof_index: 0 type_name: ".google.protobuf.Timestamp"`)
	add("maybe", "OPTIONAL", "STRING", "oneof_index: 1 proto3_optional: true")
	read := fields.String()
	fields.Reset()
	for _, typ := range []string{"double", "float", "bytes"} {
		add(typ+"_field", "OPTIONAL", strings.ToUpper(typ), "")
		add(typ+"_list", "REPEATED", strings.ToUpper(typ), "")
	}
	entries := ""
	for _, entry := range [][3]string{
		{"Texts", "STRING", "STRING"}, {"Counts", "STRING", "UINT64"}, {"Agains", "STRING", "MESSAGE"},
		{"Numbered", "INT32", "STRING"},
	} {
		name, keyType, valueType := entry[0], entry[1], entry[2]
		typeName := ""
		if valueType == "MESSAGE" {
			typeName = `type_name: ".kinds.Kinds"`
		}
		add(strings.ToLower(name), "REPEATED", "MESSAGE", fmt.Sprintf("type_name: %q", ".kinds.Other."+name+"Entry"))
		entries += fmt.Sprintf(`nested_type { name: "%sEntry" options { map_entry: true }
			field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_%s }
			field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_%s %s } }`, name, keyType, valueType, typeName)
	}
	var file descriptorpb.FileDescriptorProto
	err := prototext.Unmarshal([]byte(`name: "kinds.proto" package: "kinds" syntax: "proto3"
		dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto"
		dependency: "google/protobuf/field_mask.proto" dependency: "google/protobuf/any.proto"
		dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/wrappers.proto"
		enum_type { name: "Color" value { name: "COLOR_NONE" number: 0 } value { name: "COLOR_RED" number: 1 } value { name: "COLOR_COLD" number: -1 } }
		message_type { name: "Kinds" oneof_decl { name: "one" } oneof_decl { name: "_maybe" }`+read+`}
		message_type { name: "Other" `+fields.String()+entries+`}`), &file)
	if err != nil {
		panic(err)
	}
	fd, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	return fd.Messages().Get(0), fd.Messages().Get(1)
}

func newKinds() *dynamicpb.Message { return dynamicpb.NewMessage(kindsType) }
