package session

import (
	"encoding/json"
	"slices"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Device is what is kept with the token of a remembered device.
type Device struct {
	Factors []string `json:"factors"` // ids of the second factors that the person had: adding or removing one ends it
	Browser string   `json:"browser"` // what kind it is
}

// newDevice is the browser that a person uses now.
func newDevice(u *user.User, userAgent string) Device {
	return Device{Factors: factorIDs(u), Browser: browserName(userAgent)}
}

// Text is what Token.Data holds of it.
func (d Device) Text() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return string(text)
}

// deviceOf reads what is kept with a token. What cannot be read is nobody's.
func deviceOf(t *event.Token) (d Device) {
	if json.Unmarshal([]byte(t.Data), &d) != nil {
		return Device{}
	}
	return d
}

// Holds tells whether the person has the same second factors as when the device was remembered.
func (d Device) Holds(u *user.User) bool { return slices.Equal(d.Factors, factorIDs(u)) }

func factorIDs(u *user.User) (ids []string) {
	if u.Human != nil {
		for _, f := range u.Human.Factors {
			ids = append(ids, f.ID)
		}
	}
	return ids
}
