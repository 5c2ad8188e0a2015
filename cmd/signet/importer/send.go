package importer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/signet-idm/signet/cmd/signet/remote"
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// Bounds of the time between two attempts, where the server does not say how long to wait.
const (
	leastWait = 200 * time.Millisecond
	mostWait  = 10 * time.Second
)

// patience is how long to try again without a word.
const patience = time.Second

// send brings a chunk to the server. While that is away, or has too much to do, it tries again: the key of the chunk
// makes sure that nobody is imported twice.
func (r *run) send(ctx context.Context, c *chunk) answer {
	if len(c.people) == 0 {
		return answer{}
	}
	key, err := c.key(r.notes.ID)
	if err != nil {
		return answer{err: err}
	}
	req := &signetv1.ImportUsersRequest{Mode: signetv1.ImportMode_IMPORT_MODE_PER_ITEM, Users: c.people,
		DryRun: r.DryRun}
	var failing time.Time
	for attempt := 0; ; attempt++ {
		resp, err := r.call(ctx, req, key)
		if err == nil {
			r.back()
			return answer{results: resp.GetResults()}
		}
		if ctx.Err() != nil {
			return answer{err: ctx.Err()}
		}
		wait, again := judge(err, attempt)
		switch {
		case !again && attempt == 0:
			return answer{err: &refusal{remote.InWords(err)}}
		case !again:
			return answer{err: remote.InWords(err)} // an attempt before may have got through
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if time.Since(failing)+wait > r.GiveUp {
			return answer{err: fmt.Errorf("the server has accepted nothing for %s: %w",
				time.Since(failing).Round(time.Second), remote.InWords(err))}
		}
		if time.Since(failing) > patience {
			r.tell(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return answer{err: ctx.Err()}
		}
	}
}

// tell says, once until the server is back, that it is waited for: a person may know that it never will be.
func (r *run) tell(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		r.away = true
		r.bar.Say(fmt.Sprintf("the server does not accept requests (%v): retrying for up to %s",
			remote.InWords(why), r.GiveUp))
	}
}

func (r *run) back() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

// refusal is the server's answer to the first attempt, which no repetition changes.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

func (r *run) call(ctx context.Context, req *signetv1.ImportUsersRequest,
	key string) (*signetv1.ImportUsersResponse, error) {
	ctx, h := r.Server.Call(ctx)
	h.Set("Idempotency-Key", key)
	return r.client.ImportUsers(ctx, req)
}

// judge tells whether it makes sense to try again, and when.
func judge(err error, attempt int) (wait time.Duration, again bool) {
	wait = min(mostWait, leastWait<<min(attempt, 10))
	wait += rand.N(wait / 4) // not all at the same moment
	if _, forged := errors.AsType[*tls.CertificateVerificationError](err); forged {
		return 0, false
	}
	reason, said := remote.Details(err)
	switch code := connect.CodeOf(err); code {
	case connect.CodeUnavailable, connect.CodeResourceExhausted, connect.CodeAborted, connect.CodeDeadlineExceeded:
		if said == 0 && code == connect.CodeResourceExhausted && reason != "" {
			return 0, false // too large, and so it stays
		}
		return max(wait, said), true
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeCanceled:
		return wait, reason == "" // the connection broke; what the server itself cannot do it will not do later
	}
	return 0, false
}
