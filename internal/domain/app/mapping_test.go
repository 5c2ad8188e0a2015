package app_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// mapping is a mapping of a source to the claim groups of ID tokens, with what is changed of it.
func mapping(from app.ClaimSource, change func(*app.ClaimMapping)) app.ClaimMapping {
	m := app.ClaimMapping{Source: from, Claim: "groups", Targets: []app.ClaimTarget{app.InIDToken}}
	if change != nil {
		change(&m)
	}
	return m
}

func named(claim string) func(*app.ClaimMapping) {
	return func(m *app.ClaimMapping) { m.Claim = claim }
}

func TestWhatAClaimMappingCanBe(t *testing.T) {
	one := func(from app.ClaimSource, change func(*app.ClaimMapping)) []app.ClaimMapping {
		return []app.ClaimMapping{mapping(from, change)}
	}
	shape := func(s app.ClaimShape) func(*app.ClaimMapping) {
		return func(m *app.ClaimMapping) { m.Shape = s }
	}
	prefix := func(p string) func(*app.ClaimMapping) {
		return func(m *app.ClaimMapping) { m.Prefix = p }
	}
	joined := func(by, prefix string) func(*app.ClaimMapping) {
		return func(m *app.ClaimMapping) { m.Shape, m.Separator, m.Prefix = app.AsJoined, by, prefix }
	}
	constant := func(text string, s app.ClaimShape) func(*app.ClaimMapping) {
		return func(m *app.ClaimMapping) { m.Constant, m.Shape = text, s }
	}
	only := func(n, length int) func(*app.ClaimMapping) {
		return func(m *app.ClaimMapping) {
			for i := range n {
				m.Only = append(m.Only, fmt.Sprintf("%0*d", length, i))
			}
		}
	}
	many := func(n int, change func(*app.ClaimMapping)) (all []app.ClaimMapping) {
		for i := range n {
			m := mapping(app.FromGroupNames, change)
			m.Claim = fmt.Sprintf("c%d", i)
			all = append(all, m)
		}
		return all
	}
	for name, x := range map[string]struct {
		mappings []app.ClaimMapping
		want     []string // fields that are wrong
	}{
		"none":                     {},
		"groups":                   {one(app.FromGroupNames, nil), nil},
		"as many as there can be":  {many(app.MaxClaimMappings, nil), nil},
		"one too many":             {many(app.MaxClaimMappings+1, nil), []string{"mappings"}},
		"too large together":       {many(2, only(50, 200)), []string{"mappings"}},
		"no source":                {one("", nil), []string{"mappings[0].source"}},
		"no claim":                 {one(app.FromGroupIDs, named("")), []string{"mappings[0].claim"}},
		"a claim by its address":   {one(app.FromGroupIDs, named("https://hasura.io/jwt/claims")), nil},
		"a SAML attribute":         {one(app.FromFirstName, named("urn:oid:2.5.4.42")), nil},
		"the longest claim":        {one(app.FromGroupIDs, named(strings.Repeat("c", 200))), nil},
		"too long a claim":         {one(app.FromGroupIDs, named(strings.Repeat("c", 201))), []string{"mappings[0].claim"}},
		"a claim with a space":     {one(app.FromGroupIDs, named("a b")), []string{"mappings[0].claim"}},
		"a claim with a quotation": {one(app.FromGroupIDs, named(`a"b`)), []string{"mappings[0].claim"}},
		"a claim beyond ASCII":     {one(app.FromGroupIDs, named("ſub")), []string{"mappings[0].claim"}},
		"ours":                     {one(app.FromGroupIDs, named("urn:signet:groups")), []string{"mappings[0].claim"}},
		"ours in another case":     {one(app.FromGroupIDs, named("URN:Signet:x")), []string{"mappings[0].claim"}},
		"a standard one in another case": {one(app.FromGroupIDs, named("Email_Verified")),
			[]string{"mappings[0].claim"}},
		"a wrong member": {one(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Member = "a b" }),
			[]string{"mappings[0].member"}},
		"metadata without a key": {one(app.FromMetadata, nil), []string{"mappings[0].metadataKey"}},
		"a key of something else": {one(app.FromEmail, func(m *app.ClaimMapping) { m.Key = "k" }),
			[]string{"mappings[0].metadataKey"}},
		"a constant":                 {one(app.FromConstant, constant("x", "")), nil},
		"an empty constant":          {one(app.FromConstant, nil), []string{"mappings[0].constant"}},
		"too long a constant":        {one(app.FromConstant, constant(strings.Repeat("x", 201), "")), []string{"mappings[0].constant"}},
		"a constant of other source": {one(app.FromEmail, constant("x", "")), []string{"mappings[0].constant"}},
		"true":                       {one(app.FromConstant, constant("true", app.AsBoolean)), nil},
		"no boolean":                 {one(app.FromConstant, constant("yes", app.AsBoolean)), []string{"mappings[0].constant"}},
		"a list as a string":         {one(app.FromAppRoles, shape(app.AsString)), []string{"mappings[0].shape"}},
		"a list as a boolean":        {one(app.FromAppRoles, shape(app.AsBoolean)), nil},
		"a name as an array":         {one(app.FromDisplayName, shape(app.AsArray)), nil},
		"a name as a boolean":        {one(app.FromDisplayName, shape(app.AsBoolean)), []string{"mappings[0].shape"}},
		"a name joined":              {one(app.FromDisplayName, shape(app.AsJoined)), []string{"mappings[0].shape"}},
		"another shape":              {one(app.FromDisplayName, shape("x")), []string{"mappings[0].shape"}},
		"joined by a semicolon":      {one(app.FromGroupNames, joined(";", "")), nil},
		"joined by a letter":         {one(app.FromGroupNames, joined("a", "")), []string{"mappings[0].separator"}},
		"joined by two":              {one(app.FromGroupNames, joined(",;", "")), []string{"mappings[0].separator"}},
		"joined by what is in the prefix": {one(app.FromGroupNames, joined(":", "{orgId}:")),
			[]string{"mappings[0].prefix"}},
		"joined by the default, which is in the prefix": {one(app.FromGroupNames, joined("", "a,")),
			[]string{"mappings[0].prefix"}},
		"a separator of an array": {one(app.FromGroupNames, func(m *app.ClaimMapping) { m.Separator = "," }),
			[]string{"mappings[0].separator"}},
		"a prefix":                     {one(app.FromGroupNames, prefix("signet:")), nil},
		"a prefix with organization":   {one(app.FromGroupNames, prefix("signet/{orgId}/")), nil},
		"the organization at the end":  {one(app.FromGroupNames, prefix("{orgId}")), []string{"mappings[0].prefix"}},
		"the organization in a word":   {one(app.FromGroupNames, prefix("{orgId}x")), []string{"mappings[0].prefix"}},
		"the organization before a _":  {one(app.FromGroupNames, prefix("{orgId}_")), []string{"mappings[0].prefix"}},
		"the organization before an ü": {one(app.FromGroupNames, prefix("{orgId}ü")), []string{"mappings[0].prefix"}},
		"two organizations":            {one(app.FromGroupNames, prefix("{orgId}:{orgId}:")), []string{"mappings[0].prefix"}},
		"the organization of an e-mail address": {one(app.FromEmail, prefix("{orgId}:")),
			[]string{"mappings[0].prefix"}},
		"a prefix of a constant": {one(app.FromConstant, func(m *app.ClaimMapping) { m.Constant, m.Prefix = "x", "y" }),
			[]string{"mappings[0].prefix"}},
		"too long a prefix": {one(app.FromEmail, prefix(strings.Repeat("p", 101))), []string{"mappings[0].prefix"}},
		"told nowhere": {one(app.FromEmail, func(m *app.ClaimMapping) { m.Targets = nil }),
			[]string{"mappings[0].targets"}},
		"told elsewhere": {one(app.FromEmail, func(m *app.ClaimMapping) { m.Targets = []app.ClaimTarget{""} }),
			[]string{"mappings[0].targets[0]"}},
		"limited":             {one(app.FromGroupNames, only(50, 200)), nil},
		"limited to too many": {one(app.FromGroupNames, only(51, 3)), []string{"mappings[0].only"}},
		"limited to too long": {one(app.FromGroupNames, only(1, 201)), []string{"mappings[0].only[0]"}},
		"limited to nothing": {one(app.FromGroupNames, func(m *app.ClaimMapping) { m.Only = []string{""} }),
			[]string{"mappings[0].only[0]"}},
		"a limited name": {one(app.FromEmail, only(1, 3)), []string{"mappings[0].only"}},
		"a name that begins": {one(app.FromEmail, func(m *app.ClaimMapping) { m.BeginsWith = "a" }),
			[]string{"mappings[0].beginsWith"}},
		"begins with too much": {one(app.FromGroupIDs, func(m *app.ClaimMapping) { m.BeginsWith = strings.Repeat("a", 201) }),
			[]string{"mappings[0].beginsWith"}},
		"twice the same claim": {append(one(app.FromGroupNames, nil), one(app.FromAppRoles, named("Groups"))...),
			[]string{"mappings[1].claim"}},
		"the same claim in different places": {append(one(app.FromGroupNames, nil),
			mapping(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Targets = []app.ClaimTarget{app.InUserInfo} })), nil},
		"two members": {append(one(app.FromGroupNames, func(m *app.ClaimMapping) { m.Member = "a" }),
			mapping(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Member = "b" })), nil},
		"the same member twice": {append(one(app.FromGroupNames, func(m *app.ClaimMapping) { m.Member = "a" }),
			mapping(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Member = "A" })), []string{"mappings[1].claim"}},
		"a claim and a member of it": {append(one(app.FromGroupNames, nil),
			mapping(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Member = "b" })), []string{"mappings[1].claim"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range app.ClaimMappingViolations(x.mappings) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("wrong are %q, want %q", got, x.want)
			}
		})
	}
}

func TestNoMappingMakesAReservedClaim(t *testing.T) {
	for _, claim := range app.ReservedClaims {
		if claim != strings.ToLower(claim) {
			t.Errorf("%s is not in lower case", claim)
		}
		for _, in := range []string{claim, strings.ToUpper(claim)} {
			if len(app.ClaimMappingViolations([]app.ClaimMapping{mapping(app.FromGroupNames, named(in))})) != 1 {
				t.Errorf("%s can be declared", in)
			}
		}
	}
}

func setMappings(mappings ...app.ClaimMapping) operation {
	return func(t *testing.T, s event.Store, p access.Permit) error {
		_, _, err := app.SetClaimMappings(t.Context(), s, p, "app_active", event.IfMatch{}, mappings)
		return err
	}
}

func TestMappingsAreKeptWithTheirDefaults(t *testing.T) {
	s := world(t)
	sent := []app.ClaimMapping{
		mapping(app.FromGroupNames, func(m *app.ClaimMapping) {
			m.Targets = []app.ClaimTarget{app.InUserInfo, app.InIDToken, app.InUserInfo}
		}),
		mapping(app.FromAppRoles, func(m *app.ClaimMapping) { m.Claim, m.Shape = "r", app.AsJoined }),
		mapping(app.FromEmail, named("mail")),
	}
	must(t, setMappings(sent...)(t, s, ownerA))
	want := slices.Clone(sent)
	want[0].Shape, want[0].Targets = app.AsArray, []app.ClaimTarget{app.InIDToken, app.InUserInfo}
	want[1].Separator, want[2].Shape = ",", app.AsString
	got := eventtest.State(t, s, app.Kind, "app_active")
	if !reflect.DeepEqual(got.Data.ClaimMappings, want) {
		t.Errorf("kept %+v", got.Data.ClaimMappings)
	}
	mark := s.Mark()
	must(t, setMappings(sent...)(t, s, ownerA))
	s.Then(t, mark) // it is so already
	must(t, setMappings()(t, s, ownerA))
	if left := eventtest.State(t, s, app.Kind, "app_active").Data; left.ClaimMappings != nil || left.Maps() != (app.Mapped{}) {
		t.Errorf("left is %+v", left.ClaimMappings)
	}
}

func TestWhatIsLeftOutForOthersIsSaid(t *testing.T) {
	mappings := []app.ClaimMapping{
		mapping(app.FromGroupNames, named("a")),
		mapping(app.FromGroupIDs, func(m *app.ClaimMapping) { m.Claim, m.Prefix = "b", "{orgId}:" }),
		mapping(app.FromAppRoles, func(m *app.ClaimMapping) { m.Claim, m.Prefix = "c", "x:" }),
		mapping(app.FromUserName, named("d")),
		mapping(app.FromLoginName, named("e")),
		mapping(app.FromMetadata, func(m *app.ClaimMapping) { m.Claim, m.Key = "f", "k" }),
	}
	for id, want := range map[string][]int{"app_active": {0, 2, 3, 5}, "app_spa": nil} { // the first is for all organizations
		s := world(t)
		_, got, err := app.SetClaimMappings(t.Context(), s, ownerA, id, event.IfMatch{}, mappings)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%s: left out are %v", id, got)
		}
		if id != "app_spa" {
			continue
		}
		eventtest.Given(t, s, app.Kind, id, "", nil, app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_1"}})
		if got := eventtest.State(t, s, app.Kind, id).Data.LeftOut(); !slices.Equal(got, []int{0, 2, 3, 5}) {
			t.Errorf("guests may use it, and left out are %v", got)
		}
	}
}

func TestOnlyWhoMayReadMetadataMapsIt(t *testing.T) {
	team := mapping(app.FromMetadata, func(m *app.ClaimMapping) { m.Key = "team" })
	other := mapping(app.FromMetadata, func(m *app.ClaimMapping) { m.Claim, m.Key = "other", "other" })
	settings := of(t, "org_a", access.AppWrite, access.Memberships{"org_a": {access.OrgSettingsManager}})
	s := world(t)
	if err := setMappings(team)(t, s, settings); err != app.ErrMappedMetadataDenied {
		t.Errorf("a key that is not told: %v", err)
	}
	eventtest.Given(t, s, app.Kind, "app_active", "", nil,
		app.RoleSettingsSet{RoleSettings: app.RoleSettings{Metadata: []string{"team"}}})
	must(t, setMappings(team)(t, s, settings)) // it is told anyway
	must(t, setMappings(team, other)(t, s, ownerA))
	must(t, setMappings(other)(t, s, settings)) // it stays
}
