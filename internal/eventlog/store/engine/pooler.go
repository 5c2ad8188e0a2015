package engine

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Behind a pooler such as PgBouncer in transaction mode, which the address says by pooler=transaction, a connection is
// somebody else's after each transaction. So nothing is prepared by name, no setting is made for a session, and no lock
// is held by one:
//
//   - Every batch takes the locks of a node for itself, so no rebuild runs beside it, and it reads which facts the log may hold.
//   - A node that writes nothing has to be known as well. So each has one transaction open, for as long as it runs, that does nothing but hold
//     the same locks. The pooler keeps one connection for it. It has no snapshot, so it keeps PostgreSQL from cleaning up nothing.

const poolerParam = "pooler"

// enlist makes sure that this node's own transaction is open.
func (e *pgEngine) enlist(ctx context.Context) error {
	if e.member != nil && !e.member.IsClosed() {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, e.config)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	if err := e.enlistOn(ctx, conn); err != nil {
		conn.Close(ctx)
		return err
	}
	e.member = conn
	return nil
}

// enlistOn is join in a transaction that stays open. It must give joinLock back, which no transaction can: so that one
// is taken by the session, which is this node's own until the transaction ends.
func (e *pgEngine) enlistOn(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "BEGIN; "+noLimits); err != nil {
		return Away(ctx, discreet(err))
	}
	const text = "SELECT pg_try_advisory_xact_lock_shared($1) FROM (SELECT pg_advisory_lock_shared($2), pg_advisory_xact_lock_shared($3, $4)) l"
	joined := e.join(ctx, conn, text)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock_shared($1)", int64(joinLock)); err != nil && joined == nil {
		return Away(ctx, discreet(err))
	}
	if joined != nil {
		return joined
	}
	return dropSnapshot(ctx, conn)
}

// dropSnapshot lets a transaction that stays open have no snapshot: with one, it keeps PostgreSQL from cleaning up, and
// every index that is built beside writers waits for its end. What was asked last keeps its snapshot until the next
// question, unless that was one of the simple protocol.
func dropSnapshot(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT 1", pgx.QueryExecModeSimpleProtocol); err != nil {
		return Away(ctx, discreet(err))
	}
	return nil
}

// leave ends this node's own transaction.
func (e *pgEngine) leave(ctx context.Context) {
	if e.member == nil {
		return
	}
	if !e.member.IsClosed() {
		_, _ = e.member.Exec(ctx, "ROLLBACK") // or the pooler would notice some time later
		_ = e.member.Close(ctx)
	}
	e.member = nil
}

// joinBatch adds what the transaction of a batch begins with.
func (e *pgEngine) joinBatch(l *loads) {
	l.queue(nil, "SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)", e.limits[0], e.limits[1])
	l.queue(func(scan Scanner) error {
		var joined bool
		if err := scan(&joined); err != nil || joined {
			return err
		}
		return errRebuilding
	}, joinTransaction, e.joinArgs()...)
	l.queue(func(scan Scanner) error {
		var stored []byte
		if err := scan(&stored); err != nil {
			return err
		}
		return knowsFacts(e.factVersion, stored)
	}, "SELECT value FROM meta WHERE name = $1", FactVersionRow)
}

// alonePooled is Alone in one transaction. This node's own would be in its way.
func (e *pgEngine) alonePooled(ctx context.Context, f func(Executor) error) error {
	e.leave(ctx)
	return discreet(pgx.BeginFunc(ctx, e.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noLimits); err != nil {
			return err
		}
		var alone bool
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(runLock)).Scan(&alone); err != nil {
			return err
		}
		if !alone {
			return ErrInUse
		}
		if err := name(ctx, tx); err != nil {
			return err
		}
		return f(pgTx{e, tx})
	}))
}
