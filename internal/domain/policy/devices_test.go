package policy

import (
	"testing"
	"time"
)

func TestDevicesAreRememberedOnlyWhereBothLetIt(t *testing.T) {
	const day = 24 * time.Hour
	on, shorter, off := Devices{RememberDeviceSeconds: 864000}, Devices{RememberDeviceSeconds: 86400},
		Devices{RememberDeviceSeconds: 86400, DevicesNotRemembered: true}
	for _, tt := range []struct {
		name              string
		installation, org Devices
		want              time.Duration
	}{
		{"nobody says anything", Devices{}, Devices{}, 0},
		{"the organization alone", Devices{}, on, 0},
		{"the installation", on, Devices{}, 10 * day},
		{"the organization for a shorter time", on, shorter, day},
		{"the organization for a longer time", shorter, on, day},
		{"the organization never", on, off, 0},
		{"the installation never", off, on, 0},
	} {
		if got := Effective(Policy{Devices: tt.installation},
			Policy{Devices: tt.org}).RememberDevice(); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	if since := (Policy{}).DiffTo(Policy{Devices: on}).Since(); since != 4 {
		t.Errorf("nodes of version %d are told", since)
	}
}
