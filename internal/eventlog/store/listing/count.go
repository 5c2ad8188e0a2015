package listing

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// plainValue is a value that a query can have in its text.
var plainValue = regexp.MustCompile(`^[a-z]+$`)

// CountObjectsText counts several things with one statement. Values of columns are written out: both databases choose
// the index of a part only if they know which part it is when they plan.
func CountObjectsText(kinds map[event.Kind]event.Definition, all []event.Counted) (string, []any, error) {
	each, args := make([]string, len(all)), make([]any, len(all))
	for i, c := range all {
		k, known := kinds[c.Kind]
		if !known {
			return "", nil, fmt.Errorf("store: unknown kind %q", c.Kind)
		}
		column, condition := event.State, "s.state <> 'removed'" // as the indexes have it
		if c.Column != "" {
			if !plainValue.MatchString(c.Value) {
				return "", nil, fmt.Errorf("store: %q is no value to count", c.Value)
			}
			column, condition = c.Column, "s."+c.Column+" = '"+c.Value+"'"
		}
		if !slices.Contains(k.Columns(), column) {
			return "", nil, fmt.Errorf("store: %q has no lookup column %q", c.Kind, column)
		}
		each[i] = "(SELECT count(*) FROM " + k.Table() + " s WHERE s.org_id = ? AND " + condition + ")"
		args[i] = c.Org
	}
	return "SELECT " + strings.Join(each, ", "), args, nil
}
