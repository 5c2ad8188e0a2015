package store

import (
	"context"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/together"
)

// proverText asks where objects of a kind and their organizations stand, and for the secrets of the objects.
func proverText(k event.Definition, size int) string {
	return "SELECT s.id, s.sequence, s.hash, s.shape, o.id, o.sequence, o.hash, o.shape, COALESCE(r.value, ''), COALESCE(r.expires, -1) FROM " + k.Table() +
		" s JOIN orgs o ON o.id = s.org_id LEFT JOIN secrets r ON r.key = s.id || '" + event.SecretName + "' WHERE s.id IN (" + engine.Placeholders(size) + ")"
}

// Prover implements event.Reader.
func (s *Store) Prover(ctx context.Context, ref event.Ref) (*event.Prover, error) {
	if !possible(ref.ID) {
		return nil, nil
	}
	if s.provers == nil { // what it takes is in memory, as a rule
		return s.readProver(ctx, ref)
	}
	found, err := await(ctx, s.provers.Ask(ref))
	if err != nil || found == nil {
		return nil, err
	}
	if found.Object == nil || found.Org == nil { // not seen before, or changed since
		return s.readProver(ctx, ref)
	}
	p := *found
	p.Secret = s.current(p.Secret)
	return &p, nil
}

func (s *Store) readProver(ctx context.Context, ref event.Ref) (*event.Prover, error) {
	object, err := s.Record(ctx, ref)
	if err != nil || object == nil {
		return nil, err
	}
	p := &event.Prover{Object: object}
	if p.Org, err = s.Record(ctx, event.Ref{Kind: "org", ID: object.Org}); err != nil || p.Org == nil {
		return nil, err
	}
	p.Secret, err = s.Row(ctx, event.SecretOf(ref.ID))
	return p, err
}

// askProvers reads those whose records have not moved since they were seen. Of the others the records are missing.
func (s *Store) askProvers(refs []event.Ref, found map[event.Ref]*event.Prover) (questions []together.Question) {
	ids := map[event.Kind][]string{}
	for _, ref := range refs {
		ids[ref.Kind] = append(ids[ref.Kind], ref.ID)
	}
	for kind, ids := range ids {
		questions = append(questions, each(&s.sql.prover, kind, ids, func(scan engine.Scanner) error {
			object, org := event.Record{Ref: event.Ref{Kind: kind}}, event.Record{Ref: event.Ref{Kind: "org"}}
			secret := &event.Row{}
			if err := scan(&object.ID, &object.Sequence, &object.Hash, &object.Shape, &org.ID, &org.Sequence, &org.Hash, &org.Shape,
				&secret.Value, &secret.Expires); err != nil {
				return err
			}
			p := &event.Prover{Object: s.seen.same(&object), Org: s.seen.same(&org)}
			if secret.Expires >= 0 {
				secret.RowKey = event.SecretOf(object.ID)
				p.Secret = secret
			}
			found[object.Ref] = p
			return nil
		}))
	}
	return questions
}
