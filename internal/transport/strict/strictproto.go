// The protobuf side refuses lists that are too long before they are decoded, and says which fields hold text that
// cannot be stored.

package strict

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
)

const maxDepth = 64

// Proto reads messages of one type.
type Proto struct {
	md    protoreflect.MessageDescriptor
	lists listsIn
}

// NewProto makes the decoder of a type of message.
func NewProto(md protoreflect.MessageDescriptor) Proto {
	lists := listsIn{}
	lists.look(md)
	return Proto{md: md, lists: lists}
}

// Unmarshal reads a message. Where complete is false, nothing can be said about the rest of it. identifiers may be
// damaged, see Storable.
func (d Proto) Unmarshal(raw []byte, into proto.Message,
	identifiers []protoreflect.FieldDescriptor) (found []errs.Violation, complete bool) {
	if d.lists[d.md] {
		if found := d.lists.tooMany(d.md, raw, new(counts)); found != nil {
			return found, false
		}
	}
	options := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}
	if err := options.Unmarshal(raw, into); err != nil {
		if found := badUTF8(d.md, raw, "", nil); len(found) > 0 {
			return found, false
		}
		return []errs.Violation{{Message: "the message is not a valid " + string(d.md.FullName())}}, false
	}
	if bytes.IndexByte(raw, 0) < 0 { // most messages need no closer look
		return nil, true
	}
	m := into.ProtoReflect()
	for _, fd := range identifiers {
		if m.Has(fd) {
			m.Set(fd, protoreflect.ValueOfString(Storable(m.Get(fd).String())))
		}
	}
	return nulStrings(m, "", nil), true
}

// Storable makes an identifier one that storage can be asked for. A malformed identifier is an unknown one, not a
// mistake: what replaces the damage is in no identifier that was ever given out.
func Storable(id string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(id, "\ufffd"), "\x00", "\ufffd")
}

// nulStrings lists the string fields that hold a NUL, which JSON has no way to bring in.
func nulStrings(m protoreflect.Message, path string, found []errs.Violation) []errs.Violation {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + fd.JSONName()
		switch {
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				key := name + "[" + strconv.Quote(k.String()) + "]"
				if fd.MapKey().Kind() == protoreflect.StringKind && strings.IndexByte(k.String(), 0) >= 0 {
					found = append(found, errs.Violation{Field: name, Message: ProblemNUL})
				}
				found = nulValue(fd.MapValue(), v, key, found)
				return true
			})
		case fd.IsList():
			for i := 0; i < v.List().Len() && len(found) < MaxViolations; i++ {
				found = nulValue(fd, v.List().Get(i), name+"["+strconv.Itoa(i)+"]", found)
			}
		default:
			found = nulValue(fd, v, name, found)
		}
		return len(found) < MaxViolations
	})
	return found
}

func nulValue(fd protoreflect.FieldDescriptor, v protoreflect.Value, name string,
	found []errs.Violation) []errs.Violation {
	switch {
	case fd.Message() != nil:
		return nulStrings(v.Message(), name+".", found)
	case fd.Kind() == protoreflect.StringKind && strings.IndexByte(v.String(), 0) >= 0:
		return append(found, errs.Violation{Field: name, Message: ProblemNUL})
	}
	return found
}

// listsIn tells of types of messages whether they, or messages in them, have lists.
type listsIn map[protoreflect.MessageDescriptor]bool

func (l listsIn) look(md protoreflect.MessageDescriptor) bool {
	if has, known := l[md]; known {
		return has
	}
	l[md] = true // where it holds itself it is looked into
	has := false
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		in := fd.Message() != nil && !fd.IsMap() && l.look(fd.Message())
		has = has || in || fd.IsList()
	}
	l[md] = has
	return has
}

// counts are the elements that the lists of one message have so far. What comes of it in several parts is decoded into
// one.
type counts struct {
	of map[protowire.Number]int
	in map[protowire.Number]*counts // messages in it
}

func (c *counts) add(number protowire.Number, n int) int {
	if c.of == nil {
		c.of = map[protowire.Number]int{}
	}
	c.of[number] += n
	return c.of[number]
}

func (c *counts) message(number protowire.Number) *counts {
	if c.in[number] == nil {
		if c.in == nil {
			c.in = map[protowire.Number]*counts{}
		}
		c.in[number] = new(counts)
	}
	return c.in[number]
}

// tooMany gives the first list in an encoded message that is too long to be decoded, as JSON does, which stops there
// too.
func (l listsIn) tooMany(md protoreflect.MessageDescriptor, b []byte, c *counts) []errs.Violation {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil // it cannot be decoded either
		}
		m := protowire.ConsumeFieldValue(number, kind, b[n:])
		if m < 0 {
			return nil
		}
		value := b[n : n+m]
		b = b[n+m:]
		fd := md.Fields().ByNumber(number)
		if fd == nil || fd.IsMap() {
			continue
		}
		count := 0
		if fd.IsList() {
			if count = c.add(number, elements(fd, kind, value)); count > MaxElements(fd) {
				return []errs.Violation{{Field: fd.JSONName(), Message: TooManyElements(MaxElements(fd))}}
			}
		}
		if fd.Message() == nil || kind != protowire.BytesType || !l[fd.Message()] {
			continue
		}
		within := new(counts)
		if !fd.IsList() {
			within = c.message(number)
		}
		inner, _ := protowire.ConsumeBytes(value)
		if found := l.tooMany(fd.Message(), inner, within); found != nil {
			path := fd.JSONName()
			if fd.IsList() {
				path += "[" + strconv.Itoa(count-1) + "]"
			}
			found[0].Field = path + "." + found[0].Field
			return found
		}
	}
	return nil
}

// elements counts those of a list that come with one tag: numbers may be packed into one, whatever the definition says.
func elements(fd protoreflect.FieldDescriptor, kind protowire.Type, value []byte) int {
	if kind != protowire.BytesType {
		return 1
	}
	packed, _ := protowire.ConsumeBytes(value)
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return 1
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(packed) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(packed) / 8
	}
	count := 0
	for _, c := range packed {
		if c < 0x80 { // the last byte of a number
			count++
		}
	}
	return count
}

// badUTF8 lists the string fields of an encoded message that are not UTF-8. It is for messages that could not be
// decoded because of that, to say where; of other damage it finds nothing.
func badUTF8(md protoreflect.MessageDescriptor, b []byte, path string, found []errs.Violation) []errs.Violation {
	index := map[protowire.Number]int{}
	for len(b) > 0 && len(found) < MaxViolations {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return found
		}
		b = b[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return found
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return found
		}
		b = b[n:]
		fd := md.Fields().ByNumber(number)
		if fd == nil || fd.IsMap() {
			continue
		}
		name := path + fd.JSONName()
		if fd.IsList() {
			name += "[" + strconv.Itoa(index[number]) + "]"
			index[number]++
		}
		switch {
		case fd.Message() != nil:
			found = badUTF8(fd.Message(), value, name+".", found)
		case fd.Kind() == protoreflect.StringKind && !utf8.Valid(value):
			found = append(found, errs.Violation{Field: name, Message: ProblemUTF8})
		}
	}
	return found
}
