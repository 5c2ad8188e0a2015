package api

import (
	"context"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// keepAnswers is how long an idempotency key is remembered.
const keepAnswers = 24 * time.Hour

// onceFor reads the idempotency key of a request. Caller, method and key find the kept answer; the request itself,
// together with the organization it is about, is remembered as a MAC only, since it may hold a password.
func onceFor(ctx context.Context, master secret.MasterKey, now time.Time, req proto.Message) (event.Once, error) {
	info := call.From(ctx)
	if info.IdempotencyKey == "" {
		return event.Once{}, nil
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return event.Once{}, err
	}
	caller := []byte(info.Caller.UserID)
	procedure := []byte(info.Procedure)
	return event.Once{
		Key:     hex.EncodeToString(master.MAC("idempotency key", caller, procedure, []byte(info.IdempotencyKey))),
		Request: master.MAC("idempotency request", caller, procedure, []byte(info.Permit.Org()), body),
		Expires: event.Micros(now.Add(keepAnswers)),
	}, nil
}
