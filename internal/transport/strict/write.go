package strict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// MarshalJSON writes m as compact JSON. It fails on what JSON cannot carry: a string that is not UTF-8, a time out of
// range, an Any of unknown type, a type that the package does not support.
func MarshalJSON(m proto.Message) ([]byte, error) { return AppendJSON(make([]byte, 0, usual), m) }

// usual is what most messages fit into.
const usual = 1 << 10

// AppendJSON is Marshal into the end of dst. On an error, what it returns is not to be used.
func AppendJSON(dst []byte, m proto.Message) ([]byte, error) {
	e := encoder{out: dst}
	if err := e.message(m.ProtoReflect()); err != nil {
		return dst, fmt.Errorf("write %s as JSON: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return e.out, nil
}

type encoder struct{ out []byte }

func (e *encoder) message(m protoreflect.Message) error {
	s := shapeOf(m.Descriptor())
	switch s.form {
	case timestamp:
		return e.timestamp(m)
	case duration:
		return e.duration(m)
	case fieldMask:
		return e.fieldMask(m)
	case anyMessage:
		return e.any(m)
	case anyJSON:
		return e.anyJSON(m, MaxDepth)
	case unsupported:
		return fmt.Errorf("%s is not supported", m.Descriptor().FullName())
	}
	e.out = append(e.out, '{')
	if err := e.fields(m, s); err != nil {
		return err
	}
	e.out = append(e.out, '}')
	return nil
}

// fields writes the members of an object that is already open.
func (e *encoder) fields(m protoreflect.Message, s *shape) error {
	for _, f := range s.fields {
		if !f.always && !m.Has(f.fd) {
			continue
		}
		if e.out[len(e.out)-1] != '{' {
			e.out = append(e.out, ',')
		}
		e.out = append(e.out, f.key...)
		var err error
		switch v := m.Get(f.fd); {
		case f.isMap:
			err = e.mapField(v.Map(), f)
		case f.list:
			err = e.listField(v.List(), f)
		default:
			err = e.value(v, f)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (e *encoder) listField(l protoreflect.List, f *field) error {
	e.out = append(e.out, '[')
	for i := range l.Len() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(l.Get(i), f); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

func (e *encoder) mapField(entries protoreflect.Map, f *field) error {
	if f.fd.MapKey().Kind() != protoreflect.StringKind && entries.Len() > 0 {
		return fmt.Errorf("a map with keys of type %v is not supported", f.fd.MapKey().Kind())
	}
	return e.sorted(entries, func(v protoreflect.Value) error { return e.value(v, f.value) })
}

// sorted writes an object of the entries of a map, in the order of their keys, which are texts.
func (e *encoder) sorted(entries protoreflect.Map, value func(protoreflect.Value) error) error {
	keys := make([]string, 0, entries.Len())
	for k := range entries.Range {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	e.out = append(e.out, '{')
	for i, k := range keys {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.text(k); err != nil {
			return err
		}
		e.out = append(e.out, ':')
		if err := value(entries.Get(protoreflect.ValueOfString(k).MapKey())); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func (e *encoder) value(v protoreflect.Value, f *field) error {
	switch f.kind {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return e.message(v.Message())
	case protoreflect.StringKind:
		return e.text(v.String())
	case protoreflect.BoolKind:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case protoreflect.EnumKind:
		if value := f.fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			e.quote(string(value.Name()))
		} else {
			e.out = strconv.AppendInt(e.out, int64(v.Enum()), 10)
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		e.out = append(e.out, '"')
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
		e.out = append(e.out, '"')
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		e.out = append(e.out, '"')
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
		e.out = append(e.out, '"')
	default:
		return fmt.Errorf("the type %v is not supported", f.kind)
	}
	return nil
}

// number writes a number of a Value.
func (e *encoder) number(x float64) error {
	format := byte('f')
	switch size := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return errors.New("the number is not one of JSON's")
	case size != 0 && (size < 1e-6 || size >= 1e21):
		format = 'e'
	}
	e.out = strconv.AppendFloat(e.out, x, format, -1, 64)
	return nil
}

// text writes a string that comes from a message.
func (e *encoder) text(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("the string is not valid UTF-8")
	}
	e.quote(s)
	return nil
}

func (e *encoder) quote(s string) { e.out = appendString(e.out, s) }

// appendString writes s, which is valid UTF-8, as encoding/json does with its escaping for HTML turned off.
func appendString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			out = append(append(out, s[start:i]...), '\\', c)
			start = i + 1
		case c < ' ':
			out = append(out, s[start:i]...)
			if short := strings.IndexByte("\b\f\n\r\t", c); short >= 0 {
				out = append(out, '\\', "bfnrt"[short])
			} else {
				out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			start = i + 1
		case c == 0xe2 && (strings.HasPrefix(s[i:], "\u2028") || strings.HasPrefix(s[i:], "\u2029")):
			out = append(append(out, s[start:i]...), '\\', 'u', '2', '0', '2', hex[s[i+2]&15])
			i += 2
			start = i + 1
		}
	}
	return append(append(out, s[start:]...), '"')
}

// seconds gives the two fields of a Timestamp or a Duration.
func seconds(m protoreflect.Message) (seconds, nanos int64) {
	fields := m.Descriptor().Fields()
	return m.Get(fields.ByNumber(1)).Int(), m.Get(fields.ByNumber(2)).Int()
}

// fraction writes the part of a second in as few of 0, 3, 6 or 9 digits as hold it.
func (e *encoder) fraction(nanos int64) {
	if nanos == 0 {
		return
	}
	digits := 9
	for ; nanos%1000 == 0; digits -= 3 {
		nanos /= 1000
	}
	e.out = append(e.out, '.')
	text := strconv.FormatInt(nanos, 10)
	e.out = append(e.out, "000000000"[:digits-len(text)]...)
	e.out = append(e.out, text...)
}

func (e *encoder) timestamp(m protoreflect.Message) error {
	s, nanos := seconds(m)
	if s < minTimestamp || s > maxTimestamp || nanos < 0 || nanos > 999_999_999 {
		return errors.New("the time is out of range")
	}
	e.out = append(e.out, '"')
	e.out = time.Unix(s, 0).UTC().AppendFormat(e.out, "2006-01-02T15:04:05")
	e.fraction(nanos)
	e.out = append(e.out, 'Z', '"')
	return nil
}

func (e *encoder) duration(m protoreflect.Message) error {
	s, nanos := seconds(m)
	if max(s, -s) > maxDuration || max(nanos, -nanos) > 999_999_999 || s > 0 && nanos < 0 || s < 0 && nanos > 0 ||
		s == math.MinInt64 {
		return errors.New("the duration is out of range")
	}
	e.out = append(e.out, '"')
	if s < 0 || nanos < 0 {
		e.out = append(e.out, '-')
	}
	e.out = strconv.AppendInt(e.out, max(s, -s), 10)
	e.fraction(max(nanos, -nanos))
	e.out = append(e.out, 's', '"')
	return nil
}

func (e *encoder) fieldMask(m protoreflect.Message) error {
	paths := m.Get(m.Descriptor().Fields().ByNumber(1)).List()
	camel := make([]string, paths.Len())
	for i := range camel {
		path := paths.Get(i).String()
		camel[i] = camelCase(path)
		if !protoreflect.FullName(path).IsValid() || snakeCase(camel[i]) != path {
			return errors.New("a path of the field mask has no JSON name")
		}
	}
	e.quote(strings.Join(camel, ","))
	return nil
}

// any writes the message inside an Any with its type beside its fields; one that is not an object goes into "value".
func (e *encoder) any(m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	url, content := m.Get(fields.ByNumber(1)).String(), m.Get(fields.ByNumber(2)).Bytes()
	if url == "" && len(content) == 0 {
		e.out = append(e.out, '{', '}')
		return nil
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return fmt.Errorf("find the type of an Any: %w", err)
	}
	inner := mt.New()
	if err := proto.Unmarshal(content, inner.Interface()); err != nil {
		return fmt.Errorf("read the content of an Any: %w", err)
	}
	e.out = append(e.out, `{"@type":`...)
	if err := e.text(url); err != nil {
		return err
	}
	s := shapeOf(inner.Descriptor())
	if s.form == object {
		err = e.fields(inner, s)
	} else {
		e.out = append(e.out, `,"value":`...)
		err = e.message(inner)
	}
	e.out = append(e.out, '}')
	return err
}

// anyJSON writes a Struct, a Value or a ListValue as what it stands for.
func (e *encoder) anyJSON(m protoreflect.Message, depth int) error {
	if depth == 0 {
		return errors.New("it nests too deep")
	}
	fields := m.Descriptor().Fields()
	switch m.Descriptor().Name() {
	case "Struct":
		return e.sorted(m.Get(fields.ByNumber(1)).Map(),
			func(v protoreflect.Value) error { return e.anyJSON(v.Message(), depth-1) })
	case "ListValue":
		list := m.Get(fields.ByNumber(1)).List()
		e.out = append(e.out, '[')
		for i := range list.Len() {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			if err := e.anyJSON(list.Get(i).Message(), depth-1); err != nil {
				return err
			}
		}
		e.out = append(e.out, ']')
		return nil
	}
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	switch {
	case fd == nil:
		return errors.New("a Value holds nothing")
	case fd.Message() != nil:
		return e.anyJSON(m.Get(fd).Message(), depth)
	case fd.Kind() == protoreflect.StringKind:
		return e.text(m.Get(fd).String())
	case fd.Kind() == protoreflect.BoolKind:
		e.out = strconv.AppendBool(e.out, m.Get(fd).Bool())
	case fd.Kind() == protoreflect.DoubleKind:
		return e.number(m.Get(fd).Float())
	default:
		e.out = append(e.out, "null"...)
	}
	return nil
}
