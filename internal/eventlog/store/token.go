package store

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
)

// Every request looks up its token, and most reads are of one object. As with commands, whatever waits at the same
// moment is taken together.

// lookupSizes are the numbers of keys a query may ask for; it is filled up by asking for the last one again. Few sizes
// mean few prepared statements.
var lookupSizes = [...]int{1, 2, 4, 8, 16, 32, 64}

// await waits for what was asked for together with whatever others ask.
func await[K comparable, V any](ctx context.Context, asked *readbatch.Asked[K, V]) (found V, err error) {
	if found, err = asked.Get(ctx); errors.Is(err, readbatch.ErrStopped) {
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

// tokenText reads of the user and the organization only what decides about a token, and what tells whether their
// records are the ones known already. app is for tokens that applications were given.
func tokenText(kinds event.TokenKinds, tokens int, app bool) string {
	user, org, installation := kinds[event.TokenUser], kinds[event.TokenOrg], kinds[event.TokenInstallation]
	if user == nil || org == nil {
		return "" // a store without them has no tokens
	}
	columns, joins, provider := "''", "", "t.provider"
	if installation != nil {
		columns = "COALESCE((SELECT i.standing FROM " + installation.Table() + " i WHERE i.id = '" +
			installation.Only() + "'), '')"
	}
	if app {
		given, from := "'', '', ''", ""
		if client := kinds[event.TokenApp]; client != nil {
			given = "COALESCE(a.standing, ''), COALESCE(p.id, ''), COALESCE(p.standing, '')"
			from = "LEFT JOIN " + client.Table() + " a ON a.id = t.client LEFT JOIN " + org.Table() +
				" p ON p.id = a.org_id "
		}
		columns += ", " + given +
			", COALESCE(l.hash, ''), COALESCE(l.id, ''), COALESCE(l.kind, ''), COALESCE(l.name, ''), COALESCE(l.user_id, ''), " +
			"COALESCE(l.epoch, 0), COALESCE(l.org_epoch, 0), COALESCE(l.created, 0), COALESCE(l.expires, 0), '', '', '', COALESCE(l.data, ''), COALESCE(l.provider, '')"
		joins, provider = from+"LEFT JOIN tokens l ON l.id = t.session ",
			"COALESCE(NULLIF(t.provider, ''), l.provider, '')"
	}
	if p := kinds[event.TokenProvider]; p == nil {
		columns += ", ''"
	} else { // nothing is looked for where there is none, as with most tokens
		columns += ", CASE WHEN " + provider + " = '' THEN '' ELSE COALESCE((SELECT v.standing FROM " + p.Table() +
			" v WHERE v.id = " + provider + "), '') END"
	}
	return "SELECT " + engine.TokenColumns +
		", s.id, s.sequence, s.hash, s.shape, s.standing, o.id, o.sequence, o.hash, o.shape, o.standing, " + columns +
		" FROM tokens t JOIN " + user.Table() + " s ON s.id = t.user_id JOIN " + org.Table() +
		" o ON o.id = s.org_id " + joins + "WHERE t.hash IN (" + engine.Placeholders(tokens) + ")"
}

// TokenContext implements event.Reader.
func (s *Store) TokenContext(ctx context.Context, tokenHash []byte) (*event.TokenContext, error) {
	return s.tokenContext(ctx, tokenHash, s.tokens, s.askTokens)
}

// AppTokenContext implements event.Reader.
func (s *Store) AppTokenContext(ctx context.Context, tokenHash []byte) (*event.TokenContext, error) {
	return s.tokenContext(ctx, tokenHash, s.appTokens, s.askAppTokens)
}

func (s *Store) tokenContext(ctx context.Context, tokenHash []byte,
	asking *readbatch.Lookups[[32]byte, *event.TokenContext],
	ask func([][32]byte, map[[32]byte]*event.TokenContext) []readbatch.Question) (found *event.TokenContext, err error) {
	if len(tokenHash) != 32 {
		return nil, nil
	}
	hash := [32]byte(tokenHash)
	if b, ok := s.cache.TokenContext(hash); ok {
		return s.fromCache(b), nil
	}
	moment := s.cache.Moment()
	if asking == nil { // read-only
		all := map[[32]byte]*event.TokenContext{}
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
	for _, ref := range []event.Ref{s.part(event.TokenUser, found.UserID), s.part(event.TokenOrg, found.OrgID),
		s.part(event.TokenInstallation, ""),
		s.part(event.TokenApp, t.Client), s.part(event.TokenOrg, found.ClientOrgID),
		s.part(event.TokenProvider, cache.ProviderOf(&t, found.Session))} {
		if ref.ID == "" {
			continue
		}
		if _, err := s.Record(ctx, ref); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// part points at an object that decides about a token. The identifier is empty where there is none.
func (s *Store) part(part event.TokenPart, id string) event.Ref { return s.tokenKinds.Ref(part, id) }

func (s *Store) fromCache(b cache.TokenContext) *event.TokenContext {
	read := &event.TokenContext{
		Token:                *b.Token,
		UserID:               b.User.ID,
		OrgID:                b.Org.ID,
		User:                 b.User,
		Org:                  b.Org,
		Session:              b.Session,
		UserStanding:         s.standing(event.TokenUser, b.User),
		OrgStanding:          s.standing(event.TokenOrg, b.Org),
		InstallationStanding: s.standing(event.TokenInstallation, b.Installation),
		ClientStanding:       s.standing(event.TokenApp, b.Client),
		ClientOrgStanding:    s.standing(event.TokenOrg, b.ClientOrg),
		ProviderStanding:     s.standing(event.TokenProvider, b.Provider),
	}
	if b.ClientOrg != nil {
		read.ClientOrgID = b.ClientOrg.ID
	}
	return read
}

// standing gives the column of that name of a part; nothing for no record.
func (s *Store) standing(part event.TokenPart, r *event.Record) string {
	if r == nil {
		return ""
	}
	if column := s.standings[part]; column >= 0 && column < len(r.Columns) {
		return r.Columns[column]
	}
	return ""
}

func (s *Store) askTokens(hashes [][32]byte, found map[[32]byte]*event.TokenContext) []readbatch.Question {
	return s.tokenQuestion(&s.sql.token, hashes, false, found)
}

func (s *Store) askAppTokens(hashes [][32]byte, found map[[32]byte]*event.TokenContext) []readbatch.Question {
	return s.tokenQuestion(&s.sql.appToken, hashes, true, found)
}

func (s *Store) tokenQuestion(texts *[len(lookupSizes)]string, hashes [][32]byte, client bool,
	found map[[32]byte]*event.TokenContext) []readbatch.Question {
	args, size := filled(hashes, func(hash [32]byte) any { return hash[:] })
	// One row is read after the other: of these, nothing is kept.
	user, org := event.Record{Ref: s.part(event.TokenUser, "")}, event.Record{Ref: s.part(event.TokenOrg, "")}
	to := make([]any, 0, 26) // more where a client has the token
	return []readbatch.Question{{SQL: texts[size], Args: args, Each: func(scan engine.Scanner) error {
		b := &event.TokenContext{}
		to = append(append(to[:0], engine.ScanToken(&b.Token)...), &user.ID, &user.Sequence, &user.Hash, &user.Shape,
			&b.UserStanding,
			&org.ID, &org.Sequence, &org.Hash, &org.Shape, &b.OrgStanding, &b.InstallationStanding)
		if client {
			b.Session = &event.Token{}
			to = append(append(to, &b.ClientStanding, &b.ClientOrgID, &b.ClientOrgStanding),
				engine.ScanToken(b.Session)...)
		}
		to = append(to, &b.ProviderStanding)
		if err := scan(to...); err != nil {
			return err
		}
		if client && b.Session.ID == "" {
			b.Session = nil
		}
		b.UserID, b.OrgID = user.ID, org.ID
		b.User, b.Org = s.seen.Same(&user), s.seen.Same(&org)
		found[[32]byte(b.Token.Hash)] = b
		return nil
	}}}
}

// moved stands for a record that was seen before and is not the same any more: it has to be read as a whole.
var moved = &event.Record{}

// askRecords reads objects, of one kind or of several. Of those that were seen before it asks only for their versions.
func (s *Store) askRecords(refs []event.Ref, found map[event.Ref]*event.Record) []readbatch.Question {
	return s.recordQuestions(refs, found, s.seen.Has)
}

// askWhole reads objects as a whole, whether or not they were seen.
func (s *Store) askWhole(refs []event.Ref, found map[event.Ref]*event.Record) []readbatch.Question {
	return s.recordQuestions(refs, found, func(event.Ref) bool { return false })
}

func (s *Store) recordQuestions(refs []event.Ref, found map[event.Ref]*event.Record,
	has func(event.Ref) bool) (questions []readbatch.Question) {
	unseen, seen := map[event.Kind][]string{}, map[event.Kind][]string{}
	for _, ref := range refs {
		if has(ref) {
			seen[ref.Kind] = append(seen[ref.Kind], ref.ID)
		} else {
			unseen[ref.Kind] = append(unseen[ref.Kind], ref.ID)
		}
	}
	for kind, ids := range seen {
		r := event.Record{Ref: event.Ref{Kind: kind}} // one row is read after the other, and it is not kept
		questions = append(questions, each(&s.sql.version, kind, ids, func(scan engine.Scanner) error {
			if err := scan(&r.ID, &r.Sequence, &r.Hash, &r.Shape); err != nil {
				return err
			}
			if found[r.Ref] = s.seen.Same(&r); found[r.Ref] == nil {
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
			found[r.Ref] = s.seen.Keep(s.byName[kind], r)
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
		found = s.seen.Keep(k, r)
		return nil
	})
	return found, engine.Away(ctx, err)
}

// each asks for so many objects of a kind.
func each(texts *byKind, kind event.Kind, ids []string, row func(engine.Scanner) error) readbatch.Question {
	args, size := filled(ids, func(id string) any { return id })
	return readbatch.Question{SQL: (*texts)[kind][size], Args: args, Each: row}
}
