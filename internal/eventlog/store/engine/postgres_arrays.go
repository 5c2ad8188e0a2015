package engine

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// stateType is the type of the i-th of StateColumns; lookup columns are text.
func stateType(i int) string {
	switch i {
	case 2, 3, 4, 7:
		return "bigint"
	case 5:
		return "bytea"
	}
	return "text"
}

// stateArrays turns the records of one kind into an array a column; nil when there are none.
func stateArrays(records []*event.Record, k *pgKind) []any {
	n := 0
	for _, r := range records {
		if r.Kind == k.Name() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	ids, orgs, keys, docs := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	sequences, created, changed, shapes := make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n),
		make([]int64, 0, n)
	hashes := make([][]byte, 0, n)
	columns := make([][]string, len(k.Columns()))
	for _, r := range records {
		if r.Kind != k.Name() {
			continue
		}
		ids, orgs, keys, docs = append(ids, r.ID), append(orgs, r.Org), append(keys, r.KeyID),
			append(docs, string(r.Doc))
		sequences, created, changed = append(sequences, int64(r.Sequence)), append(created, r.Created),
			append(changed, r.Changed)
		shapes, hashes = append(shapes, int64(r.Shape)), append(hashes, r.Hash)
		for i, value := range r.Columns {
			columns[i] = append(columns[i], value)
		}
	}
	args := []any{ids, orgs, sequences, created, changed, hashes, keys, shapes, docs}
	for _, values := range columns {
		args = append(args, values)
	}
	return args
}

// update gives the statement that writes what has changed of the records of one kind, and its arguments; none when
// there are no such records. It names the columns that differ in any of them: PostgreSQL reads an array for each, and
// compares what it is told to set.
func (k *pgKind) update(records []*event.Record, loaded *event.Loaded) (text string, args []any) {
	all := stateArrays(records, k)
	if all == nil {
		return "", nil
	}
	const sequence, changed, hash, doc = 2, 4, 5, 8
	which := uint64(1<<sequence | 1<<changed | 1<<hash | 1<<doc)
	for _, r := range records {
		if r.Kind == k.Name() {
			which |= differing(loaded.Records[r.Ref], r)
		}
	}
	updates := k.updates
	if loaded.Assumed {
		updates = k.guarded
	}
	text, known := updates[which]
	columns := StateColumns(k)
	args = append(args, all[0])
	var names, types, sets []string
	for i, column := range columns {
		if which&(1<<i) == 0 {
			continue
		}
		if args = append(args, all[i]); !known {
			names, types, sets = append(names, column),
				append(types, fmt.Sprintf("$%d::%s[]", len(args), stateType(i))), append(sets, column+" = v."+column)
		}
	}
	if loaded.Assumed {
		args = append(args, k.stood(records, loaded)...)
	}
	if !known {
		if loaded.Assumed {
			names = append(names, stood)
			types = append(types, fmt.Sprintf("$%d::bytea[], $%d::bigint[]", len(args)-1, len(args)))
		}
		text = "UPDATE " + k.Table() + " s SET " + strings.Join(sets,
			", ") + " FROM unnest($1::text[], " + strings.Join(types, ", ") + ") AS v(id, " + strings.Join(names,
			", ") + ") WHERE s.id = v.id"
		if loaded.Assumed {
			text = "WITH changed AS (" + text + " AND " + stillStands + " RETURNING 1) SELECT " + raiseUnlessAll +
				" FROM changed"
		}
		updates[which] = text
	}
	return text, args
}

// differing tells in which of StateColumns two records of an object differ.
func differing(old, now *event.Record) (which uint64) {
	for i, differs := range [...]bool{1: old.Org != now.Org, 3: old.Created != now.Created, 6: old.KeyID != now.KeyID,
		7: old.Shape != now.Shape} {
		if differs {
			which |= 1 << i
		}
	}
	for i, value := range now.Columns {
		if i >= len(old.Columns) || old.Columns[i] != value {
			which |= 1 << (9 + i)
		}
	}
	return which
}

const insertEvents = "INSERT INTO events (" + EventColumns + ") " +
	"SELECT h.position - cardinality($1::text[]) + v.n, v.object_id, v.sequence, v.org_id, v.type, v.payload, v.sealed, v.key_id, v.prev_hash, v.actor, v.request_id, v.time " +
	"FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bytea[], $9::text[], $10::text[], $11::bigint[]) " +
	"WITH ORDINALITY AS v(object_id, sequence, org_id, type, payload, sealed, key_id, prev_hash, actor, request_id, time, n), log_head h WHERE h.id = 1"

func eventArrays(events []event.Event) []any {
	n := len(events)
	ids, orgs, types, payloads := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	keys, actors, requests := make([]string, n), make([]string, n), make([]string, n)
	sequences, times := make([]int64, n), make([]int64, n)
	sealed, hashes := make([][]byte, n), make([][]byte, n)
	for i := range events {
		e := &events[i]
		ids[i], sequences[i], orgs[i], types[i], payloads[i], sealed[i] = e.ObjectID, int64(e.Sequence), e.Org,
			string(e.Type), string(e.Payload), e.Sealed
		keys[i], hashes[i], actors[i], requests[i], times[i] = e.KeyID, e.PrevHash, e.Actor, e.RequestID, e.Time
	}
	return []any{ids, sequences, orgs, types, payloads, sealed, keys, hashes, actors, requests, times}
}

// queueWords queues the changes to what objects are found by, behind the lock on the head of the log: one writer at a
// time changes it, and the writer that has the lock sees how far the change from words to terms has come.
func (e *pgEngine) queueWords(b *pgx.Batch, c *event.Changes, learned numbers) {
	e.queueTerms(b, c, learned)
	for _, w := range c.Lost {
		b.Queue(e.text(deleteWord), w.ObjectID, w.Word)
	}
	if len(c.Found) > 0 {
		var ids, words, orgs []string
		for _, w := range c.Found {
			ids, words, orgs = append(ids, w.ObjectID), append(words, w.Word), append(orgs, w.Org)
		}
		b.Queue("INSERT INTO words (object_id, word, org_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = $4) ON CONFLICT DO NOTHING",
			ids, words, orgs, WordBlocksRow)
	}
}

// insertTogether inserts rows of side tables with one statement per table, because an import of users writes two rows
// for each user.
func insertTogether(b *pgx.Batch, rows []event.Row, ending string, exec func(sql string, args ...any) error) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Table == rows[0].Table {
			n++
		}
		if n == 1 {
			if err := insertEach(rows[:1], ending, exec); err != nil {
				return err
			}
		} else {
			keys, values, expires := make([]string, n), make([][]byte, n), make([]int64, n)
			for i, r := range rows[:n] {
				keys[i], values[i], expires[i] = r.Key, r.Value, r.Expires
			}
			b.Queue("INSERT INTO "+string(rows[0].Table)+" (key, value, expires) "+
				"SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[])"+ending, keys, values, expires)
		}
		rows = rows[n:]
	}
	return nil
}
