// Package eventtest lets the rules of an object be tested without a database: given facts, when an operation, then
// facts or a refusal.
//
//	s := eventtest.New(t, org.Kind, user.Kind)
//	eventtest.Given(t, s, user.Kind, "usr_a", "org_a", claims, user.HumanAdded{…})
//	mark := s.Mark()
//	_, err := user.ReplaceProfile(ctx, s, caller, match, profile)
//	s.Then(t, mark, eventtest.Fact{…})
//
// Store implements event.Store on maps. It runs each command alone through event.Batch, the very code that decides
// behind the real stores, and applies what comes out. It knows no races, no failures and no SQL: those
// are tested where they are, in package store. When a test ends, the log is folded again and has to give the same state.
package eventtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
)

// Start is the time on the clock of a new store.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// Store is an event.Store in memory. Safe for concurrent use.
type Store struct {
	Master secret.MasterKey

	kinds map[event.Kind]event.Definition

	mu      sync.Mutex
	now     time.Time
	records map[event.Ref]*event.Record
	claims  map[[32]byte]string
	rows    map[event.RowKey]*event.Row
	tokens  map[string]*event.Token // by id
	groups  map[event.Grouping]bool
	log     []event.Event
	written event.Bell
}

var _ event.Log = (*Store)(nil)

// New makes an empty store for objects of these kinds.
func New(t testing.TB, kinds ...event.Definition) *Store {
	t.Helper()
	s := &Store{Master: secret.NewMasterKey(), now: Start, kinds: map[event.Kind]event.Definition{},
		records: map[event.Ref]*event.Record{}, claims: map[[32]byte]string{}, rows: map[event.RowKey]*event.Row{}, tokens: map[string]*event.Token{},
		groups: map[event.Grouping]bool{}}
	for _, k := range kinds {
		s.kinds[k.Name()] = k
	}
	t.Cleanup(func() { s.checkFold(t) })
	return s
}

// Now is the time on the store's clock.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Advance moves the clock.
func (s *Store) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Do implements event.Store.
func (s *Store) Do(ctx context.Context, c event.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	loaded := event.Loaded{Records: map[event.Ref]*event.Record{}, Claims: map[[32]byte]string{}, Rows: map[event.RowKey]*event.Row{}}
	for _, ref := range slices.Concat(c.Create, c.Write, c.Read) {
		if s.kinds[ref.Kind] == nil {
			return fmt.Errorf("eventtest: unknown kind %q", ref.Kind)
		}
		if r := s.records[ref]; r != nil {
			with := *r
			with.WrappedKey = nil
			if key := s.rows[event.RowKey{Shelf: event.Keys, Key: r.KeyID}]; key != nil {
				with.WrappedKey = key.Value
			}
			loaded.Records[ref] = &with
		}
	}
	for _, claim := range c.Claims {
		loaded.Claims[claim.Digest()] = s.claims[claim.Digest()]
	}
	for _, key := range c.Rows {
		loaded.Rows[key] = s.rows[key]
	}
	batch := event.NewBatch(s.Master, event.Micros(s.now), loaded)
	if err := batch.Run(&c); err != nil {
		return err
	}
	return s.apply(batch.Changes())
}

func (s *Store) apply(c *event.Changes) error {
	for _, e := range c.Events {
		e.Position = int64(len(s.log)) + 1
		s.log = append(s.log, e)
	}
	if len(c.Events) > 0 {
		s.written.Ring()
	}
	for _, r := range slices.Concat(c.Created, c.Updated) {
		s.records[r.Ref] = r
	}
	for _, claim := range c.Claims {
		if claim.Holder == "" {
			delete(s.claims, claim.Digest)
		} else {
			s.claims[claim.Digest] = claim.Holder
		}
	}
	for _, r := range slices.Concat(c.Inserted, c.Updates, c.Put) {
		s.rows[r.RowKey] = &r
	}
	for _, key := range c.Dropped {
		delete(s.rows, key)
	}
	for _, g := range c.Left {
		delete(s.groups, g)
	}
	for _, g := range c.Joined {
		s.groups[g] = true
	}
	for _, change := range c.Tokens {
		switch {
		case change.Put != nil:
			if s.tokens[change.Put.ID] != nil {
				return fmt.Errorf("eventtest: token %s exists already", change.Put.ID)
			}
			s.tokens[change.Put.ID] = change.Put
		case change.Advance != nil:
			if t := s.tokens[change.Advance.ID]; t != nil && t.Epoch == change.Advance.From {
				t.Epoch = change.Advance.To
			}
		case change.Extend != nil:
			if t := s.tokens[change.Extend.ID]; t != nil && t.Expires < change.Extend.Expires {
				t.Expires = change.Extend.Expires
			}
		case change.DropFamily != "", change.DropClient != nil, change.DropUser != "":
			maps.DeleteFunc(s.tokens, func(_ string, t *event.Token) bool { return change.Drops(t) })
		default:
			delete(s.tokens, change.Drop)
		}
	}
	return nil
}

// Record implements event.Reader.
func (s *Store) Record(_ context.Context, ref event.Ref) (*event.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return asRead(s.records[ref]), nil
}

// asRead is a record as a real store reads it.
func asRead(r *event.Record) *event.Record {
	if r == nil {
		return nil
	}
	read := *r
	read.Columns, read.WrappedKey = nil, nil
	return &read
}

// RecordsWhere implements event.Reader.
func (s *Store) RecordsWhere(_ context.Context, kind event.Kind, org, column, value, by string, limit int) ([]*event.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k == nil || !slices.Contains(k.Columns(), column) || !slices.Contains(k.Columns(), by) {
		return nil, fmt.Errorf("eventtest: %q has no lookup columns %q and %q", kind, column, by)
	}
	var found []*event.Record
	for ref, r := range s.records {
		if ref.Kind == kind && r.Org == org && r.Columns[slices.Index(k.Columns(), column)] == value {
			found = append(found, r)
		}
	}
	order := slices.Index(k.Columns(), by)
	slices.SortFunc(found, func(a, b *event.Record) int {
		return cmp.Or(strings.Compare(a.Columns[order], b.Columns[order]), strings.Compare(a.ID, b.ID))
	})
	found = found[:min(limit, len(found))]
	for i := range found {
		found[i] = asRead(found[i])
	}
	return found, nil
}

// List implements event.Reader.
func (s *Store) List(_ context.Context, q event.Query) (event.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[q.Kind]
	if k == nil {
		return event.Page{}, fmt.Errorf("eventtest: unknown kind %q", q.Kind)
	}
	column := func(r *event.Record, name string) string {
		if i := slices.Index(k.Columns(), name); i >= 0 {
			return r.Columns[i]
		}
		return ""
	}
	place := func(r *event.Record) event.Cursor {
		if q.By == "" || q.Group != "" {
			return event.Cursor{ID: r.ID}
		}
		return event.Cursor{Value: column(r, q.By), ID: r.ID}
	}
	compare := func(a, b event.Cursor) int {
		return cmp.Or(strings.Compare(a.Value, b.Value), strings.Compare(a.ID, b.ID))
	}
	var found []*event.Record
	for ref, r := range s.records {
		if ref.Kind != q.Kind {
			continue // its columns are others
		}
		in := q.Group != "" && s.groups[event.Grouping{Group: q.Group, ObjectID: r.ID}] ||
			q.Group == "" && (q.Org == "" || r.Org == q.Org) && column(r, event.State) != event.Removed && strings.HasPrefix(place(r).Value, q.Prefix)
		for name, value := range q.Where {
			in = in && column(r, name) == value
		}
		if in && compare(place(r), q.After) > 0 {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *event.Record) int { return compare(place(a), place(b)) })
	var page event.Page
	if len(found) > q.Limit {
		found = found[:q.Limit]
		next := place(found[q.Limit-1])
		page.Next = &next
	}
	for _, r := range found {
		page.Records = append(page.Records, asRead(r))
	}
	return page, nil
}

// Holder implements event.Reader.
func (s *Store) Holder(_ context.Context, claim event.Claim) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[claim.Digest()], nil
}

// Row implements event.Reader.
func (s *Store) Row(_ context.Context, key event.RowKey) (*event.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[key]
	if r == nil || r.Expires != 0 && r.Expires <= event.Micros(s.now) {
		return nil, nil
	}
	return r, nil
}

// Prover implements event.Reader.
func (s *Store) Prover(ctx context.Context, ref event.Ref) (*event.Prover, error) {
	object, err := s.Record(ctx, ref)
	if err != nil || object == nil {
		return nil, err
	}
	owner, err := s.Record(ctx, event.Ref{Kind: "org", ID: object.Org})
	if err != nil || owner == nil {
		return nil, err
	}
	secret, err := s.Row(ctx, event.SecretOf(ref.ID))
	return &event.Prover{Object: object, Org: owner, Secret: secret}, err
}

// Bearer implements event.Reader.
func (s *Store) Bearer(_ context.Context, tokenHash []byte) (*event.Bearer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if !bytes.Equal(t.Hash, tokenHash) {
			continue
		}
		u := s.records[event.Ref{Kind: "user", ID: t.UserID}]
		if u == nil {
			return nil, nil
		}
		o := s.records[event.Ref{Kind: "org", ID: u.Org}]
		if o == nil {
			return nil, nil
		}
		client := s.records[event.Ref{Kind: "app", ID: t.Client}]
		b := &event.Bearer{Token: *t, UserID: u.ID, OrgID: o.ID, User: u, Org: o, UserStanding: s.standing(u), OrgStanding: s.standing(o),
			InstallationStanding: s.standing(s.records[event.Ref{Kind: "installation", ID: "installation"}]),
			ClientStanding:       s.standing(client)}
		if client != nil {
			b.ClientOrgID = client.Org
			b.ClientOrgStanding = s.standing(s.records[event.Ref{Kind: "org", ID: client.Org}])
		}
		if session := s.tokens[t.Session]; session != nil {
			lived := *session
			b.Session = &lived
		}
		return b, nil
	}
	return nil, nil
}

// ClientBearer implements event.Reader.
func (s *Store) ClientBearer(ctx context.Context, tokenHash []byte) (*event.Bearer, error) {
	return s.Bearer(ctx, tokenHash)
}

func (s *Store) standing(r *event.Record) string {
	if r == nil {
		return ""
	}
	return r.Columns[slices.Index(s.kinds[r.Kind].Columns(), event.Standing)]
}

// TokenByID implements event.Reader.
func (s *Store) TokenByID(_ context.Context, id string) (*event.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[id]
	if t == nil {
		return nil, nil
	}
	read := *t
	return &read, nil
}

// TokensOf implements event.Reader.
func (s *Store) TokensOf(_ context.Context, userID, kind, afterID string, limit int) ([]event.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event.Token
	for _, t := range s.tokens {
		if t.UserID == userID && t.Kind == kind && t.ID > afterID && t.Expires > event.Micros(s.now) {
			found = append(found, *t)
		}
	}
	slices.SortFunc(found, func(a, b event.Token) int { return strings.Compare(a.ID, b.ID) })
	return found[:min(limit, len(found))], nil
}

// Events implements event.Reader.
func (s *Store) Events(_ context.Context, after int64, limit int) ([]event.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.log[min(int(after), len(s.log)):]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

// EventsWhere implements event.Reader.
func (s *Store) EventsWhere(_ context.Context, q event.EventQuery) (page event.EventPage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.log {
		e := s.log[i]
		if !q.OldestFirst {
			e = s.log[len(s.log)-1-i]
		}
		if !q.Matches(&e) || q.After != 0 && (e.Position == q.After || (e.Position > q.After) != q.OldestFirst) {
			continue
		}
		if len(page.Events) == q.Limit {
			page.Next = page.Events[q.Limit-1].Position
			break
		}
		page.Events = append(page.Events, e)
	}
	return page, nil
}

// EventsOf implements event.Reader.
func (s *Store) EventsOf(_ context.Context, objectID string, from uint64, limit int) ([]event.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event.Event
	for _, e := range s.log {
		if e.ObjectID == objectID && e.Sequence >= from && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

// RowsOf implements event.Reader.
func (s *Store) RowsOf(_ context.Context, shelf event.Shelf, prefix, after string, limit int) ([]event.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event.Row
	for key, r := range s.rows {
		if key.Shelf == shelf && strings.HasPrefix(key.Key, prefix) && key.Key > after {
			found = append(found, *r)
		}
	}
	slices.SortFunc(found, func(a, b event.Row) int { return strings.Compare(a.Key, b.Key) })
	return found[:min(limit, len(found))], nil
}

// Position implements event.Log.
func (s *Store) Position(context.Context) (int64, error) { return s.Mark(), nil }

// Written implements event.Log.
func (s *Store) Written() <-chan struct{} { return s.written.Next() }

// key opens the key of a person's data. The caller holds the lock.
func (s *Store) key(id string) (secret.DataKey, bool, error) {
	row := s.rows[event.RowKey{Shelf: event.Keys, Key: id}]
	if row == nil {
		return secret.DataKey{}, false, nil
	}
	key, err := s.Master.UnwrapDataKey(row.Value, id)
	return key, err == nil, err
}

// personal opens the sealed part of an event. It is bound to its place in the log by object id and sequence.
func (s *Store) personal(e *event.Event) (string, error) {
	if e.Sealed == nil {
		return "", nil
	}
	key, ok, err := s.key(e.KeyID)
	if err != nil || !ok {
		return "", err
	}
	plain, err := key.Open(e.Sealed, binary.BigEndian.AppendUint64([]byte(e.ObjectID), e.Sequence))
	return string(plain), err
}

// checkFold folds the log anew and compares states, names and hashes with what the commands left.
func (s *Store) checkFold(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	folds := map[event.Ref]event.Fold{}
	last := map[event.Ref][]byte{}
	for i := range s.log {
		e := &s.log[i]
		ref := event.Ref{Kind: e.Type.Kind(), ID: e.ObjectID}
		if folds[ref] == nil {
			folds[ref] = s.kinds[ref.Kind].NewFold(s.key)
		}
		if !bytes.Equal(e.PrevHash, last[ref]) {
			t.Errorf("the chain of %s breaks at sequence %d", ref.ID, e.Sequence)
		}
		last[ref] = e.Hash()
		if err := folds[ref].Add(e); err != nil {
			t.Errorf("folding %s: %v", ref.ID, err)
			return
		}
	}
	claims, groups := map[[32]byte]string{}, map[event.Grouping]bool{}
	for ref, f := range folds {
		r, held, in, err := f.Record()
		if err != nil {
			t.Errorf("folding %s: %v", ref.ID, err)
			continue
		}
		for _, c := range held {
			claims[c.Digest()] = ref.ID
		}
		for _, g := range in {
			groups[event.Grouping{Group: g, ObjectID: ref.ID}] = true
		}
		if !r.Equal(s.records[ref]) {
			t.Errorf("the log of %s folds to\n%s\nbut the state is\n%s", ref.ID, r.Doc, s.records[ref].Doc)
		}
	}
	if len(folds) != len(s.records) {
		t.Errorf("%d objects are in the log, %d have a state", len(folds), len(s.records))
	}
	if !maps.Equal(claims, s.claims) {
		t.Errorf("the objects hold %d names by the log, but %d are kept, or by others", len(claims), len(s.claims))
	}
	if !maps.Equal(groups, s.groups) {
		t.Errorf("by the log the groups are %v, but %v are kept", groups, s.groups)
	}
}
