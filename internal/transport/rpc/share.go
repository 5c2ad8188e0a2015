package rpc

import (
	"context"
	"runtime"

	"google.golang.org/protobuf/proto"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// shares are what organizations have to share of this server. Callers whom we do not know have no organization; they
// are bounded elsewhere.
type shares struct {
	// calls are the operations that run. Everything behind them is shared along with it: the writer, the database's
	// connections, the processors. The bounds are far above what keeps these busy, so that an organization that is
	// alone loses nothing.
	calls *fairqueue.Places
	// large are the operations whose requests may be larger than others, from before the first byte of one is read.
	large *fairqueue.Places
	// bulk are the operations that read many objects: lists, searches. Processors are given to whatever can run, in
	// turns: if hundreds of lists can, a password that is hashed for a sign-in waits for all of them every 10 ms. So
	// only a few lists run at a time, and have their part, and everything else goes before the others.
	bulk *fairqueue.Places
	// searches are those of them that search. One reads up to thousands of rows, as many as a list of a hundred pages:
	// half of the places are for them, and lists have the others.
	searches *fairqueue.Places
	// costly are the operations that write many objects. Their commands are long and have a part of the writer's time
	// (package store), one after the other: an organization with more of them under way would only make its own other
	// calls wait. With four places and Reserve an organization has two of them: one is made ready while the other is in
	// the writer.
	costly *fairqueue.Places
}

// BulkPerProcessor operations that read many objects run at a time: they wait for the database half of their time.
const BulkPerProcessor = 2

// NewBulk makes the places of operations that read many objects.
func NewBulk() *fairqueue.Places {
	return fairqueue.New(fairqueue.Bounds{Places: BulkPerProcessor * runtime.GOMAXPROCS(0), Waiting: 1024})
}

func newShares(bulk *fairqueue.Places) shares {
	if bulk == nil {
		bulk = NewBulk()
	}
	return shares{
		calls:    fairqueue.New(fairqueue.Bounds{Places: 512, Waiting: 4096, Reserve: true}),
		large:    fairqueue.New(fairqueue.Bounds{Places: 16, Waiting: 128, Reserve: true}),
		bulk:     bulk,
		searches: fairqueue.New(fairqueue.Bounds{Places: runtime.GOMAXPROCS(0), Waiting: 256}),
		costly:   fairqueue.New(fairqueue.Bounds{Places: 4, Waiting: 256, Reserve: true}),
	}
}

// Places are what organizations share of this server, by a name for the metrics.
func (h *Handler) Places() map[string]*fairqueue.Places {
	return map[string]*fairqueue.Places{"operations": h.shares.calls, "large_requests": h.shares.large, "lists_and_imports": h.shares.bulk, "searches": h.shares.searches, "many_writes": h.shares.costly, "streams": h.streams.places}
}

// queueCall lets organizations take turns where more is asked for than the server does at once.
func (h *Handler) queueCall(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	return inShare(ctx, h.shares.calls, c, req, next)
}

// queueLargeRequest does the same for large requests, before they are read.
func (h *Handler) queueLargeRequest(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.op.maxBody <= maxBody {
		return next(ctx, c, req)
	}
	return inShare(ctx, h.shares.large, c, req, next)
}

// queueList lets operations that read many objects wait for each other.
func (h *Handler) queueList(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if !c.op.bulk {
		return next(ctx, c, req)
	}
	return inShare(ctx, h.shares.bulk, c, req, next)
}

// queueSearch lets searches wait for each other, before they wait among lists.
func (h *Handler) queueSearch(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	if !c.op.searches {
		return next(ctx, c, req)
	}
	return inShare(ctx, h.shares.searches, c, req, next)
}

// queueManyWrites gives an organization two operations at a time that write many objects. The store is told that their
// number is known. What turns out to write many, because of the one object that it is about, waits for the same place
// at that moment.
func (h *Handler) queueManyWrites(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	switch {
	case c.op.costly:
		return inShare(event.WritesMany(ctx), h.shares.costly, c, req, next)
	case c.op.reads || c.Info.Caller == nil:
		return next(ctx, c, req)
	}
	return next(event.WithPlace(ctx, longPlace{h.shares.costly, fairqueue.Claim{Org: c.Info.Caller.OrgID}}), c, req)
}

// longPlace is the place of a command of an organization, see event.Place.
type longPlace struct {
	places *fairqueue.Places
	claim  fairqueue.Claim
}

// EnterLong implements event.Place.
func (p longPlace) EnterLong(ctx context.Context) error { return enter(ctx, p.places, p.claim) }

// LeaveLong implements event.Place.
func (p longPlace) LeaveLong() { p.places.Leave(p.claim) }

func inShare(ctx context.Context, places *fairqueue.Places, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.Info.Caller == nil {
		return next(ctx, c, req)
	}
	claim := fairqueue.Claim{Org: c.Info.Caller.OrgID}
	if err := enter(ctx, places, claim); err != nil {
		return nil, err
	}
	defer places.Leave(claim)
	return next(ctx, c, req)
}

func enter(ctx context.Context, places *fairqueue.Places, claim fairqueue.Claim) error {
	_, waiting := tracing.Start(ctx, "turn")
	err := places.Enter(ctx, claim)
	waiting.End(err)
	return err
}
