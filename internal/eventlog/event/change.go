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
func (t Target[S]) Change(ctx context.Context, s Store, match IfMatch,
	decide func(*Tx, *Object[S]) error) (Details, error) {
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

// runAgain is what Tx.Require and Look refuse with. It never leaves Do.
type runAgain struct {
	needs Command
	look  func(context.Context) (Command, error) // gives more to declare; nil: there is nothing to look for
}

func (runAgain) Error() string { return "event: the command has to run again, by Do" }

// Require asks for what a command finds out about only when it decides: objects to write or to read, claims, and rows.
// A command that follows references asks for them step by step. Where something was not declared, the command leaves
// the batch and runs again with all of it: return the error as it is. So a command may also declare what it expects to
// need, which saves a run, and decide by Require alone: nothing that it saw before can be out of date.
//
// The command must be run by Do, or by a Target. Ask for all objects of one sort at once: there is a bound to how often
// a command runs. They may be many: then the command is long, and waits for its turn before it runs again.
func (tx *Tx) Require(c Command) error {
	for _, r := range c.Write {
		if writable, _ := tx.declared(r); !writable {
			return runAgain{needs: c}
		}
	}
	for _, r := range c.Read {
		if _, declared := tx.declared(r); !declared {
			return runAgain{needs: c}
		}
	}
	for _, claim := range c.Claims {
		if !tx.declaredClaim(claim) {
			return runAgain{needs: c}
		}
	}
	for _, r := range c.Rows {
		if !tx.declaredRow(r) {
			return runAgain{needs: c}
		}
	}
	return nil
}

// Look has the command leave the batch, calls look, and runs the command again with what look declares: return the error
// as it is. It is for what has no identifier to require, such as the owners of an organization: look lists them, and the
// command judges each of them when it decides. The command must be run by Do, or by a Target.
func Look(look func(context.Context) (Command, error)) error { return runAgain{look: look} }

// maxRuns is how often a command may run: once for each reference that leads to another (six, for the removal of a user
// who owns the installation and other organizations), and for what others change meanwhile.
const maxRuns = 16

var errContention = errs.New(errs.Aborted, Contention,
	"what this change is about is being changed at the same time: try again")

// Do runs a command, and runs it again with what it has asked for by Tx.Require and Look. Errors also: those of the
// LongQueue where a long one waits.
func Do(ctx context.Context, s Store, c Command) error {
	leave := func() {}
	defer func() { leave() }()
	for range maxRuns {
		err := s.Do(ctx, c)
		again, ok := errors.AsType[runAgain](err)
		if !ok {
			return err
		}
		if again.look != nil {
			if again.needs, err = again.look(ctx); err != nil {
				return err
			}
		}
		c = c.requiring(again.needs)
		if c.Objects() > MaxObjects && !MayWriteMany(ctx) {
			if ctx, leave, err = enterLong(ctx); err != nil {
				return err
			}
		}
	}
	return errContention
}

// requiring declares more. An object that is written is not declared for reading as well.
func (c Command) requiring(more Command) Command {
	c.Write, c.Read = union(c.Write, more.Write), union(c.Read, more.Read)
	c.Claims, c.Rows = union(c.Claims, more.Claims), union(c.Rows, more.Rows)
	written := set(slices.Concat(c.Create, c.Write))
	c.Read = slices.DeleteFunc(c.Read, func(r Ref) bool { return written[r] })
	return c
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
