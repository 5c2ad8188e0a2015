package strict

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
)

// UnmarshalJSON resets m and fills it from body, which must be one JSON object. Without violations all of the body was
// understood. With violations, m is not to be acted on; complete tells that the body was read to its end, so
// that m holds every other field and can be checked for more that is wrong. A violation of the body as a
// whole has an empty Field.
func UnmarshalJSON(body []byte, m proto.Message) (found []errs.Violation, complete bool) {
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

const problemType = "has a type that cannot be sent as JSON"

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

// step is a part of a path: a field, or a place in a list.
type step struct {
	name  string // empty in a list
	index int
}

func (d *decoder) push(s step) { d.path[d.steps], d.steps = s, d.steps+1 }
func (d *decoder) pop()        { d.steps-- }

// add notes a violation of the field that is being read.
func (d *decoder) add(message string) bool {
	var field strings.Builder
	for _, s := range d.path[:d.steps] {
		if s.name == "" {
			field.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if field.Len() > 0 {
			field.WriteByte('.')
		}
		field.WriteString(s.name)
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
	d.add(fmt.Sprintf("%sis not valid JSON at line %d, column %d (byte %d): %s", subject, line, column,
		len(before), why))
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
	case timestamp, fieldMask:
		if d.peek() != '"' {
			return d.refuse(wantedForm[s.form])
		}
		b, problem, ok := d.text()
		if ok && problem == "" {
			problem = setWellKnown(m, s.form, b)
		}
		return ok && (problem == "" || d.add(problem))
	case duration, anyMessage, anyJSON, unsupported:
		return d.refuse(problemType)
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
	case f.writeOnly:
		return d.refuse(problemType)
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
		if f.most > 0 && i == f.most {
			d.add(TooManyElements(f.most))
			return false
		}
		d.push(step{index: i})
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
