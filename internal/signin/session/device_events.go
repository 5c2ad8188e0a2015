package session

import "github.com/signet-idm/signet/internal/eventlog/event"

// devicesSince is the version of facts that knows remembered devices, see event.Gated.
const devicesSince = 4

// DeviceRemembered records that the second factor of the person is remembered on a device from now on.
type DeviceRemembered struct {
	DeviceID string        `json:"deviceId"`
	Expires  int64         `json:"expires"`
	Personal RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (DeviceRemembered) EventType() event.Type { return "sign_in.device_remembered.v1" }

// Since implements event.Gated.
func (DeviceRemembered) Since() int { return devicesSince }

// Apply implements event.Fact.
func (DeviceRemembered) Apply(*SignIns) {}

// DeviceRecognized records that a session was not asked for a second factor, because the device is remembered.
type DeviceRecognized struct {
	DeviceID  string        `json:"deviceId"`
	SessionID string        `json:"sessionId"`
	Personal  RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (DeviceRecognized) EventType() event.Type { return "sign_in.device_recognized.v1" }

// Since implements event.Gated.
func (DeviceRecognized) Since() int { return devicesSince }

// Apply implements event.Fact.
func (DeviceRecognized) Apply(*SignIns) {}

// DeviceEnded records that a remembered device was ended before its time: by its user or by an administrator.
type DeviceEnded struct {
	DeviceID string `json:"deviceId"`
}

// EventType implements event.Fact.
func (DeviceEnded) EventType() event.Type { return "sign_in.device_ended.v1" }

// Since implements event.Gated.
func (DeviceEnded) Since() int { return devicesSince }

// Apply implements event.Fact.
func (DeviceEnded) Apply(*SignIns) {}
