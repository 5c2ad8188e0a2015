package proof_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/test/testdb"
)

const size = 1030 // a full checkpoint, and a head with something in it

// flipped changes one byte of a value, or makes something of nothing.
func flipped(value any, at int) any {
	switch v := value.(type) {
	case int64:
		return v ^ 1<<20 // as for any small change there, but no other event has that number
	case string:
		return string(flipped([]byte(v), at).([]byte))
	case []byte:
		if len(v) == 0 {
			return []byte("x")
		}
		b := append([]byte(nil), v...)
		b[at%len(b)] ^= 1
		return b
	}
	return []byte("x")
}

func TestAFlippedByteInAnyColumnOfAnyEventIsFound(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		events := w.sealed(t, size)
		columns := map[string]bool{
			"payload":    true,
			"object_id":  true,
			"org_id":     true,
			"type":       true,
			"key_id":     true,
			"actor":      true,
			"request_id": true,
			"position":   true,
			"sequence":   true,
			"time":       true,
			"sealed":     false,
			"prev_hash":  false,
		}
		for _, position := range []int64{1, 517, 1000, 1001, size} {
			for column, text := range columns {
				var value any
				if err := w.sql.QueryRow(fmt.Sprintf("SELECT %s FROM events WHERE position = %d", column,
					position)).Scan(&value); err != nil {
					t.Fatal(err)
				}
				for _, at := range []int{0, 1 << 20} {
					changed := flipped(value, at)
					if b, ok := changed.([]byte); ok && text {
						changed = string(b)
					}
					set := func(from, to any) {
						w.exec(t, "UPDATE events SET "+column+" = ? WHERE position = ?", to, from)
					}
					if column == "position" {
						w.exec(t, "UPDATE events SET position = ? WHERE position = ?", changed, position)
					} else {
						set(position, changed)
					}
					f := w.verify(t, nil).Finding
					if f == nil {
						t.Fatalf("%s of event %d: not found", column, position)
					}
					if f.Position != position {
						t.Errorf("%s of event %d: %s", column, position, f)
					}
					if column == "payload" &&
						(f.ObjectID != events[position-1].ObjectID || f.Sequence != events[position-1].Sequence ||
							f.Type != events[position-1].Type) {
						t.Errorf("%s is not event %d", f, position)
					}
					if column == "position" {
						w.exec(t, "UPDATE events SET position = ? WHERE position = ?", position, changed)
					} else {
						set(position, value)
					}
				}
			}
		}
		w.wantClean(t, size, 0)
	})
}

// recompute changes an event, and all hashes behind it.
func (w *database) recompute(t *testing.T, events []event.Event, position int64) {
	t.Helper()
	target := events[position-1]
	target.Payload = []byte(`{"note":"forged"}`)
	w.exec(t, "UPDATE events SET payload = ? WHERE position = ?", string(target.Payload), position)
	hash := target.Hash()
	for _, e := range events[position:] {
		if e.ObjectID == target.ObjectID {
			e.PrevHash = hash
			w.exec(t, "UPDATE events SET prev_hash = ? WHERE position = ?", hash, e.Position)
			hash = e.Hash()
		}
	}
	w.exec(t, "UPDATE "+table(target.ObjectID)+" SET hash = ? WHERE id = ?", hash, target.ObjectID)
}

func table(id string) string {
	if strings.HasPrefix(id, "usr_") {
		return "users"
	}
	return "sign_ins"
}

// closeUp moves everything behind a position forward by one, as if nothing had been there.
func (w *database) closeUp(t *testing.T, position int64) {
	t.Helper()
	w.exec(t, "UPDATE events SET position = -position WHERE position > ?", position)
	w.exec(t, "UPDATE events SET position = -position - 1 WHERE position < 0")
	w.exec(t, "UPDATE log_head SET position = position - 1")
}

func (w *database) makeRoom(t *testing.T, position int64) {
	t.Helper()
	w.exec(t, "UPDATE events SET position = -position WHERE position >= ?", position)
	w.exec(t, "UPDATE events SET position = -position + 1 WHERE position < 0")
	w.exec(t, "UPDATE log_head SET position = position + 1")
}

// setBack makes the state of an object that of one event less.
func (w *database) setBack(t *testing.T, last event.Event) {
	t.Helper()
	if last.Sequence == 1 {
		w.exec(t, "DELETE FROM "+table(last.ObjectID)+" WHERE id = ?", last.ObjectID)
		return
	}
	w.exec(t, "UPDATE "+table(last.ObjectID)+" SET sequence = ?, hash = ? WHERE id = ?", int64(last.Sequence)-1,
		last.PrevHash, last.ObjectID)
}

func (w *database) swap(t *testing.T, a, b int64) {
	t.Helper()
	w.exec(t, "UPDATE events SET position = -1 WHERE position = ?", a)
	w.exec(t, "UPDATE events SET position = ? WHERE position = ?", a, b)
	w.exec(t, "UPDATE events SET position = ? WHERE position = -1", b)
}

func (w *database) insert(t *testing.T, e event.Event) {
	t.Helper()
	w.exec(t, "INSERT INTO events (position, object_id, sequence, org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		e.Position, e.ObjectID, int64(e.Sequence), e.Org, string(e.Type), string(e.Payload), e.Sealed, e.KeyID,
		e.PrevHash, e.Actor, e.RequestID, e.Time)
}

// reseal writes all checkpoints anew with another key: what somebody can do who does not have the right one.
func (w *database) reseal(t *testing.T) {
	t.Helper()
	w.exec(t, "DELETE FROM checkpoints")
	e, key := w.engine(t), secret.NewMasterKey()
	defer e.Close()
	if err := e.Transact(t.Context(),
		func(x engine.Executor) error { return proof.Begin(t.Context(), x, key) }); err != nil {
		t.Fatal(err)
	}
	sealer := proof.Sealer{Engine: e, Root: key, Log: slog.New(slog.DiscardHandler)}
	if _, err := sealer.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// spoil changes bytes of a column of a checkpoint.
func (w *database) spoil(t *testing.T, number int64, column string, at int) {
	t.Helper()
	var value []byte
	if err := w.sql.QueryRow(fmt.Sprintf("SELECT %s FROM checkpoints WHERE number = %d", column,
		number)).Scan(&value); err != nil {
		t.Fatal(err)
	}
	w.exec(t, "UPDATE checkpoints SET "+column+" = ? WHERE number = ?", flipped(value, at), number)
}

func TestWhatSomebodyDoesToTheLogIsFound(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 1010)
		w.save(t, "older") // another head of the same range
		s, _ := w.open(t, never)
		fill(t, s, size-1010)
		events, err := s.Events(t.Context(), 0, size+1)
		if err != nil || len(events) != size {
			t.Fatal(len(events), err)
		}
		s.Close()
		w.save(t, "right")
		last := events[size-1]
		var other event.Event // the one before the last that is of another object
		for i := size - 2; other.ObjectID == ""; i-- {
			if events[i].ObjectID != last.ObjectID {
				other = events[i]
			}
		}
		long := events[size/2]
		for long.Sequence < 5 {
			long = events[long.Position]
		}
		for _, c := range []struct {
			name     string
			do       func(t *testing.T)
			position int64 // that must be named
			what     string
		}{
			{"the last event is removed",
				func(t *testing.T) { w.exec(t, "DELETE FROM events WHERE position = ?", size) }, size,
				"there is no event"},
			{"the last event is removed, and the end of the log set back", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = ?", size)
				w.exec(t, "UPDATE log_head SET position = position - 1")
			}, size, "sealed up to position 1030"},
			{"the last event is removed, and everything set back but the checkpoints", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = ?", size)
				w.exec(t, "UPDATE log_head SET position = position - 1")
				w.setBack(t, last)
			}, size, "sealed up to position 1030"},
			{"the log is cut off before a full checkpoint", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position > 700")
				w.exec(t, "UPDATE log_head SET position = 700")
			}, 701, "sealed up to position 1000"},
			{"the log is cut off and its head removed", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position > 1005")
				w.exec(t, "UPDATE log_head SET position = 1005")
				w.exec(t, "DELETE FROM checkpoints WHERE number = 0")
			}, 1001, "head of the checkpoints was removed"},
			{"the end of the log is set back",
				func(t *testing.T) { w.exec(t, "UPDATE log_head SET position = position - 1") }, size,
				"sealed up to position 1030"},
			{"an event is removed from the middle",
				func(t *testing.T) { w.exec(t, "DELETE FROM events WHERE position = 400") }, 400, "there is no event"},
			{"an event is removed from the middle, and the gap closed", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = 400")
				w.closeUp(t, 400)
			}, 400, "not the event that was sealed"},
			{"an event of the head is removed, and the gap closed", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = 1015")
				w.closeUp(t, 1015)
			}, 1015, "not the event that was sealed"},
			{"two events are swapped", func(t *testing.T) { w.swap(t, 300, 900) }, 300,
				"not the event that was sealed"},
			{"two events of the head are swapped", func(t *testing.T) { w.swap(t, other.Position, size) },
				other.Position, "not the event that was sealed"},
			{"an event is inserted", func(t *testing.T) {
				w.makeRoom(t, 600)
				e := events[10]
				e.Position, e.ObjectID, e.Sequence, e.PrevHash = 600, "usr_new", 1, nil
				w.insert(t, e)
			}, 600, "not the event that was sealed"},
			{"an event is inserted before the beginning", func(t *testing.T) {
				e := events[10]
				e.Position, e.ObjectID, e.Sequence, e.PrevHash = 0, "usr_new", 1, nil
				w.insert(t, e)
			}, 0, "before the beginning"},
			{"an event is inserted behind the end", func(t *testing.T) {
				e := events[10]
				e.Position, e.ObjectID, e.Sequence, e.PrevHash = 5000, "usr_new", 1, nil
				w.insert(t, e)
			}, size + 1, "there is an event at position 5000"},
			{"a number is below zero",
				func(t *testing.T) { w.exec(t, "UPDATE events SET sequence = -7 WHERE position = 1020") }, 1020,
				"cannot be read"},
			{"a chain is computed anew", func(t *testing.T) { w.recompute(t, events, long.Position) }, long.Position,
				"not the event that was sealed"},
			{"a chain is computed anew from the head on", func(t *testing.T) { w.recompute(t, events, 1012) }, 1012,
				"not the event that was sealed"},
			{"a chain and the checkpoints are computed anew", func(t *testing.T) {
				w.recompute(t, events, long.Position)
				w.reseal(t)
			}, 1, "the checkpoint was changed too"},
			{"a chain is computed anew, and its tag spoilt", func(t *testing.T) {
				w.recompute(t, events, 1012)
				w.spoil(t, 0, "tags", 11*8)
			}, 1012, "the checkpoint was changed too"},
			{"a chain is computed anew, and its checkpoint removed", func(t *testing.T) {
				w.recompute(t, events, long.Position)
				w.exec(t, "DELETE FROM checkpoints WHERE number = 1")
			}, 1, "the checkpoint of positions 1 to 1000 is missing"},
			{"a chain is computed anew, and the head removed", func(t *testing.T) {
				w.recompute(t, events, 1012)
				w.exec(t, "DELETE FROM checkpoints WHERE number = 0")
			}, 1001, "head of the checkpoints was removed"},
			{"a chain is computed anew, and all checkpoints removed", func(t *testing.T) {
				w.recompute(t, events, long.Position)
				w.exec(t, "DELETE FROM checkpoints")
			}, 1, "head of the checkpoints was removed"},
			{"all checkpoints are removed", func(t *testing.T) { w.exec(t, "DELETE FROM checkpoints") }, 1,
				"head of the checkpoints was removed"},
			{"the head is one of an earlier range", func(t *testing.T) {
				w.exec(t, "DELETE FROM checkpoints WHERE number = 0")
				w.exec(t, "INSERT INTO checkpoints SELECT 0, position, digest, tags, seal FROM checkpoints WHERE number = 1")
			}, 1001, "the checkpoint was changed too"},
			{"a full checkpoint goes under another number", func(t *testing.T) {
				w.exec(t, "INSERT INTO checkpoints SELECT 2, position, digest, tags, seal FROM checkpoints WHERE number = 1")
			}, 1001, "not the event that was sealed"},
			{"the seal of a checkpoint is spoilt", func(t *testing.T) { w.spoil(t, 1, "seal", 5) }, 1,
				"the checkpoint of positions 1 to 1000 was changed"},
			{"the digest of a checkpoint is spoilt", func(t *testing.T) { w.spoil(t, 1, "digest", 5) }, 1,
				"the checkpoint of positions 1 to 1000 was changed"},
			{"the digest of the head is spoilt", func(t *testing.T) { w.spoil(t, 0, "digest", 5) }, 1001,
				"the head of the checkpoints was changed"},
			{"the head covers less than it says",
				func(t *testing.T) { w.exec(t, "UPDATE checkpoints SET position = 1011 WHERE number = 0") }, 1001,
				"the head of the checkpoints was changed"},
			{"a checkpoint of nothing is there", func(t *testing.T) {
				w.exec(t, "INSERT INTO checkpoints SELECT 9000000000000000000, position, digest, tags, seal FROM checkpoints WHERE number = 1")
			}, 1001, "is missing"},
			{"a state is that of an event less", func(t *testing.T) { w.setBack(t, last) }, 0, ""},
			{"a state is gone", func(t *testing.T) { w.exec(t, "DELETE FROM users WHERE id = 'usr_3'") }, 0,
				"1 objects of the table users have events but no state"},
			{"a state stands in the table of another kind", func(t *testing.T) {
				w.exec(t, "INSERT INTO sign_ins SELECT id, org_id, sequence, created, changed, hash, key_id, shape, doc FROM users WHERE id = 'usr_3'")
				w.exec(t, "DELETE FROM users WHERE id = 'usr_3'")
			}, 0, "1 objects of the table users have events but no state"},
			{"a state stands in two tables, and another is gone", func(t *testing.T) {
				w.exec(t, "INSERT INTO sign_ins SELECT id, org_id, sequence, created, changed, hash, key_id, shape, doc FROM users WHERE id = 'usr_4'")
				w.exec(t, "DELETE FROM users WHERE id = 'usr_3'")
			}, 0, "1 objects of the table users have events but no state"},
			{"a state stands in two tables", func(t *testing.T) {
				w.exec(t, "INSERT INTO sign_ins SELECT id, org_id, sequence, created, changed, hash, key_id, shape, doc FROM users WHERE id = 'usr_4'")
			}, 0, "1 states in the table sign_ins belong to objects of another kind"},
			{"a state has no events",
				func(t *testing.T) { w.exec(t, "UPDATE users SET id = 'usr_x' WHERE id = 'usr_3'") }, 0,
				"the log has only 0 of them"},
			{"the hash of a state is spoilt", func(t *testing.T) {
				w.exec(t, "UPDATE users SET hash = ? WHERE id = ?", make([]byte, 32), events[0].ObjectID)
			}, 0, "computed from another event"},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.do(t)
				defer w.restore(t, "right")
				r := w.verify(t, nil)
				if r.Finding == nil {
					t.Fatal("it is not found")
				}
				if c.position != 0 && r.Finding.Position != c.position ||
					!strings.Contains(r.Finding.String(), c.what) {
					t.Errorf("%s; want position %d and %q", r.Finding, c.position, c.what)
				}
			})
		}
		w.wantClean(t, size, 0)
	})
}

func TestAnOlderHeadIsFound(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		w.save(t, "older")
		w.clock.Advance(2 * time.Minute)
		s, _ := w.open(t, never)
		fill(t, s, 10)
		w.clock.Advance(2 * time.Minute)
		fill(t, s, 10)
		events, err := s.Events(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		w.wantClean(t, 40, 0)
		w.recompute(t, events, 25)
		w.restore(t, "older", "checkpoints")
		found := func(what string) {
			t.Helper()
			if f := w.verify(t, nil).Finding; f == nil || f.Position != 21 ||
				!strings.Contains(f.What, "the head of the checkpoints was replaced by an older one") {
				t.Errorf("%s: %v", what, f)
			}
		}
		found("replaced by an older one")
		for _, when := range []int64{events[39].Time, math.MinInt64, math.MaxInt64} {
			events[20].Time = when
			w.exec(t, "UPDATE events SET time = ? WHERE position = 21", when)
			w.recompute(t, events, 21)
			found(fmt.Sprint("the first of the events is said to be of ", when))
		}
		s, log := w.open(t, never)
		if s.Close(); !log.Has("sealing older events") {
			t.Errorf("sealed without a word: %s", log.String())
		}
	})
}

func TestAnOlderCopyOfEverythingIsFoundByWhoKeptTheHead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		w.save(t, "older")
		earlier := w.wantClean(t, 20, 0).Head
		s, _ := w.open(t, never)
		fill(t, s, 10)
		s.Close()
		later := w.wantClean(t, 30, 0).Head
		for _, mark := range []*proof.Mark{&earlier, &later} {
			if f := w.verify(t, mark).Finding; f != nil {
				t.Errorf("%v: %s", mark, f)
			}
		}
		w.restore(t, "older")
		w.wantClean(t, 20, 0)
		if f := w.verify(t, &earlier).Finding; f != nil {
			t.Errorf("what the copy contains: %s", f)
		}
		if f := w.verify(t, &later).Finding; f == nil || f.Position != 21 || !strings.Contains(f.What, "older copy") {
			t.Errorf("%v", f)
		}
		// And what goes on from there is another log.
		s, _ = w.open(t, never)
		if err := add(s, "usr_0", 15); err != nil {
			t.Fatal(err)
		}
		s.Close()
		w.wantClean(t, 35, 0)
		if f := w.verify(t, &later).Finding; f == nil || f.Position != 30 ||
			!strings.Contains(f.What, "not the expected one") {
			t.Errorf("%v", f)
		}
	})
}

// The events behind the head are held by their chains and by the states alone.
func TestWhatIsNotSealedYetIsCheckedByItsChains(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := newDatabase(t, db)
		w.sealed(t, 20)
		var events []event.Event
		w.unsealed(t, func(s *store.Store) {
			for i := range 12 {
				if err := add(s, fmt.Sprint("usr_", i%3), 1); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if events, err = s.Events(t.Context(), 0, 100); err != nil {
				t.Fatal(err)
			}
		})
		r := w.wantClean(t, 32, 12)
		if r.Since != events[20].Time {
			t.Errorf("%+v", r)
		}
		w.save(t, "right")
		last := events[31]
		for _, c := range []struct {
			name     string
			do       func(t *testing.T)
			position int64
			what     string
		}{
			{"a payload is changed",
				func(t *testing.T) { w.exec(t, "UPDATE events SET payload = '{}' WHERE position = 23") }, 26,
				"at position 23: one of the two was changed"},
			{"the payload of a last event is changed",
				func(t *testing.T) { w.exec(t, "UPDATE events SET payload = '{}' WHERE position = 32") }, 32,
				"computed from another event"},
			{"a hash is changed",
				func(t *testing.T) {
					w.exec(t, "UPDATE events SET prev_hash = ? WHERE position = 25", make([]byte, 32))
				}, 25, "one of the two was changed"},
			{"the last event is removed without its state", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = 32")
				w.exec(t, "UPDATE log_head SET position = 31")
			}, 0, "it is missing"},
			{"the last event is removed and its state set back", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = 32")
				w.setBack(t, last)
			}, 32, "there is no event"},
			{"an event is removed and the gap closed", func(t *testing.T) {
				w.exec(t, "DELETE FROM events WHERE position = 24")
				w.closeUp(t, 24)
			}, 26, "the previous event is missing"},
			{"two events of one object are swapped", func(t *testing.T) { w.swap(t, 23, 26) }, 23,
				"moved behind this one"},
			{"two events have one number", func(t *testing.T) {
				if _, err := w.sql.Exec("DROP INDEX events_object"); err != nil {
					t.Fatal(err)
				}
				e := events[25]
				e.Position = 33
				w.insert(t, e)
				w.exec(t, "UPDATE log_head SET position = 33")
			}, 33, "the event at position 26 has the same number"},
			{"an event begins a chain that has begun", func(t *testing.T) {
				e := events[25]
				e.Position, e.ObjectID, e.Sequence = 33, "usr_new", 1
				w.insert(t, e)
				w.exec(t, "UPDATE log_head SET position = 33")
			}, 33, "it is the first event of its object"},
			{"an event follows that its state does not know", func(t *testing.T) {
				e := last
				e.Position, e.Sequence, e.PrevHash = 33, e.Sequence+1, last.Hash()
				w.insert(t, e)
				w.exec(t, "UPDATE log_head SET position = 33")
			}, 33, "it was inserted"},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.do(t)
				defer w.restore(t, "right")
				for _, remembered := range []int{1 << 20, 1} { // chains; the others are looked up
					before := proof.RememberChains(remembered)
					f := w.verify(t, nil).Finding
					proof.RememberChains(before)
					if f == nil {
						t.Fatal("it is not found")
					}
					if f.Position != c.position || !strings.Contains(f.String(), c.what) {
						t.Errorf("%s; want position %d and %q", f, c.position, c.what)
					}
				}
			})
		}
		proof.RememberChains(1)
		w.wantClean(t, 32, 12)
		proof.RememberChains(1 << 20)
	})
}

// No hash tells an empty value from none. SQLite's driver does not either, so there it is the same to everybody.
func TestAnEmptyValueWhereThereWasNoneIsFound(t *testing.T) {
	w := newDatabase(t, testdb.New(t, testdb.Postgres))
	w.sealed(t, 20)
	for _, column := range []string{"sealed", "prev_hash"} {
		w.exec(t, "UPDATE events SET "+column+" = ? WHERE position = 4 AND "+column+" IS NULL", []byte{})
		if f := w.verify(t, nil).Finding; f == nil || f.Position != 4 ||
			!strings.Contains(f.What, "a column that must have a value is empty") {
			t.Errorf("%s: %v", column, f)
		}
		w.exec(t, "UPDATE events SET "+column+" = NULL WHERE position = 4")
	}
	w.wantClean(t, 20, 0)
}
