package eventtest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
)

// Given records facts about an object, creating it where it does not exist. claims are the names it takes by them.
func Given[S any](t testing.TB, s *Store, kind *event.Objects[S], id, org string, claims []event.Claim, facts ...event.Fact[S]) {
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

// GivenRow puts a row beside the log.
func (s *Store) GivenRow(row event.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[row.RowKey] = &row
}

// GivenToken stores a token.
func (s *Store) GivenToken(token event.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token.ID] = &token
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

// Fact is an event as a test looks at it: JSON in the clear. Personal is empty where there is no such part.
type Fact struct {
	Object   string
	Type     event.Type
	Payload  string
	Personal string
}

// Mark remembers how long the log is.
func (s *Store) Mark() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.log))
}

// Since gives the facts recorded after a mark.
func (s *Store) Since(t testing.TB, mark int64) []Fact {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var facts []Fact
	for i := range s.log[mark:] {
		e := &s.log[mark+int64(i)]
		personal, err := s.personal(e)
		if err != nil {
			t.Fatalf("event %d: %v", e.Position, err)
		}
		facts = append(facts, Fact{Object: e.ObjectID, Type: e.Type, Payload: string(e.Payload), Personal: personal})
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
		t.Errorf("refused with kind %d, reason %s, fields %q; want %d, %s, %q", e.Kind, e.Reason, named, kind, reason, fields)
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
func (s *Store) Fingerprint() string { return fmt.Sprintf("%x", s.everything(false)) }

// Stored tells whether text is anywhere in what is stored, personal parts opened.
func (s *Store) Stored(t testing.TB, text string) bool {
	t.Helper()
	if text == "" {
		t.Fatal("looking for nothing")
	}
	for _, b := range s.everything(true) {
		if bytes.Contains(b, []byte(text)) || bytes.Contains(b, []byte(hex.EncodeToString([]byte(text)))) {
			return true
		}
	}
	return false
}

func (s *Store) everything(open bool) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]byte
	text := func(parts ...string) {
		for _, p := range parts {
			all = append(all, []byte(p))
		}
	}
	for i := range s.log {
		e := &s.log[i]
		text(e.ObjectID, e.Org, string(e.Type), e.KeyID, e.Actor, e.RequestID)
		all = append(all, e.Payload, e.Sealed, e.PrevHash)
		if open {
			personal, err := s.personal(e)
			if err != nil {
				panic(err)
			}
			text(personal)
		}
	}
	for _, ref := range sorted(s.records, func(r event.Ref) string { return string(r.Kind) + r.ID }) {
		r := s.records[ref]
		text(ref.ID, r.Org)
		text(r.Columns...)
		all = append(all, r.Doc)
	}
	for _, digest := range sorted(s.claims, func(d [32]byte) string { return string(d[:]) }) {
		all = append(all, digest[:])
		text(s.claims[digest])
	}
	for _, key := range sorted(s.rows, func(k event.RowKey) string { return string(k.Shelf) + k.Key }) {
		text(string(key.Shelf), key.Key)
		all = append(all, s.rows[key].Value, fmt.Append(nil, s.rows[key].Expires))
	}
	for _, id := range sorted(s.tokens, func(id string) string { return id }) {
		t := s.tokens[id]
		text(id, t.Kind, t.UserID)
		all = append(all, t.Hash, fmt.Append(nil, t.Epoch, t.OrgEpoch, t.Created, t.Expires))
	}
	return all
}

func sorted[K comparable, V any](m map[K]V, name func(K) string) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return bytes.Compare([]byte(name(a)), []byte(name(b))) })
	return keys
}
