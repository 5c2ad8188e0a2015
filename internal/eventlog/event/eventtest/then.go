package eventtest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // what is stored is read as it is

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Given records facts about an object, creating it where it does not exist. claims are the names it takes by them.
func Given[S any](t testing.TB, s event.Store, kind *event.Objects[S], id, org string, claims []event.Claim,
	facts ...event.Fact[S]) {
	t.Helper()
	err := s.Do(context.Background(), event.Command{
		Origin: event.Origin{Actor: event.System}, Write: []event.Ref{kind.Ref(id)}, Claims: claims,
		Decide: func(tx *event.Tx) error {
			o, err := kind.Get(tx, id)
			if err != nil {
				return err
			}
			if o == nil {
				_, err = kind.Create(tx, id, org, facts...)
				return err
			}
			return o.Append(facts...)
		},
	})
	if err != nil {
		t.Fatalf("given %s: %v", id, err)
	}
}

// GivenRow puts a row into its side table.
func (s *Store) GivenRow(row event.Row) {
	s.given(func(tx *event.Tx) { tx.PutRow(row) })
}

// GivenToken stores a token, in the place of one with the same id.
func (s *Store) GivenToken(token event.Token) {
	s.given(func(tx *event.Tx) {
		tx.DropToken(token.ID)
		tx.PutToken(token)
	})
}

func (s *Store) given(act func(tx *event.Tx)) {
	err := s.Do(context.Background(), event.Command{Decide: func(tx *event.Tx) error { act(tx); return nil }})
	if err != nil {
		panic(err)
	}
}

// State reads an object that the test knows to exist.
func State[S any](t testing.TB, s *Store, kind *event.Objects[S], id string) *event.Object[S] {
	t.Helper()
	o, err := kind.Read(context.Background(), s, id)
	if err != nil || o == nil {
		t.Fatalf("there is no %s %s (%v)", kind.Name(), id, err)
	}
	return o
}

// IDs gives the ids of a whole list, which page gives in parts.
func IDs[S any](t testing.TB, page func(after event.Cursor) ([]*event.Object[S], *event.Cursor, error)) (ids []string) {
	t.Helper()
	for after := new(event.Cursor); after != nil; {
		found, next, err := page(*after)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			ids = append(ids, o.ID)
		}
		after = next
	}
	return ids
}

// Meanwhile is a store in which something happens just before the next command that rests on a token.
type Meanwhile struct {
	event.Store
	Happens func() // once
}

// Do runs a command.
func (m *Meanwhile) Do(ctx context.Context, c event.Command) error {
	if happens := m.Happens; happens != nil && len(c.Tokens) > 0 {
		m.Happens = nil
		happens()
	}
	return m.Store.Do(ctx, c)
}

// Fact is an event as a test looks at it: JSON in the clear. Personal is empty where there is no such part.
type Fact struct {
	Object   string
	Type     event.Type
	Payload  string
	Personal string
}

// Mark remembers how long the log is.
func (s *Store) Mark() int64 {
	position, err := s.Position(context.Background())
	if err != nil {
		panic(err)
	}
	return position
}

// Since gives the facts recorded after a mark.
func (s *Store) Since(t testing.TB, mark int64) []Fact {
	t.Helper()
	events, err := s.Events(context.Background(), mark, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	var facts []Fact
	for i := range events {
		e := &events[i]
		personal, _, err := event.Personal(context.Background(), s, s.Master, e)
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, Fact{Object: e.ObjectID, Type: e.Type, Payload: string(e.Payload),
			Personal: string(personal)})
	}
	return facts
}

// Then demands that exactly these facts were recorded after a mark, to the byte.
func (s *Store) Then(t testing.TB, mark int64, want ...Fact) {
	t.Helper()
	got := s.Since(t, mark)
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("recorded:\n%swant:\n%s", list(got), list(want))
}

func list(facts []Fact) string {
	var b bytes.Buffer
	for _, f := range facts {
		fmt.Fprintf(&b, "  %s %s %s %s\n", f.Object, f.Type, f.Payload, f.Personal)
	}
	if len(facts) == 0 {
		b.WriteString("  nothing\n")
	}
	return b.String()
}

// Refused demands a refusal of this kind and reason that names exactly these fields.
func Refused(t testing.TB, err error, kind errs.Kind, reason errs.Reason, fields ...string) {
	t.Helper()
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		t.Errorf("got %v, want a refusal with the reason %s", err, reason)
		return
	}
	var named []string
	for _, f := range e.Fields {
		named = append(named, f.Field)
	}
	if e.Kind != kind || e.Reason != reason || !slices.Equal(named, fields) {
		t.Errorf("refused with kind %d, reason %s, fields %q; want %d, %s, %q", e.Kind, e.Reason, named, kind,
			reason, fields)
	}
	if e.Message == "" {
		t.Errorf("the refusal %s says nothing", e.Reason)
	}
}

// As demands the refusal want, or none where it is nil.
func As(t testing.TB, err error, want *errs.Error) {
	t.Helper()
	switch {
	case want != nil:
		Refused(t, err, want.Kind, want.Reason)
	case err != nil:
		t.Errorf("refused: %v", err)
	}
}

// Fingerprint stands for everything that is stored: equal before and after where nothing was written.
func (s *Store) Fingerprint() string { return strings.Join(s.everything(), "\n") }

// Stored tells whether text is anywhere in what is stored, personal parts opened. A short text would be found by chance
// in what is random there: identifiers, digests, what is sealed.
func (s *Store) Stored(t testing.TB, text string) bool {
	t.Helper()
	if len(text) < 7 {
		t.Fatalf("looking for %q: so short a text is found by chance", text)
	}
	all := s.everything()
	for _, f := range s.Since(t, 0) {
		all = append(all, f.Personal)
	}
	return slices.ContainsFunc(all, func(value string) bool {
		return strings.Contains(value, text) || strings.Contains(value, hex.EncodeToString([]byte(text)))
	})
}

// everything gives all values of all tables.
func (s *Store) everything() []string {
	db, err := sql.Open("sqlite", "file:"+s.path+"?_pragma=query_only(1)&_pragma=busy_timeout(10000)")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	var all []string
	for _, table := range values(db,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'checkpoints' ORDER BY name") {
		all = append(all, values(db, "SELECT * FROM "+table)...)
	}
	return all
}

// values gives all that a query finds, as text.
func values(db *sql.DB, query string) (all []string) {
	rows, err := db.Query(query)
	if err != nil {
		panic(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		panic(err)
	}
	found, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range found {
		to[i] = &found[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			panic(err)
		}
		for _, value := range found {
			all = append(all, value.String)
		}
	}
	if err := rows.Err(); err != nil {
		panic(err)
	}
	return all
}
