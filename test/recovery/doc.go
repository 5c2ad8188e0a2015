// Package recovery restores a real PostgreSQL from a base backup and its WAL to a point in time, by the commands of
// docs/operations/backup.md, and checks the result with the program. Its tests have the build tag recovery: make
// recovery.
package recovery
