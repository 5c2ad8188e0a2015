package api_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

var (
	noWorkloadRule       = refused(codes.NotFound, "WORKLOAD_RULE_NOT_FOUND")
	workloadRuleExists   = refused(codes.AlreadyExists, "WORKLOAD_RULE_EXISTS")
	tooManyWorkloadRules = refused(codes.FailedPrecondition, "TOO_MANY_WORKLOAD_RULES")
)

const clusterKeys = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}]}`

// workloadRule is a rule that is fine.
func workloadRule(userID string) *signetv1.AddServiceWorkloadRuleRequest {
	return &signetv1.AddServiceWorkloadRuleRequest{UserId: userID, Issuer: "https://cluster.example",
		Claims: []*signetv1.WorkloadClaim{{Name: "sub", Value: "system:serviceaccount:shop:*"}}}
}

// workloadRuleStory: rules are added, listed and removed like keys.
func workloadRuleStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	robot := c.w.addUser(t, person{Org: s.org, Service: true})
	list := func() *signetv1.ListServiceWorkloadRulesResponse {
		t.Helper()
		return done[*signetv1.ListServiceWorkloadRulesResponse](t, c, s.owner,
			&signetv1.ListServiceWorkloadRulesRequest{UserId: robot.UserID})
	}
	same(t, "none at first", len(list().GetRules()), 0)
	add := workloadRule(robot.UserID)
	c.refused(t, sequenceMismatch, s.owner, add, stale)
	made := done[*signetv1.AddServiceWorkloadRuleResponse](t, c, s.owner, add, header("if-match", "1"))
	same(t, "prefix", made.GetRuleId()[:4], "wlr_")
	rules := list()
	sameMessage(t, "rule", rules.GetRules()[0], &signetv1.WorkloadRule{RuleId: made.GetRuleId(), Issuer: add.GetIssuer(),
		CreationDate: made.GetDetails().GetChangeDate(), Claims: add.GetClaims(), MaxLifeSeconds: 86400})
	sameMessage(t, "details", rules.GetDetails(), c.user(t, s.owner, robot.UserID).GetDetails())
	c.refused(t, workloadRuleExists, s.owner, add)
	c.refused(t, workloadRuleExists, s.owner, with(add, "maxLifeSeconds", int32(86400)), stale)
	twin := c.w.addUser(t, person{Org: s.org, Service: true})
	done[*signetv1.AddServiceWorkloadRuleResponse](t, c, s.owner, with(add, "userId", twin.UserID))

	whole := &signetv1.AddServiceWorkloadRuleRequest{UserId: robot.UserID, Issuer: "https://token.actions.githubusercontent.com",
		Audience: "our-api", MaxLifeSeconds: 600, OneTime: true, KeySet: " " + clusterKeys,
		Claims: []*signetv1.WorkloadClaim{{Name: "repository_id", Value: "74"}, {Name: "ref", Value: "refs/heads/main"}}}
	done[*signetv1.AddServiceWorkloadRuleResponse](t, c, s.owner, whole)
	got := list().GetRules()[1]
	sameMessage(t, "whole", got, &signetv1.WorkloadRule{RuleId: got.GetRuleId(), CreationDate: got.GetCreationDate(),
		Issuer: whole.GetIssuer(), Audience: "our-api", MaxLifeSeconds: 600, OneTime: true, Claims: whole.GetClaims(),
		KeySet: `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}]}`})

	for i := range 18 {
		done[*signetv1.AddServiceWorkloadRuleResponse](t, c, s.owner, with(add, "audience", fmt.Sprint("a", i)))
	}
	same(t, "rules", len(list().GetRules()), 20)
	c.refused(t, tooManyWorkloadRules, s.owner, with(add, "audience", "more"), stale)

	remove := &signetv1.RemoveServiceWorkloadRuleRequest{UserId: robot.UserID, RuleId: made.GetRuleId()}
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	c.refused(t, noWorkloadRule, s.owner, with(remove, "ruleId", made.GetRuleId()+"0"), stale)
	d := done[*signetv1.RemoveServiceWorkloadRuleResponse](t, c, s.owner, remove)
	same(t, "sequence", d.GetDetails().GetSequence(), 22)
	c.refused(t, noWorkloadRule, s.owner, remove)
	same(t, "rules", len(list().GetRules()), 19)
	done[*signetv1.AddServiceWorkloadRuleResponse](t, c, s.owner, add) // there is room again, and it may come back
}

// workloadRuleCases are rules that trust too much, or that nothing would ever pass.
func workloadRuleCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	robot := w.addUser(t, person{Org: s.org, Service: true})
	add := func(name, field string, change func(*signetv1.AddServiceWorkloadRuleRequest)) {
		req := proto.Clone(workloadRule(robot.UserID)).(*signetv1.AddServiceWorkloadRuleRequest)
		change(req)
		want := sequenceMismatch // it would be taken
		if field != "" {
			want = invalid(field)
		}
		cases = append(cases, Case{Name: name, As: s.owner, Req: req, Header: stale, Want: want})
	}
	for name, issuer := range map[string]string{
		"no URL": "cluster", "ftp": "ftp://cluster.example", "a user": "https://me@cluster.example", "no host": "https://",
		"query": "https://cluster.example?a", "fragment": "https://cluster.example#a", "a file": "file:///etc/passwd",
	} {
		add("issuer/"+name, "issuer", func(r *signetv1.AddServiceWorkloadRuleRequest) { r.Issuer = issuer })
	}
	for value, good := range map[string]bool{
		"*": false, "*:*": false, "*/*": false, ":*": false, "a*": false, "a:b*": false, "a:*b:c": false, "**": false,
		"a:**": false, "a:*": true, "*:a": true, "a/*/b": true, ".+": true, "repo:acme/*:environment:live": true,
	} {
		field := "claims[0].value"
		if good {
			field = ""
		}
		add("value/"+value, field, func(r *signetv1.AddServiceWorkloadRuleRequest) { r.Claims[0].Value = value })
	}
	claims := func(pairs ...string) func(*signetv1.AddServiceWorkloadRuleRequest) {
		return func(r *signetv1.AddServiceWorkloadRuleRequest) {
			r.Claims = nil
			for i := 0; i < len(pairs); i += 2 {
				r.Claims = append(r.Claims, &signetv1.WorkloadClaim{Name: pairs[i], Value: pairs[i+1]})
			}
		}
	}
	of := func(issuer string, pairs ...string) func(*signetv1.AddServiceWorkloadRuleRequest) {
		return func(r *signetv1.AddServiceWorkloadRuleRequest) { claims(pairs...)(r); r.Issuer = issuer }
	}
	const hub, lab = "https://token.actions.githubusercontent.com", "https://gitlab.com"
	add("claims/none", "claims", claims())
	add("claims/no workload", "claims", claims("namespace", "shop"))
	add("claims/another case", "claims", claims("SUB", "a"))
	add("claims/twice", "claims[1].name", claims("sub", "a", "sub", "b"))
	add("claims/always checked", "claims[1].name", claims("sub", "a", "iss", "b"))
	add("claims/names that change at GitHub", "claims", of(hub, "sub", "repo:acme/shop:ref:refs/heads/main"))
	add("claims/an enterprise of GitHub", "claims", of(hub+"/acme", "sub", "repo:acme/shop:ref:refs/heads/main"))
	add("claims/GitHub in capitals", "claims", of("https://Token.Actions.GithubUserContent.com", "sub", "repo:acme/shop"))
	add("claims/an owner at GitHub", "", of(hub, "repository_owner_id", "74"))
	add("claims/names that change at GitLab", "claims", of(lab, "sub", "project_path:acme/shop:ref_type:branch:ref:main"))
	add("claims/GitHub's at GitLab", "claims", of(lab, "repository_id", "74"))
	add("claims/a project at GitLab", "", of(lab, "project_id", "22"))
	add("claims/a GitLab of one's own", "", of("https://gitlab.com.example", "sub", "project_path:acme/shop"))
	add("life", "maxLifeSeconds", func(r *signetv1.AddServiceWorkloadRuleRequest) { r.MaxLifeSeconds = 86401 })
	for name, set := range map[string]string{
		"no set": `{}`, "empty": `{"keys":[]}`, "symmetric": `{"keys":[{"kty":"oct","k":"AAAA"}]}`,
		"private":  `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE","d":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}]}`,
		"encrypts": strings.Replace(clusterKeys, `"kid"`, `"use":"enc","kid"`, 1),
		"eleven":   `{"keys":[` + strings.Repeat(clusterKeys[9:len(clusterKeys)-2]+",", 10) + clusterKeys[9:len(clusterKeys)-2] + `]}`,
	} {
		add("keys/"+name, "keySet", func(r *signetv1.AddServiceWorkloadRuleRequest) { r.KeySet = set })
	}
	return cases
}
