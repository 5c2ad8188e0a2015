// Package refusal keeps in memory why requests of applications were refused, for those who run them, and assertions of
// outside issuers for service users, in the same way: what is said of an application holds for them. The application
// learns no more than OAuth has words for; its people read here, and the operator in the log, what was wrong.
//
// Strangers can cause refusals. So there are no events of them, only known applications have any, and everything is
// bounded: the refusals of an application that differ, and the applications. Each node has its own, since its start.
package refusal

import (
	"cmp"
	"container/list"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Cause is why a request was refused.
type Cause string

// The causes. The API shows them, so they never change their meaning; docs/api/openid-connect.md explains them, and the
// console says what to do (web/console/src/texts/*/apps.json).
const (
	RedirectURI   Cause = "redirect_uri"             // not registered
	PostLogoutURI Cause = "post_logout_redirect_uri" // likewise
	GrantType     Cause = "grant_type"               // people do not sign in to it
	RequestURI    Cause = "request_uri"              // of no pushed request, or of another application's, or used

	Inactive  Cause = "inactive"         // the application is
	Method    Cause = "client_method"    // another way to authenticate than the registered one
	Secret    Cause = "client_secret"    // not one of its own
	Keys      Cause = "client_keys"      // they cannot be fetched
	Assertion Cause = "client_assertion" // it does not pass a check

	CodeUnknown  Cause = "code_unknown"       // or expired, or no code
	CodeElse     Cause = "code_of_another"    // it was given to another application
	CodeRedirect Cause = "code_redirect_uri"  // another one than the code was asked for with
	CodeVerifier Cause = "code_verifier"      // PKCE
	CodeUsed     Cause = "code_used"          // again
	CodeSession  Cause = "code_session"       // the session has ended
	RefreshGone  Cause = "refresh_unknown"    // or expired, revoked, ended, or no refresh token
	RefreshElse  Cause = "refresh_of_another" // it was given to another application
	RefreshUsed  Cause = "refresh_used"       // again
	Proof        Cause = "dpop_proof"         // it does not pass a check
	ProofKey     Cause = "dpop_key"           // of another key than the code or refresh token was given for
	ProofMissing Cause = "dpop_required"      // none was sent
	Ended        Cause = "grant_ended"        // what it rests on has: consent, user, organization, role, provider

	// Of an assertion of an outside issuer, for a service user. In the order in which they are judged.
	WorkloadIssuer    Cause = "workload_issuer"    // no rule is about it
	WorkloadTimes     Cause = "workload_times"     // it has expired, or does not count yet
	WorkloadAudience  Cause = "workload_audience"  // it is meant for somebody else
	WorkloadLife      Cause = "workload_life"      // it is valid for longer than the rule takes
	WorkloadClaim     Cause = "workload_claim"     // one is missing, or another than the rule wants
	WorkloadKeys      Cause = "workload_keys"      // they cannot be fetched
	WorkloadSignature Cause = "workload_signature" // by none of the keys
	WorkloadID        Cause = "workload_id"        // it has none, where the rule takes each once
	WorkloadUsed      Cause = "workload_used"      // again
)

const (
	mostEach = 20   // refusals of an application that differ
	mostApps = 1000 // applications: the one that was refused longest ago is forgotten
)

// Refusal is a refused request of an application, as errs.Error.Kept holds it.
type Refusal struct {
	App     string // or a service user
	Cause   Cause
	Address string // that was received, as syntax.LoggedURL gives it; empty: the refusal is not about one
}

// About gives an error with what is kept of it.
func About(e *errs.Error, app string, cause Cause) *errs.Error {
	c := *e
	c.Kept = Refusal{App: app, Cause: cause}
	return &c
}

// OfAddress is About for an address that was received.
func OfAddress(e *errs.Error, app string, cause Cause, address string) *errs.Error {
	c := *e
	c.Kept = Refusal{App: app, Cause: cause, Address: syntax.LoggedURL(address)}
	return &c
}

// Noted is refusals that do not differ.
type Noted struct {
	Cause   Cause
	Address string
	Count   int64
	Last    time.Time
}

// Total is how often an application was refused for a cause.
type Total struct {
	Cause Cause
	Count int64
}

// Book keeps refusals. It is safe for concurrent use. Nil keeps none.
type Book struct {
	clock func() time.Time
	since time.Time

	mu   sync.Mutex
	apps map[string]*list.Element // of used
	used *list.List               // of *page, the one that was refused last in front
}

// page is what is kept of an application.
type page struct {
	app    string
	last   []Noted // the newest last
	totals map[Cause]int64
}

// NewBook makes an empty book.
func NewBook(clock func() time.Time) *Book {
	return &Book{clock: clock, since: clock(), apps: map[string]*list.Element{}, used: list.New()}
}

// Note keeps err if it is the refusal of an application.
func (b *Book) Note(err error) {
	e, ours := errors.AsType[*errs.Error](err)
	if b == nil || !ours {
		return
	}
	r, kept := e.Kept.(Refusal)
	if !kept || r.App == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page(r.App).note(r, b.clock())
}

// page finds the page of an application, or begins one. The caller holds the lock.
func (b *Book) page(app string) *page {
	if e := b.apps[app]; e != nil {
		b.used.MoveToFront(e)
		return e.Value.(*page)
	}
	if b.used.Len() == mostApps {
		oldest := b.used.Back()
		delete(b.apps, oldest.Value.(*page).app)
		b.used.Remove(oldest)
	}
	p := &page{app: app, totals: map[Cause]int64{}}
	b.apps[app] = b.used.PushFront(p)
	return p
}

func (p *page) note(r Refusal, now time.Time) {
	p.totals[r.Cause]++
	n := Noted{Cause: r.Cause, Address: r.Address}
	i := slices.IndexFunc(p.last, func(has Noted) bool { return has.Cause == n.Cause && has.Address == n.Address })
	if i < 0 && len(p.last) == mostEach {
		p.last = slices.Delete(p.last, 0, 1)
	}
	if i >= 0 {
		n.Count = p.last[i].Count
		p.last = slices.Delete(p.last, i, i+1)
	}
	n.Count, n.Last = n.Count+1, now
	p.last = append(p.last, n)
}

// Read gives the last refusals of an application that differ, the newest first, how often it was refused for each
// cause, and since when this node keeps them.
func (b *Book) Read(app string) (last []Noted, totals []Total, since time.Time) {
	if b == nil {
		return nil, nil, time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.apps[app]
	if e == nil {
		return nil, nil, b.since
	}
	p := e.Value.(*page)
	last = slices.Clone(p.last)
	slices.Reverse(last)
	for cause, n := range p.totals {
		totals = append(totals, Total{cause, n})
	}
	slices.SortFunc(totals, func(a, b Total) int { return cmp.Compare(a.Cause, b.Cause) })
	return last, totals, b.since
}
