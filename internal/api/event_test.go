package api

import (
	"errors"
	"math"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestACursorHidesAndKeepsItsPlace(t *testing.T) {
	s, other := Events{Master: secret.NewMasterKey()}, Events{Master: secret.NewMasterKey()}
	size := len(s.sealCursor(0))
	for _, position := range []int64{0, 1, 99, 1_000_000, math.MaxInt64} {
		cursor := s.sealCursor(position)
		if len(cursor) != size {
			t.Errorf("the cursor at %d has another length: it tells how long the log is", position)
		}
		if s.sealCursor(position) == cursor {
			t.Errorf("two cursors at %d are alike: it shows when nothing happened", position)
		}
		if got, err := s.openCursor(cursor); got != position || err != nil {
			t.Errorf("%d became %d, %v", position, got, err)
		}
		if _, err := other.openCursor(cursor); errs.KindOf(err) != errs.InvalidArgument {
			t.Errorf("another installation takes it: %v", err)
		}
		if token := cursorOf(position); len(token.ID) != 16 {
			t.Errorf("the page token %q tells how long the log is", token.ID)
		} else if back, err := positionOf(*token); back != position || err != nil {
			t.Errorf("%d became %d, %v", position, back, err)
		}
	}
	if got, err := positionOf(event.Cursor{}); got != 0 || err != nil {
		t.Error(got, err)
	}
}

func FuzzCursor(f *testing.F) {
	s := Events{Master: secret.NewMasterKey()}
	f.Add("")
	f.Add("AAAA")
	f.Add(s.sealCursor(7))
	f.Fuzz(func(t *testing.T, cursor string) {
		position, err := s.openCursor(cursor)
		if err == nil && position == 7 {
			return // the seed
		}
		e, ours := errors.AsType[*errs.Error](err)
		if !ours || e.Kind != errs.InvalidArgument || len(e.Fields) != 1 || e.Fields[0].Field != "cursor" {
			t.Errorf("%q: %d, %v", cursor, position, err)
		}
	})
}
