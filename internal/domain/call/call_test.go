package call_test

import (
	"context"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
)

func TestTheDescriptionTravelsWithTheContext(t *testing.T) {
	info := &call.Info{RequestID: "req_1", Caller: &access.Caller{UserID: "usr_a"}}
	if got := call.From(call.With(t.Context(), info)); got != info {
		t.Errorf("got %+v", got)
	}
}

func TestOutsideARequestTheDescriptionIsEmptyAndGrantsNothing(t *testing.T) {
	info := call.From(context.Background())
	if info == nil || info.Caller != nil || info.IdempotencyKey != "" || info.IfMatch.Set ||
		info.Permit.Reaches("org_a") {
		t.Errorf("got %+v", info)
	}
}

func TestAnInnerRequestHidesTheOuterOne(t *testing.T) {
	inner := &call.Info{RequestID: "inner"}
	ctx := call.With(call.With(t.Context(), &call.Info{RequestID: "outer"}), inner)
	if got := call.From(ctx); got != inner {
		t.Errorf("got %+v", got)
	}
}
