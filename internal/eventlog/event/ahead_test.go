package event

import (
	"errors"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
)

// listed has a personal part whose memory ends up in the state, which another fact alters in place.
type listed struct {
	Note     string `json:"note"`
	Personal struct {
		Names []string `json:"names"`
	} `json:"-"`
}

func (listed) EventType() Type     { return "list.listed.v1" }
func (f listed) Apply(s *[]string) { *s = append(f.Personal.Names, f.Note) }

type renamedFirst struct{}

func (renamedFirst) EventType() Type   { return "list.renamed_first.v1" }
func (renamedFirst) Apply(s *[]string) { (*s)[0] = "renamed" }

type gatedList struct{ listed }

func (gatedList) EventType() Type { return "list.gated.v1" }
func (gatedList) Since() int      { return 9 }

var lists = Define(Schema[[]string]{Name: "list", Table: "lists", Prefix: "lst", Shape: 1,
	Facts: []Fact[[]string]{listed{}, renamedFirst{}}})

// What was encoded ahead is recorded like anything else, with what its fact has got since, and by each try anew.
func TestWhatWasEncodedAheadIsRecordedAsIfItWereNot(t *testing.T) {
	fact := listed{Note: "before"}
	fact.Personal.Names = []string{"a", "b"}
	ahead, err := lists.Ahead(fact)
	if err != nil {
		t.Fatal(err)
	}
	fact.Note = "now"
	record := func(fact Fact[[]string]) (doc string, recorded Event) {
		t.Helper()
		b := NewBatch(secret.NewMasterKey(), 1, NewLoaded())
		err := b.Run(&Command{Create: []Ref{lists.Ref("lst_1")}, Decide: func(tx *Tx) error {
			_, err := lists.Create(tx, "lst_1", "org_1", fact, renamedFirst{})
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
		c := b.Changes()
		personal, err := c.Created[0].key.Open(c.Events[0].Sealed, c.Events[0].sealContext())
		if err != nil {
			t.Fatal(err)
		}
		c.Events[0].Sealed = personal
		return string(c.Created[0].Doc), c.Events[0]
	}
	wantDoc, want := record(fact)
	for range 2 {
		doc, got := record(ahead.Of(fact))
		if doc != wantDoc || doc != `["renamed","b","now"]` || string(got.Payload) != string(want.Payload) ||
			string(got.Sealed) != string(want.Sealed) || got.Type != want.Type {
			t.Errorf("%s %s %s %s, want %s %s %s", doc, got.Type, got.Payload, got.Sealed, wantDoc,
				want.Payload, want.Sealed)
		}
	}
}

func TestWhatWasEncodedAheadIsRefusedLikeOthers(t *testing.T) {
	if _, err := lists.Ahead(gatedList{}); err == nil {
		t.Error("a fact that the schema does not have")
	}
	b := NewBatch(secret.NewMasterKey(), 1, NewLoaded())
	err := b.Run(&Command{Create: []Ref{lists.Ref("lst_1")}, Decide: func(tx *Tx) error {
		_, err := lists.Create(tx, "lst_1", "org_1", (&Ahead[[]string]{}).Of(gatedList{}))
		return err
	}})
	if needs, gated := errors.AsType[NeedsVersion](err); !gated || needs != 9 {
		t.Errorf("a fact that not every node knows: %v", err)
	}
}
