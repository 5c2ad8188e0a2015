package fieldrules

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// read reads the rules of a message and of all messages in it.
func (known messages) read(md protoreflect.MessageDescriptor) (*message, error) {
	if m := known[md]; m != nil {
		return m, nil // it may contain itself
	}
	if md.Options() != nil && proto.HasExtension(md.Options(), validate.E_Message) {
		return nil, fmt.Errorf("%s: rules of whole messages are not known here", md.FullName())
	}
	for i := range md.Oneofs().Len() {
		if od := md.Oneofs().Get(i); od.Options() != nil && proto.HasExtension(od.Options(), validate.E_Oneof) {
			return nil, fmt.Errorf("%s: rules of oneofs are not known here", od.FullName())
		}
	}
	m := &message{}
	known[md] = m
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f, err := known.readField(fd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fd.FullName(), err)
		}
		if f != nil {
			m.fields = append(m.fields, f)
		}
	}
	return m, nil
}

// readField reads the rules of a field; nil: everything is fine.
func (known messages) readField(fd protoreflect.FieldDescriptor) (*field, error) {
	rules := &validate.FieldRules{}
	if fd.Options() != nil && proto.HasExtension(fd.Options(), validate.E_Field) {
		rules = proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
	}
	if rules.GetIgnore() == validate.Ignore_IGNORE_ALWAYS {
		return nil, nil
	}
	f := &field{fd: fd, required: rules.GetRequired(),
		optional: fd.HasPresence() || rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE}
	var err error
	if f.value, err = known.readValue(fd, rules, false); err != nil {
		return nil, err
	}
	if !f.required && f.value.nested == nil && f.value.items == nil && f.value.empty() {
		return nil, nil
	}
	return f, nil
}

// readValue reads the rules of what is in a field, or of its elements.
func (known messages) readValue(fd protoreflect.FieldDescriptor, rules *validate.FieldRules,
	element bool) (v value, err error) {
	v.element = element
	if rules.GetIgnore() == validate.Ignore_IGNORE_ALWAYS {
		return v, nil
	}
	if err := onlyKnown(fd, rules, element); err != nil {
		return v, err
	}
	if fd.IsMap() {
		if md := fd.MapValue().Message(); md != nil {
			return v, errors.New("messages in maps are not known here")
		}
		return v, nil
	}
	if fd.IsList() && !element {
		r := rules.GetRepeated()
		v.unique = r.GetUnique()
		if r.HasMinItems() || r.HasMaxItems() {
			v.list = newSize(r.GetMinItems(), r.HasMaxItems(), r.GetMaxItems())
		}
		items := r.GetItems()
		if items == nil {
			items = &validate.FieldRules{}
		}
		of, err := known.readValue(fd, items, true)
		if of.nested != nil || !of.empty() {
			v.items = &of
		}
		return v, err
	}
	if element && rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE {
		switch fd.Kind() {
		case protoreflect.StringKind:
			v.ignoreZero, v.least = true, ""
		case protoreflect.EnumKind:
			v.ignoreZero, v.least = true, protoreflect.EnumNumber(0)
		default:
			return v, fmt.Errorf("an element that may be empty and is a %s is not known here", fd.Kind())
		}
	}
	if fd.Message() != nil {
		v.nested, err = known.read(fd.Message())
		return v, err
	}
	switch {
	case rules.GetString() != nil:
		r := rules.GetString()
		v.text = newSize(r.GetMinLen(), r.HasMaxLen(), r.GetMaxLen())
	case rules.GetInt32() != nil:
		r := rules.GetInt32()
		v.ints = newSpan(r.HasGte(), int64(r.GetGte()), r.HasLte(), int64(r.GetLte()))
		if r.HasGte() && r.HasLte() {
			v.ints.words = fmt.Sprintf("must be from %d to %d", r.GetGte(), r.GetLte())
		}
	case rules.GetInt64() != nil:
		r := rules.GetInt64()
		v.ints = newSpan(r.HasGte(), r.GetGte(), r.HasLte(), r.GetLte())
	case rules.GetEnum() != nil:
		for _, n := range rules.GetEnum().GetNotIn() {
			v.not = append(v.not, protoreflect.EnumNumber(n))
		}
		if rules.GetEnum().GetDefinedOnly() {
			v.enum = fd.Enum()
		}
	}
	return v, nil
}

func newSize(least uint64, bounded bool, most uint64) *size {
	if !bounded {
		most = noBound
	}
	return &size{least, most}
}

func newSpan(hasLeast bool, least int64, hasMost bool, most int64) *span {
	s := &span{least: math.MinInt64, most: math.MaxInt64}
	if hasLeast {
		s.least, s.words = least, "greater than or equal to "+strconv.FormatInt(least, 10)
	}
	if hasMost {
		if hasLeast {
			s.words += " and "
		}
		s.most, s.words = most, s.words+"less than or equal to "+strconv.FormatInt(most, 10)
	}
	s.words = "must be " + s.words
	return s
}

// knownRules are the rules that readValue reads, by the kind of field they are for.
var knownRules = map[protoreflect.FullName][]protoreflect.Name{
	"buf.validate.FieldRules":    {"required", "ignore", "string", "int32", "int64", "enum", "repeated"},
	"buf.validate.StringRules":   {"min_len", "max_len"},
	"buf.validate.Int32Rules":    {"gte", "lte"},
	"buf.validate.Int64Rules":    {"gte", "lte"},
	"buf.validate.EnumRules":     {"defined_only", "not_in"},
	"buf.validate.RepeatedRules": {"min_items", "max_items", "unique", "items"},
}

// rulesFor are the rules that fit a kind of field.
var rulesFor = map[protoreflect.Kind]protoreflect.Name{
	protoreflect.StringKind: "string",
	protoreflect.Int32Kind:  "int32",
	protoreflect.Int64Kind:  "int64",
	protoreflect.EnumKind:   "enum",
}

// onlyKnown refuses rules that readValue would pass over, and those that do not fit the field.
func onlyKnown(fd protoreflect.FieldDescriptor, rules *validate.FieldRules, element bool) error {
	if err := onlyNamed(rules.ProtoReflect()); err != nil {
		return err
	}
	if element && rules.GetRequired() {
		return errors.New("an element that is required is not known here")
	}
	fits := rulesFor[fd.Kind()]
	if fd.IsList() && !element {
		fits = "repeated"
	}
	if fd.IsMap() {
		fits = ""
	}
	m := rules.ProtoReflect()
	if kind := m.WhichOneof(m.Descriptor().Oneofs().ByName("type")); kind != nil && kind.Name() != fits {
		return fmt.Errorf("the rules are for another kind of field: %s", kind.Name())
	}
	if rules.GetRepeated().GetUnique() && rulesFor[fd.Kind()] == "" {
		return fmt.Errorf("elements that must differ and are a %s are not known here", fd.Kind())
	}
	if r := rules.GetInt32(); r.HasGte() && r.HasLte() && r.GetGte() > r.GetLte() {
		return errors.New("a range that ends before it begins is not known here")
	}
	if r := rules.GetInt64(); r.HasGte() && r.HasLte() && r.GetGte() > r.GetLte() {
		return errors.New("a range that ends before it begins is not known here")
	}
	return nil
}

func onlyNamed(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("%s has unknown rules", m.Descriptor().Name())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, val protoreflect.Value) bool {
		for _, name := range knownRules[m.Descriptor().FullName()] {
			if fd.Name() == name && !fd.IsExtension() {
				if fd.Message() != nil {
					err = onlyNamed(val.Message())
				}
				return err == nil
			}
		}
		err = fmt.Errorf("the rule %s is not known here", fd.FullName())
		return false
	})
	return err
}
