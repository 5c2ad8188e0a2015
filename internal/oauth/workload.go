package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/refusal"
	"github.com/signet-idm/signet/internal/signin/upstream"
)

// Issuers finds the keys of outside issuers.
type Issuers interface {
	// IssuerKeys gives the keys that an issuer publishes under a key id; an organization pays for the calls.
	IssuerKeys(ctx context.Context, org, issuer, keyID string) ([]jose.JSONWebKey, error)
}

// ofWorkload tells whether an assertion of an issuer is for a service user that the request names, and not by it.
func ofWorkload(clientID, issuer string) bool { return user.IsID(clientID) && clientID != issuer }

// workload judges an assertion that an outside issuer has signed for a workload, by the rules of the service user that
// the request names, and tells when it expires: a token for it must not live longer. What costs comes last: nothing is
// fetched, and no signature checked, unless a rule is about this issuer and everything else fits. Errors: those that
// refused makes of what the log says.
func (g *Grants) workload(ctx context.Context, id, text string,
	refused func(format string, values ...any) *errs.Error) (*event.Object[user.User], time.Time, error) {
	u, _, err := g.service(ctx, id)
	if err != nil {
		return nil, time.Time{}, err
	}
	if u == nil {
		return nil, time.Time{}, refused("no active service user of an active organization has this client_id")
	}
	said, err := upstream.ReadAssertion(text)
	if err != nil {
		return nil, time.Time{}, refused("the assertion cannot be read").Because(err)
	}
	issuer, _ := said.Claims.Text("iss")
	why := func(cause refusal.Cause, problem string) *errs.Error {
		return refusal.OfAddress(refused("%s sent an assertion of %s: %s", u.ID, syntax.LoggedURL(issuer), problem), u.ID,
			cause, issuer)
	}
	rules := slices.DeleteFunc(slices.Clone(u.Data.Service.Workloads),
		func(r user.WorkloadRule) bool { return r.Issuer != issuer })
	if len(rules) == 0 {
		return nil, time.Time{}, why(refusal.WorkloadIssuer, "none of its workload rules is about this issuer")
	}
	life, expires, problem := g.lifeOf(said)
	if problem != "" {
		return nil, time.Time{}, why(refusal.WorkloadTimes, problem)
	}
	var nearest *unfit
	var problems []string
	for _, r := range rules {
		missed := g.judge(ctx, u, r, said, life)
		if missed == nil {
			return u, expires, g.once(ctx, u.ID, r, said, expires, why)
		}
		if nearest == nil || slices.Index(inOrder, missed.cause) > slices.Index(inOrder, nearest.cause) {
			nearest = missed
		}
		problems = append(problems, r.ID+": "+missed.problem)
	}
	return nil, time.Time{}, why(nearest.cause, strings.Join(problems, "; ")).Because(nearest.err)
}

// lifeOf tells how long an assertion is valid as a whole, and until when.
func (g *Grants) lifeOf(a *upstream.Assertion) (life time.Duration, expires time.Time, problem string) {
	now := g.Clock()
	expires, ends := a.Claims.Time("exp")
	issued, begins := a.Claims.Time("iat")
	switch {
	case !ends || !now.Before(expires):
		return 0, time.Time{}, "it has expired, or has no exp"
	case !begins || issued.After(now.Add(clockSkew)) || !issued.Before(expires):
		return 0, time.Time{}, "it has no iat, or one in the future"
	}
	if _, there := a.Claims["nbf"]; there {
		if from, ok := a.Claims.Time("nbf"); !ok || from.After(now.Add(clockSkew)) {
			return 0, time.Time{}, "it is not valid yet: nbf"
		}
	}
	return expires.Sub(issued), expires, ""
}

// unfit is what keeps an assertion from passing a rule.
type unfit struct {
	cause   refusal.Cause
	problem string // for the log
	err     error  // that led to it
}

// inOrder is what judge refuses, in its order: of several rules, the one that comes furthest is most likely meant.
var inOrder = []refusal.Cause{refusal.WorkloadAudience, refusal.WorkloadLife, refusal.WorkloadClaim,
	refusal.WorkloadKeys, refusal.WorkloadSignature}

// judge tells what keeps an assertion from passing a rule; nil: it passes.
func (g *Grants) judge(ctx context.Context, u *event.Object[user.User], r user.WorkloadRule, a *upstream.Assertion,
	life time.Duration) *unfit {
	audience := a.Claims.Texts("aud")
	switch {
	case r.Audience == "" && !slices.Contains(audience, g.Issuer) && !slices.Contains(audience, g.TokenEndpoint()):
		return &unfit{refusal.WorkloadAudience, "aud must be the issuer or the token endpoint of this server", nil}
	case r.Audience != "" && !slices.Contains(audience, r.Audience):
		return &unfit{refusal.WorkloadAudience, "aud must be the audience of the rule", nil}
	case life > time.Duration(r.MaxLife)*time.Second:
		return &unfit{refusal.WorkloadLife, fmt.Sprintf("it is valid for more than %d seconds", r.MaxLife), nil}
	}
	for _, c := range r.Claims {
		if value, ok := a.Claims.Text(c.Name); !ok || !c.Fits(value) {
			return &unfit{refusal.WorkloadClaim,
				"the claim " + c.Name + " is missing, no text, or another than the rule wants", nil}
		}
	}
	keys, err := g.workloadKeys(ctx, u.Org, r, a.KeyID)
	if err != nil {
		return &unfit{refusal.WorkloadKeys, "its keys cannot be fetched", err}
	}
	if err := a.Verify(keys); err != nil {
		return &unfit{refusal.WorkloadSignature, "it is not signed with one of the keys", err}
	}
	return nil
}

// workloadKeys are those that a rule names, or those that its issuer publishes.
func (g *Grants) workloadKeys(ctx context.Context, org string, r user.WorkloadRule,
	keyID string) ([]jose.JSONWebKey, error) {
	if r.KeySet == "" && g.Issuers == nil {
		return nil, nil
	}
	if r.KeySet == "" {
		return g.Issuers.IssuerKeys(ctx, org, r.Issuer, keyID)
	}
	var set jose.JSONWebKeySet
	err := json.Unmarshal([]byte(r.KeySet), &set)
	return set.Keys, err
}

// once uses an assertion up, if the rule wants that.
func (g *Grants) once(ctx context.Context, id string, r user.WorkloadRule, a *upstream.Assertion, expires time.Time,
	why func(refusal.Cause, string) *errs.Error) error {
	if !r.Once {
		return nil
	}
	jti, _ := a.Claims.Text("jti")
	switch {
	case jti == "":
		return refusedFor(why(refusal.WorkloadID, "it has no jti, and "+r.ID+" takes each assertion once"),
			"the assertion has no jti: add this claim with a unique identifier")
	case len(jti) > maxAssertionID:
		return refusedFor(why(refusal.WorkloadID, "it has a jti that is too long"),
			"the jti of the assertion is too long: it can have at most 255 bytes")
	}
	return g.useUp(ctx, id, usedRow("workload", id, r.Issuer+"\x00"+jti), 0, expires, func() *errs.Error {
		return refusedFor(why(refusal.WorkloadUsed, "it was already used"),
			"the assertion has already been used: request another one from its issuer")
	})
}
