package engine

import (
	"context"

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

// connect makes sure that the writer has a connection, and that no rebuild is running.
func (e *pgEngine) connect(ctx context.Context) error {
	if e.conn != nil && !e.conn.IsClosed() {
		return nil
	}
	conn, err := e.dialed(ctx)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	var joined bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock_shared($1)", int64(runLock)).Scan(&joined); err != nil {
		conn.Close(ctx)
		return Away(ctx, discreet(err))
	}
	if !joined {
		conn.Close(ctx)
		return errRebuilding
	}
	e.conn = conn
	return nil
}
