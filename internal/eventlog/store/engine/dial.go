package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// dialing is a connection to PostgreSQL that is made in the background.
type dialing struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when conn and err are set
	conn   *pgx.Conn
	err    error
}

func dial(ctx context.Context, config *pgx.ConnConfig) *dialing {
	ctx, cancel := context.WithCancel(ctx)
	d := &dialing{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.conn, d.err = pgx.ConnectConfig(ctx, config)
	}()
	return d
}

// giveUp ends a connection that nobody wants any more.
func (d *dialing) giveUp(ctx context.Context) {
	d.cancel()
	<-d.done
	if d.err == nil {
		_ = d.conn.Close(ctx) // it has done nothing
	}
}

// dialed gives a connection for the writer: the one that was begun when the database was opened, or a new one.
func (e *pgEngine) dialed(ctx context.Context) (*pgx.Conn, error) {
	if d := e.first; d != nil {
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		e.first = nil
		d.cancel() // which does nothing to a connection that is made
		if d.err == nil {
			return d.conn, nil
		}
	}
	return pgx.ConnectConfig(ctx, e.config)
}

// runLock is held by the writer's connection of every node, shared, and by a rebuild alone. It goes with the
// connection, so a node whose connection broke takes it anew before it writes anything.
const runLock = schemaLock + 1

// factLock is held by the same connection, shared, under the version of facts that the node knows: nodes of before
// there was one hold none. joinLock keeps nodes from joining while somebody looks at who has.
const (
	factLock = 741_025_090
	joinLock = runLock + 1
)

func (e *pgEngine) LockJoins(ctx context.Context, x Executor) error {
	return x.Exec(ctx, "SELECT pg_advisory_xact_lock(?::bigint)", int64(joinLock))
}

// Nodes reads of each connection that is a node's the version that it holds beside runLock, or 0.
func (e *pgEngine) Nodes(ctx context.Context, q Querier) (oldest, running int, err error) {
	err = q.Query(ctx, "SELECT coalesce(min(version), 0), count(*) FROM (SELECT max(CASE WHEN objsubid = 2 THEN objid::bigint ELSE 0 END) AS version FROM pg_locks "+
		"WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND (objsubid = 1 AND classid::bigint << 32 | objid::bigint = ? OR objsubid = 2 AND classid::bigint = ?) GROUP BY pid) nodes",
		[]any{int64(runLock), int64(factLock)}, func(scan Scanner) error { return scan(&oldest, &running) })
	return oldest, running, err
}

// connect makes sure that the writer has a connection, and that no rebuild is running.
func (e *pgEngine) connect(ctx context.Context) error {
	if e.pooled {
		if err := e.enlist(ctx); err != nil {
			return err
		}
	}
	if e.conn != nil && !e.conn.IsClosed() {
		return nil
	}
	conn, err := e.dialed(ctx)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	if e.pooled { // each batch joins by itself
		e.conn = conn
		return nil
	}
	if err := e.join(ctx, conn, joinSession); err != nil {
		conn.Close(ctx)
		return err
	}
	e.conn = conn
	return nil
}

// What takes the locks of a node: for a session, and for a transaction.
const (
	joinSession     = "SELECT pg_try_advisory_lock_shared($1) FROM (SELECT pg_advisory_xact_lock_shared($2), pg_advisory_lock_shared($3, $4)) l"
	joinTransaction = "SELECT pg_try_advisory_xact_lock_shared($1) FROM (SELECT pg_advisory_xact_lock_shared($2), pg_advisory_xact_lock_shared($3, $4)) l"
)

// joinArgs are the parameters of these.
func (e *pgEngine) joinArgs() []any {
	return []any{int64(runLock), int64(joinLock), int32(factLock), int32(e.factVersion)}
}

// join takes the locks of a node. It reads which facts the log may hold after that: a node that raises their version
// has either seen the locks of this node, or has finished.
func (e *pgEngine) join(ctx context.Context, conn *pgx.Conn, text string) error {
	var joined bool
	err := conn.QueryRow(ctx, text, e.joinArgs()...).Scan(&joined)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	if !joined {
		return e.held(ctx, conn)
	}
	var stored []byte
	err = conn.QueryRow(ctx, "SELECT value FROM meta WHERE name = $1", FactVersionRow).Scan(&stored)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && !e.IsMissingTable(err) {
		return Away(ctx, discreet(err))
	}
	return knowsFacts(e.factVersion, stored)
}
