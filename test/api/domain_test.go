package api_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// fakeDNS has the TXT records that a test gives it, and none else.
type fakeDNS struct {
	mu    sync.Mutex
	texts map[string][]string
}

// set gives a name, without the dot at its end, its records; the text "broken" makes looking it up fail.
func (d *fakeDNS) set(name string, texts ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts == nil {
		d.texts = map[string][]string{}
	}
	d.texts[name+"."] = texts
}

func (d *fakeDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts := d.texts[name]
	if len(texts) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if texts[0] == "broken" {
		return nil, errors.New("a server misbehaves: what-dns-said")
	}
	return texts, nil
}

var (
	noDomain      = refused(codes.NotFound, "DOMAIN_NOT_FOUND")
	notProven     = refused(codes.FailedPrecondition, "DOMAIN_NOT_PROVEN")
	notVerified   = refused(codes.FailedPrecondition, "DOMAIN_NOT_VERIFIED")
	isPrimary     = refused(codes.FailedPrecondition, "DOMAIN_IS_PRIMARY")
	hasDomain     = refused(codes.AlreadyExists, "DOMAIN_EXISTS")
	releaseDenied = refused(codes.PermissionDenied, "DOMAIN_RELEASE_DENIED")
	dnsAway       = refused(codes.Unavailable, "DNS_UNAVAILABLE")
)

func addDomain(org, domain string) *signetv1.AddDomainRequest {
	return &signetv1.AddDomainRequest{OrgId: org, Domain: domain}
}

func verifyDomain(org, domain string) *signetv1.VerifyDomainRequest {
	return &signetv1.VerifyDomainRequest{OrgId: org, Domain: domain}
}

func setPrimary(org, domain string) *signetv1.SetPrimaryDomainRequest {
	return &signetv1.SetPrimaryDomainRequest{OrgId: org, Domain: domain}
}

func route(org, domain string, routed bool) *signetv1.SetDomainRoutingRequest {
	return &signetv1.SetDomainRoutingRequest{OrgId: org, Domain: domain, IsRouted: routed}
}

func removeDomain(org, domain string) *signetv1.RemoveDomainRequest {
	return &signetv1.RemoveDomainRequest{OrgId: org, Domain: domain}
}

func (c *Client) domains(t *testing.T, as *Actor, org string) *signetv1.ListDomainsResponse {
	t.Helper()
	return done[*signetv1.ListDomainsResponse](t, c, as, &signetv1.ListDomainsRequest{OrgId: org})
}

// orgDomainStory follows a domain from its addition to its removal, and on to another organization.
func orgDomainStory(t *testing.T, c *Client) {
	w := c.w
	a, b := w.newScene(t), w.elsewhere(t)
	domain := unique("login") + ".example"
	before := c.domains(t, a.owner, a.org)
	same(t, "domains at first", len(before.GetDomains()), 1)
	first := before.GetDomains()[0]
	sameMessage(t, "the first", first, &signetv1.Domain{Domain: a.domain, IsVerified: true, IsPrimary: true,
		VerificationName: "_signet-challenge." + a.domain, VerificationValue: first.GetVerificationValue()})
	sameMessage(t, "details", before.GetDetails(), c.org(t, a.owner, a.org).GetDetails())

	added := done[*signetv1.AddDomainResponse](t, c, a.owner, addDomain(a.org, strings.ToUpper(domain)))
	d := added.GetDomain()
	same(t, "form", d.GetDomain(), domain)
	same(t, "name of the record", d.GetVerificationName(), "_signet-challenge."+domain)
	same(t, "text of the record", strings.HasPrefix(d.GetVerificationValue(), "signet-domain-verification="), true)
	same(t, "verified or primary", d.GetIsVerified() || d.GetIsPrimary(), false)
	same(t, "sequence", added.GetDetails().GetSequence(), before.GetDetails().GetSequence()+1)
	sameMessage(t, "as listed", c.domains(t, a.owner, a.org).GetDomains()[1], d)
	c.refused(t, hasDomain, a.owner, addDomain(a.org, domain))
	other := done[*signetv1.AddDomainResponse](t, c, b.owner, addDomain(b.org, domain)).GetDomain()
	if other.GetVerificationValue() == d.GetVerificationValue() {
		t.Error("two organizations are to create the same record")
	}

	// Without the record it is nothing yet: no login name, no primary domain.
	at := &Actor{UserID: a.user.UserID, LoginName: strings.Split(a.user.LoginName, "@")[0] + "@" + domain,
		Password: a.user.Password}
	refusal := c.refused(t, notProven, a.owner, verifyDomain(a.org, domain))
	if message := refusal.status.GetMessage(); !strings.Contains(message, d.GetVerificationName()) ||
		!strings.Contains(message, d.GetVerificationValue()) {
		t.Errorf("the refusal does not name the record: %s", message)
	}
	c.refused(t, notVerified, a.owner, setPrimary(a.org, domain))
	c.refused(t, signInFailed, nil, signIn(at.LoginName, at.Password))
	w.dns.set(d.GetVerificationName(), other.GetVerificationValue(), "what-dns-said")
	if refusal := c.refused(t, notProven, a.owner, verifyDomain(a.org, domain)); strings.Contains(refusal.summary(),
		"what-dns-said") {
		t.Errorf("it repeats what DNS said: %s", refusal.summary())
	}
	w.dns.set(d.GetVerificationName(), "broken")
	if refusal := c.refused(t, dnsAway, a.owner, verifyDomain(a.org, domain)); strings.Contains(refusal.summary(),
		"what-dns-said") {
		t.Errorf("it repeats what DNS said: %s", refusal.summary())
	}
	same(t, "nothing was written", c.domains(t, a.owner, a.org).GetDetails().GetSequence(),
		added.GetDetails().GetSequence())

	// With it, login names follow at once.
	w.dns.set(d.GetVerificationName(), "v=spf1 -all", d.GetVerificationValue(), other.GetVerificationValue())
	c.refused(t, sequenceMismatch, a.owner, verifyDomain(a.org, domain), stale)
	verified := done[*signetv1.VerifyDomainResponse](t, c, a.owner, verifyDomain(a.org, domain))
	same(t, "sequence", verified.GetDetails().GetSequence(), added.GetDetails().GetSequence()+1)
	sameMessage(t, "as listed", c.domains(t, a.owner, a.org).GetDomains()[1],
		&signetv1.Domain{Domain: domain, IsVerified: true, IsProven: true, IsRouted: true})
	same(t, "login names", strings.Join(c.user(t, a.owner, a.user.UserID).GetLoginNames(), " "),
		a.user.LoginName+" "+at.LoginName)
	c.session(t, at)
	c.refused(t, domainTaken, b.owner, verifyDomain(b.org, domain))
	found := done[*signetv1.ListOrganizationsResponse](t, c, w.root,
		&signetv1.ListOrganizationsRequest{Domain: domain}).GetOrgs()
	same(t, "whose it is", len(found) == 1 && found[0].GetOrgId() == a.org, true)

	// The primary domain comes first, and stays.
	done[*signetv1.SetPrimaryDomainResponse](t, c, a.owner, setPrimary(a.org, domain))
	same(t, "primary domain", c.org(t, a.owner, a.org).GetPrimaryDomain(), domain)
	same(t, "login names", strings.Join(c.me(t, a.user).GetLoginNames(), " "), at.LoginName+" "+a.user.LoginName)
	c.refused(t, isPrimary, a.owner, removeDomain(a.org, domain))
	done[*signetv1.SetPrimaryDomainResponse](t, c, a.owner, setPrimary(a.org, a.domain))

	// Removed, it is worth nothing here and free for others.
	c.refused(t, sequenceMismatch, a.owner, removeDomain(a.org, domain), stale)
	done[*signetv1.RemoveDomainResponse](t, c, a.owner, removeDomain(a.org, strings.ToUpper(domain)))
	c.refused(t, signInFailed, nil, signIn(at.LoginName, at.Password))
	same(t, "login names", strings.Join(c.me(t, a.user).GetLoginNames(), " "), a.user.LoginName)
	c.refused(t, noDomain, a.owner, verifyDomain(a.org, domain))
	c.refused(t, noDomain, a.owner, removeDomain(a.org, domain))
	done[*signetv1.VerifyDomainResponse](t, c, b.owner, verifyDomain(b.org, domain))
	there := &Actor{UserID: b.user.UserID, LoginName: strings.Split(b.user.LoginName, "@")[0] + "@" + domain,
		Password: b.user.Password}
	c.session(t, there)
	done[*signetv1.RemoveDomainResponse](t, c, b.owner, removeDomain(b.org, domain))
	if again := done[*signetv1.AddDomainResponse](t, c, a.owner,
		addDomain(a.org, domain)).GetDomain(); again.GetVerificationValue() == d.GetVerificationValue() {
		t.Error("an old record would prove it again")
	}

	// Who may change the domains of every organization can vouch for one.
	vouched := unique("vouched") + ".example"
	manager := w.addUser(t, person{Org: a.org, Domain: a.domain,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOrgManager}}})
	settings := w.addUser(t, person{Org: a.org, Domain: a.domain, Roles: []access.Role{access.OrgSettingsManager}})
	for _, who := range []*Actor{a.owner, settings} {
		c.refused(t, permissionDenied, who, with(addDomain(a.org, vouched), "isVerified", true))
	}
	mine := done[*signetv1.AddDomainResponse](t, c, manager,
		with(addDomain(a.org, vouched), "isVerified", true)).GetDomain()
	sameMessage(t, "vouched for", mine,
		&signetv1.Domain{Domain: vouched, IsVerified: true, VerificationName: mine.GetVerificationName(),
			VerificationValue: mine.GetVerificationValue()})
	// Whether it leads people to the provider is for an owner of the installation to say, who has just proven it.
	for _, who := range []*Actor{a.owner, settings, manager} {
		c.refused(t, permissionDenied, c.session(t, who), route(a.org, vouched, true))
	}
	boss := w.addUser(t, person{Org: a.org, Domain: a.domain,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwner}}})
	for _, who := range []*Actor{boss, w.root} {
		c.refused(t, sessionRequired, who, route(a.org, vouched, true))
	}
	boss = c.session(t, boss)
	c.refused(t, sequenceMismatch, boss, route(a.org, vouched, true), stale)
	routed := func(domain string) *signetv1.Domain {
		t.Helper()
		for _, d := range c.domains(t, a.owner, a.org).GetDomains() {
			if d.GetDomain() == domain {
				return d
			}
		}
		t.Fatalf("%s is not listed", domain)
		return nil
	}
	for _, says := range []bool{true, false, true} {
		done[*signetv1.SetDomainRoutingResponse](t, c, boss, route(a.org, strings.ToUpper(vouched), says))
		d := routed(vouched)
		by := ""
		if says {
			by = boss.UserID
		}
		same(t, "routed", d.GetIsRouted(), says)
		same(t, "by whom", d.GetRoutedBy(), by)
		same(t, "when is known", d.GetRoutedAt() != nil, says)
		same(t, "proven", d.GetIsProven(), false)
	}
	unverified := done[*signetv1.AddDomainResponse](t, c, a.owner,
		addDomain(a.org, unique("free")+".example")).GetDomain()
	c.refused(t, notVerified, boss, route(a.org, unverified.GetDomain(), true))
	c.refused(t, noDomain, boss, route(a.org, "other."+vouched, true))
	done[*signetv1.RemoveDomainResponse](t, c, a.owner, removeDomain(a.org, unverified.GetDomain()))
	c.refused(t, notProven, a.owner, verifyDomain(a.org, vouched))
	w.dns.set(mine.GetVerificationName(), mine.GetVerificationValue())
	done[*signetv1.VerifyDomainResponse](t, c, a.owner, verifyDomain(a.org, vouched))
	for _, d := range c.domains(t, a.owner, a.org).GetDomains() {
		same(t, d.GetDomain()+" is proven", d.GetIsProven(), d.GetDomain() == vouched)
	}
	c.refused(t, domainTaken, w.root, with(addDomain(b.org, vouched), "isVerified", true))
	c.refused(t, domainTaken, w.root, with(setup("taken"), "org.domain", vouched))

	// But not take it away again once it is the organization's: login names would lead elsewhere.
	if refusal := c.refused(t, releaseDenied, manager,
		removeDomain(a.org, vouched)); !strings.Contains(refusal.status.GetMessage(), " people would stop working") {
		t.Errorf("the refusal does not say how many lose their login names: %s", refusal.status.GetMessage())
	}
	c.refused(t, permissionDenied, b.owner, removeDomain(a.org, vouched))
	gone := done[*signetv1.RemoveDomainResponse](t, c, settings, removeDomain(a.org, vouched))
	same(t, "people are counted, and not named to who may not read them",
		gone.GetAffectedUsers() > 1 && len(gone.GetLoginNames()) == 0, true)
	done[*signetv1.AddDomainResponse](t, c, manager, with(addDomain(a.org, vouched), "isVerified", true))
	named := done[*signetv1.RemoveDomainResponse](t, c, w.root, removeDomain(a.org, vouched))
	same(t, "people are counted", named.GetAffectedUsers(), gone.GetAffectedUsers())
	same(t, "their login names",
		slices.Contains(named.GetLoginNames(), strings.Split(a.user.LoginName, "@")[0]+"@"+vouched), true)
	waiting := done[*signetv1.AddDomainResponse](t, c, a.owner, addDomain(a.org, vouched)).GetDomain().GetDomain()
	same(t, "nobody signs in with one that is not verified",
		done[*signetv1.RemoveDomainResponse](t, c, manager, removeDomain(a.org, waiting)).GetAffectedUsers(), 0)
}

// oddDomainStory: what a domain is shown as leads back to it, however long and odd.
func oddDomainStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	for _, domain := range []string{strings.Repeat("ü", 185) + unique("y"), "ß." + unique("x"),
		"..-_%" + unique("%2F?#"),
		"🙂" + unique("x"), unique("a\"b'c\\"), "x." + strings.Repeat("y", 183) + unique("y")} {
		d := done[*signetv1.AddDomainResponse](t, c, s.owner, addDomain(s.org, domain)).GetDomain()
		for _, spelling := range []string{domain, d.GetDomain()} {
			c.refused(t, notVerified, s.owner, setPrimary(s.org, spelling))
			c.refused(t, notProven, s.owner, verifyDomain(s.org, spelling))
		}
		done[*signetv1.RemoveDomainResponse](t, c, s.owner, removeDomain(s.org, d.GetDomain()))
		d = done[*signetv1.AddDomainResponse](t, c, c.w.root,
			with(addDomain(s.org, domain), "isVerified", true)).GetDomain()
		found := done[*signetv1.ListOrganizationsResponse](t, c, c.w.root,
			&signetv1.ListOrganizationsRequest{Domain: d.GetDomain()}).GetOrgs()
		same(t, "found by "+d.GetDomain(), len(found) == 1 && found[0].GetOrgId() == s.org, true)
		done[*signetv1.RemoveDomainResponse](t, c, s.owner, removeDomain(s.org, domain))
	}
}

// refusedDomainCases: what is no domain cannot be added, and is a domain that the organization does not have.
func refusedDomainCases(t *testing.T, w *World) (cases []Case) {
	s, other := w.scene(t), w.elsewhere(t)
	for name, domain := range map[string]string{
		"an address":                "a@b.example",
		"a URL":                     "https://a.example",
		"a port":                    "a.example:80",
		"a space":                   "a b.example",
		"a control character":       "a\x7f.example",
		"a wide at sign":            "a\uff20b.example",
		"nothing but a soft hyphen": "\u00ad",
	} {
		cases = append(cases,
			Case{Name: name + " added", As: s.owner, Req: addDomain(s.org, domain), Want: invalid("domain")},
			Case{Name: name + " verified", As: s.owner, Req: verifyDomain(s.org, domain), Want: noDomain},
			Case{Name: name + " removed", As: s.owner, Req: removeDomain(s.org, domain), Want: noDomain},
			Case{Name: name + " made primary", As: s.owner, Req: setPrimary(s.org, domain), Want: noDomain},
			Case{
				Name: name + " looked for",
				As:   w.root,
				Req:  &signetv1.ListOrganizationsRequest{Domain: domain},
				Want: ok,
				Check: func(t *testing.T, a *Answer) {
					same(t, "organizations found", len(a.message.(*signetv1.ListOrganizationsResponse).GetOrgs()), 0)
				},
			})
	}
	return append(cases,
		Case{Name: "an empty one", As: s.owner, Req: addDomain(s.org, ""), Want: invalid("domain")},
		Case{Name: "one of 201 characters", As: s.owner, Req: addDomain(s.org, strings.Repeat("x", 201)),
			Want: invalid("domain")},
		Case{Name: "another organization's", As: s.owner, Req: removeDomain(s.org, other.domain), Want: noDomain},
		Case{Name: "in another organization", As: s.owner, Req: removeDomain(other.org, other.domain),
			Want: permissionDenied},
		Case{Name: "the primary one", As: s.owner, Req: removeDomain(s.org, s.domain), Want: isPrimary},
		Case{Name: "by a plain user", As: s.user, Req: addDomain(s.org, "x.example"), Want: permissionDenied})
}

// domainRace: of many who prove a domain at the same time, one gets it.
func domainRace(t *testing.T, w *World) {
	c := &Client{w, w.rest}
	domain := unique("race") + ".example"
	scenes := []*scene{w.scene(t), w.elsewhere(t), w.newScene(t)}
	var texts []string
	for _, s := range scenes {
		texts = append(texts, done[*signetv1.AddDomainResponse](t, c, s.owner,
			addDomain(s.org, domain)).GetDomain().GetVerificationValue())
	}
	w.dns.set("_signet-challenge."+domain, texts...)
	answers := make([]*Answer, len(scenes))
	var racing sync.WaitGroup
	for i, s := range scenes {
		racing.Go(func() { answers[i] = w.send(t, w.wires[i], s.owner, verifyDomain(s.org, domain), nil) })
	}
	racing.Wait()
	won := 0
	for i, a := range answers {
		if a.status == nil {
			won++
			found := done[*signetv1.ListOrganizationsResponse](t, c, w.root,
				&signetv1.ListOrganizationsRequest{Domain: domain}).GetOrgs()
			same(t, "whose it is", len(found) == 1 && found[0].GetOrgId() == scenes[i].org, true)
		} else {
			a.mustBe(t, domainTaken)
		}
		done[*signetv1.RemoveDomainResponse](t, c, scenes[i].owner, removeDomain(scenes[i].org, domain))
	}
	same(t, "organizations that got it", won, 1)
}

// mostDomains: a hundred, and no more.
func mostDomains(t *testing.T, w *World) {
	c, s := &Client{w, w.rest}, w.newScene(t)
	for range 99 {
		done[*signetv1.AddDomainResponse](t, c, s.owner, addDomain(s.org, unique("many")+".example"))
	}
	c.refused(t, refused(codes.FailedPrecondition, "TOO_MANY_DOMAINS"), s.owner,
		addDomain(s.org, unique("more")+".example"))
	all := c.domains(t, s.owner, s.org).GetDomains()
	same(t, "domains", len(all), 100)
	done[*signetv1.RemoveDomainResponse](t, c, s.owner, removeDomain(s.org, all[99].GetDomain()))
	done[*signetv1.AddDomainResponse](t, c, s.owner, addDomain(s.org, unique("more")+".example"))
}
