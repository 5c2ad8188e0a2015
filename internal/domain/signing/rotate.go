package signing

import (
	"context"
	"log/slog"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// tendInterval is how often a node looks for keys that are due or over.
const tendInterval = time.Minute

// Run makes and retires keys when it is time, until ctx ends.
func (k *Keys) Run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(tendInterval)
	defer ticker.Stop()
	for {
		if err := k.Tend(ctx); err != nil && ctx.Err() == nil {
			log.Warn("updating the signing keys failed: the server retries in a minute", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Tend makes the keys that are due, the very first one too, and retires those that are over.
func (k *Keys) Tend(ctx context.Context) error {
	o, err := Kind.Read(ctx, k.store, ID)
	if err != nil {
		return err
	}
	now, state := event.Micros(k.clock()), Signing{}
	if o != nil {
		state = o.Data
	}
	due := state.due(now)
	if len(due) == 0 && !state.ended(now) {
		return nil
	}
	return k.changeKeys(ctx, event.Origin{Actor: event.System}, due,
		func(tx *event.Tx, o **event.Object[Signing], made []*fresh) error {
			if err := retire(tx, *o); err != nil {
				return err
			}
			for _, f := range made {
				// Another node may have been faster.
				if *o != nil && (*o).Data.newest(f.alg) != nil &&
					tx.Now() < (*o).Data.newest(f.alg).SignsFrom+Period.Microseconds() {
					continue
				}
				if err := f.add(tx, o, false); err != nil {
					return err
				}
			}
			return nil
		}, nil)
}

// ensure makes the first key of an algorithm.
func (k *Keys) ensure(ctx context.Context, alg Algorithm) error {
	return k.changeKeys(ctx, event.Origin{Actor: event.System}, []Algorithm{alg},
		func(tx *event.Tx, o **event.Object[Signing], made []*fresh) error {
			if *o != nil && (*o).Data.newest(alg) != nil {
				return nil
			}
			return made[0].add(tx, o, false)
		}, nil)
}

// Rotate makes a new key for every algorithm. It signs after Lead; what the keys before it have signed counts until
// Keep after that. When one of them may have leaked it is urgent: the new keys sign in a few seconds, and nothing that
// was signed before counts from then on. Errors: access.ErrDenied; ErrRotating; Aborted when match does not hold.
func (k *Keys) Rotate(ctx context.Context, permit access.Permit, match event.IfMatch,
	urgent bool) (event.Details, error) {
	if !permit.Reaches(access.Installation) {
		return event.Details{}, access.ErrDenied
	}
	return k.rotate(ctx, permit.Origin(), match, urgent)
}

// RotateByOperator is Rotate for an operator with access to the database. It checks no permission.
func (k *Keys) RotateByOperator(ctx context.Context, urgent bool) (event.Details, error) {
	return k.rotate(ctx, event.Origin{Actor: event.System}, event.IfMatch{}, urgent)
}

func (k *Keys) rotate(ctx context.Context, origin event.Origin, match event.IfMatch,
	urgent bool) (details event.Details, err error) {
	o, err := Kind.Read(ctx, k.store, ID)
	if err != nil {
		return details, err
	}
	algorithms := []Algorithm{ES256}
	if o != nil {
		algorithms = o.Data.algorithms()
	}
	err = k.changeKeys(ctx, origin, algorithms, func(tx *event.Tx, o **event.Object[Signing], made []*fresh) error {
		if err := retire(tx, *o); err != nil {
			return err
		}
		for _, f := range made {
			if *o != nil && (*o).Data.isRotating(f.alg, tx.Now(), urgent) {
				return ErrRotating
			}
			if err := f.add(tx, o, urgent); err != nil {
				return err
			}
		}
		(*o).Expect(match)
		return nil
	}, &details)
	if err == nil {
		k.forget()
	}
	return details, err
}

// isRotating tells whether there is a key already that takes over soon. For what is urgent, only another urgent one
// does so soon enough.
func (s *Signing) isRotating(alg Algorithm, now int64, urgent bool) bool {
	newest := s.newest(alg)
	return newest != nil && newest.SignsFrom > now && (!urgent || newest.SignsFrom-newest.Made <= settle.Microseconds())
}

// change makes keys and runs a command that decides about them.
func (k *Keys) changeKeys(ctx context.Context, origin event.Origin, algorithms []Algorithm,
	decide func(tx *event.Tx, o **event.Object[Signing], made []*fresh) error, details *event.Details) error {
	var made []*fresh
	for _, alg := range algorithms {
		f, err := makeKey(k.master, alg)
		if err != nil {
			return err
		}
		made = append(made, f)
	}
	return k.store.Do(ctx, event.Command{
		Origin: origin, Write: []event.Ref{Ref},
		Decide: func(tx *event.Tx) error {
			o, err := Kind.Get(tx, ID)
			if err != nil {
				return err
			}
			if err := decide(tx, &o, made); err != nil {
				return err
			}
			if details != nil && o != nil {
				*details = o.Details()
			}
			return nil
		},
	})
}

// List reads all keys that are not retired, the oldest first. Errors: access.ErrDenied.
func (k *Keys) List(ctx context.Context, permit access.Permit) ([]Key, event.Details, error) {
	if !permit.Reaches(access.Installation) {
		return nil, event.Details{}, access.ErrDenied
	}
	return k.ListByOperator(ctx)
}

// ListByOperator is List for an operator with access to the database. It checks no permission.
func (k *Keys) ListByOperator(ctx context.Context) ([]Key, event.Details, error) {
	o, err := Kind.Read(ctx, k.store, ID)
	if err != nil || o == nil {
		return nil, event.Details{}, err
	}
	return o.Data.Keys, o.Details(), nil
}

// Signs tells which of the keys signs at a time. If the clock was set back to before the first one, that one signs all
// the same: it was published, and nobody could sign in until the clock is there again.
func Signs(keys []Key, alg Algorithm, now int64) *Key {
	var latest, first *Key
	for i := range keys {
		key := &keys[i]
		if key.Algorithm != alg || !key.Published(now) {
			continue
		}
		if key.SignsFrom <= now && (latest == nil || key.SignsFrom >= latest.SignsFrom) {
			latest = key
		}
		if first == nil || key.SignsFrom < first.SignsFrom {
			first = key
		}
	}
	if latest == nil {
		return first
	}
	return latest
}
