package api_test

import (
	"hash/fnv"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// Case is one request and the answer it must get, over every content type. See the package's documentation.
type Case struct {
	Name   string
	As     *Actor // nil: no credential
	Req    proto.Message
	Fresh  func() proto.Message // instead of Req, for what can be sent once only
	Header Header
	Want   Want
	Check  func(t *testing.T, a *Answer)
	Sparse bool // one of many: most of them are sent over one content type only
}

// Want is the expected answer: its zero value is success.
type Want struct {
	Code   codes.Code
	Reason string
	Fields []string // of the violations, in any order

	or     []Want     // just as good
	but    string     // not the above: whatever has another reason than this
	passed *operation // not the above: whatever this operation answers to somebody who may, see mustHavePassed
}

var ok = Want{}

func refused(code codes.Code, reason string) Want { return Want{Code: code, Reason: reason} }

func invalid(fields ...string) Want {
	return Want{Code: codes.InvalidArgument, Reason: "INVALID_REQUEST", Fields: fields}
}

// either is for answers of which none is better than the other.
func either(want, or Want) Want {
	want.or = append(want.or, or)
	return want
}

// Refusals that many cases expect.
var (
	unauthenticated  = refused(codes.Unauthenticated, "UNAUTHENTICATED")
	permissionDenied = refused(codes.PermissionDenied, "PERMISSION_DENIED")
	targetHoldsMore  = refused(codes.PermissionDenied, "TARGET_HOLDS_MORE")
	changeRequired   = refused(codes.PermissionDenied, "PASSWORD_CHANGE_REQUIRED")
	noUser           = refused(codes.NotFound, "USER_NOT_FOUND")
	noOrg            = refused(codes.NotFound, "ORGANIZATION_NOT_FOUND")
	noIDP            = refused(codes.NotFound, "IDENTITY_PROVIDER_NOT_FOUND")
	noApp            = refused(codes.NotFound, "APPLICATION_NOT_FOUND")
	noWebhook        = refused(codes.NotFound, "WEBHOOK_NOT_FOUND")
	noCustomRole     = refused(codes.NotFound, "ROLE_NOT_FOUND")
	roleHoldsMore    = refused(codes.PermissionDenied, "ROLE_HOLDS_MORE")
	noGroup          = refused(codes.NotFound, "GROUP_NOT_FOUND")
	noProject        = refused(codes.NotFound, "PROJECT_NOT_FOUND")
	noGrant          = refused(codes.NotFound, "PROJECT_GRANT_NOT_FOUND")
	noRole           = refused(codes.NotFound, "PROJECT_ROLE_NOT_FOUND")
	noInvitation     = refused(codes.NotFound, "INVITATION_NOT_FOUND")
	noOffer          = refused(codes.NotFound, "OFFER_NOT_FOUND")
	offerNotOpen     = refused(codes.FailedPrecondition, "OFFER_NOT_OPEN")
	noSession        = refused(codes.NotFound, "SESSION_NOT_FOUND")
	notHuman         = refused(codes.FailedPrecondition, "NOT_A_HUMAN_USER")
	sequenceMismatch = refused(codes.Aborted, "SEQUENCE_MISMATCH")
	domainTaken      = refused(codes.AlreadyExists, "DOMAIN_TAKEN")
	signInFailed     = refused(codes.Unauthenticated, "SIGN_IN_FAILED")
)

// Header is what a request carries beside its message, by lower-case names.
type Header map[string][]string

// on adds the header to a request.
func (h Header) on(r *http.Request) *http.Request {
	for k, v := range h {
		r.Header[textproto.CanonicalMIMEHeaderKey(k)] = v
	}
	return r
}

// header makes a Header of names and values in turn. A name given twice is sent twice.
func header(pairs ...string) Header {
	h := Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// run sends a case over all content types and compares their answers.
func (w *World) run(t *testing.T, c Case) {
	var first *Answer
	for _, wire := range w.wiresFor(&c) {
		a := w.send(t, wire, c.As, c.request(), c.Header)
		a.mustBe(t, c.Want)
		if c.Check != nil && !t.Failed() {
			c.Check(t, a)
		}
		if first == nil {
			first = a
		} else if x, y := first.summary(), a.summary(); x != y {
			t.Errorf("the content types answer differently:\n%s: %s\n%s: %s", first.wire, x, a.wire, y)
		}
	}
}

func (c *Case) request() proto.Message {
	if c.Fresh != nil {
		return c.Fresh()
	}
	return c.Req
}

// wiresFor gives the content types a case is sent over: all of them, for every third of the sparse cases too. Which
// these are follows from the name, so that it is the same in every run.
func (w *World) wiresFor(c *Case) []wire {
	if !c.Sparse {
		return w.wires
	}
	sum := fnv.New32a()
	sum.Write([]byte(c.Name))
	turn := int(sum.Sum32() % 9)
	if turn < 3 {
		return w.wires
	}
	return w.wires[turn%3 : turn%3+1]
}

// anyReason stands for a reason that the case leaves to others.
const anyReason = "*"

// mustBe compares an answer with what was expected.
func (a *Answer) mustBe(t *testing.T, want Want) {
	t.Helper()
	if want.passed != nil {
		a.mustHavePassed(t, want.passed)
		return
	}
	if want.but != "" {
		if a.reason() == want.but {
			t.Errorf("%s: got %s", a.wire, a.summary())
		}
		return
	}
	for _, other := range want.or {
		if a.is(other) {
			return
		}
	}
	if !a.is(want) {
		t.Errorf("%s: got %v %s %q, want %v %s %q\nmessage: %s", a.wire, a.code(), a.reason(), a.fields(), want.Code,
			want.Reason, want.Fields,
			a.status.GetMessage())
	}
}

// is tells whether an answer has the code, the reason and the violations that were expected.
func (a *Answer) is(want Want) bool {
	return a.code() == want.Code && (a.reason() == want.Reason || want.Reason == anyReason) &&
		slices.Equal(a.fields(), slices.Sorted(slices.Values(want.Fields)))
}

// Client tells a story over one content type.
type Client struct {
	w    *World
	wire wire
}

// send gives whatever the answer is.
func (c *Client) send(t *testing.T, as *Actor, req proto.Message, h ...Header) *Answer {
	t.Helper()
	return c.w.send(t, c.wire, as, req, merge(h))
}

// refused sends a request that must not succeed.
func (c *Client) refused(t *testing.T, want Want, as *Actor, req proto.Message, h ...Header) *Answer {
	t.Helper()
	a := c.send(t, as, req, h...)
	a.mustBe(t, want)
	return a
}

// done sends a request that must succeed; without its answer the story cannot go on.
func done[R proto.Message](t *testing.T, c *Client, as *Actor, req proto.Message, h ...Header) R {
	t.Helper()
	a := c.send(t, as, req, h...)
	if a.status != nil {
		t.Fatalf("%s: %s", a.wire, a.summary())
	}
	return a.message.(R)
}

func merge(all []Header) Header {
	out := Header{}
	for _, h := range all {
		for k, v := range h {
			out[k] = append(out[k], v...)
		}
	}
	return out
}

// same fails where two values that must be alike are not.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// sameMessage does the same for messages.
func sameMessage(t *testing.T, what string, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// wide repeats a character of four bytes, so that whoever counts bytes or UTF-16 units counts wrong.
func wide(n int) string { return strings.Repeat("𝕊", n) }
