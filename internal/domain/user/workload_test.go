package user_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestWhichValuesAClaimOfAWorkloadFits(t *testing.T) {
	for _, c := range []struct {
		want, has string
		fits      bool
	}{
		{"a", "a", true},
		{"a", "A", false},
		{"a", "", false},
		{"a", "a ", false},
		{"a", "a:b", false},
		{"a:*", "a:b", true},
		{"a:*", "a:", false}, // a whole segment is not empty
		{"a:*", "a", false},
		{"a:*", "a:b:c", false}, // nor more than one
		{"a:*", "a:b/c", false},
		{"a:*", "a:b/", false},
		{"a:*", "a::", false},
		{"a:*", "a/b", false}, // separators are not alike
		{"a/*", "a:b", false},
		{"a:*", "A:b", false},
		{"a:*", "xa:b", false},
		{"*:a", "b:a", true},
		{"*:a", "b:a:a", false},
		{"a:*:c", "a:b:c", true},
		{"a:*:c", "a::c", false},
		{"a:*:c", "a:b:b:c", false},
		{"a:*", "a:*", true},
		{"a:*", "a:\n", true},
		{"a.c", "abc", false}, // nothing of regular expressions
		{"a+", "aa", false},
		{"(a|b)", "a", false},
		{"[ab]:*", "a:b", false},
		{"a?:*", "a:b", false},
		{"a:*/c", "a:b/c", true},
		{"repo:acme/*:ref:refs/heads/main", "repo:acme/shop:ref:refs/heads/main", true},
		{"repo:acme/*:ref:refs/heads/main", "repo:acme/shop:ref:refs/heads/main:x", false},
		{"repo:acme/*:ref:refs/heads/main", "repo:evil/x:ref:repo:acme/shop:ref:refs/heads/main", false},
		{"repo:acme/*:ref:refs/heads/*", "repo:acme/shop:ref:refs/heads/a/b", false},
		{"system:serviceaccount:shop:*", "system:serviceaccount:shop:deployer", true},
		{"system:serviceaccount:shop:*", "system:serviceaccount:shop2:deployer", false},
	} {
		if got := (user.WorkloadClaim{Name: "sub", Value: c.want}).Fits(c.has); got != c.fits {
			t.Errorf("%q fits %q: %t", c.want, c.has, got)
		}
	}
}

func TestARuleAboutWorkloadsIsAddedAndRemoved(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	w := user.Workload{Issuer: "https://cluster.example", Claims: []user.WorkloadClaim{{Name: "sub", Value: "a"}}}
	mark := s.Mark()
	d, id, err := user.AddWorkloadRule(t.Context(), s, p, "usr_robot", event.IfMatch{Set: true, Sequence: 1}, w)
	must(t, err)
	u := eventtest.State(t, s, user.Kind, "usr_robot")
	rules := u.Data.Service.Workloads
	if d != u.Details() || len(rules) != 1 || rules[0].ID != id || rules[0].MaxLife != user.MaxWorkloadLife {
		t.Errorf("details %+v, rules %+v", d, rules)
	}
	if facts := s.Since(t, mark); len(facts) != 1 || facts[0].Type != "user.workload_rule_added.v1" ||
		!strings.Contains(facts[0].Payload, `"issuer":"https://cluster.example"`) {
		t.Errorf("recorded %+v", facts)
	}
	w.MaxLife = user.MaxWorkloadLife
	_, _, err = user.AddWorkloadRule(t.Context(), s, p, "usr_robot", event.IfMatch{}, w)
	eventtest.As(t, err, user.ErrWorkloadRuleExists)
	mark = s.Mark()
	_, err = user.RemoveWorkloadRule(t.Context(), s, p, "usr_robot", event.IfMatch{}, id)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_robot", Type: "user.workload_rule_removed.v1",
		Payload: `{"ruleId":"` + id + `"}`})
	_, err = user.RemoveWorkloadRule(t.Context(), s, p, "usr_robot", event.IfMatch{Set: true, Sequence: 1}, id)
	eventtest.As(t, err, user.ErrWorkloadRuleNotFound)
}

// Every request that names the service user reads its rules.
func TestKeySetsOfAllRulesHaveABound(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	const key = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"`
	set := `{"keys":[` + key + strings.Repeat("k", 7700) + `"}]}`
	add := func(name string) error {
		_, _, err := user.AddWorkloadRule(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.Workload{
			Issuer: "https://cluster.example", Claims: []user.WorkloadClaim{{Name: "sub", Value: name}}, KeySet: set})
		return err
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		must(t, add(name))
	}
	eventtest.As(t, add("e"), user.ErrTooManyWorkloadKeys)
	set = ""
	must(t, add("e"))
}

// A node that does not know the rules would go on with what it knows, and drop them with the next change.
func TestRulesAboutWorkloadsWaitForEveryNode(t *testing.T) {
	if since := (user.WorkloadRuleAdded{}).Since(); since == 0 || since > event.FactVersion {
		t.Errorf("since %d", since)
	}
}
