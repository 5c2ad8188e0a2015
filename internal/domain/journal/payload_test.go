package journal

import (
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestWhatIsShownOfAPayload(t *testing.T) {
	for stored, shown := range map[string]string{
		`{"name":"Acme"}`: `{"name":"Acme"}`,
		`{"email":"Jo@example.org","emailKey":"jo@example.org","profile":{"nameKey":"jo"}}`: `{"email":"Jo@example.org","profile":{}}`,
		`{"expires":1767323045678901,"keyId":"key_1"}`:                                      `{"expires":"2026-01-02T03:04:05.678901Z","keyId":"key_1"}`,
		`{"verification":{"by":"owner","at":1767323045678901}}`:                             `{"verification":{"at":"2026-01-02T03:04:05.678901Z","by":"owner"}}`,
		`{"keys":[{"made":1767323045678901,"until":0}],"size":12345678901234567890}`:        `{"keys":[{"made":"2026-01-02T03:04:05.678901Z","until":0}],"size":12345678901234567890}`,
		`{"at":"once","key":"k"}`: `{"at":"once","key":"k"}`,
	} {
		if got := string(readable([]byte(stored))); got != shown {
			t.Errorf("%s is shown as %s", stored, got)
		}
	}
}

// Who reads the log is told the display name of new people, whether or not their events name it.
func TestNewPeopleAreShownWithTheirDisplayName(t *testing.T) {
	for _, of := range []event.Type{"user.human_added.v1", "user.human_imported.v1"} {
		for personal, want := range map[string]string{
			`{"userName":"jo","profile":{"firstName":"Jo","lastName":"Doe"},"email":"jo@example.org"}`:                         `{"email":"jo@example.org","profile":{"displayName":"Jo Doe","firstName":"Jo","lastName":"Doe"},"userName":"jo"}`,
			`{"userName":"jo","userNameKey":"jo","profile":{"firstName":"Jo","lastName":"Doe","displayName":"J"},"email":"x"}`: `{"email":"x","profile":{"displayName":"J","firstName":"Jo","lastName":"Doe"},"userName":"jo"}`,
		} {
			if got := string(personalOf(&event.Event{Type: of}, []byte(personal))); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
	if got := string(personalOf(&event.Event{Type: "user.profile_changed.v1"},
		[]byte(`{"firstName":"Jo"}`))); got != `{"firstName":"Jo"}` {
		t.Error(got)
	}
}
