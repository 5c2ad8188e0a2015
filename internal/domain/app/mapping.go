package app

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ClaimSource is where a claim that an application declares gets its value from.
type ClaimSource string

// The sources.
const (
	FromUserID        ClaimSource = "user_id"
	FromLoginName     ClaimSource = "login_name" // with the domain of the organization
	FromUserName      ClaimSource = "user_name"
	FromDisplayName   ClaimSource = "display_name"
	FromFirstName     ClaimSource = "first_name"
	FromLastName      ClaimSource = "last_name"
	FromNickName      ClaimSource = "nick_name"
	FromLanguage      ClaimSource = "preferred_language"
	FromGender        ClaimSource = "gender"
	FromEmail         ClaimSource = "email" // a verified one
	FromPhone         ClaimSource = "phone" // a verified one
	FromMetadata      ClaimSource = "metadata"
	FromGroupNames    ClaimSource = "group_names"
	FromGroupIDs      ClaimSource = "group_ids"
	FromAppRoles      ClaimSource = "app_roles"
	FromOrgID         ClaimSource = "org_id"
	FromOrgName       ClaimSource = "org_name"
	FromPrimaryDomain ClaimSource = "org_primary_domain"
	FromConstant      ClaimSource = "constant"
)

var claimSources = []ClaimSource{FromUserID, FromLoginName, FromUserName, FromDisplayName, FromFirstName, FromLastName,
	FromNickName, FromLanguage, FromGender, FromEmail, FromPhone, FromMetadata, FromGroupNames, FromGroupIDs, FromAppRoles,
	FromOrgID, FromOrgName, FromPrimaryDomain, FromConstant}

// ClaimShape is what a claim looks like.
type ClaimShape string

// The shapes.
const (
	AsString  ClaimShape = "string"
	AsBoolean ClaimShape = "boolean" // of a list: whether it has anything; of a text: whether it is "true"
	AsArray   ClaimShape = "array"   // of strings
	AsJoined  ClaimShape = "joined"  // a list as one string
)

// ClaimTarget is where a claim is told.
type ClaimTarget string

// The targets. Nothing is told in SAML yet: what is chosen is kept.
const (
	InIDToken       ClaimTarget = "id_token"
	InAccessToken   ClaimTarget = "access_token" // a JWT
	InUserInfo      ClaimTarget = "user_info"
	InIntrospection ClaimTarget = "introspection"
	InSAML          ClaimTarget = "saml"
)

var claimTargets = []ClaimTarget{InIDToken, InAccessToken, InUserInfo, InIntrospection, InSAML}

// ClaimMapping is a claim that an application declares: what of a person is told, under which name, and where.
type ClaimMapping struct {
	Source    ClaimSource   `json:"source"`
	Key       string        `json:"key,omitempty"`      // of FromMetadata
	Constant  string        `json:"constant,omitempty"` // of FromConstant
	Claim     string        `json:"claim"`
	Member    string        `json:"member,omitempty"` // the claim is an object, and this is one of its members
	Shape     ClaimShape    `json:"shape"`
	Separator string        `json:"separator,omitempty"` // of AsJoined
	Prefix    string        `json:"prefix,omitempty"`    // of every value, see OrgPlaceholder
	Targets   []ClaimTarget `json:"targets"`

	// Which groups and roles are told: those that begin with a text, and those that are named. Neither: all.
	BeginsWith string   `json:"beginsWith,omitempty"`
	Only       []string `json:"only,omitempty"`
}

// OrgPlaceholder stands in the prefix of groups and roles for the identifier of the organization that each is of.
const OrgPlaceholder = "{orgId}"

// Bounds of mappings. They are part of the state, which is written with every change, so they are small.
const (
	MaxClaimMappings = 40
	MaxClaimName     = 200
	MaxClaimText     = 200 // of a constant, a beginning and a name that a mapping is limited to
	MaxClaimPrefix   = 100
	MaxClaimOnly     = 50
	maxMappingBytes  = 16 << 10 // all of them as JSON
)

// separators are what values are joined by.
const separators = ",;| :/"

// ReservedClaims are the names of claims that OpenID Connect, OAuth and JWT give a meaning to, in lower case: many
// libraries compare without regard to case. A mapping cannot make one of them, nor one that begins with reservedPrefix.
var ReservedClaims = strings.Fields(`
	iss sub aud exp nbf iat jti
	name given_name family_name middle_name nickname preferred_username profile picture website email email_verified
	gender birthdate zoneinfo locale phone_number phone_number_verified address updated_at
	azp nonce auth_time at_hash c_hash s_hash acr amr sub_jwk sid events toe txn sub_id
	_claim_names _claim_sources verified_claims _sd _sd_alg
	active scope client_id username token_type cnf act may_act authorization_details
	htm htu ath jwk jkt vct status trust_chain attest vot vtm rar
`)

const reservedPrefix = "urn:signet:"

// ErrMappedMetadataDenied keeps those who may not read metadata from sending it to an application of theirs.
var ErrMappedMetadataDenied = errs.New(errs.PermissionDenied, access.PermissionDenied,
	"only somebody who may read metadata (metadata.read) can have an application be told more of it: ask an owner of the organization, or leave the new mappings of metadata out")

// Listed tells whether the source has many values, each of an organization.
func (m *ClaimMapping) Listed() bool {
	return m.Source == FromGroupNames || m.Source == FromGroupIDs || m.Source == FromAppRoles
}

// NamesOrg tells whether each value of a list says which organization it is of.
func (m *ClaimMapping) NamesOrg() bool { return strings.Contains(m.Prefix, OrgPlaceholder) }

// Keeps tells whether a group or role is among those that the mapping is limited to.
func (m *ClaimMapping) Keeps(value string) bool {
	return m.BeginsWith == "" && len(m.Only) == 0 ||
		m.BeginsWith != "" && strings.HasPrefix(value, m.BeginsWith) || slices.Contains(m.Only, value)
}

// ownOnly tells whether nothing is told of people of other organizations than the application's: the same value may
// mean something else there.
func (m *ClaimMapping) ownOnly() bool {
	return m.Listed() && !m.NamesOrg() || m.Source == FromUserName || m.Source == FromMetadata
}

// LeftOut are the places of the mappings that are left out for people of other organizations, if these may use the
// application.
func (a *App) LeftOut() (at []int) {
	if a.OnlyOwnPeople() {
		return nil
	}
	for i := range a.ClaimMappings {
		if a.ClaimMappings[i].ownOnly() {
			at = append(at, i)
		}
	}
	return at
}

// Mapped is what has to be known of people for the claims that an application declares.
type Mapped struct {
	Any    bool `json:"any,omitempty"`
	Roles  bool `json:"roles,omitempty"`
	Groups bool `json:"groups,omitempty"`
}

// Maps gives what the mappings of the application need.
func (a *App) Maps() (needs Mapped) {
	for i := range a.ClaimMappings {
		m := &a.ClaimMappings[i]
		needs.Any = true
		needs.Roles = needs.Roles || m.Source == FromAppRoles
		needs.Groups = needs.Groups || m.Source == FromGroupNames || m.Source == FromGroupIDs
	}
	return needs
}

// MapsMetadata tells whether one of the mappings tells metadata.
func (a *App) MapsMetadata() bool {
	return slices.ContainsFunc(a.ClaimMappings, func(m ClaimMapping) bool { return m.Source == FromMetadata })
}

// tellsKey tells whether the application is told the metadata under a key.
func (a *App) tellsKey(key string) bool {
	return slices.Contains(a.RoleSettings.Metadata, key) ||
		slices.ContainsFunc(a.ClaimMappings, func(m ClaimMapping) bool { return m.Source == FromMetadata && m.Key == key })
}

// completed gives a mapping with a default for what is left out.
func (m ClaimMapping) completed() ClaimMapping {
	if m.Shape == "" {
		m.Shape = AsString
		if m.Listed() {
			m.Shape = AsArray
		}
	}
	if m.Shape == AsJoined && m.Separator == "" {
		m.Separator = ","
	}
	m.Targets = slices.DeleteFunc(slices.Clone(claimTargets),
		func(t ClaimTarget) bool { return !slices.Contains(m.Targets, t) })
	m.Only = copied(m.Only)
	return m
}

// ClaimMappingViolations lists what is wrong with mappings.
func ClaimMappingViolations(mappings []ClaimMapping) (wrong errs.Violations) {
	if len(mappings) > MaxClaimMappings {
		wrong.Add("mappings", syntax.TooMany(MaxClaimMappings, "elements"))
		return wrong
	}
	for i, m := range mappings {
		for _, v := range m.violations() {
			v.Field = fmt.Sprintf("mappings[%d].%s", i, v.Field)
			wrong = append(wrong, v)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	for i := range mappings {
		for j := range mappings[:i] {
			if mappings[i].clashes(&mappings[j]) {
				wrong.Add(fmt.Sprintf("mappings[%d].claim", i), errs.Plain(fmt.Sprintf("must not be the claim of "+
					"mappings[%d] in the same place: give each of both a member of its own, or another claim", j)))
				break
			}
		}
	}
	if text, err := json.Marshal(mappings); err != nil || len(text) > maxMappingBytes {
		wrong.Add("mappings", errs.Plain("must have at most 16 KiB together: name fewer groups one by one"))
	}
	return wrong
}

// clashes tells whether two mappings would make the same claim, or the same member of it.
func (m *ClaimMapping) clashes(o *ClaimMapping) bool {
	both := func(t ClaimTarget) bool { return slices.Contains(o.Targets, t) }
	return strings.EqualFold(m.Claim, o.Claim) && slices.ContainsFunc(m.Targets, both) &&
		(m.Member == "" || o.Member == "" || m.Claim != o.Claim || strings.EqualFold(m.Member, o.Member))
}

// violations lists what is wrong with one mapping, by its own fields.
func (m ClaimMapping) violations() (wrong errs.Violations) {
	add := func(bad bool, field, problem string) {
		if bad {
			wrong.Add(field, errs.Plain(problem))
		}
	}
	m.Shape = m.completed().Shape
	add(!slices.Contains(claimSources, m.Source), "source", "must say where the value comes from")
	wrong.Add("claim", claimProblem(m.Claim))
	if m.Member != "" {
		wrong.Add("member", nameProblem(m.Member))
	}
	if m.Source == FromMetadata {
		wrong.Add("metadataKey", metadata.Key(m.Key))
	}
	add(m.Source != FromMetadata && m.Key != "", "metadataKey", "must be left out: only metadata has keys")
	wrong.Add("constant", syntax.Text(m.Constant, MaxClaimText))
	add(m.Source == FromConstant && m.Constant == "", "constant", "must not be empty")
	add(m.Source != FromConstant && m.Constant != "", "constant", "must be left out: the value comes from elsewhere")
	add(m.Source == FromConstant && m.Shape == AsBoolean && m.Constant != "true" && m.Constant != "false", "constant",
		"must be true or false")
	wrong = append(wrong, m.shapeViolations()...)
	if len(m.Targets) == 0 {
		wrong.Add("targets", syntax.Empty)
	}
	for i, t := range m.Targets {
		add(!slices.Contains(claimTargets, t), fmt.Sprintf("targets[%d]", i), "must say where the claim is told")
	}
	wrong.Add("beginsWith", syntax.Text(m.BeginsWith, MaxClaimText))
	add(!m.Listed() && m.BeginsWith != "", "beginsWith", "must be left out: only groups and roles can be limited")
	add(!m.Listed() && len(m.Only) > 0, "only", "must be left out: only groups and roles can be limited")
	if len(m.Only) > MaxClaimOnly {
		wrong.Add("only", syntax.TooMany(MaxClaimOnly, "elements"))
		return wrong
	}
	for i, one := range m.Only {
		problem := syntax.Text(one, MaxClaimText)
		if one == "" {
			problem = syntax.Empty
		}
		wrong.Add(fmt.Sprintf("only[%d]", i), problem)
	}
	return wrong
}

// shapeViolations lists what is wrong with the shape, the separator and the prefix.
func (m *ClaimMapping) shapeViolations() (wrong errs.Violations) {
	add := func(bad bool, field, problem string) {
		if bad {
			wrong.Add(field, errs.Plain(problem))
		}
	}
	switch m.Shape {
	case AsString:
		add(m.Listed(), "shape", "must be an array, joined or a boolean: a person can have many of these")
	case AsJoined:
		add(!m.Listed(), "shape", "must not be joined: a person has one of these")
	case AsBoolean:
		add(!m.Listed() && m.Source != FromMetadata && m.Source != FromConstant, "shape",
			"must not be a boolean: only groups, roles, metadata and constants can be one")
	case AsArray:
	default:
		add(true, "shape", "must be a string, a boolean, an array or joined")
	}
	add(m.Shape != AsJoined && m.Separator != "", "separator", "must be left out: nothing is joined")
	add(m.Separator != "" && (len(m.Separator) != 1 || !strings.Contains(separators, m.Separator)), "separator",
		"must be one of the characters ',', ';', '|', ':', '/' and the space, or be left out")
	wrong.Add("prefix", syntax.Text(m.Prefix, MaxClaimPrefix))
	add(m.Prefix != "" && (m.Shape == AsBoolean || m.Source == FromConstant), "prefix",
		"must be left out: a boolean and a constant have none")
	before, after, named := strings.Cut(m.Prefix, OrgPlaceholder)
	add(named && !m.Listed(), "prefix", "must not have "+OrgPlaceholder+": only groups and roles are of an organization")
	add(named && m.Listed() && (after == "" || strings.Contains(after, OrgPlaceholder) || wordy(after[0])), "prefix",
		"must have a character such as ':' or '/' after "+OrgPlaceholder+", which stands there once: otherwise nobody can tell where the identifier ends")
	if by := m.completed().Separator; m.Shape == AsJoined && by != "" {
		add(strings.Contains(before+after, by), "prefix", "must not have the separator")
	}
	return wrong
}

// wordy tells whether a character could be part of an identifier.
func wordy(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

func nameProblem(name string) *errs.Problem {
	const grammar = "must be 1 to 200 printable ASCII characters without spaces, quotation marks and backslashes"
	if name == "" || len(name) > MaxClaimName {
		return errs.Plain(grammar)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return errs.Plain(grammar)
		}
	}
	return nil
}

func claimProblem(name string) *errs.Problem {
	lower := strings.ToLower(name)
	if slices.Contains(ReservedClaims, lower) || strings.HasPrefix(lower, reservedPrefix) {
		return errs.Plain("must not be a claim of OpenID Connect, OAuth or Signet, whatever its case: " +
			"applications rely on what these mean")
	}
	return nameProblem(name)
}

// SetClaimMappings says which claims an application declares, and tells where those are that are left out for people
// of other organizations. Errors: InvalidArgument with ClaimMappingViolations; ErrNotFound; access.ErrMoreScopes where
// another application does it to one that may do more; ErrOpensWaysIn; ErrMappedMetadataDenied; Aborted when match does
// not hold.
func SetClaimMappings(ctx context.Context, s event.Store, permit access.Permit, id string, match event.IfMatch,
	mappings []ClaimMapping) (d event.Details, leftOut []int, err error) {
	if err := ClaimMappingViolations(mappings).Err(); err != nil {
		return event.Details{}, nil, err
	}
	var to []ClaimMapping
	for _, m := range mappings {
		to = append(to, m.completed())
	}
	d, err = Within(permit, id).Change(ctx, s, match, func(_ *event.Tx, a *event.Object[App]) error {
		if err := permit.CoversScopes(access.ScopesNamed(a.Data.APIScopes...)); err != nil {
			return err
		}
		more := slices.ContainsFunc(to, func(m ClaimMapping) bool { return m.Source == FromMetadata && !a.Data.tellsKey(m.Key) })
		if more && !permit.HoldsFor(access.ReadScope, access.MetadataRead, a.Org) {
			return ErrMappedMetadataDenied
		}
		if !sameMappings(to, a.Data.ClaimMappings) {
			if err := Append(permit, a, ClaimMappingsSet{Mappings: to}); err != nil {
				return err
			}
		}
		leftOut = a.Data.LeftOut()
		return nil
	})
	return d, leftOut, err
}

func sameMappings(a, b []ClaimMapping) bool {
	return slices.EqualFunc(a, b, func(m, n ClaimMapping) bool { return reflect.DeepEqual(m, n) })
}

// ClaimMappingsSet records which claims the application declares from now on.
type ClaimMappingsSet struct {
	Mappings []ClaimMapping `json:"mappings,omitempty"`
}

// EventType implements event.Fact.
func (ClaimMappingsSet) EventType() event.Type { return "app.claim_mappings_set.v1" }

// Since implements event.Gated: a node that does not know it would make tokens without the groups that an application
// decides by.
func (ClaimMappingsSet) Since() int { return 6 }

// Apply implements event.Fact.
func (e ClaimMappingsSet) Apply(a *App) { a.ClaimMappings = e.Mappings }

func copiedMappings(list []ClaimMapping) []ClaimMapping {
	c := copied(list)
	for i := range c {
		c[i].Targets, c[i].Only = copied(c[i].Targets), copied(c[i].Only)
	}
	return c
}
