package event

import "context"

// Target is the object that an operation is about, as its caller may reach it.
type Target[S any] struct {
	Kind   *Objects[S]
	ID     string
	Origin Origin
	// Reach refuses where there is no such object (nil), or none for this caller, and then what this caller may not touch.
	Reach func(*Object[S]) error
	needs Command
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

// Change has decide judge the object's state and append what happens to it. Errors, in this order: those of Reach; those of decide; Aborted
// when match does not hold. After an error nothing is written.
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
		return err
	}
	if err := s.Do(ctx, c); err != nil { // where ctx has ended, it may still be decided at this moment
		return Details{}, err
	}
	return details, nil
}
