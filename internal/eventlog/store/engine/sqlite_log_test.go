package engine

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/test/testkit"
)

// grown is an embedded database whose log has so many frames, and a way to write some more.
func grown(t *testing.T, frames int) (e *sqliteEngine, write func()) {
	t.Helper()
	opened, err := Open(t.Context(),
		Options{Database: filepath.Join(t.TempDir(), "signet.db"), Cache: cache.New(event.TokenKinds{}),
			Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	e = opened.(*sqliteEngine)
	do := func(text string, args ...any) {
		t.Helper()
		testkit.Must(t, e.Transact(t.Context(), func(x Executor) error { return x.Exec(t.Context(), text, args...) }))
	}
	do("CREATE TABLE pages (id INTEGER PRIMARY KEY, page TEXT NOT NULL)")
	for e.logFrames() < frames {
		do("WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < 500) INSERT INTO pages (page) SELECT ? FROM c", strings.Repeat("x", 4000))
	}
	return e, func() { do("UPDATE pages SET page = page || 'y' WHERE id = 1") }
}

// The log is moved beside the writer, and begins again when it has grown, though COMMIT does not move it.
func TestTheWriteAheadLogIsMovedBesideTheWriter(t *testing.T) {
	e, write := grown(t, mostFrames)
	testkit.Await(t, "the log begins again", func() bool {
		write()
		n := e.logFrames()
		if n >= tooMany {
			t.Fatal("COMMIT has to move it")
		}
		return n < moveFrames
	})
}

// An erasure waits until the log has been moved, and does not fail because it is.
func TestAnErasureWaitsForTheLogThatIsBeingMoved(t *testing.T) {
	e, write := grown(t, 1)
	e.moving.Lock()
	scrubbed := make(chan bool, 1)
	go func() {
		done, err := e.Scrub(t.Context())
		scrubbed <- done && err == nil
	}()
	write() // the writer waits for neither
	select {
	case <-scrubbed:
		t.Error("it did not wait")
	default:
	}
	e.moving.Unlock()
	if !testkit.Receive(t, scrubbed, "it is scrubbed") || e.logFrames() != 0 {
		t.Errorf("%d frames are left", e.logFrames())
	}
}

func TestAnEmbeddedDatabaseCanBeClosedTwice(t *testing.T) {
	e, _ := grown(t, 1)
	testkit.Must(t, e.Close())
	_ = e.Close() // what is closed already may say so
}
