package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
)

type thing struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type named struct {
	Personal struct {
		Name string `json:"name,omitempty"`
	} `json:"-"`
}

func (named) EventType() Type  { return "thing.named.v1" }
func (f named) Apply(t *thing) { t.Name = f.Personal.Name }

type bumped struct{}

func (bumped) EventType() Type { return "thing.bumped.v1" }
func (bumped) Apply(t *thing)  { t.Count++ }

func schema() Schema[thing] {
	return Schema[thing]{
		Name:   "thing",
		Table:  "things",
		Prefix: "thg",
		Shape:  1,
		Facts:  []Fact[thing]{named{}, bumped{}},
		Claims: func(o *Object[thing]) []Claim { return []Claim{{"thing", o.Data.Name}} },
	}
}

var things = Define(schema())

type leaking struct {
	Personal struct{ Name string }
}

func (leaking) EventType() Type { return "thing.leaked.v1" }
func (leaking) Apply(*thing)    {}

type embedding struct{ named }

func (embedding) EventType() Type { return "thing.embedded.v1" }

type foreign struct{ bumped }

func (foreign) EventType() Type { return "other.bumped.v1" }

func TestDefinePanicsOnAMistake(t *testing.T) {
	for name, mistake := range map[string]func(s *Schema[thing]){
		"no name":                func(s *Schema[thing]) { s.Name = "" },
		"no table":               func(s *Schema[thing]) { s.Table = "" },
		"no prefix":              func(s *Schema[thing]) { s.Prefix = "" },
		"no shape":               func(s *Schema[thing]) { s.Shape = 0 },
		"no facts":               func(s *Schema[thing]) { s.Facts = nil },
		"columns without values": func(s *Schema[thing]) { s.Columns = []string{"x"} },
		"values without columns": func(s *Schema[thing]) {
			s.Lookup = func(*Object[thing]) []string { return nil }
		},
		"tokens without a standing":       func(s *Schema[thing]) { s.Token = TokenUser },
		"a fact twice":                    func(s *Schema[thing]) { s.Facts = append(s.Facts, bumped{}) },
		"a fact of another kind":          func(s *Schema[thing]) { s.Facts = append(s.Facts, foreign{}) },
		"a personal part that JSON shows": func(s *Schema[thing]) { s.Facts = append(s.Facts, leaking{}) },
		"an embedded personal part":       func(s *Schema[thing]) { s.Facts = append(s.Facts, embedding{}) },
		"a pointer as a fact":             func(s *Schema[thing]) { s.Facts = []Fact[thing]{&bumped{}} },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "event: ") {
					t.Errorf("panicked with %v", p)
				}
			}()
			s := schema()
			mistake(&s)
			Define(s)
		})
	}
}

func name(n string) named {
	f := named{}
	f.Personal.Name = n
	return f
}

func create(id, n string) *Command {
	return &Command{Write: []Ref{things.Ref(id)}, Claims: []Claim{{"thing", n}}, Decide: func(tx *Tx) error {
		_, err := things.Create(tx, id, "org_1", name(n))
		return err
	}}
}

func newBatch(loaded ...*Record) *Batch {
	l := Loaded{Records: map[Ref]*Record{}, Claims: map[[32]byte]string{}, Rows: map[RowKey]*Row{}}
	for _, r := range loaded {
		l.Records[r.Ref] = r
	}
	for _, n := range []string{"", "a", "b", "new"} {
		l.Claims[Claim{"thing", n}.Digest()] = "" // free
	}
	return NewBatch(secret.NewMasterKey(), 1000, l)
}

func TestABatchDecidesInMemory(t *testing.T) {
	b := newBatch()
	for _, c := range []*Command{create("thg_2", "b"), create("thg_1", "a")} {
		if err := b.Run(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(create("thg_3", "a")); errs.KindOf(err) != errs.AlreadyExists {
		t.Errorf("a taken name: %v", err)
	}
	c := b.Changes()
	if len(c.Events) != 2 || len(c.Created) != 2 || len(c.Updated) != 0 || len(c.Claims) != 2 || len(c.Put) != 2 {
		t.Fatalf("%+v", c)
	}
	if c.Created[0].ID != "thg_1" || c.Created[1].ID != "thg_2" || c.Events[0].ObjectID != "thg_2" {
		t.Error("states must be in the order of locks, events in the order they happened")
	}
	if b.Size() == 0 || c.Empty() {
		t.Error("it claims to be empty")
	}
}

func TestARefusalLeavesNothing(t *testing.T) {
	b := newBatch()
	no := errors.New("no")
	err := b.Run(&Command{
		Write:  []Ref{things.Ref("thg_1")},
		Claims: []Claim{{"thing", "a"}},
		Decide: func(tx *Tx) error {
			if _, err := things.Create(tx, "thg_1", "org_1", name("a")); err != nil {
				return err
			}
			tx.PutRow(Row{RowKey: RowKey{Secrets, "k"}})
			tx.PutToken(Token{ID: "tok_1"})
			return no
		},
	})
	if !errors.Is(err, no) {
		t.Fatal(err)
	}
	if c := b.Changes(); !c.Empty() || len(c.Created) != 0 || len(c.Unmoved) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestDecisionsRestOnWhatTheyLookedAt(t *testing.T) {
	read := &Record{Ref: things.Ref("thg_read"), Sequence: 7, Doc: []byte("{}")}
	b := newBatch(read, &Record{Ref: things.Ref("thg_unread"), Sequence: 3, Doc: []byte("{}")})
	c := create("thg_new", "new")
	c.Read = []Ref{read.Ref, things.Ref("thg_unread")}
	c.Write = append(c.Write, things.Ref("thg_absent"))
	decide := c.Decide
	c.Decide = func(tx *Tx) error {
		for _, id := range []string{"thg_read", "thg_absent"} {
			if _, err := things.Get(tx, id); err != nil {
				return err
			}
		}
		return decide(tx)
	}
	if err := b.Run(c); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, u := range b.Changes().Unmoved {
		got[u.ID] = u.Sequence
	}
	if fmt.Sprint(got) != "map[thg_absent:0 thg_read:7]" {
		t.Errorf("it must hold that %v has not moved", got)
	}
}

func TestAWrongNumberOfLookupValuesIsRefused(t *testing.T) {
	s := schema()
	s.Columns, s.Lookup = []string{"x"}, func(*Object[thing]) []string { return []string{"1", "2"} }
	wrong := Define(s)
	err := newBatch().Run(&Command{
		Write:  []Ref{wrong.Ref("thg_1")},
		Claims: []Claim{{"thing", "a"}},
		Decide: func(tx *Tx) error {
			_, err := wrong.Create(tx, "thg_1", "org_1", name("a"))
			return err
		},
	})
	if err == nil {
		t.Error("it was accepted")
	}
}

func TestAnEmptyPersonalPartIsNotSealed(t *testing.T) {
	b := newBatch()
	if err := b.Run(create("thg_1", "")); err != nil {
		t.Fatal(err)
	}
	if e := b.Changes().Events[0]; e.Sealed != nil || e.KeyID == "" {
		t.Errorf("%+v", e)
	}
}

func TestAppendNeedsACommand(t *testing.T) {
	o, err := things.Open(&Record{Ref: things.Ref("thg_1"), Sequence: 1, Doc: []byte(`{"name":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Append(bumped{}); err == nil {
		t.Error("a fact was appended to an object that was only read")
	}
}
