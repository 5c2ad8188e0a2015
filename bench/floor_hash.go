package main

import (
	"context"
	"crypto/rand"
	"runtime"
	"time"

	"golang.org/x/crypto/argon2"
)

// rawHash is the floor of operations that hash a password: argon2id with the cost the server uses and nothing else, on
// as many processors as there are, or callers.
type rawHash struct{}

func (rawHash) run(ctx context.Context, callers int, warm, measured time.Duration) (sample, error) {
	var calls []func() error
	for range min(callers, runtime.GOMAXPROCS(0)) {
		calls = append(calls, func() error {
			salt := make([]byte, 16)
			rand.Read(salt)
			argon2.IDKey([]byte(password), salt, 2, 19<<10, 1, 32)
			return nil
		})
	}
	return drive(ctx, calls, warm, measured, &meter{})
}

func (rawHash) close() error { return nil }
