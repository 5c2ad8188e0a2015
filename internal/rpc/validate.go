package rpc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/rpc/strictjson"
)

// rules are the field rules in the proto files, compiled once.
type rules struct{ validator protovalidate.Validator }

// Rules are the field rules of services, compiled.
type Rules struct{ rules }

// Compile compiles the field rules of all services in a package, which takes longer than all else that a server does before it is ready. It needs
// nothing but the definition, so it can be done beside that.
func Compile(in protoreflect.FullName) (*Rules, error) {
	var inputs []protoreflect.MessageDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(in, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				inputs = append(inputs, withElements(methods.Get(j).Input())...)
			}
		}
		return true
	})
	compiled, err := compile(inputs)
	return &Rules{compiled}, err
}

// withElements are a request and what is in its lists: an operation may look at those itself, see call.Info.Check.
func withElements(input protoreflect.MessageDescriptor) []protoreflect.MessageDescriptor {
	all := []protoreflect.MessageDescriptor{input}
	for i := range input.Fields().Len() {
		if fd := input.Fields().Get(i); fd.IsList() && fd.Message() != nil {
			all = append(all, fd.Message())
		}
	}
	return all
}

func newRules(ops map[string]*operation) (rules, error) {
	var inputs []protoreflect.MessageDescriptor
	for _, op := range ops {
		inputs = append(inputs, withElements(op.input.Descriptor())...)
	}
	return compile(inputs)
}

func compile(inputs []protoreflect.MessageDescriptor) (rules, error) {
	v, err := protovalidate.New(protovalidate.WithMessageDescriptors(inputs...), protovalidate.WithDisableLazy())
	if err != nil {
		return rules{}, fmt.Errorf("rpc: compile the field rules: %w", err)
	}
	return rules{v}, nil
}

// check lists the fields that break their rules, of a request or of a part of it; tooLong tells that one of them has more than it may.
// An error is a rule that cannot be evaluated: a bug.
func (r rules) check(req proto.Message) (found []errs.Violation, tooLong bool, err error) {
	err = r.validator.Validate(req)
	if err == nil {
		return nil, false, nil
	}
	broken, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		return nil, false, fmt.Errorf("rpc: evaluate the field rules: %w", err)
	}
	md := req.ProtoReflect().Descriptor()
	found = make([]errs.Violation, len(broken.Violations))
	for i, v := range broken.Violations {
		found[i] = errs.Violation{
			Field:   strictjson.JSONPath(md, protovalidate.FieldPathString(v.Proto.GetField())),
			Message: inWords(v),
		}
		switch v.Proto.GetRuleId() {
		case "string.max_len", "repeated.max_items":
			tooLong = true
		}
	}
	return found, tooLong, nil
}

// inWords says what the field wants, so that it reads on after the field's name.
func inWords(v *protovalidate.Violation) string {
	count := func(least, what string) string {
		n := v.RuleValue.Uint()
		if n == 1 {
			what = strings.TrimSuffix(what, "s")
		}
		return "must have " + least + " " + strconv.FormatUint(n, 10) + " " + what
	}
	switch v.Proto.GetRuleId() {
	case "required":
		return "is required"
	case "string.min_len", "repeated.min_items":
		if v.RuleValue.Uint() == 1 {
			return "must not be empty"
		}
		if v.Proto.GetRuleId() == "string.min_len" {
			return count("at least", "characters")
		}
		return count("at least", "elements")
	case "string.max_len":
		return count("at most", "characters")
	case "repeated.max_items":
		return count("at most", "elements")
	case "int32.gte_lte":
		if r, err := protovalidate.ResolveFieldRules(v.FieldDescriptor); err == nil {
			return fmt.Sprintf("must be from %d to %d", r.GetInt32().GetGte(), r.GetInt32().GetLte())
		}
	case "enum.defined_only":
		if v.FieldDescriptor != nil && v.FieldDescriptor.Enum() != nil {
			values := v.FieldDescriptor.Enum().Values()
			names := make([]string, values.Len())
			for i := range names {
				names[i] = string(values.Get(i).Name())
			}
			return "must be one of " + strings.Join(names, ", ")
		}
	}
	if m := v.Proto.GetMessage(); m != "" {
		return m
	}
	return "breaks the rule " + v.Proto.GetRuleId()
}

// The words strictjson has for the same, so that all protocols answer alike.
const (
	problemUTF8 = "must be valid UTF-8"
	problemNUL  = "must not contain the character U+0000"
)

// storable makes an identifier one that storage can be asked for. A malformed identifier is an unknown one, not a
// mistake: what replaces the damage is in no identifier that was ever given out.
func storable(id string) string {
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
					found = append(found, errs.Violation{Field: name, Message: problemNUL})
				}
				found = nulValue(fd.MapValue(), v, key, found)
				return true
			})
		case fd.IsList():
			for i := 0; i < v.List().Len() && len(found) < strictjson.MaxViolations; i++ {
				found = nulValue(fd, v.List().Get(i), name+"["+strconv.Itoa(i)+"]", found)
			}
		default:
			found = nulValue(fd, v, name, found)
		}
		return len(found) < strictjson.MaxViolations
	})
	return found
}

func nulValue(fd protoreflect.FieldDescriptor, v protoreflect.Value, name string, found []errs.Violation) []errs.Violation {
	switch {
	case fd.Message() != nil:
		return nulStrings(v.Message(), name+".", found)
	case fd.Kind() == protoreflect.StringKind && strings.IndexByte(v.String(), 0) >= 0:
		return append(found, errs.Violation{Field: name, Message: problemNUL})
	}
	return found
}

// hasLists tells whether a message, or one in it, has lists.
func hasLists(md protoreflect.MessageDescriptor) bool {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.IsList() || fd.Message() != nil && !fd.IsMap() && hasLists(fd.Message()) {
			return true
		}
	}
	return false
}

// tooMany gives the first list in an encoded message that is too long to be decoded, as JSON does, which stops there too.
func tooMany(md protoreflect.MessageDescriptor, b []byte, path string) []errs.Violation {
	count := map[protowire.Number]int{}
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
		name := path + fd.JSONName()
		if fd.IsList() {
			if count[number] += elements(fd, kind, value); count[number] > strictjson.MaxElements(fd) {
				return []errs.Violation{{Field: name, Message: strictjson.TooManyElements(strictjson.MaxElements(fd))}}
			}
			name += "[" + strconv.Itoa(count[number]-1) + "]"
		}
		if fd.Message() != nil && kind == protowire.BytesType && hasLists(fd.Message()) {
			inner, _ := protowire.ConsumeBytes(value)
			if found := tooMany(fd.Message(), inner, name+"."); found != nil {
				return found
			}
		}
	}
	return nil
}

// elements counts those of a list that come with one tag: numbers may be packed into one.
func elements(fd protoreflect.FieldDescriptor, kind protowire.Type, value []byte) int {
	if kind != protowire.BytesType || !fd.IsPacked() {
		return 1
	}
	packed, _ := protowire.ConsumeBytes(value)
	count := 0
	for _, c := range packed {
		if c < 0x80 { // the last byte of a number
			count++
		}
	}
	return count
}

// badUTF8 lists the string fields of an encoded message that are not UTF-8. It is for messages that could not be decoded
// because of that, to say where; of other damage it finds nothing.
func badUTF8(md protoreflect.MessageDescriptor, b []byte, path string, found []errs.Violation) []errs.Violation {
	index := map[protowire.Number]int{}
	for len(b) > 0 && len(found) < strictjson.MaxViolations {
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
			found = append(found, errs.Violation{Field: name, Message: problemUTF8})
		}
	}
	return found
}
