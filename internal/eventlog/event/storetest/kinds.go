package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// The suite's kinds. They use the tables and columns of the real ones; their facts are their own.
var kinds = []event.Definition{orgs, users, signIns, providers}

// org has no personal data. It claims its domains, and is listed by its name.
type org struct {
	Name    string   `json:"name"`
	Domains []string `json:"domains,omitempty"`
	Count   int      `json:"count,omitempty"`
}

var orgs = event.Define(event.Schema[org]{
	Name: "org", Table: "orgs", Prefix: "org", Shape: 1, Token: event.TokenOrg,
	Facts:   []event.Fact[org]{orgAdded{}, domainsSet{}, orgCounted{}},
	Columns: []string{event.Standing, event.State, "name"},
	Lookup: func(o *event.Object[org]) []string {
		return []string{event.StandingOf(o.Data.Name), "active", event.LookupText(o.Data.Name)}
	},
	Claims: func(o *event.Object[org]) []event.Claim { return domainClaims(o.Data.Domains) },
})

func domain(name string) event.Claim { return event.Claim{Space: "domain", Key: name} }

func domainClaims(names []string) []event.Claim {
	claims := make([]event.Claim, len(names))
	for i, name := range names {
		claims[i] = domain(name)
	}
	return claims
}

type orgAdded struct {
	Name string `json:"name"`
}

func (orgAdded) EventType() event.Type { return "org.added.v1" }
func (f orgAdded) Apply(o *org)        { o.Name = f.Name }

type domainsSet struct {
	Domains []string `json:"domains,omitempty"`
}

func (domainsSet) EventType() event.Type { return "org.domains_set.v1" }
func (f domainsSet) Apply(o *org)        { o.Domains = f.Domains }

type orgCounted struct{}

func (orgCounted) EventType() event.Type { return "org.counted.v1" }
func (orgCounted) Apply(o *org)          { o.Count++ }

// user has personal data and lookup columns, claims its name within its organization, and is in a group for each tag.
type user struct {
	Name    string   `json:"name"`
	Email   string   `json:"email,omitempty"`
	Tags    []string `json:"tags"`
	Count   int      `json:"count"`
	Removed bool     `json:"removed,omitempty"`
}

var users = event.Define(event.Schema[user]{
	Name: "user", Table: "users", Prefix: "usr", Shape: 1, Token: event.TokenUser,
	Facts: []event.Fact[user]{userAdded{}, renamed{}, tagged{}, counted{}, removed{}},
	Columns: []string{event.Standing, "verified_email", event.State, "type", "user_name", "name", "email",
		"email_order"},
	Lookup: func(o *event.Object[user]) []string {
		state := map[bool]string{true: event.Removed, false: "active"}[o.Data.Removed]
		name := event.LookupText(o.Data.Name)
		return []string{event.StandingOf(o.Data.Count), emailDigest(o.Data.Email), state, "", name, name,
			event.LookupText(o.Data.Email), strconv.Itoa(o.Data.Count)}
	},
	Groups: func(o *event.Object[user]) []string { return o.Data.Tags },
	Words:  func(o *event.Object[user]) []string { return []string{o.Data.Name, o.Data.Email} },
	Claims: func(o *event.Object[user]) []event.Claim {
		if o.Data.Removed {
			return nil
		}
		return []event.Claim{userName(o.Org, o.Data.Name)}
	},
})

func userName(org, name string) event.Claim {
	return event.Claim{Space: "user_name/" + org, Key: name}
}

func emailDigest(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:])
}

type userAdded struct {
	Personal person `json:"-"`
}

type person struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

func (userAdded) EventType() event.Type { return "user.added.v1" }
func (f userAdded) Apply(u *user)       { u.Name, u.Email = f.Personal.Name, f.Personal.Email }

type renamed struct {
	Personal person `json:"-"`
}

func (renamed) EventType() event.Type { return "user.renamed.v1" }
func (f renamed) Apply(u *user)       { u.Name = f.Personal.Name }

type tagged struct {
	Tags []string `json:"tags,omitempty"`
}

func (tagged) EventType() event.Type { return "user.tagged.v1" }
func (f tagged) Apply(u *user)       { u.Tags = f.Tags }

type counted struct {
	By int `json:"by"`
}

func (counted) EventType() event.Type { return "user.counted.v1" }
func (f counted) Apply(u *user)       { u.Count += f.By }

type removed struct{}

func (removed) EventType() event.Type { return "user.removed.v1" }
func (removed) Apply(u *user)         { *u = user{Removed: true} }

// provider decides about the tokens that came through it.
type provider struct {
	Count int `json:"count"`
}

var providers = event.Define(event.Schema[provider]{
	Name: "idp", Table: "idps", Prefix: "idp", Shape: 1, Token: event.TokenProvider,
	Facts:   []event.Fact[provider]{providerCounted{}},
	Columns: []string{event.Standing, event.State, "type", "name"},
	Lookup: func(o *event.Object[provider]) []string {
		return []string{event.StandingOf(o.Data.Count), "active", "", ""}
	},
})

type providerCounted struct{}

func (providerCounted) EventType() event.Type { return "idp.counted.v1" }
func (providerCounted) Apply(p *provider)     { p.Count++ }

// signIn stands beside a user and shares the user's key.
type signIn struct {
	Address string `json:"address,omitempty"`
	Count   int    `json:"count"`
}

var signIns = event.Define(event.Schema[signIn]{
	Name: "sign_in", Table: "sign_ins", Prefix: "sgi", Shape: 1,
	Facts: []event.Fact[signIn]{signedIn{}, forgotten{}},
})

type signedIn struct {
	Personal struct {
		Address string `json:"address,omitempty"`
	} `json:"-"`
}

func (signedIn) EventType() event.Type { return "sign_in.succeeded.v1" }
func (f signedIn) Apply(s *signIn)     { s.Address, s.Count = f.Personal.Address, s.Count+1 }

type forgotten struct{}

func (forgotten) EventType() event.Type { return "sign_in.forgotten.v1" }
func (forgotten) Apply(s *signIn)       { *s = signIn{} }

// addOrg makes an organization.
func addOrg(id, name string, domains ...string) event.Command {
	return event.Command{
		Write: []event.Ref{orgs.Ref(id)}, Claims: domainClaims(domains),
		Decide: func(tx *event.Tx) error {
			_, err := orgs.Create(tx, id, id, orgAdded{Name: name}, domainsSet{Domains: domains})
			return err
		},
	}
}

// addUser makes a user in the organization "org_1", which need not exist.
func addUser(id, name string) event.Command {
	return event.Command{
		Write: []event.Ref{users.Ref(id)}, Claims: []event.Claim{userName("org_1", name)},
		Decide: func(tx *event.Tx) error {
			_, err := users.Create(tx, id, "org_1",
				userAdded{Personal: person{Name: name, Email: name + "@example.org"}})
			return err
		},
	}
}

// changeUser hands an existing user to a function that appends to it.
func changeUser(id string, change func(tx *event.Tx, u *event.Object[user]) error) event.Command {
	return event.Command{
		Write: []event.Ref{users.Ref(id)},
		Decide: func(tx *event.Tx) error {
			u, err := users.Get(tx, id)
			if err != nil {
				return err
			}
			return change(tx, u)
		},
	}
}

// count adds one to a user's count.
func count(id string) event.Command {
	return changeUser(id, func(_ *event.Tx, u *event.Object[user]) error { return u.Append(counted{By: 1}) })
}

// countOrg adds one to an organization's count.
func countOrg(id string) event.Command {
	return event.Command{Write: []event.Ref{orgs.Ref(id)}, Decide: func(tx *event.Tx) error {
		o, err := orgs.Get(tx, id)
		if err != nil {
			return err
		}
		return o.Append(orgCounted{})
	}}
}

// rename gives a user another name.
func rename(id, name string) event.Command {
	c := changeUser(id, func(_ *event.Tx, u *event.Object[user]) error {
		return u.Append(renamed{Personal: person{Name: name}})
	})
	c.Claims = []event.Claim{userName("org_1", name)}
	return c
}

// tag gives a user other tags.
func tag(id string, tags ...string) event.Command {
	return changeUser(id, func(_ *event.Tx, u *event.Object[user]) error { return u.Append(tagged{Tags: tags}) })
}

// remove ends a user; its name becomes free.
func remove(id string) event.Command {
	return changeUser(id, func(_ *event.Tx, u *event.Object[user]) error { return u.Append(removed{}) })
}

// erase removes a user with what stands beside it, and destroys the key.
func erase(id string) event.Command {
	beside := strings.Replace(id, "usr", "sgi", 1)
	c := changeUser(id, func(tx *event.Tx, u *event.Object[user]) error {
		s, err := signIns.Get(tx, beside)
		if err != nil {
			return err
		}
		if s != nil {
			err = errors.Join(s.Erase(), s.Append(forgotten{}))
		}
		return errors.Join(err, u.Erase(), u.Append(removed{}))
	})
	c.Write = append(c.Write, signIns.Ref(beside))
	return c
}

// signInFrom records something personal beside a user.
func signInFrom(id, address string) event.Command {
	beside := strings.Replace(id, "usr", "sgi", 1)
	return event.Command{
		Write: []event.Ref{signIns.Ref(beside)}, Read: []event.Ref{users.Ref(id)},
		Decide: func(tx *event.Tx) error {
			var fact signedIn
			fact.Personal.Address = address
			s, err := signIns.Get(tx, beside)
			if err == nil && s == nil {
				_, err = signIns.CreateBeside(tx, beside, users.Ref(id), fact)
				return err
			}
			if err != nil {
				return err
			}
			return s.Append(fact)
		},
	}
}

// setDomains changes what organizations are called, all in one command.
func setDomains(domains map[string][]string) event.Command {
	var c event.Command
	var ids []string
	for id, names := range domains {
		ids = append(ids, id)
		c.Write = append(c.Write, orgs.Ref(id))
		c.Claims = append(c.Claims, domainClaims(names)...)
	}
	slices.Sort(ids)
	c.Decide = func(tx *event.Tx) error {
		for _, id := range ids {
			o, err := orgs.Get(tx, id)
			if err != nil {
				return err
			}
			if err := o.Append(domainsSet{Domains: domains[id]}); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// getUser reads a user that must be there.
func getUser(t *testing.T, n Node, id string) *event.Object[user] {
	t.Helper()
	u, err := users.Read(context.Background(), n, id)
	if err != nil || u == nil {
		t.Fatalf("reading %s: %v, %v", id, u, err)
	}
	return u
}

func holder(t *testing.T, n Node, c event.Claim) string {
	t.Helper()
	id, err := n.Holder(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
