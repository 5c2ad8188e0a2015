package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Mark is a place in a log and the digest of everything up to it. Kept elsewhere, it tells later whether a log is still
// the same one.
type Mark struct {
	Position int64
	Digest   [sha256.Size]byte
}

var errMark = errors.New("it must be a position and a digest of 64 hexadecimal digits from the head line of an earlier verify, such as 1234:0f3a…")

// UnmarshalText reads POSITION:DIGEST.
func (m *Mark) UnmarshalText(text []byte) error {
	position, digest, _ := strings.Cut(string(text), ":")
	n, err := strconv.ParseUint(position, 10, 63)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != position || len(digest) != hex.EncodedLen(len(m.Digest)) {
		return errMark
	}
	raw, err := hex.DecodeString(digest)
	if err != nil {
		return errMark
	}
	m.Position, m.Digest = int64(n), [sha256.Size]byte(raw)
	return nil
}

// String is the form that UnmarshalText reads.
func (m Mark) String() string { return fmt.Sprintf("%d:%x", m.Position, m.Digest) }
