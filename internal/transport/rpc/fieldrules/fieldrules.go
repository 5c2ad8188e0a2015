// Package fieldrules checks requests by the field rules in the proto files, and says in our words what a field must be.
//
// It implements only the rules that the proto files use, see knownRules. The tests compare it with protovalidate, which
// implements all rules, but needs a compiler for expressions that no rule here uses (docs/decisions/0063-lean.md).
package fieldrules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/strict"
)

// Rules are the field rules of requests. Those of a message are read when the first one is judged: that takes some
// microseconds, and most servers never see most kinds of requests. The zero value works.
type Rules struct {
	known  atomic.Pointer[messages]
	change sync.Mutex
}

type messages map[protoreflect.MessageDescriptor]*message

// Compile reads the rules of messages and of all that is in them, and tells which it does not know.
func (r *Rules) Compile(mds ...protoreflect.MessageDescriptor) error {
	r.change.Lock()
	defer r.change.Unlock()
	known := messages{}
	if before := r.known.Load(); before != nil {
		known = maps.Clone(*before)
	}
	for _, md := range mds {
		if _, err := known.read(md); err != nil {
			return fmt.Errorf("fieldrules: %w", err)
		}
	}
	r.known.Store(&known)
	return nil
}

// of finds the rules of a message.
func (r *Rules) of(md protoreflect.MessageDescriptor) (*message, error) {
	for {
		if known := r.known.Load(); known != nil && (*known)[md] != nil {
			return (*known)[md], nil
		}
		if err := r.Compile(md); err != nil {
			return nil, err
		}
	}
}

// Check lists the fields that break their rules, of a request or of a part of it; tooLong tells that one of them has
// more than it may. An error is a rule that is not known: a bug.
func (r *Rules) Check(req proto.Message) (found []errs.Violation, tooLong bool, err error) {
	m := req.ProtoReflect()
	rules, err := r.of(m.Descriptor())
	if err != nil {
		return nil, false, err
	}
	var b broken
	rules.check(m, &b)
	return b.found, b.tooLong, nil
}

// broken are the fields that break their rules. Their paths begin at the message that is looked at.
type broken struct {
	found   []errs.Violation
	tooLong bool
}

func (b *broken) add(message string) { b.found = append(b.found, errs.Violation{Message: message}) }

// name puts what the fields behind the first n are in before their paths.
func (b *broken) name(n int, in string) {
	for i := n; i < len(b.found); i++ {
		f := &b.found[i].Field
		switch {
		case *f == "":
			*f = in
		case (*f)[0] == '[':
			*f = in + *f
		default:
			*f = in + "." + *f
		}
	}
}

// message are the rules of a message: those of its fields that have any.
type message struct{ fields []*field }

func (m *message) check(msg protoreflect.Message, b *broken) {
	for _, f := range m.fields {
		n := len(b.found)
		f.check(msg, b)
		if len(b.found) > n {
			b.name(n, f.fd.JSONName())
		}
	}
}

// field are the rules of a field.
type field struct {
	fd       protoreflect.FieldDescriptor
	required bool
	optional bool // nothing else counts while it is not set
	value    value
}

func (f *field) check(msg protoreflect.Message, b *broken) {
	if (f.required || f.optional) && !msg.Has(f.fd) {
		if f.required {
			b.add("is required")
		}
		return
	}
	f.value.check(msg.Get(f.fd), b)
}

// value are the rules of what is in a field, or of an element of a list.
type value struct {
	element    bool // of a list
	ignoreZero bool // an element that is empty is fine
	least      any  // of an element that is empty

	text *size // of strings: characters
	list *size // of lists: elements
	ints *span

	unique bool
	items  *value // of the elements of a list

	not  []protoreflect.EnumNumber
	enum protoreflect.EnumDescriptor // nil: any number

	nested *message // nil: no message, or one without rules
}

// size bounds a number of characters or elements.
type size struct{ least, most uint64 }

const noBound = ^uint64(0)

// span bounds a number.
type span struct {
	least, most int64
	words       string
}

func (v *value) check(val protoreflect.Value, b *broken) {
	if v.ignoreZero && val.Interface() == v.least {
		return
	}
	if v.text != nil {
		v.text.check(uint64(utf8.RuneCountInString(val.String())), " character", b)
	}
	if v.ints != nil {
		if n := val.Int(); n < v.ints.least || n > v.ints.most {
			b.add(v.ints.words)
		}
	}
	if v.not != nil && slices.Contains(v.not, val.Enum()) {
		b.add("must not be in list " + listed(v.not))
	}
	if v.enum != nil && v.enum.Values().ByNumber(val.Enum()) == nil {
		b.add(v.oneOf())
	}
	if v.list != nil {
		v.list.check(uint64(val.List().Len()), " element", b)
	}
	if v.unique && !distinct(val.List()) {
		b.add("repeated value must contain unique items")
	}
	if v.items != nil && !v.items.empty() {
		list := val.List()
		for i := range list.Len() {
			n := len(b.found)
			v.items.check(list.Get(i), b)
			if len(b.found) > n {
				b.name(n, "["+strconv.Itoa(i)+"]")
			}
		}
	}
	if v.nested != nil {
		v.nested.check(val.Message(), b)
	}
}

// oneOf says what an enum wants. Those who sent an element of a list have never been told the names.
func (v *value) oneOf() string {
	if v.element {
		return "value must be one of the defined enum values"
	}
	return "must be one of " + strict.EnumNames(v.enum)
}

// empty tells whether the value is always fine. What is in a message is known only when all of it has been read.
func (v *value) empty() bool {
	return v.text == nil && v.list == nil && v.ints == nil && !v.unique && v.items == nil && v.not == nil &&
		v.enum == nil && (v.nested == nil || len(v.nested.fields) == 0)
}

func (s *size) check(n uint64, what string, b *broken) {
	said := func(least string, n uint64) string {
		if n != 1 {
			what += "s"
		}
		return "must have " + least + " " + strconv.FormatUint(n, 10) + what
	}
	if n < s.least {
		if s.least == 1 {
			b.add("must not be empty")
		} else {
			b.add(said("at least", s.least))
		}
	}
	if n > s.most {
		b.add(said("at most", s.most))
		b.tooLong = true
	}
}

func listed(numbers []protoreflect.EnumNumber) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(int(n))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// distinct tells whether no element of a list is there twice.
func distinct(list protoreflect.List) bool {
	seen := make(map[any]struct{}, list.Len())
	for i := range list.Len() {
		seen[list.Get(i).Interface()] = struct{}{}
	}
	return len(seen) == list.Len()
}
