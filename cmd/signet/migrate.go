package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/schema"
	"github.com/signet-idm/signet/internal/ops/server"
)

type migrateCmd struct {
	dataFlags
	DryRun bool `help:"Say what would be done and about how long it takes, and change nothing. Exit code 3: there is something to do."`
	JSON   bool `name:"json" help:"With --dry-run: print it as JSON."`
}

// Run succeeds on an empty database, too: who deploys does not know whether a first start has been.
func (c *migrateCmd) Run(ctx context.Context) error {
	var err error
	switch {
	case c.DryRun:
		err = server.Maintain(ctx, c.config(), c.logger(), true, c.show)
	case c.JSON:
		return errors.New("--json is for --dry-run: give both")
	default:
		err = server.Migrate(ctx, c.config(), c.logger(), done)
	}
	if errors.Is(err, server.ErrNoInstallation) {
		fmt.Fprintln(stdout, "There is nothing to migrate yet. The first start of the server sets everything up.")
		return nil
	}
	return err
}

// done says what has come of a migration.
func done(ctx context.Context, st *store.Store) error {
	p, err := st.Plan(ctx)
	switch {
	case err != nil:
		return err
	case p.Empty():
		fmt.Fprintln(stdout, "The data is at version "+version+".")
	default: // other nodes run
		fmt.Fprintln(stdout, "The schema is at version "+version+".")
		for _, line := range whatHappens(p) {
			fmt.Fprintln(stdout, line)
		}
	}
	return nil
}

// toDo is the exit code of a dry run that has found something to do.
const toDo = exitCode(3)

func (c *migrateCmd) show(ctx context.Context, st *store.Store) error {
	p, err := st.Plan(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(p)
	} else {
		printPlan(p)
	}
	if err == nil && !p.Empty() {
		err = toDo
	}
	return err
}

func printPlan(p *schema.Plan) {
	if p.Empty() {
		fmt.Fprintf(stdout, "There is nothing to do: the schema has version %d, and every object has the shape of this version.\n", p.Schema.Have)
		return
	}
	if len(p.Steps) > 0 {
		fmt.Fprintf(stdout, "The schema goes from version %d to %d:\n", p.Schema.Have, p.Schema.Want)
		for _, s := range p.Steps {
			if s.Index && s.Rows == 0 { // it comes with its table
				continue
			}
			fmt.Fprintf(stdout, "  %-24s  %s%s\n", strings.TrimSuffix(s.Migration, ".sql"), s.Does,
				took(s.Rows, "rows", s.Seconds))
		}
	}
	if len(p.Objects) > 0 {
		fmt.Fprintln(stdout, "Objects are brought into their new shape:")
		for _, o := range p.Objects {
			fmt.Fprintf(stdout, "  %-24s %s\n", o.Table, strings.TrimPrefix(took(o.Count, "objects", o.Seconds), ":"))
		}
	}
	fmt.Fprintf(stdout, "In all: %s on this machine, if it is not busy.\n", about(p.Seconds))
	for _, line := range whatHappens(p) {
		fmt.Fprintln(stdout, line)
	}
	fmt.Fprintln(stdout, "Nothing was changed.")
}

// whatHappens says when it is done, and what others notice.
func whatHappens(p *schema.Plan) []string {
	if !p.Postgres {
		return []string{"Stop the server first. signet migrate, or the next start, does all of it before the server is ready."}
	}
	var lines []string
	if p.StopsWriters {
		lines = append(lines, "Stop all nodes first: a step that changes whole tables keeps everybody else from them.")
	}
	switch {
	case p.Nodes == 0:
		return append(lines, "No node runs. signet migrate, or the next start, does all of it before the node is ready.")
	case !p.StopsWriters && len(p.Steps) > 0:
		lines = append(lines, "Nodes are running and go on: nobody who writes waits for more than 100 ms.")
	}
	switch {
	case len(p.Objects) > 0 && p.OlderNodes:
		lines = append(lines, "Objects get their new shape in the background, when the last node of an older version has stopped.")
	case len(p.Objects) > 0:
		lines = append(lines, "Objects get their new shape in the background.")
	}
	return lines
}

func took(n int64, of string, seconds float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(": %d %s, %s", n, of, about(seconds))
}

// about says a time as roughly as it is known.
func about(seconds float64) string {
	switch {
	case seconds < 1:
		return "less than a second"
	case seconds < 100:
		return fmt.Sprintf("about %.0f s", seconds)
	}
	return fmt.Sprintf("about %.0f min", math.Ceil(seconds/60))
}
