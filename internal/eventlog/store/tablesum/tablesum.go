// Package tablesum checks whether two tables have the same rows.
package tablesum

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// Sum is what two tables with the same rows have in common, in whatever order they are read: engines sort text
// differently.
type Sum struct {
	Rows  int64
	total [4]uint64
	hash  hash.Hash
	buf   []byte
}

// New gives the sum of no rows.
func New() *Sum { return &Sum{hash: sha256.New()} }

// Watch adds up rows as they pass by.
func (s *Sum) Watch(rows engine.Rows, bar *progress.Bar) engine.Rows {
	const often = 1000
	return func(yield func([]any, error) bool) {
		defer func() { bar.Add(s.Rows % often) }()
		for row, err := range rows {
			if err == nil {
				s.add(row)
				if s.Rows%often == 0 {
					bar.Add(often)
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Equal tells whether the rows were the same.
func (s *Sum) Equal(other *Sum) bool { return s.Rows == other.Rows && s.total == other.total }

func (s *Sum) add(row []any) {
	s.Rows++
	b := s.buf[:0]
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			b = append(b, 0)
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 1), uint64(v))
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64(append(b, 3), uint64(len(v))), v...)
		}
	}
	s.buf = b
	s.hash.Reset()
	s.hash.Write(b)
	digest := s.hash.Sum(b[:0])
	for i := range s.total {
		s.total[i] += binary.BigEndian.Uint64(digest[8*i:])
	}
}
