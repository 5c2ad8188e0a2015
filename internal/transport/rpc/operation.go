package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/runtime/protoimpl"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/transport/strict"
)

// Service is one proto service and what implements it: a value with a method
//
//	func (ctx context.Context, req *Request) (*Response, error)
//
// for each of the service's RPCs, as the generated handler interfaces of the "simple" flavour demand; or, where the
// answer is a stream,
//
//	func (ctx context.Context, req *Request, send func(*Response) error) error
type Service struct {
	Name protoreflect.FullName // signet.v1.UserService
	Impl any
}

// operation is one RPC with everything its descriptor says, worked out once.
type operation struct {
	procedure string // signet.v1.UserService/GetUser
	rule      *signetv1.Rule
	bindings  []*binding // its REST paths
	input     protoreflect.MessageType
	ids       []protoreflect.FieldDescriptor // fields of the request that a path can set: identifiers
	orgID     protoreflect.FieldDescriptor   // org_id of the request, where the scope needs it
	// user_id of the request, where the rule asks for a proof of who names themselves
	userID      protoreflect.FieldDescriptor
	readsUser   protoreflect.FieldDescriptor   // user_id of the request of a read
	details     []protoreflect.FieldDescriptor // where a read's answer has the details of its object
	maxBody     int64                          // bytes of a request
	bulk        bool                           // it reads many objects, so short operations go first: see shares
	searches    bool                           // it searches: lists have their part beside such operations
	costly      bool                           // it writes many objects: see shares
	reads       bool                           // it changes nothing
	proto       strict.Proto                   // of the request
	deprecation string                         // value of the header, or empty
	successor   string                         // path of what to use instead, or empty
	method      reflect.Value

	permissions []access.Permission // of the rule, and the narrower ones

	scopes     access.APIScopes // that an application needs; none: it is not for applications
	moreScopes access.APIScopes // that fields of the request may need as well
	guarded    []guarded        // these fields

	streams    bool
	cursor     protoreflect.FieldDescriptor // of a stream's request: where to go on
	nextCursor protoreflect.FieldDescriptor // of a stream's messages: what to send as cursor to go on behind them
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// newOperations reads the descriptor of a service and binds each of its methods.
func newOperations(s Service) ([]*operation, error) {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(s.Name)
	if err != nil {
		return nil, fmt.Errorf("rpc: service %q: %w", s.Name, err)
	}
	sd, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("rpc: %q is not a service", s.Name)
	}
	if s.Impl == nil {
		return nil, fmt.Errorf("rpc: service %q has no implementation", s.Name)
	}
	var ops []*operation
	var problems []error
	for i := range sd.Methods().Len() {
		md := sd.Methods().Get(i)
		op, err := newOperation(md, reflect.ValueOf(s.Impl))
		if err != nil {
			problems = append(problems, fmt.Errorf("rpc: %s: %w", md.FullName(), err))
			continue
		}
		ops = append(ops, op)
	}
	return ops, errors.Join(problems...)
}

func newOperation(md protoreflect.MethodDescriptor, impl reflect.Value) (*operation, error) {
	if md.IsStreamingClient() {
		return nil, errors.New("streams of requests are not served")
	}
	op := &operation{procedure: string(md.Parent().FullName()) + "/" + string(md.Name()),
		streams: md.IsStreamingServer()}
	var err error
	if op.input, err = protoregistry.GlobalTypes.FindMessageByName(md.Input().FullName()); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(md.Output().FullName())
	if err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	op.method = impl.MethodByName(string(md.Name()))
	if !op.method.IsValid() {
		return nil, fmt.Errorf("%s has no such method", impl.Type())
	}
	if !op.fits(op.method.Type(), output) {
		want := fmt.Sprintf("func(context.Context, %s) (%s, error)", goType(op.input), goType(output))
		if op.streams {
			want = fmt.Sprintf("func(context.Context, %s, func(%s) error) error", goType(op.input), goType(output))
		}
		return nil, fmt.Errorf("the method of %s is a %s, not a %s", impl.Type(), op.method.Type(), want)
	}

	if !proto.HasExtension(md.Options(), signetv1.E_Rule) {
		return nil, errors.New("it has no rule that says who may call it")
	}
	op.rule = proto.GetExtension(md.Options(), signetv1.E_Rule).(*signetv1.Rule)
	if err := op.checkRule(); err != nil {
		return nil, err
	}
	if err := op.readScopes(); err != nil {
		return nil, err
	}
	op.proto = strict.NewProto(md.Input())
	op.maxBody = cmp.Or(int64(op.rule.GetMaxBytes()), maxBody)
	op.costly = op.rule.GetCost() == signetv1.Cost_COST_WRITES_MANY
	op.searches = op.rule.GetCost() == signetv1.Cost_COST_SEARCHES
	op.bulk = !op.costly && (op.rule.GetCost() == signetv1.Cost_COST_READS_MANY || op.maxBody > maxBody ||
		op.input.Descriptor().Fields().ByName("page_size") != nil)
	if since := op.rule.GetDeprecatedSince(); since != 0 {
		op.deprecation = "@" + strconv.FormatInt(since, 10)
	}
	op.successor = op.rule.GetSuccessor()

	if !proto.HasExtension(md.Options(), annotations.E_Http) {
		return nil, errors.New("it has no REST path")
	}
	path := proto.GetExtension(md.Options(), annotations.E_Http).(*annotations.HttpRule)
	for _, p := range append([]*annotations.HttpRule{path}, path.GetAdditionalBindings()...) {
		b, err := newBinding(op, p)
		if err != nil {
			return nil, err
		}
		op.bindings = append(op.bindings, b)
		op.reads = b.verb == http.MethodGet
		op.ids = append(op.ids, b.params...)
	}
	if op.streams {
		return op, op.findCursor(md)
	}
	if op.bindings[0].verb == "GET" {
		op.details = findDetails(md.Output())
		op.readsUser = op.input.Descriptor().Fields().ByName("user_id")
	}
	return op, nil
}

// findCursor finds what makes a stream resumable.
func (op *operation) findCursor(md protoreflect.MethodDescriptor) error {
	op.cursor, op.nextCursor = md.Input().Fields().ByName("cursor"), md.Output().Fields().ByName("cursor")
	for _, fd := range []protoreflect.FieldDescriptor{op.cursor, op.nextCursor} {
		if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
			return errors.New("a stream needs a string cursor in its request and in its messages")
		}
	}
	for _, b := range op.bindings {
		if b.verb != "GET" {
			return errors.New("a stream is read by GET")
		}
	}
	return nil
}

// isSign tells whether a message of a stream is a sign of life: it holds nothing but its cursor.
func (op *operation) isSign(m protoreflect.Message) bool {
	sign := true
	m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		sign = fd == op.nextCursor
		return sign
	})
	return sign
}

// fits tells whether a method takes and gives what Service says. To make the type that it should have would take ten
// times as long.
func (op *operation) fits(method reflect.Type, output protoreflect.MessageType) bool {
	is := func(f reflect.Type, in, out int) bool {
		return f.NumIn() == in && f.NumOut() == out && !f.IsVariadic() && f.Out(out-1) == errorType
	}
	if op.streams {
		return is(method, 3, 1) && method.In(0) == contextType && method.In(1) == goType(op.input) &&
			method.In(2).Kind() == reflect.Func && method.In(2).Name() == "" && is(method.In(2), 1, 1) &&
			method.In(2).In(0) == goType(output)
	}
	return is(method, 2, 2) && method.In(0) == contextType && method.In(1) == goType(op.input) &&
		method.Out(0) == goType(output)
}

// goType is the type of a message in Go. A generated one says it without being made ready for use.
func goType(mt protoreflect.MessageType) reflect.Type {
	if generated, ok := mt.(*protoimpl.MessageInfo); ok {
		return generated.GoReflectType
	}
	return reflect.TypeOf(mt.Zero().Interface())
}

// ReadAhead reads of the definition what New will need, so that it can be done while others wait for a database: most
// of what New takes is that.
func ReadAhead(services protoreflect.FullName) {
	protoregistry.GlobalFiles.RangeFilesByPackage(services, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				_ = methods.Get(j).Options()
				_, _, _ = guardedIn(methods.Get(j).Input(), "", nil) // New says what is wrong
				_ = methods.Get(j).Output().Fields().ByName("details")
			}
		}
		return true
	})
}

// checkRule refuses a rule that the chain could not enforce.
func (op *operation) checkRule() error {
	rule := op.rule
	switch rule.GetWho().(type) {
	case *signetv1.Rule_Permission:
		if rule.GetScope() == signetv1.Scope_SCOPE_REQUEST {
			return errors.New("SCOPE_REQUEST leads to no organization in which a permission could be checked")
		}
		if len(rule.GetNarrower()) > 0 && rule.GetScope() == signetv1.Scope_SCOPE_TARGET {
			return errors.New("SCOPE_TARGET has its permission checked by the method: it cannot have narrower ones")
		}
		for _, name := range append([]string{rule.GetPermission()}, rule.GetNarrower()...) {
			if !access.IsPermission(access.Permission(name)) {
				return fmt.Errorf("its rule names the unknown permission %q", name)
			}
			op.permissions = append(op.permissions, access.Permission(name))
		}
	case *signetv1.Rule_Authenticated, *signetv1.Rule_Public:
		if !rule.GetAuthenticated() && !rule.GetPublic() {
			return errors.New("its rule names nobody")
		}
		if s := rule.GetScope(); s != signetv1.Scope_SCOPE_SELF && s != signetv1.Scope_SCOPE_REQUEST {
			return fmt.Errorf("%s without a permission checks nothing", s)
		}
		if rule.GetPublic() && rule.GetCreates() {
			return errors.New("a public method cannot tell whose idempotency key it was sent")
		}
	default:
		return errors.New("its rule names nobody")
	}
	if rule.GetPermission() == "" && len(rule.GetNarrower()) > 0 {
		return errors.New("its rule has narrower permissions, but none that they are narrower than")
	}
	if rule.GetPublic() && rule.GetCost() == signetv1.Cost_COST_WRITES_MANY {
		return errors.New("a public method has no organization that could wait for its place")
	}
	if rule.GetMaxBytes() < 0 {
		return errors.New("no request has less than no bytes")
	}
	switch person := rule.GetProof() == signetv1.Proof_PROOF_RECENT_PERSON; {
	case person && (rule.GetPermission() == "" || rule.GetScope() == signetv1.Scope_SCOPE_TARGET):
		return errors.New("its rule asks everybody for a proof, but grants nothing before the target is read")
	case rule.GetProof() != signetv1.Proof_PROOF_UNSPECIFIED && !person && !op.aboutCaller():
		op.userID = op.input.Descriptor().Fields().ByName("user_id")
		if op.userID == nil || op.userID.Kind() != protoreflect.StringKind || op.userID.IsList() {
			return errors.New("its rule asks for a proof, but it is neither about the caller nor about a user_id")
		}
	}
	switch rule.GetScope() {
	case signetv1.Scope_SCOPE_SELF, signetv1.Scope_SCOPE_CONTEXT, signetv1.Scope_SCOPE_TARGET:
	case signetv1.Scope_SCOPE_PATH, signetv1.Scope_SCOPE_REQUEST:
		op.orgID = op.input.Descriptor().Fields().ByName("org_id")
		if op.orgID == nil || op.orgID.Kind() != protoreflect.StringKind || op.orgID.IsList() {
			return fmt.Errorf("%s needs a string org_id in the request", rule.GetScope())
		}
	default:
		return errors.New("its rule has no scope")
	}
	return nil
}

// aboutCaller tells whether the operation concerns nobody but who calls it.
func (op *operation) aboutCaller() bool {
	return op.rule.GetAuthenticated() && op.rule.GetScope() == signetv1.Scope_SCOPE_SELF
}

// findDetails looks for the details of the object that an answer holds: directly, or in the only message
// beside plain values.
func findDetails(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	const name = "signet.v1.Details"
	direct := func(md protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
		if f := md.Fields().ByName("details"); f != nil && f.Message() != nil &&
			f.Message().FullName() == name && !f.IsList() {
			return f
		}
		return nil
	}
	if f := direct(md); f != nil {
		return []protoreflect.FieldDescriptor{f}
	}
	var only protoreflect.FieldDescriptor
	for i := range md.Fields().Len() {
		f := md.Fields().Get(i)
		if f.Message() == nil && !f.IsList() {
			continue // a value beside the object, of which it follows
		}
		if only != nil || f.IsList() || f.IsMap() {
			return nil
		}
		only = f
	}
	if only != nil {
		if inner := direct(only.Message()); inner != nil {
			return []protoreflect.FieldDescriptor{only, inner}
		}
	}
	return nil
}

// etag gives the entity tag of what a read found, or nothing.
func (op *operation) etag(response proto.Message) string {
	if len(op.details) == 0 {
		return ""
	}
	m := response.ProtoReflect()
	for _, f := range op.details {
		if !m.Has(f) {
			return ""
		}
		m = m.Get(f).Message()
	}
	details, ok := m.Interface().(*signetv1.Details)
	if !ok {
		return ""
	}
	return `"` + strconv.FormatUint(details.GetSequence(), 10) + `"`
}

// successorOf gives the link header that says what to use instead of a request, where it can be told.
func (op *operation) successorOf(req protoreflect.Message) string {
	if op.successor == "" {
		return ""
	}
	path := op.successor
	for _, fd := range op.ids {
		value := req.Get(fd).String()
		if value == "" {
			return "" // it was refused before it was read
		}
		path = strings.ReplaceAll(path, "{"+fd.JSONName()+"}", url.PathEscape(value))
	}
	return "<" + path + `>; rel="successor-version"`
}

// invoke calls the implementation.
func (op *operation) invoke(ctx context.Context, req proto.Message) (proto.Message, error) {
	// A value of the parameter's own type is taken as it is. Package reflect would look up each time whether another
	// one has the methods.
	out := op.method.Call([]reflect.Value{reflect.ValueOf(&ctx).Elem(), reflect.ValueOf(req)})
	if err, ok := out[1].Interface().(error); ok && err != nil {
		return nil, err
	}
	if out[0].IsNil() {
		return nil, errors.New("the operation answered with neither a message nor an error")
	}
	return out[0].Interface().(proto.Message), nil
}

// follow calls the implementation of a stream.
func (op *operation) follow(ctx context.Context, req proto.Message, send func(proto.Message) error) error {
	typed := reflect.MakeFunc(op.method.Type().In(2), func(in []reflect.Value) []reflect.Value {
		out := reflect.New(errorType).Elem()
		if err := send(in[0].Interface().(proto.Message)); err != nil {
			out.Set(reflect.ValueOf(err))
		}
		return []reflect.Value{out}
	})
	err, _ := op.method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req), typed})[0].Interface().(error)
	return err
}
