package event

import (
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
)

// A data key that was destroyed, or wrapped anew, must not be used because somebody remembers it.
func TestARecordReusesADataKeyOnlyAsItIsStored(t *testing.T) {
	key := &secret.DataKey{}
	same := &Record{KeyID: "key_1", WrappedKey: []byte("wrapped"), state: "decoded", key: key}
	for _, c := range []struct {
		name   string
		record Record
		want   *secret.DataKey
	}{
		{"as before", Record{KeyID: "key_1", WrappedKey: []byte("wrapped")}, key},
		{"destroyed", Record{KeyID: "key_1"}, nil},
		{"wrapped anew", Record{KeyID: "key_1", WrappedKey: []byte("otherwise")}, nil},
		{"another one", Record{KeyID: "key_2", WrappedKey: []byte("wrapped")}, nil},
	} {
		c.record.Reuse(same)
		if c.record.key != c.want || c.record.state != "decoded" {
			t.Errorf("%s: key %p, want %p; state %v", c.name, c.record.key, c.want, c.record.state)
		}
	}
}
