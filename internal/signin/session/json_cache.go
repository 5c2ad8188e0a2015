package session

import (
	"encoding/json"
	"sync"
)

// jsonCache has decoded JSON of one kind by its text. The zero value is ready for use. What it gives is shared and not
// to be altered.
type jsonCache[T any] struct {
	none   T // what an empty text means
	mu     sync.RWMutex
	byText map[string]*T
}

// maxCachedTexts bounds the memory; a standing has about a hundred bytes, what an application was given a few hundred.
const maxCachedTexts = 10_000

// Read gives the meaning of a text. An empty one, of what does not exist or is not recorded yet, is the zero value.
func (k *jsonCache[T]) Read(text string) (*T, error) {
	if text == "" {
		return &k.none, nil
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
	if k.byText == nil || len(k.byText) >= maxCachedTexts {
		k.byText = map[string]*T{}
	}
	k.byText[text] = value
	return value, nil
}
