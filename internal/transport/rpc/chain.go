package rpc

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/internal/transport/web"
)

// A Call is one request on its way through the chain, whatever protocol it came by.
//
// It holds all of a request: the bytes of HTTP (web.Exchange) and what the rules see of it (call.Info, in the Exchange).
type Call struct {
	*web.Exchange
	h     *Handler
	op    *operation
	limit time.Duration // how long it may take; 0: for ever
	bound bool          // the token was sent as one that is bound to a key
	text  bool          // gRPC-Web in text mode

	coding      string // of the body of an answer over gRPC-Web; empty: it is as it is
	frameCoding string // of the messages in it

	// decode fills the request from the wire. Violations mean that nothing can be said about the rest of the message;
	// where it can, what is wrong goes to problems, as do headers that the door has to read itself.
	decode   func(ctx context.Context, req proto.Message) ([]errs.Violation, error)
	problems []errs.Violation
	names    []string // identifiers of what a read is about, where they are known before it is decoded

	// marshal writes the answer of one that is no stream for the wire. A list takes as long as to read it, so it does
	// both in the slot that it has, see shares.
	marshal func(resp proto.Message) error

	send func(proto.Message) error // one message of a stream
	bare bool                      // only the head of a stream is asked for
}

// run is the rest of the chain. The request it gets is empty until the step validate has passed.
type run func(ctx context.Context, c *Call, req proto.Message) (proto.Message, error)

// step is one link of the chain: it answers by itself or lets next do it.
type step func(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error)

func link(last run, steps ...step) run {
	for _, s := range slices.Backward(steps) {
		next := last
		last = func(ctx context.Context, c *Call, req proto.Message) (proto.Message, error) {
			return s(ctx, c, req, next)
		}
	}
	return last
}

// who are the steps that find out who calls. Operations and streams have the same ones.
func (h *Handler) who() []step {
	return []step{limitNetwork, h.authenticate, limitCaller, h.proveKey}
}

// chain is what every operation runs behind.
func (h *Handler) chain() run {
	return link(operate, slices.Concat([]step{guard, limitTime}, h.who(), []step{rejectEarly, h.queueLargeRequest,
		h.validate, h.authorize, h.queueCall, h.queueSearch, h.queueList, h.queueManyWrites})...)
}

// guard turns a panic into an internal error. The pipeline has a guard, too (package web); this one lets a stream end
// as its protocol wants.
func guard(ctx context.Context, c *Call, req proto.Message, next run) (resp proto.Message, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p) // net/http's own way to drop a connection
		default:
			resp, err = nil, errs.Recovered(p)
		}
	}()
	return next(ctx, c, req)
}

// limitTime ends the request's context when its time is over, and gives failures that come from that their name.
func limitTime(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	limited := withTimeLimit(ctx, c.limit)
	defer limited.end()
	resp, err := next(call.With(limited, &c.Info), c, req)
	if err == nil {
		return resp, nil
	}
	if _, ours := errors.AsType[*errs.Error](err); ours || limited.Err() == nil {
		return nil, err
	}
	if _, bug := errors.AsType[*errs.Panicked](err); bug {
		return nil, err
	}
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		return nil, errDeadline.Because(err)
	}
	return nil, errs.ErrGone.Because(err)
}

// limitNetwork counts the request against the limits of its network, before anything is read, hashed or looked up for
// it.
func limitNetwork(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	as := web.WithToken
	if c.op.rule.GetPublic() {
		as = web.AsPublic
	}
	if err := c.FromNetwork(as); err != nil {
		return nil, err
	}
	return next(ctx, c, req)
}

// limitCaller counts it against those of the caller and the caller's organization.
func limitCaller(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if caller := c.Info.Caller; caller != nil {
		if err := c.OfCaller(caller.UserID, caller.OrgID); err != nil {
			return nil, err
		}
	}
	return next(ctx, c, req)
}

// authenticate finds out who is calling. Public operations do not look at credentials at all.
func (h *Handler) authenticate(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.op.rule.GetPublic() {
		return next(ctx, c, req)
	}
	if _, _, named := credential(c.Request.Header); named && len(c.names) > 0 && h.config.Ahead != nil {
		ctx = h.config.Ahead(ctx, c.names)
	}
	spanned, span := tracing.Start(ctx, "authenticate")
	var err error
	c.Info.Caller, err = h.identify(spanned, c)
	if span.End(err); err != nil {
		return nil, err
	}
	resp, err := next(ctx, c, req)
	if used := c.Info.Caller.Used; used != nil && err == nil {
		used()
	}
	return resp, err
}

// identify asks who the call's token belongs to at this moment.
func (h *Handler) identify(ctx context.Context, c *Call) (*access.Caller, error) {
	token, bound, ok := credential(c.Request.Header)
	c.bound = bound
	switch {
	case len(c.Request.Header[keyAuthorization]) == 0:
		return nil, access.ErrNoToken
	case !ok:
		return nil, access.ErrNotAToken
	}
	caller, err := h.config.Authenticate(ctx, token)
	if err != nil {
		return nil, err
	}
	if caller == nil {
		return nil, access.ErrUnauthenticated
	}
	own := *caller // a copy: the authenticator may keep the Caller that it returned
	own.RequestID, own.Needs = c.Info.RequestID, h.needs
	return &own, nil
}

// proveKey refuses a token that is bound to a key (DPoP) without a proof of the key, and one that is not with it. It
// comes behind the limits of the caller: to check a proof costs more than to send it.
func (h *Handler) proveKey(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.Info.Caller == nil {
		return next(ctx, c, req)
	}
	switch key := c.Info.Caller.Key; {
	case key == "" && !c.bound:
	case key == "":
		return nil, access.ErrNotBound
	case !c.bound || h.config.Prove == nil:
		return nil, access.ErrBound
	default:
		token, _, _ := credential(c.Request.Header)
		nonce, err := h.config.Prove(ctx, c.Request, token, key, c.op.reads)
		c.Header().Set("DPoP-Nonce", nonce)
		if err != nil {
			return nil, err
		}
	}
	return next(ctx, c, req)
}

// rejectEarly rejects callers without the permission before it reads a large body. This is the one exception from the
// order of answers: they do not learn what is wrong with the request.
func rejectEarly(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.op.maxBody <= maxBody || c.Info.Caller == nil {
		return next(ctx, c, req)
	}
	if err := c.unrestricted(c.Info.Caller, req); err != nil {
		return nil, err
	}
	if all := c.op.permissions; len(all) > 0 && !slices.ContainsFunc(all, c.Info.Caller.Memberships.HoldAnywhere) {
		return nil, access.ErrDenied
	}
	return next(ctx, c, req)
}

// maxCheapRequest is a size at which no grammar takes long.
const maxCheapRequest = 4 << 10

// validate decodes the request and collects everything that is wrong with it and its headers.
func (h *Handler) validate(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	spanned, span := tracing.Start(ctx, "validate")
	err := h.read(spanned, c, req)
	if span.End(err); err != nil {
		return nil, err
	}
	return next(ctx, c, req)
}

func (h *Handler) read(ctx context.Context, c *Call, req proto.Message) error {
	unreadable, err := c.decode(ctx, req)
	if err != nil {
		return err
	}
	// What is wrong on the wire comes first: a number where a name should be is not an empty name.
	found := append(unreadable, c.problems...)
	if len(unreadable) == 0 {
		broken, tooLong, err := h.rules.Check(req)
		if err != nil {
			return err
		}
		// Lengths come before grammars, whose work grows with them. What is only a little too long is told together
		// with all else.
		if h.config.Check != nil && !(tooLong && proto.Size(req) > maxCheapRequest) {
			more, err := h.config.Check(req, h.check)
			if err != nil {
				return err
			}
			broken = append(broken, more...)
		}
		wire := found
		for _, v := range broken {
			// A list that lost an element that cannot be read is not one that was sent too short.
			if !slices.ContainsFunc(wire,
				func(w errs.Violation) bool { return insideOf(map[string]bool{v.Field: true}, w.Field) }) {
				found = append(found, v)
			}
		}
	}
	found = append(found, c.readHeaders()...)
	if len(unreadable) == 0 || c.op.orgID == nil {
		found = append(found, c.settleOrganization(req)...)
	}
	if len(found) > 0 {
		return errs.Invalid(firstOfEach(found)...)
	}
	return nil
}

// firstOfEach keeps one violation per field, none inside an object that is wrong itself, and no more of them than a
// caller can read, in an order that does not depend on the protocol.
func firstOfEach(all []errs.Violation) []errs.Violation {
	var kept []errs.Violation
	seen := map[string]bool{}
	for _, v := range all {
		if v.Field != "" && (seen[v.Field] || insideOf(seen, v.Field)) {
			continue
		}
		seen[v.Field] = true
		if kept = append(kept, v); len(kept) == strict.MaxViolations {
			break
		}
	}
	// An object may have been found wrong after something inside it.
	kept = slices.DeleteFunc(kept, func(v errs.Violation) bool { return insideOf(seen, v.Field) })
	slices.SortStableFunc(kept, func(a, b errs.Violation) int { return compareFields(a.Field, b.Field) })
	return kept
}

// compareFields orders paths by name, and elements of a list by number: roles[2] comes before roles[10].
func compareFields(a, b string) int {
	for a != "" && b != "" {
		nameA, restA, _ := strings.Cut(a, "[")
		nameB, restB, _ := strings.Cut(b, "[")
		if c := strings.Compare(nameA, nameB); c != 0 {
			return c
		}
		var indexA, indexB string
		indexA, a, _ = strings.Cut(restA, "]")
		indexB, b, _ = strings.Cut(restB, "]")
		if c := cmp.Or(cmp.Compare(len(indexA), len(indexB)), strings.Compare(indexA, indexB)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// insideOf tells whether one of the objects that hold a field is among those given.
func insideOf(fields map[string]bool, field string) bool {
	for i, c := range field {
		if (c == '.' || c == '[') && fields[field[:i]] {
			return true
		}
	}
	return false
}

// settleOrganization relates the header x-service-orgid to the request, in the way of the operation's scope. The header
// is never ignored: it agrees, or it decides, or it is refused.
func (c *Call) settleOrganization(req proto.Message) []errs.Violation {
	header := c.Info.OrgHeader
	if header == "" {
		return nil
	}
	switch c.op.rule.GetScope() {
	case signetv1.Scope_SCOPE_SELF:
		if c.Info.Caller == nil {
			return []errs.Violation{{Field: orgHeader, Message: "does not apply to this operation"}}
		}
		if header != c.Info.Caller.OrgID {
			return []errs.Violation{{Field: orgHeader,
				Message: "must be your own organization, or be left out: this operation cannot address another one"}}
		}
	case signetv1.Scope_SCOPE_PATH:
		if header != req.ProtoReflect().Get(c.op.orgID).String() {
			return []errs.Violation{{Field: orgHeader,
				Message: "must be the organization that the request names, or be left out"}}
		}
	case signetv1.Scope_SCOPE_REQUEST:
		m := req.ProtoReflect()
		switch m.Get(c.op.orgID).String() {
		case "":
			m.Set(c.op.orgID, protoString(header))
		case header:
		default:
			return []errs.Violation{{Field: orgHeader, Message: "must be the same as orgId, or be left out"}}
		}
	}
	return nil
}

// authorize decides about permission, where that does not depend on the target. An operation that takes long can have
// it decided again, see access.Permit.Renew.
func (h *Handler) authorize(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.Info.Caller == nil {
		if !c.op.rule.GetPublic() {
			return nil, access.ErrUnauthenticated
		}
		return next(ctx, c, req)
	}
	spanned, span := tracing.Start(ctx, "authorize")
	permit, err := h.judge(spanned, c, c.Info.Caller, req)
	if span.End(err); err != nil {
		return nil, err
	}
	c.Info.Permit = permit.Renewing(func(ctx context.Context) (access.Permit, error) {
		caller, err := h.identify(ctx, c)
		if err != nil {
			return access.Permit{}, err
		}
		return h.judge(ctx, c, caller, req)
	})
	return next(ctx, c, req)
}

// judge checks whether a caller may make the request now. Where no permission is needed, or the operation checks it,
// the permit proves nothing.
func (h *Handler) judge(ctx context.Context, c *Call, caller *access.Caller, req proto.Message) (access.Permit, error) {
	if err := c.unrestricted(caller, req); err != nil {
		return access.Permit{}, err
	}
	always := c.op.rule.GetProof() == signetv1.Proof_PROOF_RECENT_PERSON
	if !always {
		if err := h.proven(ctx, c, caller, req); err != nil {
			return access.Permit{}, err
		}
	}
	permit, err := h.grant(ctx, c, caller, req)
	if err == nil && always {
		err = h.proven(ctx, c, caller, req) // who may not learns no more than that
	}
	if err != nil {
		return access.Permit{}, err
	}
	return permit, nil
}

// grant checks the permission that the rule names, where it leads to an organization before the target is read.
func (h *Handler) grant(ctx context.Context, c *Call, caller *access.Caller, req proto.Message) (access.Permit, error) {
	permissions, scope := c.op.permissions, c.op.rule.GetScope()
	switch {
	case len(permissions) == 0 || scope == signetv1.Scope_SCOPE_TARGET:
		return access.Permit{}, nil
	case scope == signetv1.Scope_SCOPE_SELF:
		return caller.InBy(access.Installation, permissions)
	case scope == signetv1.Scope_SCOPE_PATH:
		return h.permit(ctx, caller, req.ProtoReflect().Get(c.op.orgID).String(), permissions)
	}
	// A caller who moves meanwhile does not take the request along.
	return h.permit(ctx, caller, cmp.Or(c.Info.OrgHeader, c.Info.Caller.OrgID), permissions)
}

// permit checks permissions in an organization that exists. That of the caller does, or the credential would not
// count. In another one the caller's sign-in may not be enough. Roles in one that is gone are worth nothing, and only
// who holds roles in the installation is told that it is. What a request names is always looked for:
// access.Installation is not an organization that it could choose.
func (h *Handler) permit(ctx context.Context, caller *access.Caller, org string,
	permissions []access.Permission) (access.Permit, error) {
	permit, err := caller.InBy(org, permissions)
	if err != nil || org == caller.OrgID || h.config.Organization == nil {
		return permit, err
	}
	if err := h.config.Organization(ctx, caller, org, permit.Uses()); err != nil {
		if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.NotFound &&
			!caller.Memberships.Hold(permit.Uses(), access.Installation) {
			err = access.ErrDenied
		}
		return access.Permit{}, err
	}
	return permit, nil
}

// unrestricted refuses a session that must prove a second factor or change its password first, where that counts, and
// an application that was not given the scopes that the request needs.
func (c *Call) unrestricted(caller *access.Caller, req proto.Message) error {
	if caller.MustProveSecondFactor && !c.op.rule.GetUnprovenSession() {
		return access.ErrSecondFactor
	}
	if caller.MustChangePassword && !c.op.rule.GetRestrictedSession() {
		return access.ErrPasswordChange
	}
	return c.op.within(caller, req)
}

// proven refuses people who would change how they sign in themselves, or decide what takes a person, without the proof
// that the operation asks for.
func (h *Handler) proven(ctx context.Context, c *Call, caller *access.Caller, req proto.Message) error {
	wanted := c.op.rule.GetProof()
	if wanted == signetv1.Proof_PROOF_UNSPECIFIED {
		return nil
	}
	if c.op.userID != nil && req.ProtoReflect().Get(c.op.userID).String() != caller.UserID {
		return nil
	}
	if h.config.Proven == nil {
		return access.ErrDenied
	}
	person := wanted == signetv1.Proof_PROOF_RECENT_PERSON
	return h.config.Proven(ctx, caller, person || wanted == signetv1.Proof_PROOF_RECENT, person)
}

// operate runs the operation, unless nobody waits for it any more.
func operate(ctx context.Context, c *Call, req proto.Message) (proto.Message, error) {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errNotStarted.Because(err)
	case err != nil:
		return nil, errs.ErrGone.Because(err)
	}
	ctx, span := tracing.Start(ctx, "operate")
	resp, err := c.op.invoke(ctx, req)
	if err == nil && c.Info.Permit.Supports() {
		c.opened(ctx, req)
	}
	if err == nil {
		err = c.marshal(resp)
	}
	span.End(err)
	return resp, err
}

// opened tells of the user whom somebody of support has read.
func (c *Call) opened(ctx context.Context, req proto.Message) {
	if c.op.readsUser == nil || c.h.config.Opened == nil {
		return
	}
	if id := req.ProtoReflect().Get(c.op.readsUser).String(); id != "" {
		c.h.config.Opened(ctx, c.Info.Permit, id)
	}
}
