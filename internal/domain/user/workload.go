// Outside issuers that a service user trusts, such as a cluster or a CI system: what they sign for a workload is a
// credential of the service user, so rules about them are made and taken away like keys.

package user

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Bounds of the rules of a service user.
const (
	MaxWorkloadRules = 20
	MaxWorkloadLife  = 24 * 60 * 60 // seconds that an assertion may be valid
	MaxWorkloadKeys  = 32_000       // characters of all key sets: every request that names the service user reads them

	maxWorkloadClaims = 10
	maxWorkloadName   = 100 // characters of the name of a claim
	maxWorkloadValue  = 500
)

// Reasons of the rules about workloads.
const (
	WorkloadRuleNotFound errs.Reason = "WORKLOAD_RULE_NOT_FOUND"
	WorkloadRuleExists   errs.Reason = "WORKLOAD_RULE_EXISTS"
	TooManyWorkloadRules errs.Reason = "TOO_MANY_WORKLOAD_RULES"
)

// Errors that changes of these rules refuse with.
var (
	ErrWorkloadRuleNotFound = errs.New(errs.NotFound, WorkloadRuleNotFound,
		"this service user has no workload rule with this identifier")
	ErrWorkloadRuleExists = errs.New(errs.AlreadyExists, WorkloadRuleExists,
		"this service user already has this workload rule")
	ErrTooManyWorkloadRules = errs.New(errs.FailedPrecondition, TooManyWorkloadRules,
		"this service user already has 20 workload rules: remove one that is no longer needed")
	ErrTooManyWorkloadKeys = errs.New(errs.FailedPrecondition, TooManyWorkloadRules,
		"the key sets of all workload rules of this service user would have more than 32,000 characters: leave out keys that are no longer needed")
)

// WorkloadRule says which assertions of an outside issuer count as the service user's.
type WorkloadRule struct {
	ID string `json:"id"`
	Workload
	Created int64 `json:"created"`
}

// Workload is what an assertion must be like.
type Workload struct {
	Issuer   string          `json:"issuer"`             // its iss, to the letter
	Audience string          `json:"audience,omitempty"` // in its aud; empty: ours
	Claims   []WorkloadClaim `json:"claims"`             // all of them
	MaxLife  int64           `json:"maxLife"`            // seconds between its iat and its exp
	KeySet   string          `json:"keySet,omitempty"`   // canonical; empty: as the issuer publishes it
	Once     bool            `json:"once,omitempty"`     // each assertion counts once
}

// WorkloadClaim is a claim with the value that it must have. In the value, * stands for one whole segment between : or
// /, whatever is in it.
type WorkloadClaim struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sharedIssuers are those whose workloads belong to many: the names in sub can be given up there, and be somebody
// else's later. These claims cannot. An issuer of an enterprise at GitHub has a path of its own.
var sharedIssuers = map[string][]string{
	"https://token.actions.githubusercontent.com": {"repository_id", "repository_owner_id"},
	"https://gitlab.com":                          {"project_id", "namespace_id"},
}

// unchangeable are the claims of a shared issuer of which one has to name the workload; none for other issuers.
func unchangeable(issuer string) []string {
	for shared, claims := range sharedIssuers {
		if rest, of := strings.CutPrefix(strings.ToLower(issuer), shared); of && (rest == "" || rest[0] == '/') {
			return claims
		}
	}
	return nil
}

// Violations lists what is wrong with a rule, in the names of the API.
func (w Workload) Violations() []errs.Violation {
	var wrong errs.Violations
	wrong.Add("issuer", issuerProblem(w.Issuer))
	wrong.Add("audience", syntax.Text(w.Audience, syntax.MaxName))
	if len(w.Claims) > maxWorkloadClaims {
		wrong.Add("claims", syntax.TooMany(maxWorkloadClaims, "elements"))
	}
	var names []string
	for i, c := range w.Claims {
		at := fmt.Sprintf("claims[%d].", i)
		wrong.Add(at+"name", claimNameProblem(c.Name, names))
		wrong.Add(at+"value", claimValueProblem(c.Value))
		names = append(names, c.Name)
	}
	if ids := unchangeable(w.Issuer); ids == nil && !slices.Contains(names, "sub") {
		wrong.Add("claims", errs.Plain("must name the workload: add the claim sub"))
	} else if ids != nil && !slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(names, id) }) {
		wrong.Add("claims", errs.Plain("must name the workload by an identifier that never changes, because many share "+
			"this issuer and names can become somebody else's: add "+strings.Join(ids, " or ")))
	}
	if w.MaxLife < 0 || w.MaxLife > MaxWorkloadLife {
		wrong.Add("maxLifeSeconds", errs.Plain("must be from 1 to 86400, or 0 for a day"))
	}
	if w.KeySet != "" {
		_, problem := syntax.KeySet(w.KeySet)
		wrong.Add("keySet", problem)
	}
	return wrong
}

// issuerProblem judges an issuer as those of identity providers are judged: its metadata is found below it.
func issuerProblem(issuer string) *errs.Problem {
	if problem := syntax.Name(issuer); problem != nil {
		return problem
	}
	if u, err := outbound.Check(issuer); err != nil || u.RawQuery != "" || u.ForceQuery ||
		strings.Contains(issuer, "#") {
		return errs.Plain("must be an https:// URL without a query, as in the claim iss")
	}
	return nil
}

// judged are the claims that every assertion is judged by anyway.
var judged = []string{"aud", "exp", "iat", "iss", "jti", "nbf"}

func claimNameProblem(name string, before []string) *errs.Problem {
	switch {
	case name == "":
		return syntax.Empty
	case slices.Contains(judged, name):
		return errs.Plain("must be another claim: this one is always checked")
	case slices.Contains(before, name):
		return errs.Plain("must be another claim: this one is already in the list")
	}
	return syntax.Text(name, maxWorkloadName)
}

func claimValueProblem(value string) *errs.Problem {
	if value == "" {
		return syntax.Empty
	}
	if problem := syntax.Text(value, maxWorkloadValue); problem != nil {
		return problem
	}
	named := false
	for _, s := range strings.FieldsFunc(value, func(c rune) bool { return c == ':' || c == '/' }) {
		if strings.Contains(s, "*") && s != "*" {
			return errs.Plain("must have * only as a whole segment between : or /, such as repo:acme/*:environment:live")
		}
		named = named || s != "*"
	}
	if !named {
		return errs.Plain("must not be * alone: name what the claim has to be")
	}
	return nil
}

// Fits tells whether a claim has the value. It looks at no more of a claim than the value has segments, and makes
// nothing: strangers send what is judged.
func (c WorkloadClaim) Fits(has string) bool {
	for want := c.Value; ; {
		w, wantMore, wantSeparator := cutSegment(want)
		h, hasMore, hasSeparator := cutSegment(has)
		switch {
		case w != h && (w != "*" || h == ""), wantSeparator != hasSeparator:
			return false
		case wantSeparator == 0:
			return true
		}
		want, has = wantMore, hasMore
	}
}

// cutSegment cuts a value behind its first segment; the separator is 0 where there is none.
func cutSegment(value string) (segment, rest string, separator byte) {
	i := strings.IndexAny(value, ":/")
	if i < 0 {
		return value, "", 0
	}
	return value[:i], value[i+1:], value[i]
}

// AddWorkloadRule lets a service user of the permit's organization trust an outside issuer. Errors: ErrNotFound;
// access.ErrTargetHoldsMore; ErrNotService; InvalidArgument with the violations of w; ErrTooManyWorkloadRules;
// ErrTooManyWorkloadKeys; ErrWorkloadRuleExists; Aborted when match does not hold.
func AddWorkloadRule(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	w Workload) (details event.Details, ruleID string, err error) {
	if wrong := w.Violations(); len(wrong) > 0 {
		return event.Details{}, "", errs.Invalid(wrong...)
	}
	if w.MaxLife == 0 {
		w.MaxLife = MaxWorkloadLife
	}
	if w.KeySet != "" {
		w.KeySet, _ = syntax.KeySet(w.KeySet)
	}
	ruleID = event.NewID("wlr")
	details, err = GivesAccess(permit, id).And(MustBeService).Change(ctx, s, match,
		func(tx *event.Tx, u *event.Object[User]) error {
			rules := u.Data.Service.Workloads
			if len(rules) >= MaxWorkloadRules {
				return ErrTooManyWorkloadRules
			}
			keys := len(w.KeySet)
			for _, r := range rules {
				keys += len(r.KeySet)
			}
			if keys > MaxWorkloadKeys {
				return ErrTooManyWorkloadKeys
			}
			if slices.ContainsFunc(rules, func(r WorkloadRule) bool { return r.Workload.same(w) }) {
				return ErrWorkloadRuleExists
			}
			return u.Append(WorkloadRuleAdded{WorkloadRule{ID: ruleID, Workload: w, Created: tx.Now()}})
		})
	return details, ruleID, err
}

func (w Workload) same(other Workload) bool {
	return w.Issuer == other.Issuer && w.Audience == other.Audience && slices.Equal(w.Claims, other.Claims) &&
		w.MaxLife == other.MaxLife && w.KeySet == other.KeySet && w.Once == other.Once
}

// RemoveWorkloadRule takes a rule away from a service user. Errors: as AddWorkloadRule, and ErrWorkloadRuleNotFound.
func RemoveWorkloadRule(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	ruleID string) (event.Details, error) {
	return TakesAway(permit, id).And(MustBeService).Change(ctx, s, match,
		func(_ *event.Tx, u *event.Object[User]) error {
			if !slices.ContainsFunc(u.Data.Service.Workloads, func(r WorkloadRule) bool { return r.ID == ruleID }) {
				return ErrWorkloadRuleNotFound
			}
			return u.Append(WorkloadRuleRemoved{RuleID: ruleID})
		})
}

// WorkloadRuleAdded records that an outside issuer is trusted.
type WorkloadRuleAdded struct {
	Rule WorkloadRule `json:"rule"`
}

// workloadVersion is the version of facts since which there are these rules.
const workloadVersion = 6

// EventType implements event.Fact.
func (WorkloadRuleAdded) EventType() event.Type { return "user.workload_rule_added.v1" }

// Since implements event.Gated.
func (WorkloadRuleAdded) Since() int { return workloadVersion }

// Apply implements event.Fact.
func (e WorkloadRuleAdded) Apply(u *User) {
	if u.Service != nil {
		u.Service.Workloads = append(slices.Clip(u.Service.Workloads), e.Rule)
	}
}

// WorkloadRuleRemoved records that an issuer is not trusted any more by one rule.
type WorkloadRuleRemoved struct {
	RuleID string `json:"ruleId"`
}

// EventType implements event.Fact.
func (WorkloadRuleRemoved) EventType() event.Type { return "user.workload_rule_removed.v1" }

// Since implements event.Gated.
func (WorkloadRuleRemoved) Since() int { return workloadVersion }

// Apply implements event.Fact.
func (e WorkloadRuleRemoved) Apply(u *User) {
	if u.Service != nil {
		u.Service.Workloads = slices.DeleteFunc(slices.Clone(u.Service.Workloads),
			func(r WorkloadRule) bool { return r.ID == e.RuleID })
	}
}
