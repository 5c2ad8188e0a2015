package project

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Client is what decides about an application: whose it is, its project, and whom it is for.
type Client struct {
	Org string // that it belongs to
	app.RoleSettings
	Open   bool // for people of all organizations
	Mapped app.Mapped
}

// ClientOf is that of an application.
func ClientOf(a *event.Object[app.App]) Client {
	return Client{Org: a.Org, RoleSettings: a.Data.RoleSettings, Open: a.Data.AllOrganizations, Mapped: a.Data.Maps()}
}

// told tells whether the application is told roles, and whether groups.
func (c Client) told() (roles, groups bool) {
	return c.Roles || c.Mapped.Roles, c.Groups || c.Mapped.Groups
}

// Person is what decides about somebody who uses an application.
type Person struct {
	Org         string // home
	Memberships access.Memberships
	Groups      map[string][]user.InGroup
	AppRoles    []user.AppRoles
	Metadata    map[string]string
}

// PersonOf is that of a user.
func PersonOf(u *event.Object[user.User]) Person {
	return Person{Org: u.Org, Memberships: u.Data.Memberships, Groups: u.Data.Groups, AppRoles: u.Data.AppRoles,
		Metadata: u.Data.Metadata}
}

// in tells whether somebody is of an organization, or a guest there.
func (w Person) in(org string) bool {
	_, guest := w.Memberships[org]
	return org == w.Org || guest && org != access.Installation
}

// has tells whether somebody could have roles of a project in an organization.
func (w Person) has(project, org string) bool {
	return len(w.Groups[org]) > 0 ||
		slices.ContainsFunc(w.AppRoles, func(r user.AppRoles) bool { return r.Project == project && r.Org == org })
}

// maxElsewhere bounds the organizations in which it is looked whether somebody may use an application as a mere guest.
// Anybody who owns an organization can make somebody a guest there.
const maxElsewhere = 100

// Places are where somebody may have roles of an application's project: the project itself for its own organization,
// and the accesses of other organizations. Look finds them; in a command that declared Reads, JudgeIn reads them again.
type Places struct {
	reader  event.Reader
	client  Client
	decides bool
	bound   string // the only organization that counts; empty: all
	project *event.Object[Project]
	access  map[string]string // ids, by organization
	found   map[string]*event.Object[Access]
	orgs    map[string]*event.Object[org.Org] // of which somebody is a guest
}

// opens tells whether it takes the project for somebody to use the application, or to sign in in the organization that
// the sign-in is bound to.
func (c Client) opens(w Person, bound string) bool {
	return c.Project != "" && (w.Org != c.Org && !c.Open || bound != "" && bound != w.Org)
}

// Decides tells whether more than the application and the home of somebody decides about whether they may use it.
func (c Client) Decides(w Person, bound string) bool { return c.opens(w, bound) || c.Required }

// elsewhere lists the organizations besides the application's own whose access matters, home first.
func (c Client) elsewhere(w Person, bound string) []string {
	roles, groups := c.told()
	opens, told := c.opens(w, bound), roles || groups || c.Required
	if c.Project == "" || !opens && !told {
		return nil
	}
	weight := func(org string) int {
		switch {
		case org == w.Org:
			return 0
		case w.has(c.Project, org):
			return 1
		}
		return 2
	}
	orgs := append(slices.Collect(maps.Keys(w.Memberships)), w.Org)
	orgs = slices.DeleteFunc(orgs, func(org string) bool {
		return org == c.Org || !w.in(org) || bound != "" && org != bound || !opens && !w.has(c.Project, org)
	})
	slices.SortFunc(orgs, func(a, b string) int { return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a, b)) })
	orgs = slices.Compact(orgs)
	mere := slices.IndexFunc(orgs, func(org string) bool { return weight(org) == 2 })
	if mere < 0 {
		return orgs
	}
	return orgs[:min(len(orgs), mere+maxElsewhere)]
}

// Look reads the places of somebody. It reads nothing where no place decides or is told about; else the project, and
// for each other organization that matters who holds the claim of the access, the access, and the organization if it is
// not their home.
func Look(ctx context.Context, r event.Reader, c Client, w Person, bound string) (*Places, error) {
	p := &Places{reader: r, client: c, decides: c.Decides(w, bound), bound: bound, access: map[string]string{},
		found: map[string]*event.Object[Access]{}, orgs: map[string]*event.Object[org.Org]{}}
	if roles, groups := c.told(); c.Project == "" || !roles && !groups && !p.decides {
		return p, nil
	}
	var mu sync.Mutex
	keep := func(store func()) {
		mu.Lock()
		defer mu.Unlock()
		store()
	}
	reads := []func() error{func() error {
		found, err := Kind.Read(ctx, r, c.Project)
		keep(func() { p.project = found })
		return err
	}}
	for _, id := range c.elsewhere(w, bound) {
		reads = append(reads, func() error {
			holder, err := r.Holder(ctx, AccessClaim(c.Project, id))
			if err != nil || holder == "" {
				return err
			}
			found, err := AccessKind.Read(ctx, r, holder)
			keep(func() { p.access[id], p.found[id] = holder, found })
			return err
		})
		if id != w.Org {
			reads = append(reads, func() error {
				found, err := org.Kind.Read(ctx, r, id)
				keep(func() { p.orgs[id] = found })
				return err
			})
		}
	}
	return p, atOnce(reads)
}

// atOnce reads together: what waits at the same moment is one round trip.
func atOnce(reads []func() error) error {
	if len(reads) == 1 {
		return reads[0]()
	}
	var all errgroup.Group
	for _, read := range reads {
		all.Go(read)
	}
	return all.Wait()
}

// Reads are the objects that a command has to declare; none where they decide nothing.
func (p *Places) Reads() []event.Ref {
	if !p.decides {
		return nil
	}
	var refs []event.Ref
	if p.project != nil {
		refs = append(refs, Kind.Ref(p.project.ID))
	}
	for _, id := range p.access {
		refs = append(refs, AccessKind.Ref(id))
	}
	for id := range p.orgs {
		refs = append(refs, org.Kind.Ref(id))
	}
	return refs
}

// JudgeIn is Judge inside a command, of the application and the person as they are there. Places that came to be since
// do not count. Where something else decides than when they were looked for, it looks again: the command must be run by
// event.Do.
func (p *Places) JudgeIn(tx *event.Tx, c Client, w Person, only string) (Verdict, string, error) {
	now := &Places{client: c, bound: p.bound, access: p.access, found: map[string]*event.Object[Access]{},
		orgs: map[string]*event.Object[org.Org]{}}
	if !c.Decides(w, p.bound) {
		v, place := now.Judge(w, only)
		return v, place, nil
	}
	if !p.decides || c.Project != p.client.Project {
		return NotForThem, "", event.Look(func(ctx context.Context) (event.Command, error) {
			again, err := Look(ctx, p.reader, c, w, p.bound)
			if err != nil {
				return event.Command{}, err
			}
			*p = *again
			return event.Command{Read: p.Reads()}, nil
		})
	}
	if err := now.get(tx, p); err != nil {
		return NotForThem, "", err
	}
	v, place := now.Judge(w, only)
	return v, place, nil
}

// get reads what was found before, as the command sees it.
func (p *Places) get(tx *event.Tx, before *Places) (err error) {
	if before.project != nil {
		if p.project, err = Kind.Get(tx, before.project.ID); err != nil {
			return err
		}
	}
	for id, access := range before.access {
		if p.found[id], err = AccessKind.Get(tx, access); err != nil {
			return err
		}
	}
	for id := range before.orgs {
		if p.orgs[id], err = org.Kind.Get(tx, id); err != nil {
			return err
		}
	}
	return nil
}

// counts tells whether there is a project.
func (p *Places) counts() bool {
	return counts(p.project, nil, p.client.Org)
}

// in gives the access of an organization; nil where there is none that counts.
func (p *Places) in(id string, w Person) *event.Object[Access] {
	a := p.found[id]
	if a == nil || !p.counts() || !counts(p.project, a, id) {
		return nil
	}
	if o := p.orgs[id]; id != w.Org && (o == nil || o.Data.State != org.Active) {
		return nil
	}
	return a
}

// place is what lets somebody use the application by being in an organization, at home or as a guest; empty where
// nothing does.
func (p *Places) place(id string, w Person) string {
	if !w.in(id) || p.bound != "" && p.bound != id || !p.counts() {
		return ""
	}
	if id == p.client.Org {
		return p.project.ID
	}
	if a := p.in(id, w); a != nil {
		return a.ID
	}
	return ""
}

// admittingPlace finds the place that lets somebody in: that of home first.
func (p *Places) admittingPlace(w Person, only string) string {
	orgs := append(slices.Sorted(maps.Keys(p.access)), p.client.Org)
	for _, id := range append([]string{w.Org}, orgs...) {
		if place := p.place(id, w); place != "" && (only == "" || only == place) {
			return place
		}
	}
	return ""
}

// Verdict is whether somebody may use an application.
type Verdict int

// The verdicts. The zero value lets nobody in.
const (
	NotForThem Verdict = iota // it is not for people of their organizations
	OtherOrg                  // the sign-in is bound to an organization in which they are not
	NoRole                    // it is for people with a role only
	Admitted
)

// Judge tells whether somebody may use the application. These people may: people of its own organization; everybody
// where it is open; people who are at home or guests in an organization that has an access to its project; and, where
// it has a project, guests of its own organization. place is what that rests on; empty: on nothing that ends with a
// grant. only restricts it to the grant that a token was issued under: an access that was withdrawn and granted again
// is another one.
func (p *Places) Judge(w Person, only string) (v Verdict, place string) {
	if p.bound != "" && p.bound != w.Org {
		if place = p.place(p.bound, w); place == "" || only != "" && only != place {
			return OtherOrg, ""
		}
	} else if w.Org != p.client.Org && !p.client.Open {
		if place = p.admittingPlace(w, only); place == "" {
			return NotForThem, ""
		}
	}
	if p.client.Required && len(p.Roles(w)) == 0 {
		return NoRole, ""
	}
	return Admitted, place
}

// Roles are the keys of the roles that somebody has, sorted, by the organization that they were given in.
func (p *Places) Roles(w Person) map[string][]string {
	all := map[string][]string{}
	if !p.counts() {
		return all
	}
	collect := func(id string, a *event.Object[Access], place string, groups []GroupRoles) {
		var keys []string
		add := func(roles []user.AppRole) {
			for _, r := range roles {
				if isDeclared(p.project, a, r) {
					keys = append(keys, r.Key)
				}
			}
		}
		for _, r := range w.AppRoles {
			if r.Place == place && r.Org == id {
				add(r.Roles)
			}
		}
		if len(groups) > 0 && len(w.Groups[id]) > 0 {
			in := map[string]bool{}
			for _, g := range w.Groups[id] {
				in[g.ID] = true
			}
			for _, g := range groups {
				if in[g.Group] {
					add(g.Roles)
				}
			}
		}
		if len(keys) > 0 {
			slices.Sort(keys)
			all[id] = slices.Compact(keys)
		}
	}
	if p.place(p.client.Org, w) != "" {
		collect(p.client.Org, nil, p.project.ID, p.project.Data.GroupRoles)
	}
	for id := range p.found {
		if p.place(id, w) == "" {
			continue
		}
		a := p.in(id, w)
		collect(id, a, a.ID, a.Data.GroupRoles)
	}
	return all
}

// Group is a group that somebody is in.
type Group struct{ ID, Name string }

// Groups are the groups that somebody is in, by their organization: the application's own, and those that have an
// access to its project. They are in the order of their identifiers.
func (p *Places) Groups(ctx context.Context, r event.Reader, w Person) (map[string][]Group, error) {
	var reads []func() error
	var mu sync.Mutex
	all := map[string][]Group{}
	for id, in := range w.Groups {
		if own := id == p.client.Org && p.atHome(w); !own && p.place(id, w) == "" {
			continue
		}
		for _, g := range in {
			reads = append(reads, func() error {
				found, err := group.Kind.Read(ctx, r, g.ID)
				if err != nil || found == nil || found.Data.State != group.Active || found.Org != id {
					return err // those that were removed stay with the user
				}
				mu.Lock()
				defer mu.Unlock()
				all[id] = append(all[id], Group{g.ID, found.Data.Name})
				return nil
			})
		}
	}
	if len(reads) > 0 {
		if err := atOnce(reads); err != nil {
			return nil, err
		}
	}
	for _, in := range all {
		slices.SortFunc(in, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	}
	return all, nil
}

// atHome tells whether somebody is in the application's own organization, or a guest there, as far as the sign-in goes.
func (p *Places) atHome(w Person) bool {
	return w.in(p.client.Org) && (p.bound == "" || p.bound == p.client.Org)
}

// Held is what an application is told about somebody, by organization; nil: it is not told.
type Held struct {
	Roles  map[string][]string // their keys
	Groups map[string][]string // their identifiers

	Metadata map[string]string // not by organization: it is that of home

	Mapped ForMapping
}

// ForMapping is what the claims that an application declares are made of.
type ForMapping struct {
	Org    string // that the application belongs to
	AtHome bool   // they are of that organization, or guests there
	Own    bool   // they are of that organization

	Roles  map[string][]string // by organization; nil: it is not told
	Groups map[string][]Group
}

// Held is what the application is told, at most what it was when the places were looked for.
func (p *Places) Held(ctx context.Context, r event.Reader, c Client, w Person) (Held, error) {
	var h Held
	// What their own organization keeps about people is no business of others, nor of a sign-in in another one.
	own := w.Org == c.Org && (p.bound == "" || p.bound == w.Org)
	if own {
		h.Metadata = metadata.Picked(w.Metadata, c.Metadata)
	}
	if c.Mapped.Any {
		h.Mapped = ForMapping{Org: c.Org, AtHome: p.atHome(w), Own: own}
	}
	hadRoles, hadGroups := p.client.told()
	roles, groups := c.told()
	if hadRoles && roles {
		all := p.Roles(w)
		if p.client.Roles && c.Roles {
			h.Roles = all
		}
		if p.client.Mapped.Roles && c.Mapped.Roles {
			h.Mapped.Roles = all
		}
	}
	if hadGroups && groups {
		all, err := p.Groups(ctx, r, w)
		if err != nil {
			return h, err
		}
		if p.client.Groups && c.Groups {
			h.Groups = ids(all)
		}
		if p.client.Mapped.Groups && c.Mapped.Groups {
			h.Mapped.Groups = all
		}
	}
	return h, nil
}

func ids(groups map[string][]Group) map[string][]string {
	all := map[string][]string{}
	for id, in := range groups {
		for _, g := range in {
			all[id] = append(all[id], g.ID)
		}
	}
	return all
}
