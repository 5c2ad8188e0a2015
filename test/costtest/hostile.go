// Package costtest measures what it costs to read what somebody else has written: hostile texts of any length, requests
// made of them for every operation of the definition, and the processor time that it takes.
package costtest

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// Alphabet makes texts that are known to be expensive somewhere.
type Alphabet struct {
	Name string
	Text func(bytes int) string
}

// Alphabets are all of them, the worst first.
var Alphabets = []Alphabet{
	{"many Han characters", func(bytes int) string { return han(bytes / utf8.UTFMax) }},
	{"Han labels with dots", func(bytes int) string { return spaced(han(bytes/utf8.UTFMax-bytes/64), 60, ".") }},
	repeated("a"), repeated("7"), repeated("."), repeated("@"), repeated(`"`), repeated("%"), repeated(`\`),
	repeated("-a"), repeated("a "), repeated("/../"),
	repeated("ß"), repeated("İ"), repeated("😀"),
	repeated("\u0301\u0316"),       // marks that have to be put in order
	repeated("\u1100\u1161\u11a8"), // parts of a syllable
	repeated("㌖"),                  // one character that stands for six
	repeated("\u202e\u2066"),
	{"an address", func(bytes int) string {
		return strings.Repeat("a", bytes/2) + "@" + strings.Repeat("b.", bytes/4) + "c"
	}},
	{"an address of Han characters", func(bytes int) string { return "a@" + han(bytes/utf8.UTFMax) }},
	{"a language", func(bytes int) string { return "de" + strings.Repeat("-abcde", bytes/6) }},
	{"languages", func(bytes int) string { return "de" + strings.Repeat(",fr;q=0.1", bytes/9) }},
	{"a JWT", func(bytes int) string {
		return "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9." + strings.Repeat("e30",
			bytes/4) + "." + strings.Repeat("A", bytes/4)
	}},
	{"a key", func(bytes int) string {
		return "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("AAAA", bytes/4) + "\n-----END PUBLIC KEY-----"
	}},
	{"nested lists", func(bytes int) string { return strings.Repeat("[", bytes) }},
	{"nested objects", func(bytes int) string { return strings.Repeat(`{"a":`, bytes/5) }},
	{"a URL", func(bytes int) string {
		return "https://example.org/" + strings.Repeat("a/", bytes/4) + "?" + strings.Repeat("a&", bytes/4)
	}},
	{"a hash", func(bytes int) string {
		return "$argon2id$v=19$m=65536,t=3,p=4$" + strings.Repeat("A", bytes/2) + "$" + strings.Repeat("A", bytes/2)
	}},
	{"IDNA in ASCII", func(bytes int) string { return "ü.xn--" + strings.Repeat("a", bytes) }},
}

func repeated(part string) Alphabet {
	return Alphabet{part, func(bytes int) string { return strings.Repeat(part, bytes/len(part)) }}
}

// han gives as many different characters as there are, in no order. Their encoding in ASCII costs the square of their
// number.
func han(count int) string {
	const first, all = 0x4E00, 20_900
	order := rand.New(rand.NewPCG(1, 2)).Perm(all)
	text := make([]rune, max(count, 0))
	for i := range text {
		text[i] = rune(first + order[i%all])
	}
	return string(text)
}

func spaced(text string, every int, by string) string {
	var out strings.Builder
	i := 0
	for _, r := range text {
		if i++; i%every == 0 {
			out.WriteString(by)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Operation is an RPC of the definition.
type Operation struct {
	Method protoreflect.MethodDescriptor
	Rule   *signetv1.Rule
}

// Operations are all that the definition has.
func Operations() (all []Operation) {
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				if proto.HasExtension(m.Options(), signetv1.E_Rule) {
					all = append(all, Operation{m, proto.GetExtension(m.Options(), signetv1.E_Rule).(*signetv1.Rule)})
				}
			}
		}
		return true
	})
	return all
}

// Field is a place in a request that takes text, as the way to it: fields of messages in each other. Numbers and dates
// are sent as text, too.
type Field []protoreflect.FieldDescriptor

// Fields are all places in a message that take text.
func Fields(md protoreflect.MessageDescriptor) []Field { return fields(md, nil) }

func fields(md protoreflect.MessageDescriptor, under Field) (all []Field) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		way := append(under[:len(under):len(under)], fd)
		if fd.Message() != nil && !fd.IsMap() && fd.Message().FullName().Parent() != "google.protobuf" {
			all = append(all, fields(fd.Message(), way)...)
		} else {
			all = append(all, way)
		}
	}
	return all
}

func (f Field) String() string {
	names := make([]string, len(f))
	for i, fd := range f {
		names[i] = fd.JSONName()
	}
	return strings.Join(names, ".")
}

// Last is the field that takes the text.
func (f Field) Last() protoreflect.FieldDescriptor { return f[len(f)-1] }

// Body is a request in JSON with a text in a field.
func (f Field) Body(text string) []byte {
	if f.Last().IsList() {
		return f.with([]any{text})
	}
	return f.with(text)
}

// Wire is Body in protobuf; nil where the field takes no text there.
func (f Field) Wire(text string) []byte {
	if f.Last().Kind() != protoreflect.StringKind {
		return nil
	}
	return f.around(protowire.AppendString(protowire.AppendTag(nil, f.Last().Number(), protowire.BytesType), text))
}

// WireCrowd is a request in protobuf with as many elements of a list as go into it; nil where the field is none.
func (f Field) WireCrowd(bytes int) []byte {
	if !f.Last().IsList() {
		return nil
	}
	if f.Last().IsPacked() {
		return f.around(protowire.AppendString(protowire.AppendTag(nil, f.Last().Number(), protowire.BytesType),
			strings.Repeat("\x01", bytes)))
	}
	one := protowire.AppendString(protowire.AppendTag(nil, f.Last().Number(), protowire.BytesType), "a")
	return f.around([]byte(strings.Repeat(string(one), bytes/len(one))))
}

// around puts an encoded field into the messages on its way.
func (f Field) around(encoded []byte) []byte {
	for i := len(f) - 2; i >= 0; i-- {
		encoded = protowire.AppendBytes(protowire.AppendTag(nil, f[i].Number(), protowire.BytesType), encoded)
	}
	return encoded
}

// Crowd is a request in JSON with a list of as many short texts as go into it, where the field is a list; else with the
// field as often.
func (f Field) Crowd(bytes int) []byte {
	if f.Last().IsList() {
		return f.with(json.RawMessage("[" + strings.Repeat(`"a",`, bytes/4) + `"a"]`))
	}
	one := strings.TrimSuffix(strings.TrimPrefix(string(f.Body("a")), "{"), "}")
	return []byte("{" + strings.Repeat(one+",", bytes/(len(one)+1)) + one + "}")
}

func (f Field) with(value any) []byte {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].IsList() && i < len(f)-1 {
			value = []any{value}
		}
		value = map[string]any{f[i].JSONName(): value}
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // all of it is text
	}
	return body
}

// Odd are bodies that are hostile as JSON, whatever the operation.
func Odd(bytes int) map[string][]byte {
	return map[string][]byte{
		"nested lists":    []byte(`{"a":` + strings.Repeat("[", bytes)),
		"nested objects":  []byte(strings.Repeat(`{"a":`, bytes/5)),
		"unknown fields":  []byte(`{` + strings.Repeat(`"a":1,`, bytes/6) + `"a":1}`),
		"a long name":     []byte(`{"` + strings.Repeat("a", bytes) + `":1}`),
		"a long number":   []byte(`{"a":1` + strings.Repeat("0", bytes) + `}`),
		"escapes":         []byte(`{"a":"` + strings.Repeat(`\u0041`, bytes/6) + `"}`),
		"half surrogates": []byte(`{"a":"` + strings.Repeat(`\ud800`, bytes/6) + `"}`),
		"white space":     []byte(strings.Repeat(" ", bytes)),
		"an endless text": []byte(`{"a":"` + strings.Repeat("a", bytes)),
	}
}
