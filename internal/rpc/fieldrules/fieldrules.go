// Package fieldrules judges requests by the field rules in the proto files, and says in our words what a field wants.
package fieldrules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/rpc/strictjson"
)

// Rules are the field rules of requests, compiled.
type Rules struct{ validator protovalidate.Validator }

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
	return compile(inputs)
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

// Of compiles the rules of these requests.
func Of(requests ...protoreflect.MessageDescriptor) (*Rules, error) {
	var inputs []protoreflect.MessageDescriptor
	for _, md := range requests {
		inputs = append(inputs, withElements(md)...)
	}
	return compile(inputs)
}

func compile(inputs []protoreflect.MessageDescriptor) (*Rules, error) {
	v, err := protovalidate.New(protovalidate.WithMessageDescriptors(inputs...), protovalidate.WithDisableLazy())
	if err != nil {
		return nil, fmt.Errorf("fieldrules: compile the field rules: %w", err)
	}
	return &Rules{v}, nil
}

// Check lists the fields that break their rules, of a request or of a part of it; tooLong tells that one of them has more than it may.
// An error is a rule that cannot be evaluated: a bug.
func (r *Rules) Check(req proto.Message) (found []errs.Violation, tooLong bool, err error) {
	err = r.validator.Validate(req)
	if err == nil {
		return nil, false, nil
	}
	broken, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		return nil, false, fmt.Errorf("fieldrules: evaluate the field rules: %w", err)
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
			return "must be one of " + strictjson.EnumNames(v.FieldDescriptor.Enum())
		}
	}
	if m := v.Proto.GetMessage(); m != "" {
		return m
	}
	return "breaks the rule " + v.Proto.GetRuleId()
}
