package store

import (
	"context"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// clientCredentialText asks for the versions of objects of a kind and of their organizations, and for the secrets of
// the objects.
func clientCredentialText(k, org event.Definition, size int) string {
	if org == nil {
		return ""
	}
	return "SELECT s.id, s.sequence, s.hash, s.shape, o.id, o.sequence, o.hash, o.shape, COALESCE(r.value, ''), COALESCE(r.expires, -1) FROM " + k.Table() +
		" s JOIN " + org.Table() + " o ON o.id = s.org_id LEFT JOIN secrets r ON r.key = s.id || '" + event.SecretName +
		"' WHERE s.id IN (" + engine.Placeholders(size) + ")"
}

// ClientCredential implements event.Reader. One query instead of three: on PostgreSQL a single caller of introspection
// waits 0.24 ms instead of 0.35 ms, and 64 callers cost 30 to 45 % less CPU. The embedded database has most of it in
// memory and reads it one by one.
func (s *Store) ClientCredential(ctx context.Context, ref event.Ref) (*event.ClientCredential, error) {
	if !possible(ref.ID) {
		return nil, nil
	}
	if s.clientCredentials == nil {
		return s.readClientCredential(ctx, ref)
	}
	found, err := await(ctx, s.clientCredentials.Ask(ref))
	if err != nil || found == nil {
		return nil, err
	}
	if found.Object == nil || found.Org == nil { // not seen before, or changed since
		return s.readClientCredential(ctx, ref)
	}
	p := *found
	p.Secret = s.current(p.Secret)
	return &p, nil
}

func (s *Store) readClientCredential(ctx context.Context, ref event.Ref) (*event.ClientCredential, error) {
	object, err := s.Record(ctx, ref)
	if err != nil || object == nil {
		return nil, err
	}
	p := &event.ClientCredential{Object: object}
	if p.Org, err = s.Record(ctx, s.part(event.TokenOrg, object.Org)); err != nil || p.Org == nil {
		return nil, err
	}
	p.Secret, err = s.Row(ctx, event.SecretOf(ref.ID))
	return p, err
}

// askClientCredentials reads those whose records have not moved since they were seen. Of the others the records are
// missing.
func (s *Store) askClientCredentials(refs []event.Ref,
	found map[event.Ref]*event.ClientCredential) (questions []readbatch.Question) {
	ids := map[event.Kind][]string{}
	for _, ref := range refs {
		ids[ref.Kind] = append(ids[ref.Kind], ref.ID)
	}
	for kind, ids := range ids {
		questions = append(questions, each(&s.sql.clientCredential, kind, ids, func(scan engine.Scanner) error {
			object, org := event.Record{Ref: event.Ref{Kind: kind}}, event.Record{Ref: s.part(event.TokenOrg, "")}
			secret := &event.Row{}
			if err := scan(&object.ID, &object.Sequence, &object.Hash, &object.Shape, &org.ID, &org.Sequence,
				&org.Hash, &org.Shape,
				&secret.Value, &secret.Expires); err != nil {
				return err
			}
			p := &event.ClientCredential{Object: s.seen.Same(&object), Org: s.seen.Same(&org)}
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
