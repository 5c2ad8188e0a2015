package store

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/store/cache"
	"github.com/signet-idm/signet/internal/store/engine"
	"github.com/signet-idm/signet/internal/store/together"
)

// Every request looks up its token, and most reads are of one object. As with commands, whatever waits at the same
// moment is taken together.

// lookupSizes are the numbers of keys a query may ask for; it is filled up by asking for the last one again. Few sizes
// mean few prepared statements.
var lookupSizes = [...]int{1, 2, 4, 8, 16, 32, 64}

// await waits for what was asked for together with whatever others ask.
func await[K comparable, V any](ctx context.Context, asked *together.Asked[K, V]) (found V, err error) {
	if found, err = asked.Get(ctx); errors.Is(err, together.ErrStopped) {
		return found, errStopping
	}
	return found, engine.Away(ctx, err)
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
	return "SELECT " + engine.TokenColumns + ", s.id, s.sequence, s.hash, s.shape, s.standing, o.id, o.sequence, o.hash, o.shape, o.standing, " +
		"COALESCE((SELECT i.standing FROM installations i WHERE i.id = '" + theInstallation.ID + "'), '')" + columns +
		" FROM tokens t JOIN users s ON s.id = t.user_id JOIN orgs o ON o.id = s.org_id " + joins + "WHERE t.hash IN (" + engine.Placeholders(tokens) + ")"
}

// theInstallation is the one object that every credential depends on.
var theInstallation = event.Ref{Kind: "installation", ID: "installation"}

// Bearer implements event.Reader.
func (s *Store) Bearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	return s.bearer(ctx, tokenHash, s.bearers, s.askBearers)
}

// ClientBearer implements event.Reader.
func (s *Store) ClientBearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	return s.bearer(ctx, tokenHash, s.clients, s.askClientBearers)
}

func (s *Store) bearer(ctx context.Context, tokenHash []byte, asking *together.Lookups[[32]byte, *event.Bearer],
	ask func([][32]byte, map[[32]byte]*event.Bearer) []together.Question) (found *event.Bearer, err error) {
	if len(tokenHash) != 32 {
		return nil, nil
	}
	hash := [32]byte(tokenHash)
	if b, ok := s.cache.Bearer(hash); ok && (b.Installation != nil || s.byName[theInstallation.Kind] == nil) {
		return s.fromCache(b), nil
	}
	moment := s.cache.Moment()
	if asking == nil { // read-only
		all := map[[32]byte]*event.Bearer{}
		err := s.engine.Ask(ctx, ask([][32]byte{hash}, all))
		return all[hash], engine.Away(ctx, err)
	}
	found, err = await(ctx, asking.Ask(hash))
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

func (s *Store) askBearers(hashes [][32]byte, found map[[32]byte]*event.Bearer) []together.Question {
	return s.bearerQuestion(&s.sql.bearer, hashes, false, found)
}

func (s *Store) askClientBearers(hashes [][32]byte, found map[[32]byte]*event.Bearer) []together.Question {
	return s.bearerQuestion(&s.sql.client, hashes, true, found)
}

func (s *Store) bearerQuestion(texts *[len(lookupSizes)]string, hashes [][32]byte, client bool, found map[[32]byte]*event.Bearer) []together.Question {
	args, size := filled(hashes, func(hash [32]byte) any { return hash[:] })
	return []together.Question{{SQL: texts[size], Args: args, Each: func(scan engine.Scanner) error {
		b := &event.Bearer{}
		user, org := event.Record{Ref: event.Ref{Kind: "user"}}, event.Record{Ref: event.Ref{Kind: "org"}}
		to := append(engine.ScanToken(&b.Token), &user.ID, &user.Sequence, &user.Hash, &user.Shape, &b.UserStanding,
			&org.ID, &org.Sequence, &org.Hash, &org.Shape, &b.OrgStanding, &b.InstallationStanding)
		if client {
			b.Session = &event.Token{}
			to = append(append(to, &b.ClientStanding, &b.ClientOrgID, &b.ClientOrgStanding), engine.ScanToken(b.Session)...)
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
	}}}
}

// moved stands for a record that was seen before and is not the same any more: it has to be read as a whole.
var moved = &event.Record{}

// askRecords reads objects, of one kind or of several. Of those that were seen before it asks only where they stand.
func (s *Store) askRecords(refs []event.Ref, found map[event.Ref]*event.Record) (questions []together.Question) {
	unseen, stand := map[event.Kind][]string{}, map[event.Kind][]string{}
	for _, ref := range refs {
		if s.seen.has(ref) {
			stand[ref.Kind] = append(stand[ref.Kind], ref.ID)
		} else {
			unseen[ref.Kind] = append(unseen[ref.Kind], ref.ID)
		}
	}
	for kind, ids := range stand {
		questions = append(questions, each(&s.sql.stand, kind, ids, func(scan engine.Scanner) error {
			r := event.Record{Ref: event.Ref{Kind: kind}}
			if err := scan(&r.ID, &r.Sequence, &r.Hash, &r.Shape); err != nil {
				return err
			}
			if found[r.Ref] = s.seen.same(&r); found[r.Ref] == nil {
				found[r.Ref] = moved
			}
			return nil
		}))
	}
	for kind, ids := range unseen {
		questions = append(questions, each(&s.sql.record, kind, ids, func(scan engine.Scanner) error {
			r, dest := engine.ScanRecord(s.byName[kind], false)
			if err := scan(dest...); err != nil {
				return err
			}
			found[r.Ref] = s.seen.keep(s.byName[kind], r)
			return nil
		}))
	}
	return questions
}

// readRecord reads an object as a whole, for itself alone.
func (s *Store) readRecord(ctx context.Context, ref event.Ref) (found *event.Record, err error) {
	k := s.byName[ref.Kind]
	err = s.engine.Query(ctx, s.sql.record[ref.Kind][0], []any{ref.ID}, func(scan engine.Scanner) error {
		r, dest := engine.ScanRecord(k, false)
		if err := scan(dest...); err != nil {
			return err
		}
		found = s.seen.keep(k, r)
		return nil
	})
	return found, engine.Away(ctx, err)
}

// each asks for so many objects of a kind.
func each(texts *byKind, kind event.Kind, ids []string, row func(engine.Scanner) error) together.Question {
	args, size := filled(ids, func(id string) any { return id })
	return together.Question{SQL: (*texts)[kind][size], Args: args, Each: row}
}
