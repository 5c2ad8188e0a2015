package strict

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
)

// The grammar of JSON itself: what follows knows nothing of messages and fields.

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

// What is wrong with texts, in whatever form they come.
const (
	ProblemUTF8      = syntax.NotUTF8
	ProblemNUL       = syntax.HasNUL
	problemSurrogate = "must not contain half a surrogate pair"
)

// text reads a string. What it returns is good until the next call. A problem is something that JSON's grammar lets
// pass and we do not.
func (d *decoder) text() (b []byte, problem string, ok bool) {
	start := d.pos + 1
	ascii := true
	for i := start; i < len(d.in); i++ {
		switch c := d.in[i]; {
		case c == '"':
			d.pos = i + 1
			b = d.in[start:i]
			if !ascii && !utf8.Valid(b) {
				problem = ProblemUTF8
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
				problem = ProblemUTF8
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
				problem = ProblemNUL
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
