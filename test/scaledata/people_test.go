package main

import (
	"testing"
)

func TestPeopleCanBeAddedAndAreAlwaysTheSame(t *testing.T) {
	const users, orgs = 20_000, 50
	seen, large := map[string]bool{}, 0
	for at := range users {
		in := orgOf(at, users, orgs)
		if in < 0 || in >= orgs {
			t.Fatalf("user %d is in organization %d of %d", at, in, orgs)
		}
		if in == 0 {
			large++
		}
		p := person(at, in)
		if wrong := p.Violations(""); wrong != nil {
			t.Errorf("%+v: %v", p, wrong)
		}
		if seen[p.UserName] {
			t.Errorf("%s comes twice", p.UserName)
		}
		if seen[p.UserName] = true; person(at, in) != p {
			t.Errorf("%s is another person now", p.UserName)
		}
	}
	if large != users/8 {
		t.Errorf("%d of %d are in the first organization", large, users)
	}
}
