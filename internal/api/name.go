package api

import (
	"context"
	"slices"
	"strings"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Names implements NameService.
type Names struct {
	Store event.Reader
	Clock func() time.Time
}

var _ signetv1connect.NameServiceHandler = Names{}

// namedKind is a kind of objects that have names.
type namedKind struct {
	kind event.Definition
	read []access.Permission                        // any of which it takes to read one
	name func(*event.Record) (name string, _ error) // empty of one that is gone
}

// namedKinds are those, by the prefix of their identifiers.
var namedKinds = byPrefix(
	namedKind{user.Kind, readsUsers,
		nameOf(user.Kind, func(u *user.User) (string, bool) { return u.ShownName(), u.State == user.Removed })},
	namedKind{org.Kind, []access.Permission{access.OrgRead},
		nameOf(org.Kind, func(o *org.Org) (string, bool) { return o.Name, o.State == org.Removed })},
	namedKind{app.Kind, []access.Permission{access.AppRead, access.SignInRead, access.UserSupport}, // what sign-ins name
		nameOf(app.Kind, func(a *app.App) (string, bool) { return a.Name, a.State == app.Removed })},
	namedKind{project.Kind, []access.Permission{access.ProjectRead},
		nameOf(project.Kind, func(p *project.Project) (string, bool) { return p.Name, p.State == project.Removed })},
	namedKind{group.Kind, []access.Permission{access.GroupRead},
		nameOf(group.Kind, func(g *group.Group) (string, bool) { return g.Name, g.State == group.Removed })},
	namedKind{role.Kind, []access.Permission{access.MemberRead},
		nameOf(role.Kind, func(r *role.Role) (string, bool) { return r.Name, r.State == role.Removed })},
	namedKind{idp.Kind, []access.Permission{access.IDPRead, access.SignInRead, access.UserSupport},
		nameOf(idp.Kind, func(p *idp.Provider) (string, bool) { return p.General.Name, p.State == idp.Removed })},
	namedKind{webhook.Kind, []access.Permission{access.WebhookRead},
		nameOf(webhook.Kind, func(w *webhook.Webhook) (string, bool) { return w.Name, w.State == webhook.Removed })},
)

func byPrefix(all ...namedKind) map[string]namedKind {
	kinds := map[string]namedKind{}
	for _, k := range all {
		kinds[k.kind.Prefix()] = k
	}
	return kinds
}

func nameOf[S any](kind *event.Objects[S],
	name func(*S) (shown string, gone bool)) func(*event.Record) (string, error) {
	return func(r *event.Record) (string, error) {
		o, err := kind.Open(r)
		if err != nil {
			return "", err
		}
		shown, gone := name(&o.Data)
		if gone {
			return "", nil
		}
		return shown, nil
	}
}

// namedKindOf is the kind that an identifier is of by its prefix.
func namedKindOf(id string) (namedKind, bool) {
	prefix, _, _ := strings.Cut(id, "_")
	k, known := namedKinds[prefix]
	return k, known
}

// LookUpNames reads all objects at once, and then the organizations that decide about them. What the caller may not
// read is left out like what there is not.
func (s Names) LookUpNames(ctx context.Context, r *signetv1.LookUpNamesRequest) (*signetv1.LookUpNamesResponse, error) {
	caller := call.From(ctx).Caller
	var refs []event.Ref
	asked := map[string]bool{}
	for _, id := range r.GetIds() {
		if k, known := namedKindOf(id); known && !asked[id] {
			asked[id], refs = true, append(refs, event.Ref{Kind: k.kind.Name(), ID: id})
		}
	}
	records, err := s.Store.Records(ctx, refs)
	if err != nil {
		return nil, err
	}
	refs = slices.DeleteFunc(refs,
		func(ref event.Ref) bool { return records[ref] == nil || !mayReadName(caller, records[ref]) })
	admits, err := s.admits(ctx, caller, refs, records)
	if err != nil {
		return nil, err
	}
	out := &signetv1.LookUpNamesResponse{}
	for _, ref := range refs {
		record := records[ref]
		k, _ := namedKindOf(ref.ID)
		if !isOwn(caller, record.ID) && !admits(record.Org, k.read) {
			continue
		}
		name, err := k.name(record)
		if err != nil {
			return nil, err
		}
		if name != "" {
			out.Names = append(out.Names,
				&signetv1.LookUpNamesResponse_Name{Id: ref.ID, Kind: string(ref.Kind), Name: name, OrgId: record.Org})
		}
	}
	return out, nil
}

// isOwn tells whether it is the caller, or the caller's organization.
func isOwn(caller *access.Caller, id string) bool { return id == caller.UserID || id == caller.OrgID }

// mayReadName tells whether the caller holds what it takes to read an object, in the organization that owns it, or in
// the installation, which owns custom roles.
func mayReadName(caller *access.Caller, r *event.Record) bool {
	if r.Org == access.Installation {
		return caller.Memberships.Hold(access.SystemRead, access.Installation)
	}
	k, _ := namedKindOf(r.ID)
	return isOwn(caller, r.ID) ||
		slices.ContainsFunc(k.read, func(p access.Permission) bool { return caller.Memberships.Hold(p, r.Org) })
}

// admits judges organizations as a request to each of them would be: it must be there, and the sign-in of a guest must
// be enough for it.
func (s Names) admits(ctx context.Context, caller *access.Caller, of []event.Ref,
	records map[event.Ref]*event.Record) (func(id string, read []access.Permission) bool, error) {
	var ids []string
	for _, ref := range of {
		ids = append(ids, records[ref].Org)
	}
	owners, err := org.OwningAll(ctx, s.Store, caller, ids)
	if err != nil {
		return nil, err
	}
	now := s.Clock()
	return func(id string, read []access.Permission) bool {
		if id == access.Installation { // mayReadName has judged it
			return true
		}
		o := owners[id]
		return o != nil && slices.ContainsFunc(read, func(p access.Permission) bool {
			return caller.Memberships.Hold(p, id) && org.Admits(o, caller, p, now) == nil
		})
	}, nil
}
