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
	calls *fairqueue.Slots
	// large are the operations whose requests may be larger than others, from before the first byte of one is read.
	large *fairqueue.Slots
	// bulk are the operations that read many objects: lists, searches. Processors are given to whatever can run, in
	// turns: if hundreds of lists can, a password that is hashed for a sign-in waits for all of them every 10 ms. So
	// only a few lists run at a time, and have their part, and everything else goes before the others.
	bulk *fairqueue.Slots
	// searches are those of them that search. One reads up to thousands of rows, as many as a list of a hundred pages:
	// half of the slots are for them, and lists have the others.
	searches *fairqueue.Slots
	// costly are the operations that write many objects. Their commands are long and have a part of the writer's time
	// (package store), one after the other: an organization with more of them under way would only make its own other
	// calls wait. With four slots and Reserve an organization has two of them: one is made ready while the other is in
	// the writer.
	costly *fairqueue.Slots
}

// BulkPerProcessor operations that read many objects run at a time: they wait for the database half of their time.
const BulkPerProcessor = 2

// NewBulk makes the slots of operations that read many objects.
func NewBulk() *fairqueue.Slots {
	return fairqueue.New(fairqueue.Bounds{Slots: BulkPerProcessor * runtime.GOMAXPROCS(0), Waiting: 1024})
}

func newShares(bulk *fairqueue.Slots) shares {
	if bulk == nil {
		bulk = NewBulk()
	}
	return shares{
		calls:    fairqueue.New(fairqueue.Bounds{Slots: 512, Waiting: 4096, Reserve: true}),
		large:    fairqueue.New(fairqueue.Bounds{Slots: 16, Waiting: 128, Reserve: true}),
		bulk:     bulk,
		searches: fairqueue.New(fairqueue.Bounds{Slots: runtime.GOMAXPROCS(0), Waiting: 256}),
		costly:   fairqueue.New(fairqueue.Bounds{Slots: 4, Waiting: 256, Reserve: true}),
	}
}

// Slots are what organizations share of this server, by a name for the metrics.
func (h *Handler) Slots() map[string]*fairqueue.Slots {
	return map[string]*fairqueue.Slots{"operations": h.shares.calls, "large_requests": h.shares.large,
		"lists_and_imports": h.shares.bulk, "searches": h.shares.searches, "many_writes": h.shares.costly,
		"streams": h.streams.slots}
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
// number is known. What turns out to write many, because of the one object that it is about, waits for the same slots
// at that moment.
func (h *Handler) queueManyWrites(ctx context.Context, c *Call, req proto.Message, next run) (proto.Message, error) {
	switch {
	case c.op.costly:
		return inShare(event.WritesMany(ctx), h.shares.costly, c, req, next)
	case c.op.reads || c.Info.Caller == nil:
		return next(ctx, c, req)
	}
	return next(event.WithLongQueue(ctx, longQueue{h.shares.costly, fairqueue.Claim{Org: c.Info.Caller.OrgID}}), c, req)
}

// longQueue is where the long commands of an organization wait, see event.LongQueue.
type longQueue struct {
	slots *fairqueue.Slots
	claim fairqueue.Claim
}

// EnterLong implements event.LongQueue.
func (p longQueue) EnterLong(ctx context.Context) error { return enter(ctx, p.slots, p.claim) }

// LeaveLong implements event.LongQueue.
func (p longQueue) LeaveLong() { p.slots.Leave(p.claim) }

func inShare(ctx context.Context, slots *fairqueue.Slots, c *Call, req proto.Message, next run) (proto.Message, error) {
	if c.Info.Caller == nil {
		return next(ctx, c, req)
	}
	claim := fairqueue.Claim{Org: c.Info.Caller.OrgID}
	if err := enter(ctx, slots, claim); err != nil {
		return nil, err
	}
	defer slots.Leave(claim)
	return next(ctx, c, req)
}

func enter(ctx context.Context, slots *fairqueue.Slots, claim fairqueue.Claim) error {
	_, waiting := tracing.Start(ctx, "turn")
	err := slots.Enter(ctx, claim)
	waiting.End(err)
	return err
}
