package engine

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
)

const (
	// reshapeWait is how long a change of the schema waits for the lock on a table. Everybody who comes after it waits
	// as long.
	reshapeWait = "50ms"
	// fewRows are indexed in so short a time that writers do not notice.
	fewRows = 1000

	reshapePause    = 100 * time.Millisecond // before the next try, growing
	maxReshapePause = 2 * time.Second
	reshapeTells    = 10 * time.Second
)

// Reshape has two connections of its own: one keeps other nodes from migrating by a transaction, as behind a pooler
// nothing else lasts; an index that is built beside writers must not be in one.
func (e *pgEngine) Reshape(ctx context.Context, f func(x Executor, change func(statement string) error) error) error {
	config := e.config.Copy()
	delete(config.RuntimeParams, "lock_timeout") // that of the writer
	locking, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	defer locking.Close(context.WithoutCancel(ctx))
	if _, err := locking.Exec(ctx, "BEGIN; "+noLimits); err != nil {
		return discreet(err)
	}
	if err := e.LockSchema(ctx, pgTx{e, locking}); err != nil {
		return discreet(err)
	}
	if err := dropSnapshot(ctx, locking); err != nil {
		return err
	}
	if !e.pooled {
		config.RuntimeParams["statement_timeout"] = "0" // an index takes as long as its table is large
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Away(ctx, discreet(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	r := &reshape{engine: e, conn: conn}
	return discreet(f(pgTx{e, conn}, func(statement string) error { return r.change(ctx, statement) }))
}

// reshape changes the schema beside nodes that write.
type reshape struct {
	engine *pgEngine
	conn   *pgx.Conn
}

func (r *reshape) change(ctx context.Context, statement string) error {
	c := migrations.Parse(statement)
	text := c.Again(r.engine.Dialect())
	if c.Kind != migrations.CreateIndex {
		return r.briefly(ctx, c.Table, text)
	}
	if err := r.dropInvalid(ctx, c.Name); err != nil {
		return err
	}
	var rows int
	if err := r.conn.QueryRow(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+c.Table+" LIMIT $1) few",
		fewRows+1).Scan(&rows); err != nil {
		return err
	}
	if rows <= fewRows {
		return r.briefly(ctx, c.Table, text)
	}
	r.engine.log.Info("building an index; writers go on", "index", c.Name, "table", c.Table)
	_, err := r.conn.Exec(ctx, strings.Replace(text, " INDEX ", " INDEX CONCURRENTLY ", 1))
	return err
}

// dropInvalid drops what is left of an index whose building was cut off.
func (r *reshape) dropInvalid(ctx context.Context, index string) error {
	var invalid bool
	err := r.conn.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = $1 AND pg_table_is_visible(c.oid) AND NOT i.indisvalid)", index).Scan(&invalid)
	if err == nil && invalid {
		_, err = r.conn.Exec(ctx, "DROP INDEX CONCURRENTLY "+index)
	}
	return err
}

// briefly runs a statement that needs a lock against writers, and is over at once when it has it. Where somebody keeps
// a table for longer, such as a dump, it gives way and tries again.
func (r *reshape) briefly(ctx context.Context, table, text string) error {
	told := time.Now()
	for pause := reshapePause; ; pause = min(2*pause, maxReshapePause) {
		err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx,
				"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '"+reshapeWait+"'"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, text)
			return err
		})
		if !r.engine.IsLockTimeout(err) {
			return err
		}
		if time.Since(told) >= reshapeTells {
			told = time.Now()
			r.engine.log.Warn("a migration waits for a transaction that uses a table for a long time, such as a dump: end it, or wait", "table", table)
		}
		if err := Pause(ctx, pause); err != nil {
			return err
		}
	}
}
