package policy

import "time"

// MaxRememberDevice is how long a device may be remembered at most.
const MaxRememberDevice = 90 * 24 * time.Hour

// Devices is whether people can have their second factor remembered on a device, so that a sign-in there asks for the
// first one only. The installation says for how long at most; unless it does, nobody can. An organization can say a
// shorter time, or never.
type Devices struct {
	RememberDeviceSeconds int64 `json:"rememberDeviceSeconds,omitempty"`
	DevicesNotRemembered  bool  `json:"devicesNotRemembered,omitempty"` // whatever the installation says
}

// RememberDevice is how long a device is remembered; zero: it is not.
func (s Settings) RememberDevice() time.Duration { return seconds(s.RememberDeviceSeconds) }

func effectiveDevices(installation, org Devices) Devices {
	if installation.RememberDeviceSeconds == 0 || installation.DevicesNotRemembered || org.DevicesNotRemembered {
		return Devices{DevicesNotRemembered: installation.DevicesNotRemembered || org.DevicesNotRemembered}
	}
	return Devices{RememberDeviceSeconds: least(installation.RememberDeviceSeconds, org.RememberDeviceSeconds)}
}

// DevicesDiff is what differs between two of them.
type DevicesDiff struct {
	RememberDeviceSeconds *int64 `json:"rememberDeviceSeconds,omitempty"`
	DevicesNotRemembered  *bool  `json:"devicesNotRemembered,omitempty"`
}

func (d Devices) diffTo(next Devices) DevicesDiff {
	return DevicesDiff{changed(d.RememberDeviceSeconds, next.RememberDeviceSeconds),
		changed(d.DevicesNotRemembered, next.DevicesNotRemembered)}
}

func (c DevicesDiff) apply(d *Devices) {
	set(&d.RememberDeviceSeconds, c.RememberDeviceSeconds)
	set(&d.DevicesNotRemembered, c.DevicesNotRemembered)
}
