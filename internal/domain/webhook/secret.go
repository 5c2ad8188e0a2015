package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const (
	secretPrefix  = "whsec_"
	secretLength  = 32 // bytes; the specification asks for 24 to 64
	secretPurpose = "webhook secret"
)

// newSecret makes a secret: its bytes, and the text that its receiver is given.
func newSecret() (raw []byte, text string) {
	raw = make([]byte, secretLength)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	return raw, secretPrefix + base64.StdEncoding.EncodeToString(raw)
}

// secrets are what messages are signed with, and where they go. They are stored wrapped.
type secrets struct {
	URL      string `json:"url,omitempty"` // none: it stands in the log, see urlInLog
	Current  []byte `json:"current"`
	Old      []byte `json:"old,omitempty"`
	OldUntil int64  `json:"oldUntil,omitempty"`
}

func (s secrets) row(root secret.MasterKey, id string) (event.Row, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return event.Row{}, err
	}
	return event.Row{RowKey: event.SecretOf(id), Value: root.Wrap(secretPurpose, text, []byte(id))}, nil
}

// secretsIn opens a row of secrets.
func secretsIn(root secret.MasterKey, id string, row *event.Row) (secrets, error) {
	var s secrets
	if row == nil {
		return s, fmt.Errorf("webhook %s has no secret", id)
	}
	text, err := root.Unwrap(secretPurpose, row.Value, []byte(id))
	if err != nil {
		return s, fmt.Errorf("the secret of webhook %s: %w", id, err)
	}
	return s, json.Unmarshal(text, &s)
}

// signatures are those of a message by all secrets that count at a moment, in the words of the header
// webhook-signature.
func (s secrets) signatures(now int64, id string, timestamp int64, body []byte) string {
	all := []string{signature(s.Current, id, timestamp, body)}
	if now < s.OldUntil {
		all = append(all, signature(s.Old, id, timestamp, body))
	}
	return strings.Join(all, " ")
}

// signature is that of the Standard Webhooks specification, version 1. timestamp is in seconds.
func signature(key []byte, id string, timestamp int64, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
