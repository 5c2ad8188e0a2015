// Package repo has no code: its tests hold the repository to its own rules. Which package may import which, that
// every package explains itself, that every RPC says who may call it, that every reason of a refusal is
// documented, and that every event ever written can still be read.
//
// A rule is a table wherever that is possible. Who breaks one is told which and what to do about it.
package repo
