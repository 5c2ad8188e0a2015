package dpop

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
)

// Life is how long a nonce counts, and so how long a proof with it can be sent.
const Life = time.Minute

// nodeSkew is how far the clocks of two nodes may be apart. It is part of Life.
const nodeSkew = 5 * time.Second

const macLength = 16

var encoding = base64.RawURLEncoding.Strict()

// Nonces makes nonces and knows them. A nonce says when it was made and is stored nowhere: every node that has the
// master key knows it.
type Nonces struct {
	Master secret.MasterKey
	Clock  func() time.Time
}

// New makes a nonce.
func (n Nonces) New() string {
	at := binary.BigEndian.AppendUint64(nil, uint64(n.Clock().Unix()))
	return encoding.EncodeToString(append(at, n.mac(at)...))
}

// Fresh tells whether a nonce was made here in the last minute.
func (n Nonces) Fresh(text string) bool {
	if len(text) != encoding.EncodedLen(8+macLength) {
		return false
	}
	raw, err := encoding.DecodeString(text)
	if err != nil || len(raw) != 8+macLength || !hmac.Equal(raw[8:], n.mac(raw[:8])) {
		return false
	}
	age := n.Clock().Sub(time.Unix(int64(binary.BigEndian.Uint64(raw)), 0))
	return -nodeSkew <= age && age < Life-nodeSkew
}

func (n Nonces) mac(at []byte) []byte { return n.Master.MAC("DPoP nonce", at)[:macLength] }
