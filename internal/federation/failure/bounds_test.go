package failure

import (
	"fmt"
	"testing"
	"time"
)

func TestTheMemoryForFailuresIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := NewRecorder(nil, func() time.Time { return now })
	for i := range 2 * maxCounted {
		if r.due(counter{fmt.Sprint(i), Nonce}) != 1 {
			t.Fatal("a first failure is not written")
		}
	}
	if len(r.counted) != maxCounted {
		t.Errorf("%d are counted", len(r.counted))
	}
	now = now.Add(pause)
	if r.due(counter{"another", Nonce}); len(r.counted) != 1 {
		t.Errorf("%d are counted after a minute", len(r.counted))
	}
}
