// This file shows in the trace of a request what its command waited for in the store. A batch serves many requests:
// each of them that is traced gets the spans of the batch in its own trace, so that a person sees where the time of
// this request went.

package store

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/base/tracing"
)

// commandTrace is one command on its way through the store. Nil: its request is not traced.
type commandTrace struct {
	span   tracing.Span
	queued time.Time
	begun  bool
	stored time.Time // when it was committed
}

// traceQueued is a command that begins to wait.
func traceQueued(ctx context.Context) *commandTrace {
	span := tracing.Of(ctx)
	if !span.Recorded() {
		return nil
	}
	return &commandTrace{span: span, queued: time.Now()}
}

// Durable notes that what the command has decided, or its refusal rests on, is on the disk.
func (c *commandTrace) Durable(err error) {
	if c != nil && !c.stored.IsZero() {
		c.span.Past("store.sync", c.stored, time.Now(), err)
	}
}

// batchTrace is one try to run commands in one transaction. Nil: none of them is traced.
type batchTrace struct {
	traced                 []*commandTrace
	size                   int
	began, loaded, decided time.Time
}

// traceBatch notes that a transaction of these commands begins.
func traceBatch[P any](commands []P, trace func(P) *commandTrace) (b *batchTrace) {
	for _, p := range commands {
		c := trace(p)
		if c == nil {
			continue
		}
		if b == nil {
			b = &batchTrace{size: len(commands), began: time.Now()}
		}
		b.traced = append(b.traced, c)
	}
	return b
}

// Loaded notes that everything the commands look at has been read and locked.
func (b *batchTrace) Loaded() {
	if b != nil {
		b.loaded = time.Now()
	}
}

// Decided notes that all commands have decided.
func (b *batchTrace) Decided() {
	if b != nil {
		b.decided = time.Now()
	}
}

// Committed notes that the transaction was committed. It comes before anybody is told: Durable follows.
func (b *batchTrace) Committed() { b.end(nil) }

// Failed notes why it was not, if so.
func (b *batchTrace) Failed(err error) {
	if err != nil {
		b.end(err)
	}
}

func (b *batchTrace) end(failed error) {
	if b == nil {
		return
	}
	now := time.Now()
	for _, c := range b.traced {
		if !c.begun {
			c.begun = true
			c.span.Past("store.queue", c.queued, b.began, nil)
		}
		batch := c.span.Within("store.batch", b.began)
		batch.Count("signet.commands", b.size)
		switch {
		case b.loaded.IsZero():
			batch.Past("store.load", b.began, now, failed)
		case b.decided.IsZero():
			batch.Past("store.load", b.began, b.loaded, nil)
		default:
			batch.Past("store.load", b.began, b.loaded, nil)
			batch.Past("store.decide", b.loaded, b.decided, nil)
			batch.Past("store.commit", b.decided, now, failed)
		}
		batch.EndAt(now, failed)
		c.stored = now
	}
}
