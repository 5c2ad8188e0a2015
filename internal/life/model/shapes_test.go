package model

import (
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
)

// TestANewShapeRaisesTheFactVersion: nodes tell by it which of them do not know a shape, and wait for those. The first
// shape that a release changes raises event.FactVersion; both go in here.
func TestANewShapeRaisesTheFactVersion(t *testing.T) {
	const factVersion = 6
	want := map[event.Kind]int{"installation": 2, "org": 4, "user": 8, "idp": 5, "sign_in": 3, "app": 5, "webhook": 2}
	for _, k := range Kinds {
		if shape := k.Shape(); shape != want[k.Name()] && (shape > 1 || want[k.Name()] > 0) {
			t.Errorf("%s has shape %d, not %d: see that event.FactVersion was raised since the last release, and change this test", k.Name(), shape, want[k.Name()])
		}
	}
	for _, k := range Kinds {
		if shape := k.Shape(); shape > 1 && migrations.Below(k.Table()) != shape {
			t.Errorf("no index has the %s below shape %d alone: make %s_below_%d by a migration, and drop the one before", k.Table(), shape, k.Table(), shape)
		}
	}
	if event.FactVersion != factVersion {
		t.Errorf("event.FactVersion is %d, not %d: change this test", event.FactVersion, factVersion)
	}
}
