package strict

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// SetField sets the field fd of m from text, as a path or query parameter has it, under the rules that Unmarshal has
// for a string; here booleans and enum numbers are text too. A list gets one more element. The problem is empty when
// the field was set, and otherwise reads on after the field's name. That a single field is set twice is for the caller
// to see.
func SetField(m protoreflect.Message, fd protoreflect.FieldDescriptor, text string) (problem string) {
	f := shapeOf(fd.ContainingMessage()).fields[fd.Index()]
	if od := fd.ContainingOneof(); od != nil {
		if other := m.WhichOneof(od); other != nil && other != fd {
			return "is given together with another of " + f.rivals
		}
	}
	b := []byte(text)
	switch {
	case !utf8.Valid(b):
		return ProblemUTF8
	case strings.IndexByte(text, 0) >= 0:
		return ProblemNUL
	case f.writeOnly:
		return "cannot be set from text"
	case f.isMessage():
		form := shapeOf(fd.Message()).form
		if wantedForm[form] == "" {
			return "cannot be set from text"
		}
		var v protoreflect.Value
		if f.list {
			v = m.NewField(fd).List().NewElement()
		} else {
			v = m.NewField(fd)
		}
		if problem = setWellKnown(v.Message(), form, b); problem == "" {
			put(m, f, v)
		}
		return problem
	}
	v, problem := f.fromText(b)
	if problem == "" {
		put(m, f, v)
	}
	return problem
}

func put(m protoreflect.Message, f *field, v protoreflect.Value) {
	if f.list {
		m.Mutable(f.fd).List().Append(v)
	} else {
		m.Set(f.fd, v)
	}
}

// fromText reads a value that has no JSON around it.
func (f *field) fromText(b []byte) (v protoreflect.Value, problem string) {
	switch f.kind {
	case protoreflect.BoolKind:
		if text := string(b); text == "true" || text == "false" {
			return protoreflect.ValueOfBool(text == "true"), ""
		}
		return v, f.wanted()
	case protoreflect.EnumKind:
		if isNumber(b) {
			return f.fromNumber(b)
		}
	}
	return f.fromString(b)
}

// fromString reads the content of a JSON string.
func (f *field) fromString(b []byte) (v protoreflect.Value, problem string) {
	switch f.kind {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(b)), ""
	case protoreflect.EnumKind:
		if n, ok := f.enum[string(b)]; ok {
			return protoreflect.ValueOfEnum(n), ""
		}
	case protoreflect.BoolKind:
	default:
		if isNumber(b) && !bytes.ContainsAny(b, ".eE") {
			return f.fromNumber(b)
		}
	}
	return v, f.wanted()
}

// fromNumber reads a JSON number.
func (f *field) fromNumber(b []byte) (v protoreflect.Value, problem string) {
	switch f.kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		if n, ok := signed(b, math.MaxInt32); ok {
			return protoreflect.ValueOfInt32(int32(n)), ""
		}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		if n, ok := signed(b, math.MaxInt64); ok {
			return protoreflect.ValueOfInt64(n), ""
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if negative, n, ok := integer(b); ok && !negative && n <= math.MaxUint32 {
			return protoreflect.ValueOfUint32(uint32(n)), ""
		}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if negative, n, ok := integer(b); ok && !negative {
			return protoreflect.ValueOfUint64(n), ""
		}
	case protoreflect.EnumKind:
		if n, ok := signed(b, math.MaxInt32); ok {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), ""
		}
	}
	return v, f.wanted()
}

// wanted says what a scalar field accepts; it is the message for every value that is none of that.
func (f *field) wanted() string {
	switch f.kind {
	case protoreflect.StringKind:
		return "must be a string"
	case protoreflect.BoolKind:
		return "must be true or false"
	case protoreflect.EnumKind:
		return "must be one of " + EnumNames(f.fd.Enum())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "must be an integer from -2147483648 to 2147483647"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "must be an integer from 0 to 4294967295"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "must be an integer from -9223372036854775808 to 9223372036854775807"
	default:
		return "must be an integer from 0 to 18446744073709551615"
	}
}

// integer reads the JSON number b, which may have a fraction and an exponent as long as its value is whole. Zero is
// never negative.
func integer(b []byte) (negative bool, n uint64, ok bool) {
	if b[0] == '-' {
		negative, b = true, b[1:]
	}
	exponent := 0
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		// Out of range, Atoi gives the nearest int, which is as far out of reach as the real one. Halved, no sum below
		// can overflow.
		exponent, _ = strconv.Atoi(string(b[i+1:]))
		exponent, b = max(min(exponent, math.MaxInt/2), math.MinInt/2), b[:i]
	}
	whole, fraction, _ := bytes.Cut(b, []byte("."))
	fraction = bytes.TrimRight(fraction, "0")
	// The value is the digits of both parts in a row, times ten to the power of exponent-len(fraction).
	exponent -= len(fraction)
	if len(fraction) == 0 {
		trimmed := bytes.TrimRight(whole, "0")
		exponent += len(whole) - len(trimmed)
		whole = trimmed
	}
	for _, part := range [2][]byte{whole, fraction} {
		for _, c := range part {
			if n > (math.MaxUint64-uint64(c-'0'))/10 {
				return false, 0, false
			}
			n = n*10 + uint64(c-'0')
		}
	}
	if n == 0 {
		return false, 0, true
	}
	if exponent < 0 {
		return false, 0, false
	}
	for ; exponent > 0; exponent-- {
		if n > math.MaxUint64/10 {
			return false, 0, false
		}
		n *= 10
	}
	return negative, n, true
}

// signed is integer for the types that reach from -limit-1 to limit.
func signed(b []byte, limit uint64) (int64, bool) {
	negative, n, ok := integer(b)
	switch {
	case !ok:
		return 0, false
	case negative:
		return -int64(n), n <= limit+1 // the smallest int64 is its own negative
	}
	return int64(n), n <= limit
}

// wantedForm says what the well-known types that are JSON strings accept.
var wantedForm = map[form]string{
	timestamp: "must be an RFC 3339 time such as 2024-05-01T12:30:00Z",
	fieldMask: "must be a list of field paths separated by commas, such as name,profile.firstName",
}

const (
	minTimestamp = -62135596800 // 0001-01-01T00:00:00Z
	maxTimestamp = 253402300799 // 9999-12-31T23:59:59Z
	maxDuration  = 315_576_000_000
)

func setWellKnown(m protoreflect.Message, form form, b []byte) (problem string) {
	ok := false
	switch form {
	case timestamp:
		var t time.Time
		if t.UnmarshalText(b) == nil && isStrictTime(b) {
			ok = t.Unix() >= minTimestamp && t.Unix() <= maxTimestamp
			fields := m.Descriptor().Fields()
			m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(t.Unix()))
			m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(int32(t.Nanosecond())))
		}
	case fieldMask:
		ok = parseFieldMask(m, string(b))
	}
	if !ok {
		return wantedForm[form]
	}
	return ""
}

// isStrictTime refuses what Go reads as RFC 3339 although it is not: an hour of one digit, a comma before the fraction,
// digits after the ninth, a zone that no clock shows.
func isStrictTime(b []byte) bool {
	const hour, zone = len("2006-01-02T15"), len("+07:00")
	if len(b) <= hour+zone || b[hour] != ':' || bytes.IndexByte(b, ',') >= 0 || fractionLength(b) > 9 {
		return false
	}
	offset := b[len(b)-zone:]
	return b[len(b)-1] == 'Z' || string(offset[1:3]) <= "23" && string(offset[4:]) <= "59"
}

func fractionLength(b []byte) int {
	_, fraction, _ := bytes.Cut(b, []byte("."))
	if end := slices.IndexFunc(fraction, func(c byte) bool { return !isDigit(c) }); end >= 0 {
		return end
	}
	return len(fraction)
}

func parseFieldMask(m protoreflect.Message, text string) bool {
	if text == "" {
		return true
	}
	paths := m.Mutable(m.Descriptor().Fields().ByNumber(1)).List()
	for path := range strings.SplitSeq(text, ",") {
		snake := snakeCase(path)
		if strings.Contains(path, "_") || !protoreflect.FullName(snake).IsValid() {
			return false
		}
		paths.Append(protoreflect.ValueOfString(snake))
	}
	return true
}

func snakeCase(camel string) string {
	var out []byte
	for i := range len(camel) {
		c := camel[i]
		if 'A' <= c && c <= 'Z' {
			out = append(out, '_')
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

func camelCase(snake string) string {
	var out []byte
	upper := false
	for i := range len(snake) {
		c := snake[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		out = append(out, c)
	}
	return string(out)
}

// EnumNames lists what a field of an enum can say. That it says nothing, it does by being left out.
func EnumNames(ed protoreflect.EnumDescriptor) string {
	var names []string
	for i := range ed.Values().Len() {
		if name := string(ed.Values().Get(i).Name()); !strings.HasSuffix(name, "_UNSPECIFIED") {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
