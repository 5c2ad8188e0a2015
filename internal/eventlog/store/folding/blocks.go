package folding

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// IndexWords notes in what is to be changed in word_blocks that an object is found by its words.
func IndexWords(into engine.BlockChanges, f event.Folded) {
	if len(f.Words) > 0 {
		into.Set(engine.OrgNumber(f.Record.Org), f.First, true, syntax.Terms(f.Words)...)
	}
}

// BlockSum is what word_blocks and the states it follows from have in common, in whatever order they are read. Rows of
// it belong to many objects, so it is compared as a whole.
type BlockSum struct {
	Entries int64
	total   [2]uint64
}

func (s *BlockSum) add(org int64, term string, number int64) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16+syntax.MaxTerm), uint64(org))
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(b, uint64(number)), term...))
	s.Entries++
	for i := range s.total {
		s.total[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}

// Add adds what an object should have.
func (s *BlockSum) Add(f event.Folded) {
	for _, term := range syntax.Terms(f.Words) {
		s.add(engine.OrgNumber(f.Record.Org), term, f.First)
	}
}

// StoredBlocks gives the sum of what there is. A row that says nothing counts as an entry: there should be none.
func StoredBlocks(ctx context.Context, x engine.Executor) (sum BlockSum, err error) {
	err = x.Query(ctx, "SELECT org, term, block, m0, m1, m2, m3 FROM word_blocks", nil,
		func(scan engine.Scanner) error {
			var org, block int64
			var term string
			var m [4]int64
			if err := scan(engine.Exactly([]any{&org, &term, &block, &m[0], &m[1], &m[2], &m[3]})...); err != nil {
				return err
			}
			mask := engine.MaskOf(m)
			if mask == (engine.Mask{}) {
				sum.Entries++
			}
			for number := range mask.All(block) {
				sum.add(org, term, number)
			}
			return nil
		})
	return sum, err
}
