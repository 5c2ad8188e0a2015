package main

import (
	"context"
	"errors"
	"fmt"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// How large the two groups are that members are added to, and how many callers can do that at the same time.
const (
	smallGroup = 10
	largeGroup = 100_000
	joining    = 256
)

// crowd is how somebody is in groups.
type crowd struct {
	name  string // in the names of operations
	count int
	roles []access.Role // that each group gives
}

// The crowds: the first is what the others are compared with.
var crowds = []crowd{{"0 groups", 0, nil}, {"200 groups", 200, nil},
	{"20 that give roles", 20, []access.Role{access.OrgUserManager, access.OrgSettingsManager}}}

// grouped are the operations whose cost must not depend on the groups of the caller: a read of the own user, the
// introspection of an own access token, and little more than the check of the own credential.
var grouped = []struct {
	name string
	call func(p *person) call
}{
	{"GetMyUser", func(p *person) call { return call{token: p.token, verb: "GET", path: "/v1/users/me"} }},
	{"Introspect", (*person).introspect},
	{"Credential", func(p *person) call { return call{token: p.token, verb: "GET", path: "/v1/orgs/me"} }},
}

// inCrowd is the name of one of them, called by somebody of a crowd.
func inCrowd(op string, c crowd) string { return op + " in " + c.name }

const (
	addToSmall   = "AddGroupMember 10"
	addToLarge   = "AddGroupMember 100k"
	setTeamRoles = "SetGroupRoles 10"
)

// groupOperations are measured for callers in groups, and for members who join and leave them.
func groupOperations() (all []*operation) {
	for _, op := range grouped {
		for i, c := range crowds {
			all = append(all, &operation{name: inCrowd(op.name, c),
				call: func(w *world, _ int) call { return op.call(&w.crowd[i]) }, httpOnly: true, ends: true})
		}
	}
	return append(all,
		&operation{name: setTeamRoles, floor: writeFloor,
			steps:    func(w *world, i int) func(*restConn) error { return w.people[i].changeRoles() },
			httpOnly: true, ends: true},
		&operation{name: addToSmall,
			steps:    func(w *world, i int) func(*restConn) error { return w.joinAndLeave(w.small, i) },
			httpOnly: true, ends: true},
		&operation{name: addToLarge,
			steps:    func(w *world, i int) func(*restConn) error { return w.joinAndLeave(w.large, i) },
			httpOnly: true, ends: true})
}

// joinAndLeave adds the i-th of those who are in no group to one, and takes it out again.
func (w *world) joinAndLeave(group string, i int) func(*restConn) error {
	path := "/v1/groups/" + group + "/members/" + w.joiners[i]
	return func(conn *restConn) error {
		if err := conn.ask(call{token: w.many.token, verb: "PUT", path: path,
			message: &signetv1.AddGroupMemberRequest{}}, &signetv1.AddGroupMemberResponse{}); err != nil {
			return err
		}
		return conn.ask(call{token: w.many.token, verb: "DELETE", path: path,
			message: &signetv1.RemoveGroupMemberRequest{}}, &signetv1.RemoveGroupMemberResponse{})
	}
}

// enterTeam adds a group with ten members to the person's organization.
func (p *person) enterTeam(conn *restConn) error {
	var made signetv1.AddGroupResponse
	if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/groups",
		message: &signetv1.AddGroupRequest{Name: "Team"}}, &made); err != nil {
		return err
	}
	p.team = made.GetGroupId()
	for i := range smallGroup {
		var added signetv1.AddServiceUserResponse
		if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/users/service",
			message: &signetv1.AddServiceUserRequest{UserName: fmt.Sprint("member", i), Name: "Member"}},
			&added); err != nil {
			return err
		}
		if err := conn.ask(call{token: p.token, verb: "PUT",
			path: "/v1/groups/" + p.team + "/members/" + added.GetUserId(), message: &signetv1.AddGroupMemberRequest{}},
			&signetv1.AddGroupMemberResponse{}); err != nil {
			return err
		}
	}
	return nil
}

// changeRoles gives the ten members of the person's group another role each time: eleven events.
func (p *person) changeRoles() func(*restConn) error {
	n := 0
	return func(conn *restConn) error {
		n++
		role := []string{"ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER"}[n%2]
		return conn.ask(call{token: p.token, verb: "PUT", path: "/v1/groups/" + p.team + "/roles",
			message: &signetv1.SetGroupRolesRequest{GroupId: p.team, Roles: []string{role}}},
			&signetv1.SetGroupRolesResponse{})
	}
}

// seedGroups puts people into groups, straight through the store.
func (w *world) seedGroups(ctx context.Context, st event.Store) (err error) {
	for i, c := range crowds {
		_, made := makeGroups(ctx, st, w.crowd[i].org, w.crowd[i].user, c.count, c.roles)
		err = errors.Join(err, made)
	}
	for _, g := range []*string{&w.small, &w.large} {
		ids, made := makeGroups(ctx, st, w.many.org, w.many.user, 1, nil)
		if err = errors.Join(err, made); err != nil {
			return err
		}
		*g = ids[0]
	}
	return err
}

// makeGroups adds groups with somebody in them to an organization.
func makeGroups(ctx context.Context, st event.Store, org, who string, count int,
	roles []access.Role) (ids []string, err error) {
	c := event.Command{Origin: event.Origin{Actor: event.System}, Write: []event.Ref{user.Kind.Ref(who)}}
	for range count {
		id := group.Kind.NewID()
		ids = append(ids, id)
		c.Create = append(c.Create, group.Kind.Ref(id))
		c.Claims = append(c.Claims, group.NameClaim(org, id))
	}
	c.Decide = func(tx *event.Tx) error {
		u, err := user.Kind.Get(tx, who)
		if err != nil {
			return err
		}
		for _, id := range ids {
			g, err := group.Kind.Create(tx, id, org,
				group.Added{Name: id, NameKey: id, Description: fmt.Sprint("Group of ", org)})
			if err != nil {
				return err
			}
			if len(roles) > 0 {
				if err := g.Append(group.RolesSet{Roles: roles, Members: 1}); err != nil {
					return err
				}
			}
			if err := u.Append(user.GroupJoined{Org: org, Group: id, Roles: roles}); err != nil {
				return err
			}
		}
		return nil
	}
	if count == 0 {
		return nil, nil
	}
	return ids, st.Do(ctx, c)
}
