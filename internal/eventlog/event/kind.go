package event

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Fact is the payload of an event about objects with the state S. Its JSON holds what changed and no personal data.
// A struct field named Personal (tagged `json:"-"`) holds the personal part, which is stored sealed; once
// the person is erased it reads as its zero value, and Apply must cope with that.
type Fact[S any] interface {
	EventType() Type
	Apply(state *S)
}

// EventAware is a fact that needs to know its event to be applied: what older events did not record follows from when
// and where they stand. What it makes of the state may depend on everything in the event but its position, which is not
// known yet when it is appended.
type EventAware[S any] interface {
	ApplyAt(state *S, at *Event)
}

// apply folds a fact into a state.
func apply[S any](f Fact[S], state *S, at *Event) {
	if aware, ok := f.(EventAware[S]); ok {
		aware.ApplyAt(state, at)
		return
	}
	f.Apply(state)
}

// FactVersion counts the sets of facts that programs know. Raise it with the first Gated fact of a release, or the
// first new shape: by it nodes know of each other which is older.
const FactVersion = 6

// Gated is a fact that changes who may do what, so that a node which does not know it would let the wrong people in. It
// is refused with FailedPrecondition until every node knows the facts of the version Since, and from then on nodes that
// know less cannot start.
type Gated interface{ Since() int }

// NeedsVersion is the cause of a refusal: a fact of a version that some node may not know.
type NeedsVersion int

func (v NeedsVersion) Error() string { return fmt.Sprintf("it takes nodes of fact version %d", int(v)) }

var errOlderNodes = errs.New(errs.FailedPrecondition, OlderNodes,
	"a node of an older version is running and does not know this change: upgrade all nodes first")

// Schema describes a kind of object.
type Schema[S any] struct {
	Name    Kind
	Table   string // the state table
	Prefix  string // of identifiers: "usr" makes usr_…
	Shape   int    // version of the state document; raise it when S changes and stored documents must be folded again
	Facts   []Fact[S]
	Columns []string                    // lookup columns of the state table
	Lookup  func(o *Object[S]) []string // their values, in the same order
	Claims  func(o *Object[S]) []Claim  // the names the object holds; nil for none
	Groups  func(o *Object[S]) []string // the groups it is in, each once, see Query.Group; nil for none
	Words   func(o *Object[S]) []string // the texts whose words it is found by, see Search; nil for none
	Token   TokenPart                   // the part it has in a TokenContext: it has the lookup column Standing then
	Only    string                      // the identifier, where there is one such object; empty: any number
	// Since is the version of facts from which on the newest shape is written: nodes that know less cannot read it.
	// Until then objects are written in the shape before it. 0: every node can read it.
	Since int
	// Short leaves out of a state what follows from the rest, and Full puts that back: documents of a shape with Since
	// are short. Both leave the memory of the state they are given alone.
	Short func(state S) S
	Full  func(state S) S
	// Form gives what a lookup column of the newest shape has where that of the shape before has a value, which objects
	// are looked for by; nil: the same.
	Form func(column, value string) string
	// Copy copies a state so that applying facts to the copy leaves the original as it is. Where it is given, a state
	// that stays in memory is not decoded again.
	Copy func(state *S) S
}

// Objects is a kind of object, ready for use: made once by Define, held in a package variable of the object's package.
type Objects[S any] struct {
	schema Schema[S]
	facts  map[Type]factType
	sealed bool // some fact has a personal part, so each object gets a key
}

type factType struct {
	typ      reflect.Type
	personal int // index of the Personal field; -1 without one
}

// Define checks a schema and makes it usable. A mistake in it is a programming error and panics at start.
func Define[S any](schema Schema[S]) *Objects[S] {
	if schema.Name == "" || schema.Table == "" || schema.Prefix == "" || schema.Shape < 1 || len(schema.Facts) == 0 {
		panic(fmt.Sprintf("event: the schema of %q needs a name, a table, a prefix, a shape and facts", schema.Name))
	}
	if (len(schema.Columns) > 0) != (schema.Lookup != nil) {
		panic(fmt.Sprintf("event: the schema of %q has lookup columns without values or values without columns", schema.Name))
	}
	if schema.Token != NoPart && !slices.Contains(schema.Columns, Standing) {
		panic(fmt.Sprintf("event: the schema of %q decides about tokens without the column %s", schema.Name, Standing))
	}
	if (schema.Since > 0) != (schema.Short != nil) || (schema.Short != nil) != (schema.Full != nil) ||
		schema.Since > 0 && schema.Shape < 2 {
		panic(fmt.Sprintf("event: the schema of %q needs all of Since, Short, Full and a shape before, or none", schema.Name))
	}
	k := &Objects[S]{schema: schema, facts: map[Type]factType{}}
	for _, f := range schema.Facts {
		t := f.EventType()
		if t.Kind() != schema.Name {
			panic(fmt.Sprintf("event: %s is not named after its kind %q", t, schema.Name))
		}
		if _, twice := k.facts[t]; twice {
			panic(fmt.Sprintf("event: %s is listed twice", t))
		}
		ft := factType{typ: reflect.TypeOf(f), personal: -1}
		if ft.typ.Kind() != reflect.Struct {
			panic(fmt.Sprintf("event: %s is not a plain struct", t))
		}
		if field, ok := ft.typ.FieldByName("Personal"); ok {
			if field.Tag.Get("json") != "-" {
				panic(fmt.Sprintf("event: %s would leak its personal part: tag it `json:\"-\"`", t))
			}
			if len(field.Index) > 1 {
				panic(fmt.Sprintf("event: %s has its personal part in an embedded struct", t))
			}
			ft.personal = field.Index[0]
			k.sealed = true
		}
		k.facts[t] = ft
	}
	return k
}

// Object is one object: its identity, where it stands in the log, and its state.
type Object[S any] struct {
	ID       string
	Org      string
	Sequence uint64
	Created  time.Time
	Changed  time.Time
	Data     S

	draft *draft // set inside a command
	kind  *Objects[S]
	short bool
}

// Details of the object as it stands.
func (o *Object[S]) Details() Details {
	return Details{Sequence: o.Sequence, Created: o.Created, Changed: o.Changed, Org: o.Org}
}

// Short tells a Lookup that the object is written in a shape that not every version reads, see Schema.Since.
func (o *Object[S]) Short() bool { return o.short }

// Record is an object as its state table holds it.
type Record struct {
	Ref
	Org      string
	Sequence uint64
	Created  int64
	Changed  int64
	Hash     []byte // of the last event
	KeyID    string
	Shape    int
	Doc      []byte
	Columns  []string // values of the lookup columns

	WrappedKey []byte // of KeyID, read along; not part of the row

	// What has been worked out of the above already. A record that is kept in memory need not be decoded again.
	state any // *S: a prototype, to be copied by Schema.Copy
	key   *secret.DataKey
}

// Reuse takes over what has been worked out of a record of the same state. The data key counts only as it is stored
// now: it may have been destroyed, or wrapped anew.
func (r *Record) Reuse(same *Record) {
	r.state = same.state
	if r.KeyID == same.KeyID && len(r.WrappedKey) > 0 && bytes.Equal(r.WrappedKey, same.WrappedKey) {
		r.key = same.key
	}
}

// Equal tells whether two records are the same to the byte.
func (r *Record) Equal(o *Record) bool {
	if len(r.Columns) != len(o.Columns) {
		return false
	}
	for i := range r.Columns {
		if r.Columns[i] != o.Columns[i] {
			return false
		}
	}
	return r.Ref == o.Ref && r.Org == o.Org && r.Sequence == o.Sequence && r.Created == o.Created &&
		r.Changed == o.Changed && bytes.Equal(r.Hash, o.Hash) && r.KeyID == o.KeyID && r.Shape == o.Shape &&
		bytes.Equal(r.Doc, o.Doc)
}

// NewID makes an identifier: the kind's prefix and a UUIDv7 in lower-case hex, sortable by time.
func (k *Objects[S]) NewID() string { return NewID(k.schema.Prefix) }

// NewID makes an identifier with any prefix.
func NewID(prefix string) string {
	id := uuid.Must(uuid.NewV7())
	return prefix + "_" + strings.ReplaceAll(id.String(), "-", "")
}

// MaxID is the length in bytes that no identifier exceeds. What is longer is nobody's, and is not worth remembering:
// strangers choose it.
const MaxID = 200

// Ref points at an object of this kind.
func (k *Objects[S]) Ref(id string) Ref { return Ref{Kind: k.schema.Name, ID: id} }

// Read reads one object; nil when there is none.
func (k *Objects[S]) Read(ctx context.Context, r Reader, id string) (*Object[S], error) {
	rec, err := r.Record(ctx, k.Ref(id))
	if err != nil || rec == nil {
		return nil, err
	}
	return k.Open(rec)
}

// Open turns a record that was read into an object.
func (k *Objects[S]) Open(rec *Record) (*Object[S], error) {
	o := &Object[S]{ID: rec.ID, Org: rec.Org, Sequence: rec.Sequence,
		Created: Time(rec.Created), Changed: Time(rec.Changed), kind: k}
	if prototype, ok := rec.state.(*S); ok {
		o.Data = k.schema.Copy(prototype)
		return o, nil
	}
	return o, k.decode(rec, &o.Data)
}

func (k *Objects[S]) decode(rec *Record, state *S) error {
	if err := json.Unmarshal(rec.Doc, state); err != nil {
		return fmt.Errorf("state of %s %s: %w", k.schema.Name, rec.ID, err)
	}
	if k.schema.Full != nil && rec.Shape >= k.schema.Shape {
		*state = k.schema.Full(*state)
	}
	return nil
}

// Prepare works out the state of a record that is going to be kept, so that Open need not. Nobody else may have it yet.
func (k *Objects[S]) Prepare(rec *Record) error {
	if k.schema.Copy == nil || rec.state != nil {
		return nil
	}
	state := new(S)
	if err := k.decode(rec, state); err != nil {
		return err
	}
	rec.state = state
	return nil
}

// Get gives the object inside a command that declared it; nil when there is none.
func (k *Objects[S]) Get(tx *Tx, id string) (*Object[S], error) {
	d, err := tx.draft(k.Ref(id))
	if err != nil || !d.exists() {
		return nil, err
	}
	if d.object == nil {
		o, err := k.Open(&d.record)
		if err != nil {
			return nil, err
		}
		o.draft = d
		d.object = o
		d.newer = d.record.Shape > k.schema.Shape
		d.finish = func() error { return k.finish(o) }
	}
	return d.object.(*Object[S]), nil
}

// Follow gives an object that the command has found a reference to, for reading; nil when there is none. The command
// need not have declared it, see Tx.Require: return its error as it is.
func (k *Objects[S]) Follow(tx *Tx, id string) (*Object[S], error) {
	if err := tx.Require(Command{Read: []Ref{k.Ref(id)}}); err != nil {
		return nil, err
	}
	return k.Get(tx, id)
}

// FollowToWrite is Follow for an object that the command writes.
func (k *Objects[S]) FollowToWrite(tx *Tx, id string) (*Object[S], error) {
	if err := tx.Require(Command{Write: []Ref{k.Ref(id)}}); err != nil {
		return nil, err
	}
	return k.Get(tx, id)
}

// Create makes a new object in a command that declared its id for writing. Where the kind has personal facts, the
// object gets a key of its own.
func (k *Objects[S]) Create(tx *Tx, id, org string, facts ...Fact[S]) (*Object[S], error) {
	return k.create(tx, id, org, nil, facts)
}

// CreateBeside makes a new object that shares the key of another one: what it records is about the same person.
func (k *Objects[S]) CreateBeside(tx *Tx, id string, of Ref, facts ...Fact[S]) (*Object[S], error) {
	beside, err := tx.draft(of)
	if err != nil {
		return nil, err
	}
	if !beside.exists() {
		return nil, fmt.Errorf("event: there is no %s %s to stand beside", of.Kind, of.ID)
	}
	return k.create(tx, id, beside.record.Org, beside, facts)
}

func (k *Objects[S]) create(tx *Tx, id, org string, beside *draft, facts []Fact[S]) (*Object[S], error) {
	d, err := tx.draft(k.Ref(id))
	if err != nil {
		return nil, err
	}
	if d.exists() {
		return nil, fmt.Errorf("event: %s %s exists already", k.schema.Name, id)
	}
	d.record.Org = org
	d.record.Shape = k.ShapeAt(tx.batch.loaded.FactVersion)
	switch {
	case beside != nil:
		d.record.KeyID, d.record.WrappedKey, d.key = beside.record.KeyID, beside.record.WrappedKey, beside.key
	case k.sealed:
		d.newKey()
	}
	o := &Object[S]{ID: id, Org: org, draft: d, kind: k}
	d.object = o
	d.finish = func() error { return k.finish(o) }
	return o, o.Append(facts...)
}

// Expect refuses the command with Aborted unless the object is at the sequence that its caller has seen. That is judged
// last, when the command has decided, wherever in it this is called: a refusal by a rule says more.
func (o *Object[S]) Expect(m IfMatch) { o.draft.match = m }

// ActedBy has the events that follow about this object name another actor than the command's: where a command is about
// objects of two organizations, neither learns who in the other one did it.
func (o *Object[S]) ActedBy(actor string) { o.draft.actor = actor }

// Appended are the types of the events that the command has recorded about the object so far.
func (o *Object[S]) Appended() (types []Type) {
	for i := range o.draft.events {
		types = append(types, o.draft.events[i].Type)
	}
	return types
}

// Append records facts about the object and folds them into its state at once.
func (o *Object[S]) Append(facts ...Fact[S]) error {
	if o.draft == nil {
		return errors.New("event: Append outside a command")
	}
	if d := o.draft; len(d.events) == 0 && d.exists() {
		if o.kind.schema.Claims != nil {
			d.before = o.kind.schema.Claims(o)
		}
		if o.kind.schema.Groups != nil {
			d.left = o.kind.schema.Groups(o)
		}
		if o.kind.schema.Words != nil {
			d.textsBefore = o.kind.schema.Words(o)
		}
	}
	for _, f := range facts {
		if gated, ok := plain(f).(Gated); ok && gated.Since() > o.draft.tx.batch.loaded.FactVersion {
			return errOlderNodes.Because(NeedsVersion(gated.Since()))
		}
		// What is folded is what is stored, not what was given: so a rebuild gives the same bytes, and a fact that
		// cannot be read back is refused while that is still possible.
		stored, payload, personal, err := o.kind.stored(f)
		if err != nil {
			return err
		}
		if err := o.draft.append(f.EventType(), payload, personal); err != nil {
			return err
		}
		apply(stored, &o.Data, &o.draft.events[len(o.draft.events)-1])
	}
	rec := &o.draft.record
	o.Sequence, o.Created, o.Changed = rec.Sequence, Time(rec.Created), Time(rec.Changed)
	return nil
}

// Erase destroys the key of the object, in a command that declared it for writing: what is personal in its events, and
// in those of objects beside it, cannot be read any more, and nothing is ever sealed with that key again. What is
// personal in its state is for a fact to remove, which leaves the same whether or not the facts before it can still be
// read.
func (o *Object[S]) Erase() error {
	d := o.draft
	if d == nil {
		return errors.New("event: Erase outside a command")
	}
	if !d.writable {
		return fmt.Errorf("event: %s was declared for reading only", d.ref.Kind)
	}
	if id := d.record.KeyID; id != "" {
		d.tx.DropRow(RowKey{Keys, id})
	}
	d.record.WrappedKey, d.record.key, d.key = nil, nil, nil
	return nil
}

// Erase ends an object with its key, see Object.Erase, by the fact that removes what is personal in its state. Where
// there is no such object there is nothing to do, and another command cannot make one at the same moment.
func (k *Objects[S]) Erase(tx *Tx, id string, last Fact[S]) error {
	o, err := k.Get(tx, id)
	if err != nil || o == nil {
		return err
	}
	if err := o.Erase(); err != nil {
		return err
	}
	return o.Append(last)
}

// finish writes the state back into the record after a command has decided.
func (k *Objects[S]) finish(o *Object[S]) error {
	d, state := o.draft, &o.Data
	if d.tx != nil { // what others have written in a newer shape stays in it
		d.record.Shape = max(d.record.Shape, k.ShapeAt(d.tx.batch.loaded.FactVersion))
	}
	if o.short = k.schema.Short != nil && d.record.Shape == k.schema.Shape; o.short {
		short := k.schema.Short(o.Data)
		state = &short
	}
	doc, err := json.Marshal(state)
	if err != nil {
		return err
	}
	d.record.Doc = doc
	if k.schema.Copy != nil {
		prototype := o.Data
		d.record.state = &prototype
	}
	if k.schema.Lookup != nil {
		if d.record.Columns = k.schema.Lookup(o); len(d.record.Columns) != len(k.schema.Columns) {
			return fmt.Errorf("event: %d values for the %d lookup columns of %q", len(d.record.Columns),
				len(k.schema.Columns), k.schema.Name)
		}
	}
	if k.schema.Claims != nil {
		d.after = k.schema.Claims(o)
	}
	if k.schema.Groups != nil {
		d.groups = k.schema.Groups(o)
	}
	if k.schema.Words != nil {
		d.texts = k.schema.Words(o)
	}
	return nil
}

// Ahead is the personal part of a fact, encoded and read back ahead of the command that records it. Commands decide one
// after the other: what a command with many objects does before its turn, nobody waits for.
type Ahead[S any] struct {
	personal []byte
	// what is in personal; no value once it was used, because a state may be made of the same memory
	read reflect.Value
}

// Ahead encodes the personal part of a fact.
func (k *Objects[S]) Ahead(f Fact[S]) (*Ahead[S], error) {
	ft, err := k.factType(f)
	if err != nil {
		return nil, err
	}
	a := &Ahead[S]{}
	if a.personal, err = ft.encodePersonal(f); err == nil && a.personal != nil {
		read := reflect.New(ft.typ.Field(ft.personal).Type)
		if err = json.Unmarshal(a.personal, read.Interface()); err == nil {
			a.read = read.Elem()
		}
	}
	return a, err
}

// Of is a fact to be recorded that has this personal part, whatever else is in it.
func (a *Ahead[S]) Of(f Fact[S]) Fact[S] { return aheadFact[S]{f, a} }

type aheadFact[S any] struct {
	Fact[S]
	ahead *Ahead[S]
}

// plain is the fact itself.
func plain[S any](f Fact[S]) Fact[S] {
	if a, ok := f.(aheadFact[S]); ok {
		return a.Fact
	}
	return f
}

// stored gives a fact as it will be read, and how it is stored.
func (k *Objects[S]) stored(f Fact[S]) (stored Fact[S], payload, personal []byte, err error) {
	ft, err := k.factType(f)
	if err != nil {
		return nil, nil, nil, err
	}
	if payload, err = json.Marshal(plain(f)); err != nil {
		return nil, nil, nil, err
	}
	a, ok := f.(aheadFact[S])
	switch {
	case !ok:
		if personal, err = ft.encodePersonal(f); err != nil {
			return nil, nil, nil, err
		}
	case a.ahead.read.IsValid():
		v := reflect.New(ft.typ)
		if err := json.Unmarshal(payload, v.Interface()); err != nil {
			return nil, nil, nil, fmt.Errorf("event: payload of %s: %w", f.EventType(), err)
		}
		v.Elem().Field(ft.personal).Set(a.ahead.read)
		a.ahead.read = reflect.Value{}
		return v.Elem().Interface().(Fact[S]), payload, a.ahead.personal, nil
	default:
		personal = a.ahead.personal
	}
	stored, err = k.Decode(f.EventType(), payload, personal)
	return stored, payload, personal, err
}

func (k *Objects[S]) factType(f Fact[S]) (factType, error) {
	ft, known := k.facts[f.EventType()]
	if !known {
		return ft, fmt.Errorf("event: %s is not among the facts of the kind %q", f.EventType(), k.schema.Name)
	}
	return ft, nil
}

// encodePersonal gives nil where there is nothing.
func (ft factType) encodePersonal(f any) ([]byte, error) {
	if ft.personal < 0 {
		return nil, nil
	}
	personal, err := json.Marshal(reflect.ValueOf(f).Field(ft.personal).Interface())
	if string(personal) == "{}" {
		personal = nil
	}
	return personal, err
}

// Decode turns a stored event back into its fact. personal is the opened personal part, nil if there is none or it
// was erased.
func (k *Objects[S]) Decode(t Type, payload, personal []byte) (Fact[S], error) {
	ft, known := k.facts[t]
	if !known {
		return nil, fmt.Errorf("event: unknown type %s", t)
	}
	v := reflect.New(ft.typ)
	if err := json.Unmarshal(payload, v.Interface()); err != nil {
		return nil, fmt.Errorf("event: payload of %s: %w", t, err)
	}
	if ft.personal >= 0 && personal != nil {
		if err := json.Unmarshal(personal, v.Elem().Field(ft.personal).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("event: personal part of %s: %w", t, err)
		}
	}
	return v.Elem().Interface().(Fact[S]), nil
}

// KeyOpener gives the key of an id; false when it was destroyed.
type KeyOpener func(keyID string) (secret.DataKey, bool, error)

// Fold builds one object's record from its events.
type Fold interface {
	// Add folds the next event, in order of sequence.
	Add(e *Event) error
	// Folded gives what they make of it.
	Folded() (Folded, error)
}

// Folded is what the history of an object makes of it: the record, the names it holds, the groups it is in and the
// words it is found by.
type Folded struct {
	Record *Record
	Claims []Claim
	Groups []string
	Words  []string
	First  int64 // the position of its first event, which is its number
}

// NewFold starts folding one object, into the shape that every node reads which knows the facts of a version.
func (k *Objects[S]) NewFold(keys KeyOpener, factVersion int) Fold {
	return &fold[S]{keys: keys,
		object: Object[S]{kind: k, draft: &draft{record: Record{Shape: k.ShapeAt(factVersion)}}}}
}

type fold[S any] struct {
	keys   KeyOpener
	object Object[S]
	first  int64
}

func (f *fold[S]) Add(e *Event) error {
	var personal []byte
	if e.Sealed != nil {
		key, ok, err := f.keys(e.KeyID)
		if err != nil {
			return err
		}
		if ok {
			if personal, err = key.Open(e.Sealed, e.sealContext()); err != nil {
				return fmt.Errorf("event %d: %w", e.Position, err)
			}
		}
	}
	fact, err := f.object.kind.Decode(e.Type, e.Payload, personal)
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Position, err)
	}
	apply(fact, &f.object.Data, e)
	rec := &f.object.draft.record
	if rec.Sequence == 0 {
		rec.Ref, rec.Created, f.first = f.object.kind.Ref(e.ObjectID), e.Time, e.Position
	}
	rec.Org, rec.KeyID, rec.Sequence, rec.Changed, rec.Hash = e.Org, cmp.Or(e.KeyID, rec.KeyID), e.Sequence,
		e.Time, e.Hash()
	return nil
}

func (f *fold[S]) Folded() (Folded, error) {
	o, d := &f.object, f.object.draft
	o.ID, o.Org, o.Sequence = d.record.ID, d.record.Org, d.record.Sequence
	o.Created, o.Changed = Time(d.record.Created), Time(d.record.Changed)
	err := o.kind.finish(o)
	return Folded{Record: &d.record, Claims: d.after, Groups: d.groups, Words: syntax.Words(d.texts...),
		First: f.first}, err
}

// Definition is what the store needs to know of a kind, whatever its state is.
type Definition interface {
	Name() Kind
	Table() string
	Prefix() string
	Columns() []string
	Shape() int
	ShapeAt(factVersion int) int
	Since() int
	Forms(column, value string) []string
	Types() []Type
	NewFold(keys KeyOpener, factVersion int) Fold
	Prepare(rec *Record) error
	// Found tells whether objects of the kind are found by words, and Words gives those of one.
	Found() bool
	Words(rec *Record) ([]string, error)
	Token() TokenPart
	Only() string
}

// Name of the kind.
func (k *Objects[S]) Name() Kind { return k.schema.Name }

// Table that holds the states.
func (k *Objects[S]) Table() string { return k.schema.Table }

// Prefix of identifiers: usr for usr_….
func (k *Objects[S]) Prefix() string { return k.schema.Prefix }

// Columns that find objects.
func (k *Objects[S]) Columns() []string { return k.schema.Columns }

// Shape of the state documents.
func (k *Objects[S]) Shape() int { return k.schema.Shape }

// Since is the version of facts from which on the newest shape is written; 0: always.
func (k *Objects[S]) Since() int { return k.schema.Since }

// ShapeAt is the shape of the documents that are written while every node knows the facts of a version.
func (k *Objects[S]) ShapeAt(factVersion int) int {
	if factVersion < k.schema.Since {
		return k.schema.Shape - 1
	}
	return k.schema.Shape
}

// Forms are the values of a lookup column that objects may have which are found by one, that of the newest shape last.
func (k *Objects[S]) Forms(column, value string) []string {
	if k.schema.Form != nil {
		if newest := k.schema.Form(column, value); newest != value {
			return []string{value, newest}
		}
	}
	return []string{value}
}

// Token is the part that objects of the kind have in what decides about a token.
func (k *Objects[S]) Token() TokenPart { return k.schema.Token }

// Found tells whether objects of the kind are found by words.
func (k *Objects[S]) Found() bool { return k.schema.Words != nil }

// Words gives the words that an object is found by.
func (k *Objects[S]) Words(rec *Record) ([]string, error) {
	if k.schema.Words == nil {
		return nil, nil
	}
	o, err := k.Open(rec)
	if err != nil {
		return nil, err
	}
	return syntax.Words(k.schema.Words(o)...), nil
}

// Only is the identifier of the one object of the kind; empty where there may be any number.
func (k *Objects[S]) Only() string { return k.schema.Only }

// Types of all facts.
func (k *Objects[S]) Types() []Type {
	types := make([]Type, len(k.schema.Facts))
	for i, f := range k.schema.Facts {
		types[i] = f.EventType()
	}
	return types
}
