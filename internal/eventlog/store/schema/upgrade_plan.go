// This file says what an upgrade is going to do to a database, and about how long that takes at its size. It changes
// nothing.

package schema

import (
	"context"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
)

// Plan is what is going to be done.
type Plan struct {
	Schema  Versions  `json:"schema"`
	Steps   []Step    `json:"steps"`
	Objects []Objects `json:"objects"` // that get a new shape
	Seconds float64   `json:"seconds"` // in all, about

	Postgres     bool `json:"postgres"`
	Nodes        int  `json:"nodes"`        // that run, as far as can be seen: on PostgreSQL
	OlderNodes   bool `json:"olderNodes"`   // among them
	StopsWriters bool `json:"stopsWriters"` // some step does, for as long as it takes
}

// Versions are those of the schema: that of the database, and the program's.
type Versions struct {
	Have int `json:"have"`
	Want int `json:"want"`
}

// Step is one statement of a migration.
type Step struct {
	Migration    string  `json:"migration"`
	Does         string  `json:"does"`
	Table        string  `json:"table,omitempty"`
	Index        bool    `json:"index"`
	Rows         int64   `json:"rows"` // of the table, that are read
	Seconds      float64 `json:"seconds"`
	StopsWriters bool    `json:"stopsWriters"`
}

// Objects are those of one kind.
type Objects struct {
	Table   string  `json:"table"`
	Count   int64   `json:"count"`
	Seconds float64 `json:"seconds"`
}

// Empty says that there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 && len(p.Objects) == 0 }

// What was measured with a million users on two processors. Folding is measured on the spot; writing what was folded
// takes several times as long as that, mostly for the indexes of the words that users are found by.
const (
	indexedPerSecond = 200_000
	writing          = 5
	sampled          = 200
	samples          = 3
)

// NewPlan looks at a database. factVersion is the program's.
func NewPlan(ctx context.Context, f *folding.Folder, postgres bool, factVersion int) (*Plan, error) {
	p := &Plan{Postgres: postgres}
	all, err := migrations.All()
	if err != nil {
		return nil, err
	}
	p.Schema.Want = len(all)
	if p.Schema.Have, err = Version(ctx, f.Engine); err != nil {
		return nil, err
	}
	if postgres {
		oldest, running, err := f.Engine.Nodes(ctx, f.Engine)
		if err != nil {
			return nil, err
		}
		p.Nodes, p.OlderNodes = running, running > 0 && oldest < factVersion
	}
	for _, m := range all[min(p.Schema.Have, len(all)):] {
		if err := p.addMigration(ctx, f.Engine, m); err != nil {
			return nil, err
		}
	}
	return p, p.addObjects(ctx, f)
}

func (p *Plan) addMigration(ctx context.Context, e engine.Engine, m migrations.Migration) error {
	for _, statement := range m.Statements {
		c := migrations.Parse(statement)
		if c.Postgres && !p.Postgres {
			continue
		}
		s := Step{Migration: m.Name, Table: c.Table, Index: c.Kind == migrations.CreateIndex, Does: describe(c)}
		switch c.Kind {
		case migrations.CreateIndex:
			err := e.Query(ctx, "SELECT count(*) FROM "+c.Table, nil,
				func(scan engine.Scanner) error { return scan(&s.Rows) })
			if err != nil && !e.IsMissingTable(err) { // one that the migration makes is empty
				return err
			}
			s.Seconds = float64(s.Rows) / indexedPerSecond
		case migrations.Other:
			s.StopsWriters, p.StopsWriters = true, true
		}
		p.Seconds += s.Seconds
		p.Steps = append(p.Steps, s)
	}
	return nil
}

// sampleFold measures how many seconds it takes to fold an object. The first of them pay for what is read and prepared
// once for all, and others may use the processor meanwhile: the quickest of several counts.
func sampleFold(ctx context.Context, f *folding.Folder, k event.Definition) (each float64, err error) {
	for i := range samples {
		began := time.Now()
		folded, err := f.Sample(ctx, k, sampled)
		if err != nil || folded == 0 {
			return 0, err
		}
		if took := time.Since(began).Seconds() / float64(folded); i == 0 || took < each {
			each = took
		}
	}
	return each, nil
}

func describe(c migrations.Change) string {
	switch c.Kind {
	case migrations.CreateTable:
		return "creates the table " + c.Table
	case migrations.AddColumn:
		return "adds the column " + c.Name + " to " + c.Table
	case migrations.CreateIndex:
		return "builds the index " + c.Name + " on " + c.Table
	case migrations.DropIndex:
		return "drops the index " + c.Name
	case migrations.Insert:
		return "adds a row to " + c.Table
	case migrations.SetRoom:
		return "leaves room beside new rows of " + c.Table
	}
	return "changes whole tables"
}

func (p *Plan) addObjects(ctx context.Context, f *folding.Folder) error {
	for _, k := range f.Kinds {
		n, err := f.CountBehind(ctx, k)
		if err != nil && !f.Engine.IsMissingTable(err) {
			return err
		}
		if n == 0 || err != nil {
			continue
		}
		each, err := sampleFold(ctx, f, k)
		if err != nil {
			return err
		}
		o := Objects{Table: k.Table(), Count: n, Seconds: each * float64(n) * writing}
		p.Seconds += o.Seconds
		p.Objects = append(p.Objects, o)
	}
	return nil
}
