package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Events implements EventService.
type Events struct {
	Journal *journal.Journal
	Store   event.Reader
	Master  secret.MasterKey
}

// eventRequest is what both operations are asked.
type eventRequest interface {
	GetObjectId() string
	GetUserId() string
	GetActor() string
	GetTypes() []string
	GetFrom() *timestamppb.Timestamp
	GetAllOrganizations() bool
}

// ListEvents reads a page of events.
func (s Events) ListEvents(ctx context.Context, r *signetv1.ListEventsRequest) (*signetv1.ListEventsResponse, error) {
	query := eventQuery(r)
	query.Filter.To = micros(r.GetTo())
	permit, err := s.narrow(ctx, &query, r.GetUserId())
	if err != nil {
		return nil, err
	}
	entries, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*journal.Entry, *event.Cursor, error) {
			position, err := positionOf(after)
			if err != nil {
				return nil, nil, err
			}
			entries, next, err := s.Journal.List(ctx, permit, query,
				r.GetOrder() == signetv1.EventOrder_EVENT_ORDER_OLDEST_FIRST, position, limit)
			if err != nil || next == 0 {
				return entries, nil, err
			}
			return entries, cursorOf(next), nil
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListEventsResponse{NextPageToken: next}
	for _, e := range entries {
		shown, err := showEvent(e)
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, shown)
	}
	return out, nil
}

// errSignInsOfOne is the answer to somebody who reads the sign-ins of single users only.
var errSignInsOfOne = errs.New(errs.PermissionDenied, access.PermissionDenied,
	"with your roles you can read the sign-ins of one user at a time, not the whole log: name the user in userId")

// narrow leaves of a query what somebody may read who holds less than access.EventRead, and gives the permit for it. Who
// is an auditor as well reads as one what is not open otherwise. Errors: errSignInsOfOne; user.ErrNotFound;
// access.ErrTargetHoldsMore; access.ErrNotForSupport.
func (s Events) narrow(ctx context.Context, q *journal.Query, userID string) (access.Permit, error) {
	info := call.From(ctx)
	switch info.Permit.Uses() {
	case access.EventRead, access.AuditRead: // package journal knows these
		return info.Permit, nil
	}
	err := s.signInsOf(ctx, q, info.Permit, userID)
	if audit, not := info.Caller.In(info.Permit.Org(), access.AuditRead); err != nil && not == nil {
		return audit, nil
	}
	return info.Permit, err
}

// signInsOf leaves of a query the sign-ins of one user. Errors: as narrow.
func (s Events) signInsOf(ctx context.Context, q *journal.Query, permit access.Permit, userID string) error {
	if userID == "" {
		return errSignInsOfOne
	}
	// Who may end somebody's sessions may know of them.
	if _, err := user.TakesAway(permit, userID).Read(ctx, s.Store); err != nil {
		return err
	}
	q.Filter.ObjectIDs = []string{session.IDFor(userID)}
	return nil
}

// StreamEvents sends events as they happen.
func (s Events) StreamEvents(ctx context.Context, r *signetv1.StreamEventsRequest,
	send func(*signetv1.StreamEventsResponse) error) error {
	var after int64
	switch {
	case r.GetCursor() != "":
		var err error
		if after, err = s.openCursor(r.GetCursor()); err != nil {
			return err
		}
	case r.GetFrom() == nil:
		after = journal.Now
	}
	return s.Journal.Follow(ctx, call.From(ctx).Permit, eventQuery(r), after,
		func(e *journal.Entry, position int64) error {
			out := &signetv1.StreamEventsResponse{Cursor: s.sealCursor(position)}
			if e != nil {
				var err error
				if out.Event, err = showEvent(e); err != nil {
					return err
				}
			}
			return send(out)
		})
}

// eventQuery is what a request asks for.
func eventQuery(r eventRequest) journal.Query {
	f := journal.Filter{Actor: r.GetActor(), Types: r.GetTypes(), From: micros(r.GetFrom())}
	switch {
	case r.GetObjectId() != "":
		f.ObjectIDs = []string{r.GetObjectId()}
	case r.GetUserId() != "":
		// The companions of a user have no rights of their own: their organization is the user's.
		f.ObjectIDs = []string{r.GetUserId(), session.IDFor(r.GetUserId()), oauth.IDFor(r.GetUserId())}
	}
	return journal.Query{Everywhere: r.GetAllOrganizations(), Filter: f}
}

// micros is a time as the log keeps it; 0 for none.
func micros(t *timestamppb.Timestamp) int64 {
	if t == nil {
		return 0
	}
	return event.Micros(t.AsTime())
}

// wrongEventQuery lists what is wrong with what both operations are asked.
func wrongEventQuery(r eventRequest) (wrong []errs.Violation) {
	if r.GetObjectId() != "" && r.GetUserId() != "" {
		wrong = append(wrong, errs.Violation{Field: "userId", Message: "cannot be given together with objectId"})
	}
	for i, pattern := range r.GetTypes() {
		if !knownTypes()[pattern] {
			wrong = append(wrong, errs.Violation{Field: fmt.Sprintf("types[%d]", i),
				Message: "is not an event type: use a name such as user.human_added.v1, or user.* for all of a kind; docs/api/events.md lists them"})
		}
	}
	return append(wrong, wrongTime("from", r.GetFrom())...)
}

func wrongTime(field string, t *timestamppb.Timestamp) []errs.Violation {
	if t == nil || t.IsValid() && t.AsTime().Unix() > 0 {
		return nil
	}
	return []errs.Violation{{Field: field, Message: "must be a time after 1970"}}
}

// wrongEnd refuses a time that nothing can be before. Nothing would be found, and nobody told why.
func wrongEnd(from, to *timestamppb.Timestamp) []errs.Violation {
	wrong := wrongTime("to", to)
	if wrong == nil && from.IsValid() && to != nil && !to.AsTime().After(from.AsTime()) {
		wrong = []errs.Violation{{Field: "to", Message: "must be later than from"}}
	}
	return wrong
}

// knownTypes are the types of events there are, and the patterns for all of a kind.
var knownTypes = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, k := range model.Kinds {
		known[string(k.Name())+".*"] = true
		for _, t := range k.Types() {
			known[string(t)] = true
		}
	}
	return known
})

func showEvent(e *journal.Entry) (*signetv1.Event, error) {
	out := &signetv1.Event{
		EventId:    e.ID,
		ObjectId:   e.ObjectID,
		ObjectType: string(e.Kind),
		Sequence:   e.Sequence,
		OrgId:      e.OrgID,
		Type:       string(e.Type),
		Actor:      e.Actor,
		RequestId:  e.RequestID,
		Time:       timestamppb.New(e.Time),
		Erased:     e.Erased,
	}
	var err error
	if out.Payload, err = structOf(e.Payload); err != nil {
		return nil, err
	}
	if e.Personal != nil {
		out.Personal, err = structOf(e.Personal)
	}
	return out, err
}

func structOf(text json.RawMessage) (*structpb.Struct, error) {
	out := &structpb.Struct{}
	if err := out.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("an event's payload: %w", err)
	}
	return out, nil
}

// cursorOf is a position as a page token holds it: always as long, for tokens to tell nothing about how long the log
// is.
func cursorOf(position int64) *event.Cursor { return &event.Cursor{ID: fmt.Sprintf("%016x", position)} }

func positionOf(c event.Cursor) (int64, error) {
	if c.ID == "" {
		return 0, nil
	}
	return strconv.ParseInt(c.ID, 16, 64)
}

const streamCursors = "event stream cursor"

// sealCursor makes a cursor of a position, which tells nobody how long the log is, or how much happens elsewhere.
func (s Events) sealCursor(position int64) string {
	return base64.RawURLEncoding.EncodeToString(s.Master.Wrap(streamCursors,
		binary.BigEndian.AppendUint64(nil, uint64(position)), nil))
}

func (s Events) openCursor(cursor string) (int64, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		var position []byte
		if position, err = s.Master.Unwrap(streamCursors, sealed, nil); err == nil && len(position) == 8 {
			return int64(binary.BigEndian.Uint64(position)), nil
		}
	}
	return 0, errs.Invalid(errs.Violation{Field: "cursor",
		Message: "is not a cursor of a stream: send the last cursor unchanged, or leave it out to begin with new events"})
}
