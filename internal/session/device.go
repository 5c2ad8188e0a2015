package session

import (
	"encoding/json"
	"slices"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/session/signins"
	"github.com/signet-idm/signet/internal/session/useragent"
	"github.com/signet-idm/signet/internal/user"
)

// Device is what is kept with the token of a remembered device, see package devices.
type Device struct {
	Factors []string `json:"factors"` // ids of the second factors that the person had: adding or removing one ends it
	Browser string   `json:"browser"` // what kind it is
}

// NewDevice is the browser that a person uses now.
func NewDevice(u *user.User, from From) Device {
	return Device{Factors: factorIDs(u), Browser: useragent.Name(from.UserAgent)}
}

// Text is what Token.Data holds of it.
func (d Device) Text() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return string(text)
}

// DeviceOf reads what is kept with a token. What cannot be read is nobody's.
func DeviceOf(t *event.Token) (d Device) {
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

// MayBeRemembered tells whether the person has just proven a second factor in this session, and nothing else is missing.
func (s *state) MayBeRemembered() bool {
	return s.user.Data.SecondFactor && s.proof.SecondFactor && s.mayChange() == nil && !s.user.Data.Password.ChangeRequired
}

// Waits tells whether the session has a second factor to prove that the person has.
func (s *state) Waits() bool { return s.unproven && s.user.Data.SecondFactor }

// Recognize lets the session act on a device that is remembered.
func (s *state) Recognize(device string, place Place) error {
	s.proof.Device, s.proved = device, true
	return record(s.tx, s.user.ID, signins.DeviceRecognized{DeviceID: device, SessionID: s.session.ID, Personal: place})
}

// Remembers records a device that is remembered from now on.
func (s *state) Remembers(device string, expires int64, place Place) error {
	return record(s.tx, s.user.ID, signins.DeviceRemembered{DeviceID: device, Expires: expires, Personal: place})
}

// Name is what lists call where a session or a device is.
func (f From) Name() string { return nameOf(f.place()) }
