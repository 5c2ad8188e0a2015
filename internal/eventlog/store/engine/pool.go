package engine

import "time"

// Pool is what the connections do on which a node reads.
type Pool struct {
	InUse, Idle, Most int
	Waits             int64         // for a connection, since the node was started
	Waited            time.Duration // in all
}

// Pooled is an engine that tells what its connections do. Both do.
type Pooled interface{ Pool() Pool }

// Pool implements Pooled.
func (e *pgEngine) Pool() Pool {
	s := e.pool.Stat()
	return Pool{InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()), Most: int(s.MaxConns()),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime()}
}

// Pool implements Pooled.
func (e *sqliteEngine) Pool() Pool {
	s := e.readers.Stats()
	return Pool{InUse: s.InUse, Idle: s.Idle, Most: s.MaxOpenConnections, Waits: s.WaitCount, Waited: s.WaitDuration}
}
