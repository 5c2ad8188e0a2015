package event

import (
	"crypto/hmac"
	"encoding/json"
	"strconv"

	"github.com/signet-idm/signet/internal/base/errs"
)

// IdempotencyKeyReused is the reason of a refusal: the key belongs to another request.
const IdempotencyKeyReused errs.Reason = "IDEMPOTENCY_KEY_REUSED"

// Once makes a creating command answer the same when it is sent again under the same key. The answer is kept in the
// command's own transaction: a concurrent twin waits for the first and then finds it. The zero value does nothing.
type Once struct {
	Key     string // a MAC of caller, method and key; empty: no idempotency asked for
	Request []byte // a MAC of the request, which may hold passwords
	Expires int64
}

// Part is for the n-th of several commands that carry out one request: each keeps its own part of the answer.
func (o Once) Part(n int) Once {
	if o.Key != "" {
		o.Key += "/" + strconv.Itoa(n)
	}
	return o
}

// Wrap gives the command that replays result where it was kept, and otherwise keeps what c leaves in result. Whatever
// must be checked on every call, permission above all, is checked before.
func (o Once) Wrap(c Command, result any) Command {
	if o.Key == "" {
		return c
	}
	key := RowKey{Idempotency, o.Key}
	decide := c.Decide
	c.Rows = append(c.Rows, key)
	c.Decide = func(tx *Tx) error {
		kept, err := tx.Row(key)
		if err != nil {
			return err
		}
		if kept != nil {
			request, answer := kept.Value[:len(o.Request)], kept.Value[len(o.Request):]
			if !hmac.Equal(request, o.Request) {
				return &errs.Error{Kind: errs.InvalidArgument, Reason: IdempotencyKeyReused,
					Message: "this idempotency-key was used for a different request: use a new key",
					Fields:  []errs.Violation{{Field: "idempotency-key", Message: "was used for a different request"}}}
			}
			return json.Unmarshal(answer, result)
		}
		if err := decide(tx); err != nil {
			return err
		}
		answer, err := json.Marshal(result)
		if err != nil {
			return err
		}
		tx.PutRow(Row{RowKey: key, Value: append(append([]byte(nil), o.Request...), answer...), Expires: o.Expires})
		return nil
	}
	return c
}
