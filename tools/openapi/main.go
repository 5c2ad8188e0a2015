// Command openapi completes the OpenAPI document of the REST API.
//
// The generator of the document knows paths, messages and field rules, but not
// Signet's own method options, its error body or its credentials. This program
// reads the generated document and the compiled descriptors, adds what is
// missing and writes the result:
//
//	openapi -descriptors image.binpb -in openapi.json -out openapi.json
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

func main() {
	descriptors := flag.String("descriptors", "", "compiled descriptors with all imports")
	in := flag.String("in", "", "generated document")
	out := flag.String("out", "", "completed document")
	flag.Parse()
	if err := run(*descriptors, *in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(descriptors, in, out string) error {
	image, err := os.ReadFile(descriptors)
	if err != nil {
		return err
	}
	files, err := load(image)
	if err != nil {
		return fmt.Errorf("%s: %w", descriptors, err)
	}
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	doc, err := parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if err := complete(doc, files); err != nil {
		return err
	}
	return os.WriteFile(out, encode(doc), 0o644)
}

// load resolves the descriptors in two rounds: the options can be decoded only
// once the extensions they use are known.
func load(image []byte) (*protoregistry.Files, error) {
	var plain, full descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(image, &plain); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&plain)
	if err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{Resolver: dynamicpb.NewTypes(files)}).Unmarshal(image, &full); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(&full)
}

// extension returns the value of the named option, nil if it is not set.
func extension(options proto.Message, name protoreflect.FullName) protoreflect.Message {
	var found protoreflect.Message
	options.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.IsExtension() && fd.FullName() == name {
			found = v.Message()
		}
		return found == nil
	})
	return found
}

// field reads a field of an option message by name.
func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

const (
	apiPackage = "signet.v1"
	schemas    = "#/components/schemas/"
)

// complete changes the generated document into the published one.
func complete(doc *object, files *protoregistry.Files) error {
	var errs []error
	components := doc.object("components")
	all := components.object("schemas")

	methods := map[string]protoreflect.MethodDescriptor{}
	requests := map[protoreflect.FullName]bool{}
	files.RangeFilesByPackage(apiPackage, func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				methods[string(service.Name())+"_"+string(method.Name())] = method
				reach(method.Input(), requests)
			}
		}
		return true
	})

	paths := newObject()
	seen := map[string]bool{}
	generated := doc.object("paths")
	for _, path := range generated.keys {
		item := generated.object(path)
		for _, verb := range item.keys {
			op := item.object(verb)
			id := op.string("operationId")
			method, ok := methods[id]
			if !ok {
				errs = append(errs, fmt.Errorf("%s %s: no method for operation %q", verb, path, id))
				continue
			}
			seen[id] = true
			if err := completeOperation(op, method, all); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", method.FullName(), err))
			}
			paths.set(jsonPath(path, method.Input()), item)
		}
	}
	for id, method := range methods {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("%s: no REST path", method.FullName()))
		}
	}
	doc.set("paths", paths)

	for _, name := range all.keys {
		d, err := files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			continue
		}
		if m, ok := d.(protoreflect.MessageDescriptor); ok && m.ParentFile().Package() == apiPackage {
			completeMessage(all.object(name), m, requests[m.FullName()])
		}
	}
	all.set("google.protobuf.Timestamp", obj(
		"type", "string",
		"format", "date-time",
		"description", "A point in time in UTC (RFC 3339).",
		"examples", []any{"2026-01-31T08:15:30.123456Z"},
	))
	all.set("google.protobuf.Value", obj("description", "Any JSON value."))
	all.set("Error", errorSchema())
	tidy(doc)

	doc.set("info", info())
	doc.set("servers", []any{obj("url", "/", "description", "The server that this document comes from.")})
	doc.set("security", []any{obj("bearer", []any{})})
	components.set("parameters", parameters())
	components.set("responses", responses())
	components.set("securitySchemes", obj("bearer", obj(
		"type", "http",
		"scheme", "bearer",
		"description", "A session token, a personal access token or an OAuth 2.0 access token.",
	)))
	for _, name := range unused(doc) {
		all.remove(name)
	}
	doc.order("openapi", "info", "servers", "security", "tags", "paths", "components")
	return errors.Join(errs...)
}

// reach collects a message and everything it contains.
func reach(m protoreflect.MessageDescriptor, into map[protoreflect.FullName]bool) {
	if into[m.FullName()] {
		return
	}
	into[m.FullName()] = true
	for i := range m.Fields().Len() {
		if sub := m.Fields().Get(i).Message(); sub != nil {
			reach(sub, into)
		}
	}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// jsonPath writes the parameters of a path the way JSON spells them.
func jsonPath(path string, input protoreflect.MessageDescriptor) string {
	return parameter.ReplaceAllStringFunc(path, func(s string) string {
		return "{" + jsonName(strings.Trim(s, "{}"), input) + "}"
	})
}

func jsonName(name string, input protoreflect.MessageDescriptor) string {
	if fd := input.Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fd.JSONName()
	}
	return name
}

// completeOperation adds headers, errors and security to one operation.
func completeOperation(op *object, method protoreflect.MethodDescriptor, all *object) error {
	rule := extension(method.Options(), apiPackage+".rule")
	if rule == nil {
		return errors.New("no (signet.v1.rule)")
	}

	params := op.list("parameters")
	for _, p := range params {
		p := p.(*object)
		fd := method.Input().Fields().ByJSONName(p.string("name"))
		if fd == nil { // of the path, as the proto file spells it
			fd = method.Input().Fields().ByName(protoreflect.Name(p.string("name")))
		}
		if fd == nil {
			return fmt.Errorf("no field for the parameter %q", p.string("name"))
		}
		p.set("name", fd.JSONName())
		p.set("schema", parameterSchema(fd))
	}
	scope := rule.Descriptor().Fields().ByName("scope").Enum().Values().ByNumber(field(rule, "scope").Enum())
	if scope == nil {
		return errors.New("unknown scope")
	}
	switch scope.Name() {
	case "SCOPE_CONTEXT":
		params = append(params, ref("parameters", "ContextOrganization"))
	case "SCOPE_REQUEST":
		params = append(params, ref("parameters", "RequestOrganization"))
	}
	if field(rule, "updates").Bool() {
		params = append(params, ref("parameters", "IfMatch"))
	}
	if field(rule, "creates").Bool() {
		params = append(params, ref("parameters", "IdempotencyKey"))
	}
	if len(params) > 0 {
		op.set("parameters", params)
	}

	// Where the path has parameters the body is generated in place, without them.
	// A name for it makes better clients.
	if body := op.object("requestBody"); body != nil {
		media := body.object("content").object("application/json")
		schema := media.object("schema")
		if schema.string("$ref") == "" {
			name := string(method.Input().FullName())
			all.set(name, schema)
			media.set("schema", obj("$ref", schemas+name))
		}
	}

	responses := op.object("responses")
	if method.IsStreamingServer() {
		op.set("parameters", append(op.list("parameters"), ref("parameters", "LastEventID")))
		success := responses.object("200")
		success.set("description", "Server-sent events. The data of each is a message in JSON and its id the cursor; "+
			"an event named `error` with an error body as data is the last one.")
		content := success.object("content")
		content.set("text/event-stream", content.object("application/json"))
		content.remove("application/json")
	}
	listed := failures(method, rule)
	for _, code := range listed.keys {
		responses.set(code, listed.get(code))
	}
	responses.set("default", ref("responses", "Error"))
	if field(rule, "public").Bool() {
		op.set("security", []any{})
	}
	op.order("tags", "summary", "description", "operationId", "deprecated", "security", "parameters",
		"requestBody", "responses")
	return nil
}

// parameterSchema describes a field that a path or a query sets. A list is sent as one parameter for each of its elements.
func parameterSchema(fd protoreflect.FieldDescriptor) *object {
	element := obj("type", "string")
	switch fd.Kind() {
	case protoreflect.BoolKind:
		element = obj("type", "boolean")
	case protoreflect.Int32Kind:
		element = obj("type", "integer", "format", "int32")
	case protoreflect.Uint64Kind:
		element = obj("type", "string", "format", "uint64", "pattern", "^[0-9]+$")
	case protoreflect.EnumKind:
		element = obj("type", "string", "enum", names(fd.Enum()))
	case protoreflect.MessageKind:
		element = obj("$ref", schemas+string(fd.Message().FullName()))
	}
	if fd.IsList() {
		return obj("type", "array", "items", element)
	}
	return element
}

// path is the REST path of a method.
func path(method protoreflect.MethodDescriptor) (path string) {
	extension(method.Options(), "google.api.http").Range(func(fd protoreflect.FieldDescriptor,
		v protoreflect.Value) bool {
		if oneof := fd.ContainingOneof(); oneof != nil && oneof.Name() == "pattern" {
			path = v.String()
		}
		return path == ""
	})
	return path
}

// names are those of an enum that mean something.
func names(ed protoreflect.EnumDescriptor) (all []any) {
	for i := range ed.Values().Len() {
		if v := ed.Values().Get(i); v.Number() != 0 {
			all = append(all, string(v.Name()))
		}
	}
	return all
}

// failures lists those answers of a method that tell something beyond the default one, by code.
func failures(method protoreflect.MethodDescriptor, rule protoreflect.Message) *object {
	all := newObject()
	add := func(when bool, code, response string) {
		if when {
			all.set(code, ref("responses", response))
		}
	}
	known := !field(rule, "public").Bool()
	add(true, "400", "Invalid")
	add(known, "401", "Unauthenticated")
	add(known, "403", "Denied")
	add(strings.Contains(path(method), "{"), "404", "NotFound")
	add(field(rule, "updates").Bool() || field(rule, "creates").Bool(), "409", "Conflict")
	add(true, "429", "TooMany")
	for _, status := range statuses[string(method.Name())] {
		all.set(status.code, failure(status.meaning))
	}
	slices.Sort(all.keys)
	return all
}

// completeMessage corrects the schema of one message.
func completeMessage(schema *object, m protoreflect.MessageDescriptor, request bool) {
	// Messages with a choice come as allOf beside additionalProperties, which
	// would refuse every property. One list of properties says the same.
	if parts := schema.list("allOf"); parts != nil {
		properties := newObject()
		flatten(parts, properties)
		schema.remove("allOf")
		schema.set("properties", properties)
		var choices []any
		for i := range m.Oneofs().Len() {
			fields := m.Oneofs().Get(i).Fields()
			for j := range fields.Len() {
				if fields.Len() > 1 {
					choices = append(choices, obj("required", []any{fields.Get(j).JSONName()}))
				}
			}
		}
		if choices != nil {
			schema.set("oneOf", choices)
		}
	}
	// Answers may gain fields, requests must not carry unknown ones.
	if !request {
		schema.remove("additionalProperties")
	}

	required := schema.list("required")
	properties := schema.object("properties")
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		property := properties.object(fd.JSONName())
		if property == nil {
			continue
		}
		property.remove("title")
		if fd.Kind() == protoreflect.Uint64Kind {
			property.set("type", "string")
			property.set("format", "uint64")
			property.set("pattern", "^[0-9]+$")
		}
		if !fd.HasPresence() && minLen(fd) > 0 && !slices.Contains(required, any(fd.JSONName())) {
			required = append(required, fd.JSONName())
		}
	}
	if required != nil {
		schema.set("required", required)
	}
	schema.order("title", "description", "type", "properties", "required")
}

func flatten(parts []any, into *object) {
	for _, part := range parts {
		part := part.(*object)
		if properties := part.object("properties"); properties != nil {
			for _, k := range properties.keys {
				into.set(k, properties.values[k])
			}
		}
		flatten(part.list("oneOf"), into)
	}
}

// minLen returns the least number of characters that a rule asks for.
func minLen(fd protoreflect.FieldDescriptor) uint64 {
	rules := extension(fd.Options(), "buf.validate.field")
	if rules == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return 0
	}
	return field(field(rules, "string").Message(), "min_len").Uint()
}

var folded = regexp.MustCompile(`(\S)\n ?(\S)`)

// tidy joins the lines of wrapped comments in all descriptions.
func tidy(v any) {
	switch v := v.(type) {
	case *object:
		for _, k := range v.keys {
			if text, ok := v.values[k].(string); ok && k == "description" {
				v.values[k] = folded.ReplaceAllString(text, "$1 $2")
			}
			tidy(v.values[k])
		}
	case []any:
		for _, e := range v {
			tidy(e)
		}
	}
}

// unused lists the schemas that no operation leads to.
func unused(doc *object) []string {
	all := doc.object("components").object("schemas")
	used := map[string]bool{}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case *object:
			if name, ok := strings.CutPrefix(v.string("$ref"), schemas); ok && !used[name] {
				used[name] = true
				visit(all.object(name))
			}
			for _, k := range v.keys {
				visit(v.values[k])
			}
		case []any:
			for _, e := range v {
				visit(e)
			}
		}
	}
	visit(doc.object("paths"))
	visit(doc.object("components").object("responses"))
	var names []string
	for _, name := range all.keys {
		if !used[name] {
			names = append(names, name)
		}
	}
	return names
}
