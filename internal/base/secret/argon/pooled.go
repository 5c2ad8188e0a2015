//go:build !argon_library

package argon

import (
	"encoding/binary"
	"sync"
	_ "unsafe" // for go:linkname

	_ "golang.org/x/crypto/argon2" // the functions below are its
	"golang.org/x/crypto/blake2b"
)

// A block is 1 KiB, so there are as many of them as MemoryKiB; the algorithm works on a multiple of four.
type block [128]uint64

var memories = sync.Pool{New: func() any { return new([MemoryKiB]block) }}

const modeID = 2 // argon2id

// Key is argon2.IDKey with the cost of this package. Nothing that follows from the password stays in memory.
func Key(password, salt []byte) []byte {
	memory := memories.Get().(*[MemoryKiB]block)
	defer func() {
		clear(memory[:]) // also what the next one expects
		memories.Put(memory)
	}()
	start := initHash(password, salt, nil, nil, Passes, MemoryKiB, Lanes, KeyLength, modeID)
	defer clear(start[:])
	var first [1024]byte
	defer clear(first[:])
	for i := range 2 { // start ends in the block's number and the lane's, which is 0
		binary.LittleEndian.PutUint32(start[blake2b.Size:], uint32(i))
		blake2bHash(first[:], start[:])
		for j := range memory[i] {
			memory[i][j] = binary.LittleEndian.Uint64(first[8*j:])
		}
	}
	processBlocks(memory[:], Passes, MemoryKiB, Lanes, modeID)
	return extractKey(memory[:], MemoryKiB, Lanes, KeyLength)
}

//go:linkname initHash golang.org/x/crypto/argon2.initHash
func initHash(password, salt, key, data []byte, time, memory, threads, keyLen uint32, mode int) [blake2b.Size + 8]byte

//go:linkname blake2bHash golang.org/x/crypto/argon2.blake2bHash
func blake2bHash(out []byte, in []byte)

//go:linkname processBlocks golang.org/x/crypto/argon2.processBlocks
func processBlocks(blocks []block, time, memory, threads uint32, mode int)

//go:linkname extractKey golang.org/x/crypto/argon2.extractKey
func extractKey(blocks []block, memory, threads, keyLen uint32) []byte
