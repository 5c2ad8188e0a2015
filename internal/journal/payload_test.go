package journal

import "testing"

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
