package ratelimit

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

// RateLimited is the reason to refuse a request above a limit.
const RateLimited errs.Reason = "RATE_LIMITED"

// DefaultPublic is the limit of a network on public paths if nothing else is set. A sign-in takes some ten requests, so
// this is twice of what DefaultPerNetwork lets people start, and a whole company behind one address can come
// within the same minute.
var DefaultPublic = Rate{Requests: 12_000, Per: time.Minute}

// Kind is what a limit is for.
type Kind string

// The kinds of limits.
const (
	Caller       Kind = "caller"       // a user, or an application that has proven who it is
	Organization Kind = "organization" // of the caller
	Network      Kind = "network"
	Public       Kind = "public" // a network, on paths that need no token
)

// Kinds are all of them.
var Kinds = []Kind{Caller, Organization, Network, Public}

// Limits are those of a node. Nil has none.
type Limits struct{ Caller, Organization, Network, Public *Limiter }

// NewLimits makes the limits with these rates.
func NewLimits(caller, organization, network, public Rate, clock func() time.Time) *Limits {
	return &Limits{New(caller, clock), New(organization, clock), New(network, clock), New(public, clock)}
}

// Key is that of a network; programs that may yet prove who they are count apart from people, so that neither holds up
// the other.
func Key(peer netip.Addr, programs bool) []byte {
	of := NetworkOf(peer).As16()
	if programs {
		return append(of[:], 1)
	}
	return of[:]
}

var whose = map[Kind]string{
	Caller:       "you have sent too many requests",
	Organization: "your organization has sent too many requests",
	Network:      "your network has sent too many requests",
	Public:       "your network has sent too many requests without an access token",
}

// Err is the refusal of a request; nil if it is let through.
func (v Verdict) Err(kind Kind) error {
	if !v.Refused {
		return nil
	}
	return &errs.Error{Kind: errs.ResourceExhausted, Reason: RateLimited, RetryAfter: v.Reset,
		Message: whose[kind] + ": at most " + strconv.Itoa(v.Rate.Requests) + " in " +
			strconv.Itoa(int(v.Rate.Per/time.Second)) + " s are served. Wait " + errs.Seconds(v.Reset) +
			" s, and send fewer"}
}

// Policy is the limit as an item of the header RateLimit-Policy, Item what is left of it as one of RateLimit, in the
// form of draft-ietf-httpapi-ratelimit-headers-10.
func (v Verdict) Policy(kind Kind) string {
	return `"` + string(kind) + `";q=` + strconv.Itoa(v.Rate.Requests) + ";w=" +
		strconv.Itoa(int(v.Rate.Per/time.Second))
}

// Item is described at Policy.
func (v Verdict) Item(kind Kind) string {
	return `"` + string(kind) + `";r=` + strconv.Itoa(v.Left) + ";t=" + errs.Seconds(v.Reset)
}
