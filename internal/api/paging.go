// Lists come in pages. A page token is sealed and bound to who asks what, so that nobody learns or makes one up.

package api

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// defaultPage is how many entries a page has when nobody says so.
const defaultPage = 50

// pageRequest is a request for a page.
type pageRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// startPage tells which part of a list a request asks for. A page token is sealed, because it names the last entry
// seen, and bound to the query it came from. Errors: InvalidArgument on pageToken.
func startPage(ctx context.Context, master secret.MasterKey, r pageRequest) (after event.Cursor, limit int, err error) {
	limit = defaultPage
	if r.GetPageSize() > 0 {
		limit = int(r.GetPageSize())
	}
	if r.GetPageToken() == "" {
		return after, limit, nil
	}
	query, err := queryOf(ctx, r)
	if err != nil {
		return after, 0, err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(r.GetPageToken())
	if err == nil {
		var text []byte
		if text, err = master.Unwrap(pageTokens, sealed, query); err == nil {
			err = json.Unmarshal(text, &after)
		}
	}
	if err != nil {
		return after, 0, errs.Invalid(errs.Violation{Field: "pageToken",
			Message: "is not a page token of this query: send nextPageToken unchanged, with the same parameters"})
	}
	return after, limit, nil
}

// nextPage is the token for the page behind a cursor; empty for nil.
func nextPage(ctx context.Context, master secret.MasterKey, r pageRequest, next *event.Cursor) (string, error) {
	if next == nil {
		return "", nil
	}
	query, err := queryOf(ctx, r)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(master.Wrap(pageTokens, text, query)), nil
}

// pageOf reads the page that a request asks for, and gives the token of the next one.
func pageOf[T any](ctx context.Context, master secret.MasterKey, r pageRequest,
	list func(after event.Cursor, limit int) ([]T, *event.Cursor, error)) (found []T, next string, err error) {
	after, limit, err := startPage(ctx, master, r)
	if err != nil {
		return nil, "", err
	}
	found, cursor, err := list(after, limit)
	if err != nil {
		return nil, "", err
	}
	next, err = nextPage(ctx, master, r, cursor)
	return found, next, err
}

const pageTokens = "page token"

// queryOf is everything a page token is bound to: who asks what about which organization. The size of pages may change.
func queryOf(ctx context.Context, r pageRequest) ([]byte, error) {
	info := call.From(ctx)
	bare := proto.Clone(r)
	m := bare.ProtoReflect()
	for _, name := range []protoreflect.Name{"page_size", "page_token"} {
		m.Clear(m.Descriptor().Fields().ByName(name))
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	if err != nil {
		return nil, err
	}
	caller := ""
	if info.Caller != nil {
		caller = info.Caller.UserID
	}
	return json.Marshal([]string{info.Procedure, caller, info.Permit.Org(), string(body)})
}
