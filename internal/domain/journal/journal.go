// Package journal shows the events of the log to people and programs outside. Each event is complete, with its personal
// data decrypted unless it was erased. Events can be searched by what they are about.
package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Entry is an event as it is shown. Where it stands in the whole log is not told: that would tell how much others do.
type Entry struct {
	ID        string // of the object and the sequence, see ID
	ObjectID  string
	Kind      event.Kind
	Sequence  uint64
	OrgID     string // access.Installation: of none
	Type      event.Type
	Actor     string
	RequestID string
	Time      time.Time
	Payload   json.RawMessage // what changed, without personal data
	Personal  json.RawMessage // nil where there is nothing personal, or it was erased, or nobody asked
	Erased    bool            // there was something personal
}

// ID names an event for good.
func ID(e *event.Event) string { return IDOf(e.ObjectID, e.Sequence) }

// IDOf names the event of an object with a sequence.
func IDOf(objectID string, sequence uint64) string {
	return objectID + "." + strconv.FormatUint(sequence, 10)
}

// ParseID takes an ID apart.
func ParseID(id string) (objectID string, sequence uint64, ok bool) {
	dot := strings.LastIndexByte(id, '.')
	if dot < 1 {
		return "", 0, false
	}
	sequence, err := strconv.ParseUint(id[dot+1:], 10, 63)
	return id[:dot], sequence, err == nil
}

// Show makes an entry of an event. The personal part is opened where personal is set.
func Show(ctx context.Context, r event.Reader, root secret.MasterKey, e *event.Event, personal bool) (*Entry, error) {
	shown := &Entry{
		ID:        ID(e),
		ObjectID:  e.ObjectID,
		Kind:      e.Type.Kind(),
		Sequence:  e.Sequence,
		OrgID:     e.Org,
		Type:      e.Type,
		Actor:     e.Actor,
		RequestID: e.RequestID,
		Time:      event.Time(e.Time),
		Payload:   payload(e),
	}
	if shown.Kind == installation.Kind.Name() {
		shown.OrgID = access.Installation
	}
	opened, erased, err := event.Personal(ctx, r, root, e)
	if err != nil {
		return nil, err
	}
	shown.Erased = erased
	if personal && opened != nil {
		shown.Personal = personalOf(e, opened)
	}
	return shown, nil
}

// Filter says which events are meant. The zero value means all.
type Filter struct {
	OrgIDs    []string // empty: all, and the installation
	ObjectIDs []string // empty: all
	Actor     string
	Types     []string // a type, or a kind with a star: user.*; empty: all
	From, To  int64    // microseconds, To not included; 0: no bound
}

// Matches tells whether an event is meant.
func (f *Filter) Matches(e *event.Event) bool {
	return (len(f.OrgIDs) == 0 || slices.Contains(f.OrgIDs, e.Org) && !f.beyond(e)) &&
		(len(f.ObjectIDs) == 0 || slices.Contains(f.ObjectIDs, e.ObjectID)) &&
		(f.Actor == "" || f.Actor == e.Actor) &&
		(f.From == 0 || e.Time >= f.From) && (f.To == 0 || e.Time < f.To) &&
		(len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(t string) bool { return matchesType(t, e.Type) }))
}

// beyond tells of events that are kept with the organizations of the filter, and are not their business: the
// installation is kept in the default organization, and a user's roles in the installation or in other organizations
// with the user.
func (f *Filter) beyond(e *event.Event) bool {
	if e.Type.Kind() == installation.Kind.Name() {
		return true
	}
	if !slices.Contains(held, e.Type) {
		return false
	}
	var at struct{ Scope, Org string }
	if json.Unmarshal(e.Payload, &at) != nil {
		return true
	}
	where := cmp.Or(at.Scope, at.Org) // neither: in the user's own organization, see user.GroupRolesSet
	return where != "" && !slices.Contains(f.OrgIDs, where)
}

// held are the facts about what a user has in some organization or in the installation, which they name.
var held = []event.Type{user.MembershipSet{}.EventType(), user.RolesAccepted{}.EventType(),
	user.CustomRoleChanged{}.EventType(), user.GroupJoined{}.EventType(), user.GroupLeft{}.EventType(),
	user.GroupRolesSet{}.EventType(), user.AppRolesSet{}.EventType(), user.OrgLeft{}.EventType()}

func matchesType(pattern string, t event.Type) bool {
	kind, all := strings.CutSuffix(pattern, ".*")
	if all {
		return string(t.Kind()) == kind
	}
	return pattern == string(t)
}

// query is the same for the store, which can look in one organization or in all of them.
func (f *Filter) query() event.EventQuery {
	q := event.EventQuery{Objects: f.ObjectIDs, Actor: f.Actor, From: f.From, To: f.To}
	if len(f.OrgIDs) > 0 {
		q.Org, q.Except = f.OrgIDs[0], installation.Kind.Name()
	}
	for _, pattern := range f.Types {
		if kind, all := strings.CutSuffix(pattern, ".*"); all {
			q.Kinds = append(q.Kinds, event.Kind(kind))
		} else {
			q.Types = append(q.Types, event.Type(pattern))
		}
	}
	return q
}
