package event

import (
	"context"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
)

// Command is a change somebody asks for. Decide runs inside the store's transaction with everything the command
// declared at hand. It does no I/O, and may run more than once when the store has lost a race, so it only assigns to
// what it captures.
type Command struct {
	Origin
	Create []Ref    // objects it creates under identifiers that were made for it: nobody looks for them first
	Write  []Ref    // objects it changes, or creates under names that may be there already
	Read   []Ref    // objects its decision rests on, which must not move meanwhile
	Claims []Claim  // names it asks for or takes; one that it gives up need not be here
	Rows   []RowKey // rows of side tables that it reads
	Tokens []string // ids of tokens that it reads
	Decide func(tx *Tx) error
}

// MaxObjects is how many objects an ordinary command creates and changes. One with more is long: it runs alone, and the
// store gives others their turn after it. Only an operation whose definition says that it writes many sends such
// commands (WritesMany), or one that finds out when it decides (Tx.Require).
const MaxObjects = 32

// Objects is how many objects the command creates and changes at most.
func (c *Command) Objects() int { return len(c.Create) + len(c.Write) }

type writesMany struct{}

// WritesMany notes in ctx that its commands may have more than MaxObjects objects: the definition of the operation says
// so, or a job in the background works in bounded steps.
func WritesMany(ctx context.Context) context.Context {
	return context.WithValue(ctx, writesMany{}, true)
}

// MayWriteMany tells whether WritesMany was noted.
func MayWriteMany(ctx context.Context) bool { return ctx.Value(writesMany{}) != nil }

// LongQueue is where a command that turns out to be long waits, among others of its organization. After EnterLong has
// succeeded, the caller has to call LeaveLong.
type LongQueue interface {
	EnterLong(ctx context.Context) error
	LeaveLong()
}

type longQueueKey struct{}

// WithLongQueue notes in ctx where its commands wait that turn out to be long, see Tx.Require. Without it, they only
// wait in the line of long commands of the store.
func WithLongQueue(ctx context.Context, p LongQueue) context.Context {
	return context.WithValue(ctx, longQueueKey{}, p)
}

// enterLong waits for the turn of a command that has turned out to be long.
func enterLong(ctx context.Context) (_ context.Context, leave func(), err error) {
	leave = func() {}
	if p, ok := ctx.Value(longQueueKey{}).(LongQueue); ok {
		if err := p.EnterLong(ctx); err != nil {
			return ctx, leave, err
		}
		leave = p.LeaveLong
	}
	return WritesMany(ctx), leave, nil
}

type background struct{}

// InBackground notes in ctx that its commands are the server's own upkeep, such as the progress of a job: nobody waits
// for them. The actor does not say that, because System also signs people in.
func InBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, background{}, true)
}

// IsInBackground tells whether InBackground was noted.
func IsInBackground(ctx context.Context) bool { return ctx.Value(background{}) != nil }

// With adds what another command declares, whose origin and decision are taken.
func (c Command) With(other Command) Command {
	return Command{
		Origin: other.Origin,
		Create: slices.Concat(c.Create, other.Create),
		Write:  slices.Concat(c.Write, other.Write),
		Read:   slices.Concat(c.Read, other.Read),
		Claims: slices.Concat(c.Claims, other.Claims),
		Rows:   slices.Concat(c.Rows, other.Rows),
		Tokens: slices.Concat(c.Tokens, other.Tokens),
		Decide: other.Decide,
	}
}

// Claim is a name that only one object can hold at a time, such as a domain. Which claims an object holds follows
// from its state (Schema.Claims); the store keeps two objects from holding the same.
type Claim struct {
	Space string // what kind of name, and where it must be unique: "domain", "user_name/org_…"
	Key   string // the name in its comparison form
}

// Digest is what the store keeps of a claim: of one size however long the name is, and not the name itself.
func (c Claim) Digest() [32]byte {
	return sha256.Sum256([]byte(c.Space + "\x00" + c.Key))
}

// SideTable is a table of rows that are written in the same transaction as the log, but are no facts about an object.
type SideTable string

// The side tables.
const (
	Secrets SideTable = "secrets" // password hashes; key: object id / name
	// the keys personal data is sealed with, wrapped by the master key; key: key id
	Keys SideTable = "keys"
	// counters of failed sign-ins; key: a MAC of the account; and numbers of sign-ins by organization and month
	Throttle    SideTable = "throttle"
	Idempotency SideTable = "idempotency" // answers to repeat; key: a MAC of caller, method and idempotency key
	// sign-ins and grants on their way: requests, codes, challenges, refresh tokens
	Flows     SideTable = "flows"
	Followers SideTable = "followers" // how far those who follow the log have come; key: the follower
	// parked objects of webhooks and their last attempts, and pending requests; key: whose / what
	Deliveries SideTable = "deliveries"
)

// SideTables lists all of them.
var SideTables = []SideTable{Secrets, Keys, Throttle, Idempotency, Flows, Followers, Deliveries}

// RowKey finds a row in its side table.
type RowKey struct {
	Table SideTable
	Key   string
}

// Row is a row of a side table. A row past its expiry counts as absent.
type Row struct {
	RowKey
	Value   []byte
	Expires int64 // microseconds; 0: never
}

// SealedRows is the version of facts since which rows are stored sealed that could be guessed at. Nodes that know less
// cannot read them, so they are written as they are until every node does.
const SealedRows = 5

// WordBlocks is the version of facts since which nodes write what objects are found by in the way that searches read,
// see Term. Nodes that know less look for words.
const WordBlocks = 6

// SealedRow is the first byte of a sealed value. No hash of a password begins with it.
const SealedRow = 1

const purposeRow = "guessable row"

// Guessable tells whether somebody with a copy of the row could find out the secret by guessing.
func (k RowKey) Guessable() bool { return k.Table == Secrets && strings.HasSuffix(k.Key, PasswordName) }

// seal gives a row as it is stored. Its key is bound to the value: in another place, such as that of another user, it
// opens nothing.
func (r Row) seal(root secret.MasterKey) Row {
	if r.Guessable() {
		r.Value = root.Wrap(purposeRow, r.Value, []byte(r.Key))
	}
	return r
}

// Open gives a row as it was put, from what is stored: sealed, or as it was from before there were seals. What does not
// open stays sealed, and is no hash that a password could match.
func (r *Row) Open(root secret.MasterKey) *Row {
	if r == nil || !r.Guessable() || !IsSealed(r.Value) {
		return r
	}
	plain, err := root.Unwrap(purposeRow, r.Value, []byte(r.Key))
	if err != nil {
		return r
	}
	return &Row{RowKey: r.RowKey, Value: plain, Expires: r.Expires}
}

// IsSealed tells whether a guessable row is stored sealed, by its value or the first byte of it.
func IsSealed(value []byte) bool { return len(value) > 0 && value[0] == SealedRow }

// IfMatch is a caller's precondition on an object's sequence. The zero value asks for nothing.
type IfMatch struct {
	Set      bool
	Sequence uint64
}

// Reasons of the log itself.
const (
	SequenceMismatch errs.Reason = "SEQUENCE_MISMATCH"
	NameTaken        errs.Reason = "NAME_TAKEN"
	Contention       errs.Reason = "CONTENTION"
	StorageAway      errs.Reason = "STORAGE_UNAVAILABLE"
	DeadlinePassed   errs.Reason = "DEADLINE_EXCEEDED"
	OlderNodes       errs.Reason = "OLDER_NODES_RUNNING"
	NodeOutdated     errs.Reason = "NODE_OUTDATED"
)

// Check refuses with Aborted when the object is not at the sequence the caller has seen.
func (m IfMatch) Check(sequence uint64) error {
	if !m.Set || m.Sequence == sequence {
		return nil
	}
	return errs.New(errs.Aborted, SequenceMismatch, "the object is at sequence "+strconv.FormatUint(sequence, 10)+
		", not at the one in if-match: read it again before you change it")
}

// Details describe an object at the end of a read or a change.
type Details struct {
	Sequence uint64
	Created  time.Time
	Changed  time.Time
	Org      string
}
