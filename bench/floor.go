package main

import (
	"crypto/rand"
	"fmt"
	"strconv"
)

// The floors are fixed. They have tables of their own and rows of a fixed size, so that a table, an index or a column
// more of the server makes the server slower beside its floor, and not the floor slower with it. Do not change what is
// below for a change of the program: ratios of different commits would not compare any more.
//
//   - "event + row" of an operation that writes: one state row is read by its key, one event is inserted, the row is updated, and
//     its one index has another entry. That is one row more in the log, one changed row and one changed index entry.
//   - "row by key" of an operation that reads: the document of one state row is read by its key and sent over HTTP.
//   - "argon2id" of an operation that hashes: one hash at the cost of rawHash.
//
// On each engine the rows become durable as the server's do.

const (
	floorEventBytes = 640 // what the event of a changed profile had in all columns, in November 2026
	floorStateBytes = 640 // likewise the row of a user
	floorNameBytes  = 24  // of the entry in the index
)

// floorTables makes the tables of the floors. Events have no index but their position, and states one besides their
// key.
var floorTables = []string{
	"CREATE TABLE floor_events (position %s PRIMARY KEY, object_id TEXT NOT NULL, sequence BIGINT NOT NULL, time BIGINT NOT NULL, body TEXT NOT NULL)",
	"CREATE TABLE floor_states (id TEXT PRIMARY KEY, sequence BIGINT NOT NULL, changed BIGINT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL)",
	"CREATE INDEX floor_states_name ON floor_states (name, id)",
}

// The statements of the floors. Both engines take $1, $2, …
const (
	floorAdd    = "INSERT INTO floor_states (id, sequence, changed, name, body) VALUES ($1, 1, 0, $2, $3)"
	floorLoad   = "SELECT sequence, name, body FROM floor_states WHERE id = $1"
	floorInsert = "INSERT INTO floor_events (position, object_id, sequence, time, body) VALUES (%s, $1, $2, $3, $4)"
	floorUpdate = "UPDATE floor_states SET sequence = $2, changed = $3, name = $4, body = $5 WHERE id = $1"
	floorRead   = "SELECT body FROM floor_states WHERE id = $1"
)

// floorID is the key of the i-th caller's row: as long as the server's.
func floorID(i int) string { return fmt.Sprintf("usr_%032d", i) }

// floorName is the entry of a row in the index; another one with each change.
func floorName(sequence int64) string {
	digits := strconv.FormatInt(sequence, 10)
	return "johanna beispiel 0000000"[:floorNameBytes-len(digits)] + digits
}

// floorBody is a text of so many bytes that does not compress.
func floorBody(size int) string {
	text := ""
	for len(text) < size {
		text += rand.Text()
	}
	return text[:size]
}
