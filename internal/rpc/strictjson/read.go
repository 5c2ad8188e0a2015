package strictjson

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/errs"
)

// Unmarshal resets m and fills it from body, which must be one JSON object. Without violations all of the body was
// understood. With violations, m is not to be acted on; complete tells that the body was read to its end, so
// that m holds every other field and can be checked for more that is wrong. A violation of the body as a
// whole has an empty Field.
func Unmarshal(body []byte, m proto.Message) (found []errs.Violation, complete bool) {
	proto.Reset(m)
	d := decoder{in: body}
	if d.peek() != '{' {
		return []errs.Violation{{Message: "the body must be a JSON object"}}, false
	}
	complete = d.message(m.ProtoReflect())
	if complete && d.peek() != 0 {
		complete = d.fail("nothing may follow the object")
	}
	return d.found, complete
}

// decoder reads in from pos on. Its methods return false when reading cannot or need not go on.
type decoder struct {
	in      []byte
	pos     int
	depth   int
	path    [MaxDepth]step // an array, to stay off the heap; every step is inside an object or list of its own
	steps   int            // how much of path is in use
	scratch []byte         // holds the last string that had escapes
	found   []errs.Violation
}

// step is a part of a path: a field, a place in a list, or a key of a map.
type step struct {
	kind  stepKind
	name  string
	index int
}

type stepKind int

const (
	inField stepKind = iota
	inList
	inMap
)

func (d *decoder) push(s step) { d.path[d.steps], d.steps = s, d.steps+1 }
func (d *decoder) pop()        { d.steps-- }

// add notes a violation of the field that is being read.
func (d *decoder) add(message string) bool {
	var field strings.Builder
	for _, s := range d.path[:d.steps] {
		switch s.kind {
		case inList:
			field.WriteString("[" + strconv.Itoa(s.index) + "]")
		case inMap:
			field.WriteString("[" + strconv.Quote(s.name) + "]")
		default:
			if field.Len() > 0 {
				field.WriteByte('.')
			}
			field.WriteString(s.name)
		}
	}
	d.found = append(d.found, errs.Violation{Field: field.String(), Message: message})
	return len(d.found) < MaxViolations
}

// refuse notes a violation and passes over the value.
func (d *decoder) refuse(message string) bool { return d.add(message) && d.skip() }

// fail ends the reading: from pos on, the input is not JSON.
func (d *decoder) fail(why string) bool {
	before := string(d.in[:min(d.pos, len(d.in))])
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	subject := ""
	if d.steps == 0 {
		subject = "the body "
	}
	d.add(fmt.Sprintf("%sis not valid JSON at line %d, column %d (byte %d): %s", subject, line, column, len(before), why))
	return false
}

// peek passes over white space and gives the next byte, or 0 at the end.
func (d *decoder) peek() byte {
	for ; d.pos < len(d.in); d.pos++ {
		switch c := d.in[d.pos]; c {
		case ' ', '\t', '\n', '\r':
		case 0:
			return 1 // not the end, and no more valid than this
		default:
			return c
		}
	}
	return 0
}

// enter opens an object or a list, leave closes it.
func (d *decoder) enter() bool {
	d.pos++
	if d.depth++; d.depth > MaxDepth {
		d.add("is nested deeper than " + strconv.Itoa(MaxDepth) + " levels")
		return false
	}
	return true
}

func (d *decoder) leave() bool {
	d.pos++
	d.depth--
	return true
}

// more tells whether another member comes before the closing byte, and reads the comma between members.
func (d *decoder) more(first bool, closing byte) (another, ok bool) {
	c := d.peek()
	switch {
	case c == closing:
		return false, true
	case first:
		return true, true
	case c != ',':
		return false, d.fail("expected a comma or " + string(closing))
	}
	d.pos++
	return true, true
}

// key reads the name of a member and the colon behind it.
func (d *decoder) key() (name []byte, ok bool) {
	if d.peek() != '"' {
		return nil, d.fail("expected a field name in double quotes")
	}
	// A name with a problem cannot be the name of a field, so it is refused as unknown.
	if name, _, ok = d.text(); !ok {
		return nil, false
	}
	if d.peek() != ':' {
		return nil, d.fail("expected a colon after the field name")
	}
	d.pos++
	return name, true
}

func (d *decoder) message(m protoreflect.Message) bool {
	s := shapeOf(m.Descriptor())
	switch s.form {
	case timestamp, duration, fieldMask:
		if d.peek() != '"' {
			return d.refuse(wantedForm[s.form])
		}
		b, problem, ok := d.text()
		if ok && problem == "" {
			problem = setWellKnown(m, s.form, b)
		}
		return ok && (problem == "" || d.add(problem))
	case anyMessage, unsupported:
		return d.refuse("has a type that cannot be sent as JSON")
	}
	if d.peek() != '{' {
		return d.refuse("must be an object")
	}
	if !d.enter() {
		return false
	}
	var few [2]uint64
	seen := few[:]
	if len(s.fields) > 64*len(seen) {
		seen = make([]uint64, len(s.fields)/64+1)
	}
	var oneofs uint64
	for first := true; ; first = false {
		another, ok := d.more(first, '}')
		if !ok {
			return false
		}
		if !another {
			return d.leave()
		}
		name, ok := d.key()
		if !ok {
			return false
		}
		f := s.byName[string(name)]
		if f == nil {
			d.push(step{name: cmp.Or(shown(name), `""`)})
			ok = d.refuse("is not a known field")
		} else {
			d.push(step{name: f.name})
			i := f.fd.Index()
			twice := seen[i/64]&(1<<(i%64)) != 0
			seen[i/64] |= 1 << (i % 64)
			switch {
			case twice:
				ok = d.refuse("is given more than once")
			case d.peek() == 'n':
				ok = d.literal("null")
			default:
				// No type of the API has 64 oneofs; beyond that the last one would win.
				if f.oneof >= 0 && oneofs&(1<<f.oneof) != 0 && !d.add("is given together with another of "+f.rivals) {
					return false
				}
				if f.oneof >= 0 {
					oneofs |= 1 << f.oneof
				}
				ok = d.field(m, f)
			}
		}
		if !ok {
			return false
		}
		d.pop()
	}
}

func (d *decoder) field(m protoreflect.Message, f *field) bool {
	switch {
	case f.isMap:
		return d.mapField(m.Mutable(f.fd).Map(), f)
	case f.list:
		return d.listField(m.Mutable(f.fd).List(), f)
	case f.isMessage():
		return d.message(m.Mutable(f.fd).Message())
	}
	v, ok := d.scalar(f)
	if v.IsValid() {
		m.Set(f.fd, v)
	}
	return ok
}

func (d *decoder) listField(l protoreflect.List, f *field) bool {
	if d.peek() != '[' {
		return d.refuse("must be a list")
	}
	if !d.enter() {
		return false
	}
	for i := 0; ; i++ {
		another, ok := d.more(i == 0, ']')
		if !ok {
			return false
		}
		if !another {
			return d.leave()
		}
		d.push(step{kind: inList, index: i})
		switch {
		case d.peek() == 'n':
			ok = d.refuse("must not be null")
		case f.isMessage():
			ok = d.message(l.AppendMutable().Message())
		default:
			var v protoreflect.Value
			if v, ok = d.scalar(f); v.IsValid() {
				l.Append(v)
			}
		}
		if !ok {
			return false
		}
		d.pop()
	}
}

func (d *decoder) mapField(entries protoreflect.Map, f *field) bool {
	if d.peek() != '{' {
		return d.refuse("must be an object")
	}
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		another, ok := d.more(first, '}')
		if !ok {
			return false
		}
		if !another {
			return d.leave()
		}
		if d.peek() != '"' {
			return d.fail("expected a key in double quotes")
		}
		b, problem, ok := d.text()
		if !ok {
			return false
		}
		key := protoreflect.ValueOfString(string(b)).MapKey()
		if d.peek() != ':' {
			return d.fail("expected a colon after the key")
		}
		d.pos++
		d.push(step{kind: inMap, name: shown(b)})
		switch {
		case f.fd.MapKey().Kind() != protoreflect.StringKind:
			ok = d.refuse("has a type that cannot be sent as JSON")
		case problem != "":
			ok = d.refuse("has a key that is not allowed: it " + problem)
		case entries.Has(key):
			ok = d.refuse("is given more than once")
		case d.peek() == 'n':
			ok = d.refuse("must not be null")
		case f.value.isMessage():
			v := entries.NewValue()
			ok = d.message(v.Message())
			entries.Set(key, v)
		default:
			var v protoreflect.Value
			if v, ok = d.scalar(f.value); v.IsValid() {
				entries.Set(key, v)
			}
		}
		if !ok {
			return false
		}
		d.pop()
	}
}

// scalar reads one value of f. The value is not valid when a violation was noted in its place.
func (d *decoder) scalar(f *field) (v protoreflect.Value, ok bool) {
	var problem string
	switch c := d.peek(); {
	case c == '"':
		var b []byte
		if b, problem, ok = d.text(); ok && problem == "" {
			v, problem = f.fromString(b)
		}
	case c == '-' || isDigit(c):
		var b []byte
		if b, ok = d.number(); ok {
			v, problem = f.fromNumber(b)
		}
	case c == 't' || c == 'f':
		word := "true"
		if c == 'f' {
			word = "false"
		}
		if ok = d.literal(word); ok && f.kind == protoreflect.BoolKind {
			v = protoreflect.ValueOfBool(c == 't')
		} else if ok {
			problem = f.wanted()
		}
	case c == '{' || c == '[':
		ok = d.refuse(f.wanted())
	default:
		ok = d.fail("expected a value")
	}
	if problem != "" {
		return protoreflect.Value{}, d.add(problem)
	}
	return v, ok
}

// skip passes over one value of any type, checking only that it is JSON.
func (d *decoder) skip() (ok bool) {
	switch c := d.peek(); {
	case c == '"':
		_, _, ok = d.text()
	case c == '-' || isDigit(c):
		_, ok = d.number()
	case c == 't':
		ok = d.literal("true")
	case c == 'f':
		ok = d.literal("false")
	case c == 'n':
		ok = d.literal("null")
	case c == '{' || c == '[':
		return d.enter() && d.skipMembers(c)
	default:
		ok = d.fail("expected a value")
	}
	return ok
}

func (d *decoder) skipMembers(opening byte) bool {
	for first := true; ; first = false {
		another, ok := d.more(first, opening+2) // in ASCII, both closing brackets come two after their opening ones
		if !ok {
			return false
		}
		if !another {
			return d.leave()
		}
		if opening == '{' {
			if _, ok := d.key(); !ok {
				return false
			}
		}
		if !d.skip() {
			return false
		}
	}
}

func (d *decoder) literal(word string) bool {
	end := d.pos + len(word)
	if end > len(d.in) || string(d.in[d.pos:end]) != word {
		return d.fail("expected a value")
	}
	d.pos = end
	return true
}

func (d *decoder) number() (b []byte, ok bool) {
	n := numberLength(d.in[d.pos:])
	if n == 0 {
		return nil, d.fail("expected a number")
	}
	b = d.in[d.pos : d.pos+n]
	d.pos += n
	return b, true
}

// numberLength gives the length of the JSON number that b starts with, or 0 if it starts with none.
func numberLength(b []byte) int {
	digits := func(i int) int {
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		return i
	}
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	end := digits(i)
	if end == i || b[i] == '0' && end > i+1 {
		return 0
	}
	if i = end; i < len(b) && b[i] == '.' {
		if end = digits(i + 1); end == i+1 {
			return 0
		}
		i = end
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if end = digits(i); end == i {
			return 0
		}
		i = end
	}
	return i
}

func isNumber(b []byte) bool { return len(b) > 0 && numberLength(b) == len(b) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

const (
	problemUTF8      = "must be valid UTF-8"
	problemNUL       = "must not contain the character U+0000"
	problemSurrogate = "must not contain half a surrogate pair"
)

// text reads a string. What it returns is good until the next call. A problem is something that JSON's grammar lets pass
// and we do not.
func (d *decoder) text() (b []byte, problem string, ok bool) {
	start := d.pos + 1
	ascii := true
	for i := start; i < len(d.in); i++ {
		switch c := d.in[i]; {
		case c == '"':
			d.pos = i + 1
			b = d.in[start:i]
			if !ascii && !utf8.Valid(b) {
				problem = problemUTF8
			}
			return b, problem, true
		case c == '\\' || c < ' ':
			d.pos = i
			d.scratch = append(d.scratch[:0], d.in[start:i]...)
			return d.textWithEscapes()
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	d.pos = len(d.in)
	return nil, "", d.fail("the string does not end")
}

func (d *decoder) textWithEscapes() (b []byte, problem string, ok bool) {
	for d.pos < len(d.in) {
		switch c := d.in[d.pos]; {
		case c == '"':
			d.pos++
			if problem == "" && !utf8.Valid(d.scratch) {
				problem = problemUTF8
			}
			return d.scratch, problem, true
		case c < ' ':
			return nil, "", d.fail("a control character in a string must be escaped")
		case c == '\\':
			r, n := d.escape()
			if n == 0 {
				return nil, "", d.fail("a backslash must start one of JSON's escapes")
			}
			d.pos += n
			switch {
			case utf16.IsSurrogate(r):
				problem = problemSurrogate
			case r == 0:
				problem = problemNUL
			}
			d.scratch = utf8.AppendRune(d.scratch, r)
		default:
			d.scratch = append(d.scratch, c)
			d.pos++
		}
	}
	return nil, "", d.fail("the string does not end")
}

// escape reads the escape at pos and gives its length, 0 for one that JSON does not have. Half a surrogate pair is
// returned as it is.
func (d *decoder) escape() (r rune, length int) {
	rest := d.in[d.pos:]
	if len(rest) < 2 {
		return 0, 0
	}
	switch c := rest[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := hex4(rest)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hex4(rest[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
				return pair, 12
			}
		}
	}
	return r, 6
}

// hex4 reads an escape of the form \u00e4.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// shown makes a name that the caller chose fit for a message and a log.
func shown(name []byte) string {
	var out strings.Builder
	n := 0
	for _, r := range string(name) {
		if n++; n > maxNameShown {
			break
		}
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		out.WriteRune(r)
	}
	return out.String()
}
