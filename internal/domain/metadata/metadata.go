// Package metadata holds the rules of metadata: small pairs of key and value that programs keep with users,
// organizations, applications and projects.
package metadata

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Bounds of what an object has. Its state is written with every change, so they are small.
const (
	MaxPairs = 50
	MaxKey   = 100
	MaxValue = 1000
	MaxBytes = 16 << 10 // keys and values together
)

// Reasons of this package.
const (
	TooManyPairs errs.Reason = "TOO_MANY_METADATA"
	TooLarge     errs.Reason = "METADATA_TOO_LARGE"
)

// Errors that the rules of this package refuse with.
var (
	ErrTooManyPairs = errs.New(errs.FailedPrecondition, TooManyPairs,
		"an object has at most 50 pairs of metadata: remove some that are no longer needed")
	ErrTooLarge = errs.New(errs.FailedPrecondition, TooLarge,
		"the metadata of an object has at most 16 KiB: remove some pairs that are no longer needed, or send shorter values")
)

// Change is what becomes of the metadata of an object. Everything else stays.
type Change struct {
	Set    map[string]string `json:"set,omitempty"`
	Remove []string          `json:"remove,omitempty"` // keys
}

// Apply gives what there is after the change. It never alters all, which others may be reading.
func (c Change) Apply(all map[string]string) map[string]string {
	next := make(map[string]string, len(all)+len(c.Set))
	maps.Copy(next, all)
	for _, key := range c.Remove {
		delete(next, key)
	}
	maps.Copy(next, c.Set)
	if len(next) == 0 {
		return nil
	}
	return next
}

// Pair is a value under a key, as it is sent.
type Pair struct{ Key, Value string }

// Of is the change that pairs and keys ask for.
func Of(set []Pair, remove []string) Change {
	c := Change{Remove: slices.Clone(remove)}
	for _, p := range set {
		if c.Set == nil {
			c.Set = map[string]string{}
		}
		c.Set[p.Key] = p.Value
	}
	return c
}

// Violations lists what is wrong with what is sent.
func Violations(set []Pair, remove []string) (wrong errs.Violations) {
	if len(set) > MaxPairs {
		wrong.Add("set", syntax.TooMany(MaxPairs, "elements"))
	}
	if len(remove) > MaxPairs {
		wrong.Add("remove", syntax.TooMany(MaxPairs, "elements"))
	}
	if len(wrong) > 0 {
		return wrong
	}
	seen := map[string]bool{}
	for i, p := range set {
		problem := Key(p.Key)
		if problem == nil && seen[p.Key] {
			problem = errs.Plain("must not be the key of another pair")
		}
		seen[p.Key] = true
		wrong.Add(fmt.Sprintf("set[%d].key", i), problem)
		wrong.Add(fmt.Sprintf("set[%d].value", i), value(p.Value))
	}
	for i, key := range remove {
		problem := Key(key)
		if problem == nil && seen[key] {
			problem = errs.Plain("must not be a key that is set")
		}
		wrong.Add(fmt.Sprintf("remove[%d]", i), problem)
	}
	return wrong
}

// Key judges a key.
func Key(key string) *errs.Problem {
	const grammar = "must be 1 to 100 of the characters a-z, A-Z, 0-9, '.', '_' and '-', with a letter or a digit among them"
	alnum := false
	for _, c := range []byte(key) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			alnum = true
		case strings.IndexByte("._-", c) < 0:
			return errs.Plain(grammar)
		}
	}
	if !alnum || len(key) > MaxKey {
		return errs.Plain(grammar)
	}
	return nil
}

func value(text string) *errs.Problem {
	if text == "" {
		return syntax.Empty
	}
	return syntax.Text(text, MaxValue)
}

// effective leaves out of a change what is so already.
func (c Change) effective(all map[string]string) Change {
	var next Change
	for key, value := range c.Set {
		if have, ok := all[key]; !ok || have != value {
			if next.Set == nil {
				next.Set = map[string]string{}
			}
			next.Set[key] = value
		}
	}
	for _, key := range c.Remove {
		if _, ok := all[key]; ok {
			next.Remove = append(next.Remove, key)
		}
	}
	slices.Sort(next.Remove)
	next.Remove = slices.Compact(next.Remove)
	return next
}

// check refuses what is more than an object can have.
func check(all map[string]string) error {
	if len(all) > MaxPairs {
		return ErrTooManyPairs
	}
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size > MaxBytes {
		return ErrTooLarge
	}
	return nil
}

// Set changes the metadata of an object: have is where its state keeps it, and fact what records a change. Errors:
// InvalidArgument with Violations; those of the target; ErrTooManyPairs; ErrTooLarge; Aborted when match does not hold.
func Set[S any](ctx context.Context, s event.Store, of event.Target[S], match event.IfMatch, set []Pair,
	remove []string,
	have func(*S) map[string]string, fact func(Change) event.Fact[S]) (event.Details, error) {
	if err := Violations(set, remove).Err(); err != nil {
		return event.Details{}, err
	}
	return of.Change(ctx, s, match, func(_ *event.Tx, o *event.Object[S]) error {
		all := have(&o.Data)
		change := Of(set, remove).effective(all)
		if len(change.Set) == 0 && len(change.Remove) == 0 {
			return nil
		}
		if err := check(change.Apply(all)); err != nil {
			return err
		}
		return o.Append(fact(change))
	})
}

// Picked are the pairs with these keys; nil where there are none.
func Picked(all map[string]string, keys []string) (picked map[string]string) {
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if picked == nil {
				picked = map[string]string{}
			}
			picked[key] = value
		}
	}
	return picked
}
