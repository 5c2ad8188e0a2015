package event

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
)

// pair has a second text that mostly follows from the first.
type pair struct {
	Text string `json:"text"`
	Key  string `json:"key,omitempty"`
}

type paired struct {
	Text string `json:"text"`
	Key  string `json:"key"`
}

func (paired) EventType() Type { return "pair.paired.v1" }
func (f paired) Apply(p *pair) { *p = pair(f) }

var pairs = Define(Schema[pair]{
	Name:    "pair",
	Table:   "pairs",
	Prefix:  "par",
	Shape:   3,
	Since:   5,
	Facts:   []Fact[pair]{paired{}},
	Columns: []string{"column"},
	Lookup: func(o *Object[pair]) []string {
		if o.Short() {
			return []string{"short"}
		}
		return []string{"long"}
	},
	Short: func(p pair) pair {
		if p.Key == strings.ToLower(p.Text) {
			p.Key = ""
		}
		return p
	},
	Full: func(p pair) pair {
		if p.Key == "" {
			p.Key = strings.ToLower(p.Text)
		}
		return p
	},
})

// A shape that not every version reads is written when every node reads it. Then it says the same, and stays, whatever
// a node knows that has not noticed.
func TestAShortShapeIsWrittenWhenEveryNodeReadsIt(t *testing.T) {
	fact := paired{Text: "A", Key: "a"}
	var stored *Record
	for _, c := range []struct {
		version, shape int
		doc, column    string
	}{
		{4, 2, `{"text":"A","key":"a"}`, "long"}, {4, 2, `{"text":"A","key":"a"}`, "long"},
		{5, 3, `{"text":"A"}`, "short"}, {4, 3, `{"text":"A"}`, "short"}, {5, 3, `{"text":"A"}`, "short"},
	} {
		loaded := NewLoaded()
		loaded.FactVersion = c.version
		command := Command{Create: []Ref{pairs.Ref("par_1")}}
		if stored != nil {
			loaded.Records[stored.Ref] = stored
			command = Command{Write: command.Create}
		}
		command.Decide = func(tx *Tx) error {
			o, err := pairs.Get(tx, "par_1")
			if err != nil || o == nil {
				_, err = pairs.Create(tx, "par_1", "org_1", fact)
				return err
			}
			if o.Data != pair(fact) {
				t.Errorf("it says %+v", o.Data)
			}
			return o.Append(fact)
		}
		b := NewBatch(secret.NewMasterKey(), 1, loaded)
		if err := b.Run(&command); err != nil {
			t.Fatal(err)
		}
		changes := b.Changes()
		stored = append(changes.Created, changes.Updated...)[0]
		if stored.Shape != c.shape || string(stored.Doc) != c.doc || stored.Columns[0] != c.column {
			t.Errorf("version %d: shape %d, %s, %s", c.version, stored.Shape, stored.Doc, stored.Columns)
		}
	}
	for version, want := range map[int]int{0: 2, 4: 2, 5: 3, 9: 3} {
		fold := pairs.NewFold(nil, version)
		if err := fold.Add(&Event{ObjectID: "par_1", Sequence: 1, Type: "pair.paired.v1",
			Payload: []byte(`{"text":"A","key":"a"}`)}); err != nil {
			t.Fatal(err)
		}
		folded, err := fold.Folded()
		if err != nil || folded.Record.Shape != want || pairs.ShapeAt(version) != want ||
			strings.Contains(string(folded.Record.Doc), "key") != (want == 2) {
			t.Errorf("folded for version %d: %+v, %v", version, folded.Record, err)
		}
	}
}
