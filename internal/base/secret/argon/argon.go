// Package argon computes argon2id with memory that is used again.
//
// A password hash fills 19 MiB. golang.org/x/crypto/argon2 allocates them anew for every hash, which under load means
// three to five times as much resident memory, and a tenth of the time spent on clearing and paging in what the
// collector has just given back. Its computation and its assembly are what we want; only the buffer should be ours, and
// the package does not offer that. So this one calls the same unexported functions in the same order, with a buffer
// from a pool (pooled.go). The linker refuses to build when one of them is gone, and the test compares every result
// with argon2.IDKey.
//
// When a new Go or x/crypto breaks that, build with -tags argon_library: the same keys, by argon2.IDKey (library.go).
package argon

// The cost: what argon2.IDKey calls time, memory in KiB, threads and keyLen.
const (
	Passes    = 2
	MemoryKiB = 19 << 10
	Lanes     = 1
	KeyLength = 32
)
