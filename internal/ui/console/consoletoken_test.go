package console

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

var (
	now  = time.Unix(1_800_000_000, 0)
	hash = sha256.Sum256([]byte("a session"))
)

func tokens(master secret.MasterKey) Tokens {
	return Tokens{&session.Sessions{Master: master, Clock: func() time.Time { return now }}}
}

func made(master secret.MasterKey, left time.Duration) (string, time.Time) {
	return tokens(master).New(&session.Bearer{Token: event.Token{Hash: hash[:], Expires: event.Micros(now.Add(left))}})
}

func TestATokenSaysWhichSessionAndUntilWhen(t *testing.T) {
	master := secret.NewMasterKey()
	for name, c := range map[string]struct{ left, want time.Duration }{
		"a session that lives on":  {time.Hour, TokenLife},
		"a session that soon ends": {time.Minute, time.Minute},
	} {
		token, expires := made(master, c.left)
		got, end, ok := read(master, token)
		if !ok || !bytes.Equal(got, hash[:]) || end != event.Micros(now.Add(c.want)) ||
			!expires.Equal(now.Add(c.want)) {
			t.Errorf("%s: %x until %d, %t", name, got, end, ok)
		}
		if !strings.HasPrefix(token, prefix) || len(token) != length {
			t.Errorf("%s: it is %s", name, token)
		}
	}
}

func TestOnlyWhatWasMadeHereIsAToken(t *testing.T) {
	master := secret.NewMasterKey()
	token, _ := made(master, time.Hour)
	for i := len(prefix); i < len(token); i++ {
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		if _, _, ok := read(master, token[:i]+string(other)+token[i+1:]); ok {
			t.Errorf("changed at %d, it is still one", i)
		}
	}
	foreign, _ := made(secret.NewMasterKey(), time.Hour)
	sealedElsewhere := prefix + encoding.EncodeToString(master.Wrap("something else", make([]byte, plain), nil))
	for name, text := range map[string]string{
		"another installation's":    foreign,
		"sealed for something else": sealedElsewhere,
		"cut off":                   token[:len(token)-1],
		"one more":                  token + "A",
		"a line break":              token[:40] + "\n" + token[40:],
		"nothing":                   prefix,
		"not base64":                prefix + strings.Repeat("!", length-len(prefix)),
	} {
		if _, _, ok := read(master, text); ok {
			t.Errorf("%s is a token", name)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	master := secret.NewMasterKey()
	token, _ := made(master, time.Hour)
	for b.Loop() {
		read(master, token)
	}
}
