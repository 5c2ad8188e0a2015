package event

import "context"

// Change is a command about one object that its caller has seen at some sequence, and may or may not reach.
type Change[S any] struct {
	Origin Origin
	ID     string
	Match  IfMatch
	Rows   []RowKey // that the decision reads
	// Reach refuses an object that there is not (nil), or not for this caller.
	Reach func(*Object[S]) (*Object[S], error)
}

// Change records the facts that decide gives. What decide does to rows counts only if it is not refused. Errors: those of Reach and decide; Aborted when Match
// does not hold.
func (k *Objects[S]) Change(ctx context.Context, s Store, c Change[S], decide func(*Tx, *S) ([]Fact[S], error)) (Details, error) {
	var details Details
	err := s.Do(ctx, Command{
		Origin: c.Origin,
		Write:  []Ref{k.Ref(c.ID)},
		Rows:   c.Rows,
		Decide: func(tx *Tx) error {
			o, err := k.Get(tx, c.ID)
			if err != nil {
				return err
			}
			if o, err = c.Reach(o); err != nil {
				return err
			}
			facts, err := decide(tx, &o.State)
			if err != nil {
				return err
			}
			if err := c.Match.Check(o.Sequence); err != nil {
				return err
			}
			err = o.Append(facts...)
			details = o.Details()
			return err
		},
	})
	if err != nil { // where ctx has ended, it may still be decided at this moment
		return Details{}, err
	}
	return details, nil
}
