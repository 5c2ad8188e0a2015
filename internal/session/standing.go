package session

import (
	"encoding/json"
	"sync"

	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/user"
)

// Standings reads what decides about a credential. It remembers what a text means, never whose it is: the text itself
// is asked for anew with every request. The zero value is ready for use.
type Standings struct {
	users         known[user.Standing]
	orgs          known[org.Standing]
	installations known[installation.Standing]
	apps          known[app.Standing]
	given         known[Given]
	providers     known[idp.Standing]
}

// known is what has been read. What it gives is shared and not to be altered.
type known[T any] struct {
	mu     sync.RWMutex
	byText map[string]*T
}

// maxKnown bounds the memory; a standing has about a hundred bytes, what an application was given a few hundred.
const maxKnown = 10_000

// read gives the meaning of a text. An empty one, of what does not exist or is not recorded yet, is the zero value.
func (k *known[T]) read(text string) (*T, error) {
	if text == "" {
		return new(T), nil
	}
	k.mu.RLock()
	value := k.byText[text]
	k.mu.RUnlock()
	if value != nil {
		return value, nil
	}
	value = new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byText == nil || len(k.byText) >= maxKnown {
		k.byText = map[string]*T{}
	}
	k.byText[text] = value
	return value, nil
}
