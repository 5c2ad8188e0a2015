package event

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Target is the object that an operation is about, as its caller may reach it.
type Target[S any] struct {
	Kind   *Objects[S]
	ID     string
	Origin Origin
	// Reach refuses where there is no such object (nil), or none for this caller, and then what this caller may not
	// touch.
	Reach func(*Object[S]) error
	needs Command
	then  func(*Tx, *Object[S]) error
}

// And refuses what check refuses among the objects that are within reach.
func (t Target[S]) And(check func(*S) error) Target[S] {
	reach := t.Reach
	t.Reach = func(o *Object[S]) error {
		if err := reach(o); err != nil {
			return err
		}
		return check(&o.Data)
	}
	return t
}

// Needs declares what a change reads and writes besides the object.
func (t Target[S]) Needs(c Command) Target[S] {
	t.needs = c
	return t
}

// Then has a change do something more after it has decided, in the same command.
func (t Target[S]) Then(do func(*Tx, *Object[S]) error) Target[S] {
	t.then = do
	return t
}

// Read reads the object. Errors: those of Reach.
func (t Target[S]) Read(ctx context.Context, r Reader) (*Object[S], error) {
	return t.reached(t.Kind.Read(ctx, r, t.ID))
}

// Get gives the object inside a command that declared it. Errors: those of Reach.
func (t Target[S]) Get(tx *Tx) (*Object[S], error) { return t.reached(t.Kind.Get(tx, t.ID)) }

func (t Target[S]) reached(o *Object[S], err error) (*Object[S], error) {
	if err == nil {
		err = t.Reach(o)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Change has decide judge the object's state and append what happens to it. Errors, in this order: those of Reach;
// those of decide; Aborted when match does not hold. After an error nothing is written.
func (t Target[S]) Change(ctx context.Context, s Store, match IfMatch, decide func(*Tx, *Object[S]) error) (Details, error) {
	var details Details
	c := t.needs
	c.Origin = t.Origin
	c.Write = append([]Ref{t.Kind.Ref(t.ID)}, c.Write...)
	c.Decide = func(tx *Tx) error {
		o, err := t.Get(tx)
		if err != nil {
			return err
		}
		o.Expect(match)
		err = decide(tx, o)
		details = o.Details()
		if err == nil && t.then != nil {
			err = t.then(tx, o)
		}
		return err
	}
	if err := Do(ctx, s, c); err != nil { // where ctx has ended, it may still be decided at this moment
		return Details{}, err
	}
	return details, nil
}

// undeclared is what Tx.Require refuses with. It never leaves Do.
type undeclared struct{ Command }

func (undeclared) Error() string { return "event: the command has to declare more" }

// Require asks for objects to write and rows that a command finds out about only when it decides. Where they were not
// declared, the command is run again with them: return the error as it is. The command must be run by Do, or by a
// Target. Ask for all objects of one sort at once: there is a bound to how often a command runs. They may be many: then
// the command is long, and waits for its place before it runs again.
func (tx *Tx) Require(c Command) error {
	for _, r := range c.Write {
		if writable, _ := tx.declared(r); !writable {
			return undeclared{c}
		}
	}
	for _, r := range c.Rows {
		if !tx.declaredRow(r) {
			return undeclared{c}
		}
	}
	return nil
}

// maxRequired is how often a command may ask for more: once for each of a few reasons.
const maxRequired = 8

var errRequires = errs.New(errs.Aborted, Contention, "what this change is about is being changed at the same time: try again")

// Do runs a command, and runs it again with what it has asked for by Tx.Require. Errors also: those of the place where
// a long one waits.
func Do(ctx context.Context, s Store, c Command) error {
	leave := func() {}
	defer func() { leave() }()
	for range maxRequired {
		err := s.Do(ctx, c)
		more, requires := errors.AsType[undeclared](err)
		if !requires {
			return err
		}
		c.Write, c.Rows = union(c.Write, more.Write), union(c.Rows, more.Rows)
		written := set(c.Write)
		c.Read = slices.DeleteFunc(slices.Clone(c.Read), func(r Ref) bool { return written[r] })
		if c.Objects() > MaxObjects && !MayWriteMany(ctx) {
			if ctx, leave, err = enterLong(ctx); err != nil {
				return err
			}
		}
	}
	return errRequires
}

func set[T comparable](all []T) map[T]bool {
	in := make(map[T]bool, len(all))
	for _, one := range all {
		in[one] = true
	}
	return in
}

func union[T comparable](all, more []T) []T {
	all = slices.Clone(all)
	in := set(all)
	for _, m := range more {
		if !in[m] {
			in[m], all = true, append(all, m)
		}
	}
	return all
}
