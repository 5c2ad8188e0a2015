package event

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// Kind names a class of objects: "user", "org", …
type Kind string

// Type names a fact in the past tense with a version: "user.profile_changed.v1". It is a constant, never derived from
// a Go name: the log outlives the code.
type Type string

// Kind is the part of the name that says which objects the fact is about.
func (t Type) Kind() Kind {
	kind, _, _ := strings.Cut(string(t), ".")
	return Kind(kind)
}

// Ref points at one object.
type Ref struct {
	Kind Kind
	ID   string
}

// System is the actor of what nobody in particular did, such as the first start.
const System = "system"

// Origin says who caused a change and in which request.
type Origin struct {
	Actor     string // a user's id; System; or the id of an organization, see Object.ActedBy
	RequestID string
}

// Event is one recorded fact, as stored.
type Event struct {
	Position int64  // dense over the whole log, from 1; visible in order
	ObjectID string //
	Sequence uint64 // dense over the object, from 1
	Org      string // the organization that owns the object
	Type     Type
	Payload  []byte // JSON: what changed, without personal data
	Sealed   []byte // the personal part, sealed with the key KeyID; nil if there is none
	KeyID    string
	PrevHash []byte // Hash of the object's event before this one; nil for the first
	Origin
	Time int64 // microseconds since 1970, UTC

	written []byte // see WrittenHash
}

// Hash covers every stored byte of the event but its position, and through PrevHash the whole history of the object.
func (e *Event) Hash() []byte {
	b := make([]byte, 0, 1024) // most events fit, and cost nothing but the hashing
	b = appendPart(b, e.PrevHash)
	b = appendPart(b, e.ObjectID)
	b = binary.BigEndian.AppendUint64(b, e.Sequence)
	b = appendPart(b, e.Org)
	b = appendPart(b, e.Type)
	b = appendPart(b, e.Payload)
	b = appendPart(b, e.Sealed)
	b = appendPart(b, e.KeyID)
	b = appendPart(b, e.Actor)
	b = appendPart(b, e.RequestID)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	hash := sha256.Sum256(b)
	return hash[:]
}

// WrittenHash is Hash for an event in memory, worked out when it was written, as the next event of its object has it.
func (e *Event) WrittenHash() []byte {
	if e.written != nil {
		return e.written
	}
	return e.Hash()
}

// appendPart puts the length in front, so that no two lists of parts look the same.
func appendPart[T ~string | ~[]byte](b []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// sealContext binds sealed bytes to their place in the log, so that they open nowhere else.
func (e *Event) sealContext() []byte {
	b := make([]byte, 0, len(e.ObjectID)+8)
	b = append(b, e.ObjectID...)
	return binary.BigEndian.AppendUint64(b, e.Sequence)
}

// Micros is a time as the log keeps it.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time turns what the log keeps back into a time in UTC.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
