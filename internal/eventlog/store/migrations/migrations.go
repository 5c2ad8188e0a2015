// Package migrations holds the steps of the database's schema, forward only: files NNNN_what.sql, one text for both
// engines.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.sql
var files embed.FS

// Migration is one step.
type Migration struct {
	Version    int
	Name       string
	Statements []string
}

// All gives the steps in order.
func All() ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, name := range names { // Glob sorts
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(all)+1 {
			return nil, fmt.Errorf("migration %s is out of order", name)
		}
		all = append(all, Migration{Version: version, Name: name, Statements: split(string(text))})
	}
	return all, nil
}

// Below gives the shape below which the objects of a table are in the index of older ones, TABLE_below_SHAPE; 0: there
// is none.
func Below(table string) int { return below()[table] }

var below = sync.OnceValue(func() map[string]int {
	shapes, name := map[string]int{}, regexp.MustCompile(`^(\w+)_below_(\d+)$`)
	all, err := All()
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, m := range all {
		for _, statement := range m.Statements {
			c := Parse(statement)
			if found := name.FindStringSubmatch(c.Name); c.Kind == CreateIndex && found != nil {
				shapes[found[1]], _ = strconv.Atoi(found[2]) // the last one counts
			}
		}
	}
	return shapes
})

// split gives the statements of a file that are more than comments.
func split(text string) (statements []string) {
	for statement := range strings.SplitSeq(text, ";\n") {
		for line := range strings.Lines(statement) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
				statements = append(statements, statement)
				break
			}
		}
	}
	return statements
}
