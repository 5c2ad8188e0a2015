package metadata_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/test/testkit"
)

func TestWhatMetadataCanBe(t *testing.T) {
	pair := func(key, value string) []metadata.Pair { return []metadata.Pair{{Key: key, Value: value}} }
	for name, x := range map[string]struct {
		set    []metadata.Pair
		remove []string
		want   []string
	}{
		"nothing":              {},
		"every character":      {set: pair("aZ09._-", "x")},
		"longest":              {set: pair(strings.Repeat("k", 100), strings.Repeat("ü", 1000))},
		"empty key":            {set: pair("", "x"), want: []string{"set[0].key"}},
		"long key":             {set: pair(strings.Repeat("k", 101), "x"), want: []string{"set[0].key"}},
		"no letter or digit":   {set: pair("..", "x"), want: []string{"set[0].key"}},
		"other characters":     {set: pair("a b", "x"), want: []string{"set[0].key"}},
		"other letters":        {set: pair("ä", "x"), want: []string{"set[0].key"}},
		"empty value":          {set: pair("a", ""), want: []string{"set[0].value"}},
		"long value":           {set: pair("a", strings.Repeat("ü", 1001)), want: []string{"set[0].value"}},
		"NUL":                  {set: pair("a", "x\x00"), want: []string{"set[0].value"}},
		"not UTF-8":            {set: pair("a", "\xff"), want: []string{"set[0].value"}},
		"a key twice":          {set: append(pair("a", "1"), pair("a", "2")...), want: []string{"set[1].key"}},
		"set and removed":      {set: pair("a", "1"), remove: []string{"a"}, want: []string{"remove[0]"}},
		"a removed key is bad": {remove: []string{"a", "/"}, want: []string{"remove[1]"}},
		"too many": {set: make([]metadata.Pair, 51), remove: make([]string, 51),
			want: []string{"set", "remove"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range metadata.Violations(x.set, x.remove) {
				got = append(got, v.Field)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("wrong: %q", got)
			}
		})
	}
}

func TestAChangeLeavesWhatWasThereAlone(t *testing.T) {
	before := map[string]string{"a": "1", "b": "2"}
	after := metadata.Change{Set: map[string]string{"b": "3", "c": "4"}, Remove: []string{"a", "z"}}.Apply(before)
	if !maps.Equal(after, map[string]string{"b": "3", "c": "4"}) ||
		!maps.Equal(before, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("%v became %v", before, after)
	}
	if got := (metadata.Change{Remove: []string{"b", "c"}}).Apply(after); got != nil {
		t.Errorf("none is %v", got)
	}
	if got := metadata.Picked(after, []string{"a", "c"}); !maps.Equal(got, map[string]string{"c": "4"}) {
		t.Errorf("picked %v", got)
	}
	if got := metadata.Picked(after, []string{"a"}); got != nil {
		t.Errorf("picked %v of nothing", got)
	}
}

func world(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, org.Kind, user.Kind)
	for _, id := range []string{"a", "b"} {
		eventtest.Given(t, s, org.Kind, "org_"+id, "org_"+id, nil, org.Added{Name: id})
		eventtest.Given(t, s, user.Kind, "usr_"+id, "org_"+id, []event.Claim{user.NameClaim("org_"+id, "u")},
			user.HumanAdded{Personal: user.HumanFacts{UserNameKey: "u"}})
	}
	return s
}

func owner(t *testing.T) access.Permit {
	t.Helper()
	p, err := (&access.Caller{UserID: "usr_a", OrgID: "org_a",
		Memberships: access.Memberships{"org_a": {access.OrgOwner}}}).In("org_a", access.MetadataWrite)
	testkit.Must(t, err)
	return p
}

func set(t *testing.T, s event.Store, id string, pairs []metadata.Pair, remove ...string) (event.Details, error) {
	return metadata.Set(t.Context(), s, user.Within(owner(t), id), event.IfMatch{}, pairs, remove,
		func(u *user.User) map[string]string { return u.Metadata },
		func(c metadata.Change) event.Fact[user.User] { return user.MetadataSet{Personal: c} })
}

func TestMetadataIsBounded(t *testing.T) {
	s := world(t)
	var pairs []metadata.Pair
	for i := range 49 {
		pairs = append(pairs, metadata.Pair{Key: fmt.Sprintf("k%02d", i), Value: "x"})
	}
	first, err := set(t, s, "usr_a", pairs)
	testkit.Must(t, err)
	again, err := set(t, s, "usr_a", pairs, "missing")
	testkit.Must(t, err)
	if again.Sequence != first.Sequence {
		t.Error("what changes nothing is recorded")
	}
	more := []metadata.Pair{{Key: "more1", Value: "x"}, {Key: "more2", Value: "x"}}
	_, err = set(t, s, "usr_a", more)
	eventtest.As(t, err, metadata.ErrTooManyPairs)
	_, err = set(t, s, "usr_a", more, "k00") // 50 in the end
	testkit.Must(t, err)

	var all []metadata.Pair // 16 of 1,024 bytes, with three bytes a character
	for i := range 16 {
		all = append(all, metadata.Pair{Key: fmt.Sprintf("k%02d.", i), Value: strings.Repeat("€", 340)})
	}
	_, err = set(t, s, "usr_a", all[:1],
		slices.Collect(maps.Keys(eventtest.State(t, s, user.Kind, "usr_a").Data.Metadata))...)
	testkit.Must(t, err)
	_, err = set(t, s, "usr_a", all)
	testkit.Must(t, err)
	_, err = set(t, s, "usr_a", []metadata.Pair{{Key: "k", Value: "x"}})
	eventtest.As(t, err, metadata.ErrTooLarge)
	_, err = set(t, s, "usr_a", []metadata.Pair{{Key: "a b", Value: "x"}}, "k00.")
	if err == nil {
		t.Error("the rule lets a wrong key through")
	}
}

func TestMetadataOfAnotherOrganizationIsOutOfReach(t *testing.T) {
	s := world(t)
	_, err := set(t, s, "usr_b", []metadata.Pair{{Key: "k", Value: "x"}})
	eventtest.As(t, err, user.ErrNotFound)
	if got := eventtest.State(t, s, user.Kind, "usr_b").Data.Metadata; got != nil {
		t.Errorf("it has %v", got)
	}
	for _, role := range []access.Role{access.OrgUserManager, access.OrgSettingsManager, access.OrgOwnerViewer} {
		c := &access.Caller{UserID: "usr_a", OrgID: "org_a", Memberships: access.Memberships{"org_a": {role}}}
		if _, err := c.In("org_a", access.MetadataWrite); err == nil {
			t.Errorf("%s changes metadata", role)
		}
		if _, err := c.In("org_a", access.MetadataRead); (err == nil) != (role == access.OrgOwnerViewer) {
			t.Errorf("%s reads metadata: %v", role, err)
		}
	}
}
