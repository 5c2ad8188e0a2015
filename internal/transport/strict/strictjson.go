// Package strict reads messages of the API as JSON and as protobuf, equally strictly, so that all protocols answer
// alike. It writes them as the JSON that the REST API promises.
//
// Reading is strict because updates replace the whole object: a misspelled field that is ignored would lose data. An
// unknown, repeated or wrongly typed field is refused. [UnmarshalJSON] does not stop at the first of them; it goes on
// and reports up to MaxViolations together, each under the path of its field in JSON names. It stops early only if the
// JSON is too broken to go on. A violation says what the field must be, never what was sent: the value could be a
// password.
//
// Writing is stable: [MarshalJSON] gives the same bytes for the same message, with every plain scalar and list present
// even when empty. Fields that can tell unset from empty (optional, oneof members, messages) are written when they are
// set.
//
// Both follow the protobuf JSON mapping. Marshal writes what protojson does with EmitDefaultValues, without the random
// white space. Where reading differs from protojson it refuses more:
//
//   - no NUL in strings, no nesting beyond MaxDepth;
//   - integers in quotes are in plain decimal: "1e2" is refused;
//   - a Timestamp is RFC 3339 to the letter;
//   - types that no request of the API has cannot be read: maps, floating point, bytes, Duration, Any, Struct, Value,
//     ListValue. Those that answers have can be written: maps with keys that are strings, and all from Duration on. The
//     wrapper types can be neither; extensions are unknown fields.
//
// In one place it accepts more: an integer is judged by its value however it is written, so 0.0000001e22 is one.
package strict

import (
	"cmp"
	"strconv"
	"strings"
	"sync"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
)

const (
	// MaxDepth is how deep objects and lists may nest; the body itself is the first level.
	MaxDepth = 32
	// MaxViolations is how many violations are collected before reading stops.
	MaxViolations = errs.MaxViolations

	maxNameShown = 60 // characters of a caller's own field name that a violation repeats
)

// form says how a message type looks in JSON.
type form int

const (
	object form = iota
	empty       // an object too, but one that an Any wraps in "value"
	timestamp
	duration
	fieldMask
	anyMessage
	anyJSON // a Struct, a Value or a ListValue
	unsupported
)

var forms = map[protoreflect.FullName]form{
	"google.protobuf.Empty":       empty,
	"google.protobuf.Timestamp":   timestamp,
	"google.protobuf.Duration":    duration,
	"google.protobuf.FieldMask":   fieldMask,
	"google.protobuf.Any":         anyMessage,
	"google.protobuf.Struct":      anyJSON,
	"google.protobuf.Value":       anyJSON,
	"google.protobuf.ListValue":   anyJSON,
	"google.protobuf.BoolValue":   unsupported,
	"google.protobuf.Int32Value":  unsupported,
	"google.protobuf.Int64Value":  unsupported,
	"google.protobuf.UInt32Value": unsupported,
	"google.protobuf.UInt64Value": unsupported,
	"google.protobuf.FloatValue":  unsupported,
	"google.protobuf.DoubleValue": unsupported,
	"google.protobuf.StringValue": unsupported,
	"google.protobuf.BytesValue":  unsupported,
}

// shape is what reading and writing need to know about a message type, worked out once.
type shape struct {
	form   form
	fields []*field          // by descriptor index
	byName map[string]*field // under the JSON name and the proto name
}

type field struct {
	fd        protoreflect.FieldDescriptor
	kind      protoreflect.Kind
	name      string // JSON name
	key       string // the name as Marshal writes it, with quotes and colon
	list      bool
	isMap     bool
	always    bool   // written even when empty
	writeOnly bool   // a map, floating point or bytes
	most      int    // elements that a list of messages may have; 0: no limit
	oneof     int    // index of the oneof it is a member of, or -1
	rivals    string // all members of that oneof, for the violation
	enum      map[string]protoreflect.EnumNumber
	value     *field // of a map: the field of its values
}

// shapes caches by descriptor; a program has as many as it has message types.
var shapes sync.Map

func shapeOf(md protoreflect.MessageDescriptor) *shape {
	if s, ok := shapes.Load(md); ok {
		return s.(*shape)
	}
	fds := md.Fields()
	s := &shape{form: forms[md.FullName()], byName: make(map[string]*field, 2*fds.Len())}
	for i := range fds.Len() {
		f := newField(fds.Get(i))
		s.fields = append(s.fields, f)
		s.byName[string(f.fd.Name())] = f
	}
	for _, f := range s.fields {
		s.byName[f.name] = f
	}
	actual, _ := shapes.LoadOrStore(md, s)
	return actual.(*shape)
}

func newField(fd protoreflect.FieldDescriptor) *field {
	f := &field{
		fd: fd, kind: fd.Kind(), name: fd.JSONName(), list: fd.IsList(), isMap: fd.IsMap(),
		always: !fd.HasPresence(), oneof: -1,
	}
	f.writeOnly = f.isMap || f.kind == protoreflect.FloatKind || f.kind == protoreflect.DoubleKind ||
		f.kind == protoreflect.BytesKind
	f.key = string(appendString(nil, f.name)) + ":"
	f.most = MaxElements(fd)
	if od := fd.ContainingOneof(); od != nil && !od.IsSynthetic() {
		f.oneof = od.Index()
		names := make([]string, od.Fields().Len())
		for i := range names {
			names[i] = od.Fields().Get(i).JSONName()
		}
		f.rivals = strings.Join(names, ", ")
	}
	if f.kind == protoreflect.EnumKind {
		values := fd.Enum().Values()
		f.enum = make(map[string]protoreflect.EnumNumber, values.Len())
		for i := range values.Len() {
			f.enum[string(values.Get(i).Name())] = values.Get(i).Number()
		}
	}
	if f.isMap {
		f.value = newField(fd.MapValue())
	}
	return f
}

// defaultElements is how many elements a list may have whose field rules do not say.
const defaultElements = 10_000

// scalarElements is how many texts or numbers of a list are read, whatever its rules say: a list that is a little too
// long is told together with all else that is wrong.
const scalarElements = 1000

// MaxElements is how many elements a list may have; 0: it is no list. A decoder must stop there: the smallest message
// takes a hundred times as much memory as it takes on the wire, and rules check every element.
func MaxElements(fd protoreflect.FieldDescriptor) int {
	if !fd.IsList() {
		return 0
	}
	if fd.Message() == nil {
		return scalarElements
	}
	if fd.Options() == nil || !proto.HasExtension(fd.Options(), validate.E_Field) {
		return defaultElements
	}
	rules := proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
	return cmp.Or(int(rules.GetRepeated().GetMaxItems()), defaultElements)
}

// TooManyElements says so of a list.
func TooManyElements(most int) string { return "must have at most " + strconv.Itoa(most) + " elements" }

func (f *field) isMessage() bool {
	return f.kind == protoreflect.MessageKind || f.kind == protoreflect.GroupKind
}

// JSONPath turns a path in proto names (human.profile.first_name, roles[1]) into one in JSON names. Parts that md does
// not know stay as they are.
func JSONPath(md protoreflect.MessageDescriptor, protoPath string) string {
	var out strings.Builder
	for rest := protoPath; rest != ""; {
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		rest = rest[end:]
		var fd protoreflect.FieldDescriptor
		if md != nil {
			fd = md.Fields().ByName(protoreflect.Name(name))
			md = nil
		}
		if fd == nil {
			out.WriteString(name)
		} else {
			out.WriteString(fd.JSONName())
			if md = fd.Message(); fd.IsMap() {
				md = fd.MapValue().Message()
			}
		}
		if strings.HasPrefix(rest, "[") {
			end := subscriptEnd(rest)
			out.WriteString(rest[:end])
			rest = rest[end:]
		}
		if strings.HasPrefix(rest, ".") {
			out.WriteByte('.')
			rest = rest[1:]
		}
	}
	return out.String()
}

// subscriptEnd gives the length of the subscript that s starts with; a map key in it is quoted and may hold anything.
func subscriptEnd(s string) int {
	end := 1
	if quoted, err := strconv.QuotedPrefix(s[1:]); err == nil {
		end += len(quoted)
	}
	if i := strings.IndexByte(s[end:], ']'); i >= 0 {
		return end + i + 1
	}
	return len(s)
}
