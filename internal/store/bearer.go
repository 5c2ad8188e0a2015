package store

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/cache"
	"github.com/signet-idm/signet/internal/store/together"
)

// Every request looks up its token, and most reads are of one object. As with commands, whatever waits at the same
// moment is taken together.

// lookupSizes are the numbers of keys a query may ask for; it is filled up by asking for the last one again. Few sizes
// mean few prepared statements.
var lookupSizes = [...]int{1, 2, 4, 8, 16, 32, 64}

// get asks for one key, together with whoever else asks.
func get[K comparable, V any](ctx context.Context, l *together.Lookups[K, V], key K) (found V, err error) {
	if found, err = l.Get(ctx, key); errors.Is(err, together.ErrStopped) {
		return found, errStopping
	}
	return found, away(ctx, err)
}

// filled gives the keys as arguments of a query of the next of lookupSizes, and which one that is.
func filled[K any](keys []K, argument func(K) any) (args []any, size int) {
	for size < len(lookupSizes)-1 && lookupSizes[size] < len(keys) {
		size++
	}
	args = make([]any, lookupSizes[size])
	for i := range args {
		args[i] = argument(keys[min(i, len(keys)-1)])
	}
	return args, size
}

// bearerText reads of the user and the organization only what judges a credential, and what tells whether their records are
// the ones known already. client is for tokens that applications were given.
func bearerText(tokens int, client bool) string {
	columns, joins := "", ""
	if client {
		columns = ", COALESCE(a.standing, ''), COALESCE(p.id, ''), COALESCE(p.standing, ''), COALESCE(l.hash, ''), COALESCE(l.id, ''), COALESCE(l.kind, ''), COALESCE(l.name, ''), COALESCE(l.user_id, ''), " +
			"COALESCE(l.epoch, 0), COALESCE(l.org_epoch, 0), COALESCE(l.created, 0), COALESCE(l.expires, 0), '', '', '', COALESCE(l.data, '')"
		joins = "LEFT JOIN apps a ON a.id = t.client LEFT JOIN orgs p ON p.id = a.org_id LEFT JOIN tokens l ON l.id = t.session "
	}
	return "SELECT " + tokenColumns + ", s.id, s.sequence, s.hash, s.shape, s.standing, o.id, o.sequence, o.hash, o.shape, o.standing, " +
		"COALESCE((SELECT i.standing FROM installations i WHERE i.id = '" + theInstallation.ID + "'), '')" + columns +
		" FROM tokens t JOIN users s ON s.id = t.user_id JOIN orgs o ON o.id = s.org_id " + joins + "WHERE t.hash IN (" + placeholders(tokens) + ")"
}

// theInstallation is the one object that every credential depends on.
var theInstallation = event.Ref{Kind: "installation", ID: "installation"}

// Bearer implements event.Reader.
func (s *Store) Bearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	return s.bearer(ctx, tokenHash, s.bearers, s.findBearers)
}

// ClientBearer implements event.Reader.
func (s *Store) ClientBearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	return s.bearer(ctx, tokenHash, s.clients, s.findClientBearers)
}

func (s *Store) bearer(ctx context.Context, tokenHash []byte, asking *together.Lookups[[32]byte, *event.Bearer],
	find func(context.Context, [][32]byte) (map[[32]byte]*event.Bearer, error)) (found *event.Bearer, err error) {
	if len(tokenHash) != 32 {
		return nil, nil
	}
	hash := [32]byte(tokenHash)
	if b, ok := s.cache.Bearer(hash); ok && (b.Installation != nil || s.byName[theInstallation.Kind] == nil) {
		return s.fromCache(b), nil
	}
	moment := s.cache.Moment()
	if asking == nil { // read-only
		all, err := find(ctx, [][32]byte{hash})
		return all[hash], away(ctx, err)
	}
	found, err = get(ctx, asking, hash)
	if s.cache == nil || found == nil || err != nil {
		return found, err
	}
	// What decides stays in the cache for the next time.
	t := found.Token
	s.cache.KeepToken(moment, &t)
	s.cache.KeepToken(moment, found.Session)
	for _, ref := range []event.Ref{{Kind: "user", ID: found.UserID}, {Kind: "org", ID: found.OrgID}, theInstallation, {Kind: "app", ID: t.Client}, {Kind: "org", ID: found.ClientOrgID}} {
		if s.byName[ref.Kind] == nil || ref.ID == "" {
			continue
		}
		if _, err := s.Record(ctx, ref); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *Store) fromCache(b cache.Bearer) *event.Bearer {
	read := &event.Bearer{Token: *b.Token, UserID: b.User.ID, OrgID: b.Org.ID, User: b.User, Org: b.Org, Session: b.Session,
		UserStanding: s.standing(b.User), OrgStanding: s.standing(b.Org), InstallationStanding: s.standing(b.Installation),
		ClientStanding: s.standing(b.Client), ClientOrgStanding: s.standing(b.ClientOrg)}
	if b.ClientOrg != nil {
		read.ClientOrgID = b.ClientOrg.ID
	}
	return read
}

// standing gives the column of that name; nothing for no record.
func (s *Store) standing(r *event.Record) string {
	if r == nil {
		return ""
	}
	if column := slices.Index(s.byName[r.Kind].Columns(), event.Standing); column >= 0 && column < len(r.Columns) {
		return r.Columns[column]
	}
	return ""
}

func (s *Store) findBearers(ctx context.Context, hashes [][32]byte) (map[[32]byte]*event.Bearer, error) {
	return s.queryBearers(ctx, &s.sql.bearer, hashes, false)
}

func (s *Store) findClientBearers(ctx context.Context, hashes [][32]byte) (map[[32]byte]*event.Bearer, error) {
	return s.queryBearers(ctx, &s.sql.client, hashes, true)
}

func (s *Store) queryBearers(ctx context.Context, texts *[len(lookupSizes)]string, hashes [][32]byte, client bool) (map[[32]byte]*event.Bearer, error) {
	args, size := filled(hashes, func(hash [32]byte) any { return hash[:] })
	found := make(map[[32]byte]*event.Bearer, len(hashes))
	err := s.engine.query(ctx, texts[size], args, func(scan scanner) error {
		b := &event.Bearer{}
		user, org := event.Record{Ref: event.Ref{Kind: "user"}}, event.Record{Ref: event.Ref{Kind: "org"}}
		to := append(scanToken(&b.Token), &user.ID, &user.Sequence, &user.Hash, &user.Shape, &b.UserStanding,
			&org.ID, &org.Sequence, &org.Hash, &org.Shape, &b.OrgStanding, &b.InstallationStanding)
		if client {
			b.Session = &event.Token{}
			to = append(append(to, &b.ClientStanding, &b.ClientOrgID, &b.ClientOrgStanding), scanToken(b.Session)...)
		}
		if err := scan(to...); err != nil {
			return err
		}
		if client && b.Session.ID == "" {
			b.Session = nil
		}
		b.UserID, b.OrgID = user.ID, org.ID
		b.User, b.Org = s.seen.same(&user), s.seen.same(&org)
		found[[32]byte(b.Token.Hash)] = b
		return nil
	})
	return found, err
}

// findRecords reads objects, of one kind or of several. Of those that were seen before it asks only where they stand.
func (s *Store) findRecords(ctx context.Context, refs []event.Ref) (map[event.Ref]*event.Record, error) {
	unseen, stand := map[event.Kind][]string{}, map[event.Kind][]string{}
	for _, ref := range refs {
		if s.seen.has(ref) {
			stand[ref.Kind] = append(stand[ref.Kind], ref.ID)
		} else {
			unseen[ref.Kind] = append(unseen[ref.Kind], ref.ID)
		}
	}
	found := make(map[event.Ref]*event.Record, len(refs))
	for kind, ids := range stand {
		err := s.queryEach(ctx, &s.sql.stand, kind, ids, func(scan scanner) error {
			r := event.Record{Ref: event.Ref{Kind: kind}}
			if err := scan(&r.ID, &r.Sequence, &r.Hash, &r.Shape); err != nil {
				return err
			}
			if same := s.seen.same(&r); same != nil {
				found[r.Ref] = same
			} else {
				unseen[kind] = append(unseen[kind], r.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for kind, ids := range unseen {
		err := s.queryEach(ctx, &s.sql.record, kind, ids, func(scan scanner) error {
			r, dest := scanRecord(s.byName[kind], false)
			if err := scan(dest...); err != nil {
				return err
			}
			found[r.Ref] = s.seen.keep(s.byName[kind], r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// queryEach runs the statement that asks for so many objects of a kind.
func (s *Store) queryEach(ctx context.Context, texts *byKind, kind event.Kind, ids []string, each func(scanner) error) error {
	args, size := filled(ids, func(id string) any { return id })
	return s.engine.query(ctx, (*texts)[kind][size], args, each)
}
