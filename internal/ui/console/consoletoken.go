// This file makes the tokens that the web console calls the API with. Such a token stands for the session of the
// browser for a few minutes: it holds the hash of the session's own token and an expiry, sealed. Nothing is stored for
// it. A request with the token is judged by the session as it is at that moment
// (docs/decisions/0042-the-console-acts-with-the-session.md).

package console

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// TokenLife is how long a token counts at most. It never counts longer than its session.
const TokenLife = 5 * time.Minute

// A token is a prefix that secret scanners know, and the base64 of the sealed end of its life (8 bytes) and hash of the
// session's own token (32).
const (
	prefix     = "sgn_con_"
	hashLength = 32
	plain      = 8 + hashLength
	sealed     = plain + 29 // see secret.DataKey.Seal
	length     = len(prefix) + (sealed*8+5)/6

	purpose = "console token"
)

var encoding = base64.RawURLEncoding.Strict()

// Tokens makes tokens of the console, and knows them.
type Tokens struct{ Sessions *session.Sessions }

// New makes a token of a session that counts.
func (t Tokens) New(b *session.Bearer) (token string, expires time.Time) {
	end := min(event.Micros(t.Sessions.Clock())+TokenLife.Microseconds(), b.Token.Expires)
	text := append(binary.BigEndian.AppendUint64(nil, uint64(end)), b.Token.Hash...)
	return prefix + encoding.EncodeToString(t.Sessions.Master.Wrap(purpose, text, nil)), time.UnixMicro(end).UTC()
}

// Authenticate tells who calls Signet's own API with a bearer token: one of the console, or any other that package
// session knows. Errors: access.ErrUnauthenticated, whatever is wrong with the token.
func (t Tokens) Authenticate(ctx context.Context, bearer string) (*access.Caller, error) {
	if !strings.HasPrefix(bearer, prefix) {
		return t.Sessions.Authenticate(ctx, bearer)
	}
	hash, end, ok := read(t.Sessions.Master, bearer)
	if !ok {
		return nil, access.ErrNotAToken
	}
	if event.Micros(t.Sessions.Clock()) >= end {
		return nil, access.ErrUnauthenticated
	}
	// By the hash, and not by the session's id: a step up on a page gives the session another token, and what was known
	// before gains nothing by that.
	b, err := t.Sessions.SessionByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	return b.Caller, nil
}

// read opens a token. ok is false for everything that New did not make here.
func read(master secret.MasterKey, token string) (hash []byte, end int64, ok bool) {
	if len(token) != length { // also because the decoder skips line breaks
		return nil, 0, false
	}
	box, err := encoding.DecodeString(token[len(prefix):])
	if err != nil {
		return nil, 0, false
	}
	text, err := master.Unwrap(purpose, box, nil)
	if err != nil || len(text) != plain {
		return nil, 0, false
	}
	return text[8:], int64(binary.BigEndian.Uint64(text)), true
}
