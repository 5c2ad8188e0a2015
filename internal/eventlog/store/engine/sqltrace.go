// This file shows the reads of a request in its trace. A span is named by what the statement does to which table, never
// by a value. What the writer does for a batch is shown by the store (batchtrace.go).

package engine

import (
	"context"
	"strings"

	"github.com/signet-idm/signet/internal/base/tracing"
)

type traced struct {
	Engine
	system string
}

// Traced is the same engine with spans.
func Traced(e Engine, postgres bool) Engine {
	system := "sqlite"
	if postgres {
		system = "postgresql"
	}
	return traced{e, system}
}

func (t traced) Query(ctx context.Context, sql string, args []any, each func(Scanner) error) error {
	if !tracing.Of(ctx).Recorded() {
		return t.Engine.Query(ctx, sql, args, each)
	}
	name := summary(sql)
	ctx, span := tracing.Start(ctx, "sql "+name)
	span.Set("db.system.name", t.system)
	span.Set("db.query.summary", name)
	err := t.Engine.Query(ctx, sql, args, each)
	span.End(err)
	return err
}

// summary is what a statement does, and to which table: SELECT users. All values are parameters; and what is not a
// plain name is left out all the same.
func summary(sql string) string {
	words := strings.Fields(sql)
	if len(words) == 0 {
		return "?"
	}
	for i, w := range words[:len(words)-1] {
		if w == "FROM" || w == "INTO" || w == "UPDATE" {
			if table := words[i+1]; strings.Trim(table, "abcdefghijklmnopqrstuvwxyz_") == "" {
				return words[0] + " " + table
			}
		}
	}
	return words[0]
}

// Pool implements engine.Pooled.
func (t traced) Pool() (p Pool) {
	if pooled, ok := t.Engine.(Pooled); ok {
		p = pooled.Pool()
	}
	return p
}
