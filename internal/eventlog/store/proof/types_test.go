package proof_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
)

// other gives statements that keep what a column says in another type. SQLite finds the value under no index any more,
// so lists leave it out.
func other(column string) string {
	switch column {
	case "sealed", "prev_hash":
		return "UPDATE events SET " + column + " = CAST(" + column + " AS TEXT) WHERE position = ? AND " +
			column + " IS NOT NULL"
	case "sequence", "time":
		return "UPDATE events SET " + column + " = CAST(CAST(" + column + " AS TEXT) AS BLOB) WHERE position = ?"
	}
	return "UPDATE events SET " + column + " = CAST(" + column + " AS BLOB) WHERE position = ?"
}

func TestAValueOfAnotherTypeIsFound(t *testing.T) {
	w := newDatabase(t, testdb.New(t, testdb.SQLite))
	events := w.sealed(t, 20)
	position := int64(1) // of an event that has every column
	for events[position-1].PrevHash == nil || events[position-1].Sealed == nil {
		position++
	}
	w.save(t, "right")
	for _, column := range []string{"object_id", "sequence", "org_id", "type", "payload", "sealed", "key_id",
		"prev_hash", "actor", "request_id", "time"} {
		w.exec(t, other(column), position)
		if f := w.verify(t, nil).Finding; f == nil || f.Position != position ||
			!strings.Contains(f.What, "the event cannot be read, so it was changed") {
			t.Errorf("%s: %v", column, f)
		}
		w.restore(t, "right")
	}
	for _, c := range []struct{ name, statement, what string }{
		{"the head", "UPDATE checkpoints SET position = 'x' WHERE number = 0",
			"the head of the checkpoints was changed"},
		{"the end of the log", "UPDATE log_head SET position = 'x'",
			"the end of the log cannot be read, so it was changed"},
		{"the number of a state", "UPDATE users SET sequence = 'x' WHERE id = 'usr_0'",
			`the state of "usr_0" in the table users cannot be read, so it was changed`},
		{"the hash of a state", "UPDATE users SET hash = CAST(hash AS TEXT) WHERE id = 'usr_0'",
			`the state of "usr_0" in the table users cannot be read, so it was changed`},
		{"the name of a state", "UPDATE users SET id = CAST(id AS BLOB) WHERE id = 'usr_0'",
			`the state of "" in the table users cannot be read, so it was changed`},
	} {
		w.exec(t, c.statement)
		if f := w.verify(t, nil).Finding; f == nil || !strings.Contains(f.String(), c.what) {
			t.Errorf("%s: %v", c.name, f)
		}
		w.restore(t, "right")
	}
	w.wantClean(t, 20, 0)
}

func TestASealerDoesNotSealAValueOfAnotherType(t *testing.T) {
	w := newDatabase(t, testdb.New(t, testdb.SQLite))
	w.sealed(t, 20)
	w.unsealed(t, func(s *store.Store) { fill(t, s, 10) })
	w.exec(t, other("org_id"), 25)
	before := w.checkpoints(t)
	s, log := w.open(t, never)
	if s.Close(); !log.Has("event 25 cannot be read") || w.checkpoints(t) != before {
		t.Error(log.String())
	}
}
