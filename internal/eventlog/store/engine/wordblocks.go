package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Mask is the part of a row of word_blocks that says which of its 256 numbers have the term.
type Mask [4]uint64

// Block tells where a number has its bit: in which row, and of its mask in which word and where in it.
func Block(number int64) (block int64, word int, bit uint64) {
	return number >> 8, int(number>>6) & 3, 1 << (number & 63)
}

// All are the numbers of a block that are in a mask, from the least.
func (m Mask) All(block int64) iter.Seq[int64] {
	return func(yield func(number int64) bool) {
		for word, set := range m {
			for ; set != 0; set &= set - 1 {
				if !yield(block<<8 | int64(word)<<6 | int64(bits.TrailingZeros64(set))) {
					return
				}
			}
		}
	}
}

// MaskOf reads the columns m0 to m3.
func MaskOf(columns [4]int64) Mask {
	return Mask{uint64(columns[0]), uint64(columns[1]), uint64(columns[2]), uint64(columns[3])}
}

// appendTo appends the values of the columns m0 to m3.
func (m Mask) appendTo(values []any) []any {
	return append(values, int64(m[0]), int64(m[1]), int64(m[2]), int64(m[3]))
}

// EveryOrg is the number for all organizations together. None has it.
const EveryOrg = 0

// OrgNumber is the number of an organization in word_blocks. Two organizations may have the same number, so a search
// has to check which one an object belongs to.
func OrgNumber(org string) int64 {
	sum := sha256.Sum256([]byte(org))
	return int64(binary.BigEndian.Uint32(sum[:])) + 1
}

type blockKey struct {
	org   int64
	term  string
	block int64
}

// blockChange says which bits of a row are set and cleared.
type blockChange struct{ set, clear Mask }

// BlockChanges gathers what is to be changed in word_blocks, so that each row is written once.
type BlockChanges map[blockKey]blockChange

// Set notes that an object has terms, or has them no longer.
func (b BlockChanges) Set(org int64, number int64, has bool, terms ...string) {
	block, word, bit := Block(number)
	for _, term := range terms {
		key := blockKey{org, term, block}
		change := b[key]
		if has {
			change.set[word] |= bit
			change.clear[word] &^= bit
		} else {
			change.clear[word] |= bit
			change.set[word] &^= bit
		}
		b[key] = change
	}
}

const (
	setBits = "INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org, term, block) DO UPDATE SET " +
		"m0 = word_blocks.m0 | excluded.m0, m1 = word_blocks.m1 | excluded.m1, m2 = word_blocks.m2 | excluded.m2, m3 = word_blocks.m3 | excluded.m3"
	changeBits = "INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org, term, block) DO UPDATE SET " +
		"m0 = word_blocks.m0 & ? | excluded.m0, m1 = word_blocks.m1 & ? | excluded.m1, m2 = word_blocks.m2 & ? | excluded.m2, m3 = word_blocks.m3 & ? | excluded.m3"
	ofBlock = " WHERE org = ? AND term = ? AND block = ?"
	// A row without a bit is nobody's, and its term may be somebody's name.
	dropBlock = "DELETE FROM word_blocks" + ofBlock + " AND m0 & ? = 0 AND m1 & ? = 0 AND m2 & ? = 0 AND m3 & ? = 0"
	clearBits = "UPDATE word_blocks SET m0 = m0 & ?, m1 = m1 & ?, m2 = m2 & ?, m3 = m3 & ?" + ofBlock
)

// keys are those of the rows, in their order.
func (b BlockChanges) keys() []blockKey {
	keys := make([]blockKey, 0, len(b))
	for key := range b {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y blockKey) int {
		return cmp.Or(cmp.Compare(x.org, y.org), cmp.Compare(x.term, y.term), cmp.Compare(x.block, y.block))
	})
	return keys
}

// rows gives what to write, row by row in their order: what sets bits, or else what deletes the row if no bit is left,
// and what clears bits otherwise.
func (b BlockChanges) rows(each func(set, drop, clear *Statement) error) error {
	for _, key := range b.keys() {
		change := b[key]
		row := []any{key.org, key.term, key.block}
		kept := Mask{^change.clear[0], ^change.clear[1], ^change.clear[2], ^change.clear[3]}
		var err error
		switch {
		case change.clear == Mask{}:
			err = each(&Statement{setBits, change.set.appendTo(row)}, nil, nil)
		case change.set != Mask{}:
			err = each(&Statement{changeBits, kept.appendTo(change.set.appendTo(row))}, nil, nil)
		default:
			err = each(nil, &Statement{dropBlock, kept.appendTo(row)},
				&Statement{clearBits, append(kept.appendTo(nil), row...)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Statements write the changes.
func (b BlockChanges) Statements() (all []Statement) {
	_ = b.rows(func(set, drop, clear *Statement) error {
		for _, s := range []*Statement{set, drop, clear} {
			if s != nil {
				all = append(all, *s)
			}
		}
		return nil
	})
	return all
}

// WriteBlocks writes the changes, with as few statements as the database can.
func WriteBlocks(ctx context.Context, x Executor, b BlockChanges) error {
	if arrays, ok := x.(interface {
		writeBlocks(ctx context.Context, b BlockChanges) error
	}); ok {
		return arrays.writeBlocks(ctx, b)
	}
	return ExecAll(ctx, x, b.Statements())
}

// FirstPosition finds the number of an object.
const FirstPosition = "SELECT position FROM events WHERE object_id = ? AND sequence = 1"

// reindex writes what has changed about terms. Events have their positions.
func (e *sqliteEngine) reindex(ctx context.Context, c *event.Changes) error {
	if len(c.Indexed)+len(c.Unindexed) == 0 {
		return nil
	}
	created := map[string]int64{}
	for i := range c.Events {
		if c.Events[i].Sequence == 1 {
			created[c.Events[i].ObjectID] = c.Events[i].Position
		}
	}
	changes := make(BlockChanges, len(c.Indexed)+len(c.Unindexed))
	org, orgNumber := "", OrgNumber("")
	for i, terms := range [...][]event.Term{c.Unindexed, c.Indexed} {
		for _, t := range terms {
			number, isNew := created[t.ObjectID]
			if !isNew {
				var err error
				if number, err = e.number(t.ObjectID); err != nil {
					return err
				}
			}
			if t.Org != org {
				org, orgNumber = t.Org, OrgNumber(t.Org)
			}
			changes.Set(orgNumber, number, i == 1, t.Term)
		}
	}
	return changes.rows(func(set, drop, clear *Statement) error {
		if set != nil {
			return e.Exec(ctx, set.SQL, set.Args...)
		}
		if err := e.Exec(ctx, drop.SQL, drop.Args...); err != nil || e.conn.Changed() > 0 {
			return err
		}
		return e.Exec(ctx, clear.SQL, clear.Args...)
	})
}

// number gives that of an object that was there before this batch.
func (e *sqliteEngine) number(id string) (number int64, err error) {
	if number, known := e.numbers[id]; known {
		return number, nil
	}
	if found, err := e.row(FirstPosition, []any{id}, []any{&number}); err != nil || !found {
		return 0, cmp.Or(err, fmt.Errorf("%s has no first event", id))
	}
	e.numbers.keep(id, number)
	return number, nil
}

// numbers are those of some objects. They never change.
type numbers map[string]int64

func (n *numbers) keep(id string, number int64) {
	const most = 10_000
	if *n == nil || len(*n) >= most {
		*n = numbers{}
	}
	(*n)[id] = number
}

// The same on PostgreSQL, in one round trip with the rest. The writer knows the numbers of objects whose terms it has
// changed before; those of others are found by the statements. All kinds of rows are alike: what changes in a row of
// the table.
const (
	knownBits = "SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) AS v(org, term, block, m0, m1, m2, m3)"
	// A number is looked up by its object, whatever the planner thinks of the table.
	foundNumbers = "SELECT v.org, v.term, (SELECT e.position FROM events e WHERE e.object_id = v.id AND e.sequence = 1) AS number " +
		"FROM unnest($1::text[], $2::text[], $3::bigint[]) AS v(id, term, org) OFFSET 0"
	// That of a new object follows from which of the events of the batch is its first, of how many.
	newNumbers = "SELECT v.org, v.term, h.position - $4 + v.nth AS number FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS v(nth, term, org), log_head h WHERE h.id = 1"
	bitsOf     = "SELECT w.org, w.term, w.number >> 8 AS block, " +
		"bit_or(CASE WHEN w.word = 0 THEN w.bit ELSE 0 END) AS m0, bit_or(CASE WHEN w.word = 1 THEN w.bit ELSE 0 END) AS m1, " +
		"bit_or(CASE WHEN w.word = 2 THEN w.bit ELSE 0 END) AS m2, bit_or(CASE WHEN w.word = 3 THEN w.bit ELSE 0 END) AS m3 " +
		"FROM (SELECT n.org, n.term, n.number, (n.number >> 6) & 3 AS word, 1::bigint << (n.number & 63)::int AS bit FROM ("
	ofNumbers = ") n) w GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
	foundBits = bitsOf + foundNumbers + ofNumbers

	intoBlocks = "INSERT INTO word_blocks (org, term, block, m0, m1, m2, m3) "
	withBits   = " ON CONFLICT (org, term, block) DO UPDATE SET " +
		"m0 = word_blocks.m0 | excluded.m0, m1 = word_blocks.m1 | excluded.m1, m2 = word_blocks.m2 | excluded.m2, m3 = word_blocks.m3 | excluded.m3"
	pgSetKnown = intoBlocks + knownBits + withBits
	pgSetFound = intoBlocks + foundBits + withBits
	pgSetNew   = intoBlocks + bitsOf + newNumbers + ofNumbers + withBits

	// Each row is looked up once, by its key, also while the planner takes the table for a small one; then it is where
	// it was found: one writer at a time changes the table. What is deleted would have no bit left.
	ofRows   = "WITH x AS MATERIALIZED (SELECT b.* FROM ("
	lessBits = ") v CROSS JOIN LATERAL (SELECT w.ctid AS at, w.m0 & ~v.m0 AS m0, w.m1 & ~v.m1 AS m1, w.m2 & ~v.m2 AS m2, w.m3 & ~v.m3 AS m3 " +
		"FROM word_blocks w WHERE w.org = v.org AND w.term = v.term AND w.block = v.block OFFSET 0) b), " +
		"less AS (UPDATE word_blocks b SET m0 = x.m0, m1 = x.m1, m2 = x.m2, m3 = x.m3 FROM x WHERE b.ctid = x.at AND x.m0 | x.m1 | x.m2 | x.m3 <> 0) " +
		"DELETE FROM word_blocks b USING x WHERE b.ctid = x.at AND x.m0 | x.m1 | x.m2 | x.m3 = 0"
	pgClearKnown = ofRows + knownBits + lessBits
	pgClearFound = ofRows + foundBits + lessBits
)

// queueTerms queues what has changed about terms, behind the events of the batch. learned gets numbers of objects,
// which count if the batch is committed.
func (e *pgEngine) queueTerms(b *pgx.Batch, c *event.Changes, learned numbers) {
	known, org, orgNumber := make(BlockChanges, len(c.Indexed)+len(c.Unindexed)), "", OrgNumber("")
	created := map[string]int64{} // which event of the batch is the first of an object
	for i := range c.Events {
		if c.Events[i].Sequence == 1 {
			created[c.Events[i].ObjectID] = int64(i) + 1
		}
	}
	statements := [...]string{pgClearFound, pgSetFound}
	for i, terms := range [...][]event.Term{c.Unindexed, c.Indexed} {
		var ids, texts, newTexts []string
		var orgs, nths, newOrgs []int64
		for _, t := range terms {
			if t.Org != org {
				org, orgNumber = t.Org, OrgNumber(t.Org)
			}
			number, isKnown := e.numbers[t.ObjectID]
			nth, isNew := created[t.ObjectID]
			switch {
			case isKnown:
				known.Set(orgNumber, number, i == 1, t.Term)
			case isNew && i == 1:
				nths, newTexts, newOrgs = append(nths, nth), append(newTexts, t.Term), append(newOrgs, orgNumber)
			default:
				ids, texts, orgs = append(ids, t.ObjectID), append(texts, t.Term), append(orgs, orgNumber)
			}
		}
		if nths != nil {
			b.Queue(pgSetNew, nths, newTexts, newOrgs, int64(len(c.Events)))
		}
		if ids != nil {
			b.Queue(statements[i], ids, texts, orgs)
		}
		if i == 0 && ids != nil { // it has changed now, and may again
			b.Queue("SELECT object_id, position FROM events WHERE object_id = ANY($1) AND sequence = 1",
				ids).Query(learned.read)
		}
	}
	for _, s := range known.arrayStatements() {
		b.Queue(s.SQL, s.Args...)
	}
}

func (x pgTx) writeBlocks(ctx context.Context, b BlockChanges) error {
	return ExecAll(ctx, x, b.arrayStatements())
}

// arrayStatements write the changes with at most two statements of PostgreSQL.
func (b BlockChanges) arrayStatements() (all []Statement) {
	if args := b.arrays(func(c blockChange) Mask { return c.clear }); args != nil {
		all = append(all, Statement{pgClearKnown, args})
	}
	if args := b.arrays(func(c blockChange) Mask { return c.set }); args != nil {
		all = append(all, Statement{pgSetKnown, args})
	}
	return all
}

func (n numbers) read(rows pgx.Rows) error {
	for rows.Next() {
		var id string
		var number int64
		if err := rows.Scan(&id, &number); err != nil {
			return err
		}
		n[id] = number
	}
	return rows.Err()
}

// arrays gives the rows of knownBits in order, of those changes that have one; nil when none has.
func (b BlockChanges) arrays(of func(blockChange) Mask) []any {
	var orgs, blocks []int64
	var terms []string
	var masks [4][]int64
	for _, key := range b.keys() {
		mask := of(b[key])
		if mask == (Mask{}) {
			continue
		}
		orgs, terms, blocks = append(orgs, key.org), append(terms, key.term), append(blocks, key.block)
		for i, bits := range mask {
			masks[i] = append(masks[i], int64(bits))
		}
	}
	if orgs == nil {
		return nil
	}
	return []any{orgs, terms, blocks, masks[0], masks[1], masks[2], masks[3]}
}
