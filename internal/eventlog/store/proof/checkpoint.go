// Package proof makes changes to the log detectable. Every event has the hash of the one before it in the same object,
// but an attacker who can write to the database can compute such a chain anew, or cut it off. So the whole log is
// sealed in the order of its positions, with a key that the database does not hold in the clear: Sealer writes
// checkpoints in the background, and Verify reads the log and compares.
//
// A checkpoint holds the digest of everything up to its position, chained from event to event; a tag for every event of
// its range, which shows which event was changed; and a seal over all of it. The last checkpoint, the head, is replaced
// until its range is full. A database has a head from its first moment, so a missing one shows that it was removed.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

const (
	span    = 1000 // positions that a full checkpoint covers
	tagSize = 8
)

// checkpoint is a row as it is stored.
type checkpoint struct {
	number   int64 // 0: the head
	position int64 // of the last event that is sealed in it
	digest   []byte
	tags     []byte // of the events of its range, up to position
	seal     []byte
}

const checkpointColumns = "number, position, digest, tags, seal"

func (c *checkpoint) dest() []any {
	return engine.Exactly([]any{&c.number, &c.position, &c.digest, &c.tags, &c.seal})
}

// first is the position its range begins with.
func (c *checkpoint) first() int64 {
	if c.number > 0 {
		return (c.number-1)*span + 1
	}
	return c.position/span*span + 1
}

// computeSeal covers every column, the number included: a head is not taken for a full checkpoint.
func (c *checkpoint) computeSeal(root secret.MasterKey) []byte {
	return root.MAC("log checkpoint", number(c.number), number(c.position), c.digest, c.tags)
}

// genuine tells whether somebody with the key has written it.
func (c *checkpoint) genuine(root secret.MasterKey) bool {
	return hmac.Equal(c.seal, c.computeSeal(root)) && int64(len(c.tags)) == (c.position-c.first()+1)*tagSize
}

// tag gives the one of a position; nil where that is not in it.
func (c *checkpoint) tag(position int64) []byte {
	at := (position - c.first()) * tagSize
	if at < 0 || at+tagSize > int64(len(c.tags)) {
		return nil
	}
	return c.tags[at : at+tagSize]
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// tagger makes the tags of events. It is for one goroutine.
type tagger struct{ mac hash.Hash }

func newTagger(root secret.MasterKey) tagger {
	return tagger{hmac.New(sha256.New, root.MAC("log event tags"))}
}

// tag binds an event to its position.
func (t tagger) tag(position int64, hash []byte) []byte {
	var b [8 + sha256.Size]byte
	binary.BigEndian.PutUint64(b[:], uint64(position))
	copy(b[8:], hash)
	t.mac.Reset()
	t.mac.Write(b[:])
	return t.mac.Sum(nil)[:tagSize]
}

// chained is the digest of a log up to an event, made from the digest before it.
func chained(digest []byte, position int64, hash []byte) []byte {
	var b [2*sha256.Size + 8]byte
	copy(b[:], digest)
	binary.BigEndian.PutUint64(b[sha256.Size:], uint64(position))
	copy(b[sha256.Size+8:], hash)
	sum := sha256.Sum256(b[:])
	return sum[:]
}

// noEvents is the digest of an empty log.
var noEvents = make([]byte, sha256.Size)

// Begin writes the head of a log of which nothing is sealed yet, unless there is one.
func Begin(ctx context.Context, x engine.Executor, root secret.MasterKey) error {
	head := checkpoint{digest: noEvents, tags: []byte{}}
	return x.Exec(ctx, "INSERT INTO checkpoints ("+checkpointColumns+") VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		head.number, head.position, head.digest, head.tags, head.computeSeal(root))
}

// Errors that keep the sealer from sealing what somebody may have changed.
var (
	errNoHead     = errors.New("the head of the checkpoints is missing: run signet verify")
	errForgedHead = errors.New("the head of the checkpoints was changed: run signet verify")
	errForgedEnd  = errors.New("the end of the log cannot be read, so it was changed")
)

// readCheckpoint gives a row; nil where there is none. Of one that cannot be read it gives the number alone, which is
// not genuine.
func readCheckpoint(ctx context.Context, x reader, n int64, locked string) (*checkpoint, error) {
	var found *checkpoint
	err := x.Query(ctx, "SELECT "+checkpointColumns+" FROM checkpoints WHERE number = ?"+locked, []any{n},
		func(scan engine.Scanner) error {
			found = &checkpoint{}
			return scan(found.dest()...)
		})
	if errors.Is(err, engine.ErrOtherType) {
		return &checkpoint{number: n}, nil
	}
	return found, err
}

// Sealed is how far a log is sealed, as its head says.
func Sealed(ctx context.Context, x reader) (position int64, err error) {
	head, err := readCheckpoint(ctx, x, 0, "")
	if err != nil || head == nil {
		return 0, err
	}
	return head.position, nil
}

// reader is what an engine and a transaction have in common.
type reader interface {
	Query(ctx context.Context, sql string, args []any, each func(engine.Scanner) error) error
}
