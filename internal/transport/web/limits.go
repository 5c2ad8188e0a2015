package web

import (
	"context"
	"net/http"

	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// Counted says against which limits of its network a request counts before anything else is done for it.
type Counted int

// The zero value is that of a page, which anybody can ask for.
const (
	AsPublic  Counted = iota // the limits of the network, and on public paths
	AsProgram                // the same, apart from people's, until the program has proven who it is: see OfCaller
	WithToken                // that of the network only, for what is answered only to callers with a token
	AsStatic                 // none: everybody gets the same, and a refusal would cost as much
)

// Entry is a page with what Site needs to know to refuse requests above a limit. A page without one counts as public,
// and is refused with the page of HandleRefused.
type Entry struct {
	http.Handler
	Counted Counted
	Refuse  func(w http.ResponseWriter, r *http.Request, err error) // nil: as other pages
}

// FromNetwork counts the request against the limits of its network. Errors: ResourceExhausted (RATE_LIMITED).
func (x *Exchange) FromNetwork(as Counted) error {
	if x.limits == nil || as == AsStatic {
		return nil
	}
	x.counted = as
	key := ratelimit.Key(x.Info.Peer, as == AsProgram)
	if err := x.count(ratelimit.Network, x.limits.Network, key[:16]); err != nil || as == WithToken {
		return err
	}
	return x.count(ratelimit.Public, x.limits.Public, key)
}

// OfCaller counts the request against the limits of a caller who has proven who that is, and of the caller's
// organization. What a program has sent counts no longer against the limits of its network: an application sends the
// requests of all its users from one address. Errors: as FromNetwork.
func (x *Exchange) OfCaller(id, org string) error {
	if x.limits == nil {
		return nil
	}
	if x.counted == AsProgram {
		key := ratelimit.Key(x.Info.Peer, true)
		x.limits.Network.GiveBack(key[:16])
		x.limits.Public.GiveBack(key)
		x.counted = WithToken
		delete(x.Header(), headerLimit)
		delete(x.Header(), headerPolicy)
	}
	if err := x.count(ratelimit.Caller, x.limits.Caller, []byte(id)); err != nil {
		return err
	}
	err := x.count(ratelimit.Organization, x.limits.Organization, []byte(org))
	if err != nil {
		x.limits.Caller.GiveBack([]byte(id))
	}
	return err
}

// CountCaller is OfCaller for handlers that know only the context.
func CountCaller(ctx context.Context, id, org string) error {
	if x, ok := ctx.Value(exchangeKey{}).(*Exchange); ok {
		return x.OfCaller(id, org)
	}
	return nil
}

// The headers as net/http stores them.
const (
	headerLimit  = "Ratelimit"
	headerPolicy = "Ratelimit-Policy"
)

// count counts the request against one limit, and says in the headers what is left of it.
func (x *Exchange) count(kind ratelimit.Kind, l *ratelimit.Limiter, key []byte) error {
	if l == nil {
		return nil
	}
	v := l.Take(key)
	addItem(x.Header(), headerLimit, v.Item(kind))
	addItem(x.Header(), headerPolicy, v.Policy(kind))
	err := v.Err(kind)
	if err != nil {
		x.Metrics.RateLimited(string(kind))
	}
	return err
}

// addItem adds to a header that is a list. Clients that read only one line of it see all of the list.
func addItem(h http.Header, name, item string) {
	if there := h[name]; len(there) > 0 {
		item = there[0] + ", " + item
	}
	h[name] = []string{item}
}

// refuseEarly refuses a request of a page before the page has seen it.
func (p page) refuseEarly(x *Exchange, r *http.Request, err error) {
	x.Fail(err)
	switch {
	case p.entry.Refuse != nil:
		p.entry.Refuse(x, r, err)
	case p.site.refused != nil:
		p.site.refused(x, r, err)
	default:
		http.Error(x, err.Error(), AnswerTo(err).Page.Status)
	}
}
