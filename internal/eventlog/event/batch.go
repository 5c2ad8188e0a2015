package event

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
)

// Loaded is what the store has read for a batch: everything its commands declared.
type Loaded struct {
	Records map[Ref]*Record
	Claims  map[[32]byte]string // digest of a claim: the object that holds it
	Rows    map[RowKey]*Row
	Tokens  map[string]*Token // by id

	FactVersion int  // of the facts that every node knows, see Gated
	KeepWords   bool // what objects are found by is kept in words as well, see Changes.Found
	Assumed     bool // Records are what a node remembers: also a refusal holds only once they have been checked
}

// NewLoaded is for a store to fill.
func NewLoaded() Loaded {
	return Loaded{Records: map[Ref]*Record{}, Claims: map[[32]byte]string{}, Rows: map[RowKey]*Row{},
		Tokens: map[string]*Token{}}
}

// Batch lets commands decide one after the other over loaded data, each seeing what the ones before it did. It is
// all memory; the store writes what comes out.
type Batch struct {
	master  secret.MasterKey
	now     int64
	loaded  Loaded
	records map[Ref]*Record     // as the commands so far have left them; nil value: known to be absent
	claims  map[[32]byte]string // likewise; empty: free
	rows    map[RowKey]*Row     // likewise; nil value: dropped
	reads   map[Ref]struct{}
	groups  map[Grouping]bool // what is in a group from now on, or not
	terms   []termChange      // what objects are found by from now on, or not, in the order of the commands
	words   map[Word]bool     // the same, in the way of the version before
	erased  int               // keys of personal data that were destroyed

	events []Event
	tokens []TokenChange
	size   int
}

// NewBatch starts a batch at the time now.
func NewBatch(master secret.MasterKey, now int64, loaded Loaded) *Batch {
	return &Batch{master: master, now: now, loaded: loaded,
		records: make(map[Ref]*Record, len(loaded.Records)), events: make([]Event, 0, len(loaded.Records)),
		claims: map[[32]byte]string{}, rows: map[RowKey]*Row{}, reads: map[Ref]struct{}{},
		groups: map[Grouping]bool{}, words: map[Word]bool{}}
}

// Size is about how many bytes the batch will write.
func (b *Batch) Size() int { return b.size }

// Run lets one command decide. If it refuses, nothing of it stays.
func (b *Batch) Run(c *Command) error {
	tx := &Tx{batch: b, command: c}
	if err := tx.decide(); err != nil {
		return err
	}
	claims, err := tx.settleClaims()
	if err != nil {
		return err
	}
	for digest, holder := range claims {
		b.claims[digest] = holder
	}
	for _, d := range tx.drafts {
		if len(d.events) > 0 {
			record := d.record
			b.records[d.ref] = &record
			b.events = append(b.events, d.events...)
			b.size += d.size + len(record.Doc)
			b.regroup(d)
			b.updateSearchWords(d)
		} else if !d.writable || !d.exists() {
			b.reads[d.ref] = struct{}{} // what is absent has no lock either
		}
	}
	for key, row := range tx.rows {
		b.rows[key] = row
		if row != nil {
			b.size += len(row.Value)
		} else if key.Table == Keys {
			b.erased++
		}
	}
	b.addTokens(tx.tokens)
	return nil
}

// Erased is how many keys of personal data the commands so far have destroyed.
func (b *Batch) Erased() int { return b.erased }

// regroup notes which groups an object has left and joined.
func (b *Batch) regroup(d *draft) {
	for _, g := range d.left {
		if !slices.Contains(d.groups, g) {
			b.groups[Grouping{g, d.record.ID}] = false
		}
	}
	for _, g := range d.groups {
		if !slices.Contains(d.left, g) {
			b.groups[Grouping{g, d.record.ID}] = true
		}
	}
}

// updateSearchWords notes what an object is no longer found by, and what it is found by now. Mostly no text has
// changed; then its words are not worked out.
func (b *Batch) updateSearchWords(d *draft) {
	if slices.Equal(d.textsBefore, d.texts) {
		return
	}
	before, after := syntax.WordsOfBoth(d.textsBefore, d.texts)
	if slices.Equal(before, after) {
		return
	}
	if b.loaded.KeepWords {
		b.size += differ(before, after, func(w string, has bool) { b.words[Word{w, d.record.ID, d.record.Org}] = has })
	}
	for _, lost := range syntax.TermsWithout(before, after) {
		b.terms = append(b.terms, termChange{Term{lost, d.record.ID, d.record.Org}, false})
	}
	for _, found := range syntax.TermsWithout(after, before) {
		b.terms = append(b.terms, termChange{Term{found, d.record.ID, d.record.Org}, true})
		b.size += len(found)
	}
}

// differ tells what stands only in the one or in the other of two sorted lists, and gives how many bytes the second has
// more.
func differ(before, after []string, change func(text string, has bool)) (size int) {
	for _, text := range before {
		if _, still := slices.BinarySearch(after, text); !still {
			change(text, false)
		}
	}
	for _, text := range after {
		if _, already := slices.BinarySearch(before, text); !already {
			change(text, true)
			size += len(text)
		}
	}
	return size
}

// Term says that an object is found by a term, see syntax.Terms.
type Term struct {
	Term     string
	ObjectID string
	Org      string
}

// termChange says that an object is found by a term from now on, or not.
type termChange struct {
	Term
	has bool
}

// Word says that an object is found by a word. Nodes of the version before look for words and not for terms.
type Word struct {
	Word     string
	ObjectID string
	Org      string
}

// Grouping says that an object is in a group.
type Grouping struct {
	Group    string
	ObjectID string
}

// ClaimChange says who holds a claim from now on.
type ClaimChange struct {
	Digest [32]byte
	Holder string // empty: nobody
}

// Changes is what a batch decided, for the store to write in one transaction.
type Changes struct {
	Events    []Event // in order, positions not yet given
	Created   []*Record
	Updated   []*Record
	Claims    []ClaimChange // sorted by digest; a changed holder is released first
	Inserted  []Row         // rows that were looked for and absent: another writer's insert is a lost race
	Updates   []Row         // rows that were there
	Put       []Row         // rows nobody looked at: the last write counts
	Dropped   []RowKey
	Tokens    []TokenChange
	Joined    []Grouping // sorted, like Left; some may be so already
	Left      []Grouping
	Indexed   []Term // sorted, like Unindexed
	Unindexed []Term
	Found     []Word // sorted, like Lost; some may be so already. Nil unless Loaded.KeepWords
	Lost      []Word
	Unmoved   []Unmoved
	// the keys of personal data among what is dropped: nothing of what they sealed may stay anywhere
	Erased map[string]bool
}

// Unmoved is an object that decisions rest on: at commit it must still be at this sequence (0: absent).
type Unmoved struct {
	Ref
	Sequence uint64
}

// Empty tells that there is nothing to write.
func (c *Changes) Empty() bool {
	return len(c.Events) == 0 && len(c.Claims) == 0 && len(c.Inserted) == 0 && len(c.Updates) == 0 && len(c.Put) == 0 &&
		len(c.Dropped) == 0 && len(c.Tokens) == 0
}

// Changes gives what the batch decided so far.
func (b *Batch) Changes() *Changes {
	c := &Changes{Events: b.events, Tokens: b.tokens}
	for ref, rec := range b.records {
		if b.loaded.Records[ref] == nil {
			c.Created = append(c.Created, rec)
		} else {
			c.Updated = append(c.Updated, rec)
		}
	}
	byID := func(x, y *Record) int { return compare(x.ID, y.ID) }
	slices.SortFunc(c.Created, byID)
	slices.SortFunc(c.Updated, byID)
	for digest, holder := range b.claims {
		before, loaded := b.loaded.Claims[digest]
		if loaded && before == holder {
			continue
		}
		if before != "" || !loaded { // an object may give up a name of its own that nobody declared
			c.Claims = append(c.Claims, ClaimChange{Digest: digest})
		}
		if holder != "" {
			c.Claims = append(c.Claims, ClaimChange{Digest: digest, Holder: holder})
		}
	}
	slices.SortStableFunc(c.Claims, func(x, y ClaimChange) int { return bytes.Compare(x.Digest[:], y.Digest[:]) })
	stored := func(row *Row) Row {
		if b.loaded.FactVersion < SealedRows {
			return *row
		}
		return row.seal(b.master)
	}
	for key, row := range b.rows {
		before, looked := b.loaded.Rows[key]
		switch {
		case row == nil:
			if c.Dropped = append(c.Dropped, key); key.Table == Keys {
				if c.Erased == nil {
					c.Erased = map[string]bool{}
				}
				c.Erased[key.Key] = true
			}
		case !looked:
			c.Put = append(c.Put, stored(row))
		case before == nil:
			c.Inserted = append(c.Inserted, stored(row))
		default:
			c.Updates = append(c.Updates, stored(row))
		}
	}
	byKey := func(x, y Row) int { return compareKeys(x.RowKey, y.RowKey) }
	slices.SortFunc(c.Inserted, byKey)
	slices.SortFunc(c.Updates, byKey)
	slices.SortFunc(c.Put, byKey)
	slices.SortFunc(c.Dropped, compareKeys)
	// Changes that are not about a single token come first: what they remove was there before the batch, see addTokens.
	slices.SortStableFunc(c.Tokens, func(x, y TokenChange) int { return compare(x.ID(), y.ID()) })
	for g, in := range b.groups {
		if in {
			c.Joined = append(c.Joined, g)
		} else {
			c.Left = append(c.Left, g)
		}
	}
	byGroup := func(x, y Grouping) int { return cmp.Or(compare(x.Group, y.Group), compare(x.ObjectID, y.ObjectID)) }
	slices.SortFunc(c.Joined, byGroup)
	slices.SortFunc(c.Left, byGroup)
	slices.SortStableFunc(b.terms, func(x, y termChange) int {
		return cmp.Or(compare(x.ObjectID, y.ObjectID), compare(x.Term.Term, y.Term.Term))
	})
	for i, t := range b.terms {
		switch {
		case i+1 < len(b.terms) && b.terms[i+1].Term == t.Term: // a later command has changed it again
		case t.has:
			c.Indexed = append(c.Indexed, t.Term)
		default:
			c.Unindexed = append(c.Unindexed, t.Term)
		}
	}
	for w, found := range b.words {
		if found {
			c.Found = append(c.Found, w)
		} else {
			c.Lost = append(c.Lost, w)
		}
	}
	byObject := func(x, y Word) int { return cmp.Or(compare(x.ObjectID, y.ObjectID), compare(x.Word, y.Word)) }
	slices.SortFunc(c.Found, byObject)
	slices.SortFunc(c.Lost, byObject)
	for ref := range b.reads {
		if b.records[ref] != nil {
			continue // written by another command of the batch, so it is locked
		}
		u := Unmoved{Ref: ref}
		if rec := b.loaded.Records[ref]; rec != nil {
			u.Sequence = rec.Sequence
		}
		c.Unmoved = append(c.Unmoved, u)
	}
	return c
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareKeys(a, b RowKey) int {
	if c := compare(string(a.Table), string(b.Table)); c != 0 {
		return c
	}
	return compare(a.Key, b.Key)
}

// Tx is what a deciding command sees and what it leaves behind.
type Tx struct {
	batch   *Batch
	command *Command
	drafts  []*draft
	byRef   map[Ref]*draft  // the same; nil while they are few
	refs    map[Ref]bool    // what was declared, true: for writing; nil while it is little, or nobody has asked
	rowKeys map[RowKey]bool // likewise, of rows
	claims  map[Claim]bool  // likewise, of claims
	rows    map[RowKey]*Row
	tokens  []TokenChange
}

// decide runs the command's function; a panic in it is this command's failure alone.
func (tx *Tx) decide() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while deciding: %v\n%s", p, debug.Stack())
		}
	}()
	if err := tx.command.Decide(tx); err != nil {
		return err
	}
	for _, d := range tx.drafts {
		if err := d.match.Check(d.record.Sequence - uint64(len(d.events))); err != nil {
			return err
		}
		if len(d.events) > 0 {
			if err := d.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Now is the time of the batch, in microseconds.
func (tx *Tx) Now() int64 { return tx.batch.now }

// Holder tells which object holds a claim the command declared; empty when it is free.
func (tx *Tx) Holder(c Claim) (string, error) { return tx.holder(c, c.Digest()) }

func (tx *Tx) holder(c Claim, digest [32]byte) (string, error) {
	// Another command of the batch may have declared it: what works must not depend on the company.
	if !tx.declaredClaim(c) {
		return "", fmt.Errorf("event: a claim on %s was not declared", c.Space)
	}
	if holder, changed := tx.batch.claims[digest]; changed {
		return holder, nil
	}
	return tx.batch.loaded.Claims[digest], nil
}

// settleClaims checks the names that the touched objects now hold, and says who holds what has changed.
func (tx *Tx) settleClaims() (map[[32]byte]string, error) {
	var changed map[[32]byte]string // most commands change no name
	set := func(digest [32]byte, holder string) {
		if changed == nil {
			changed = map[[32]byte]string{}
		}
		changed[digest] = holder
	}
	for _, d := range tx.drafts {
		for _, c := range d.before {
			if len(d.events) > 0 && !slices.Contains(d.after, c) {
				set(c.Digest(), "")
			}
		}
	}
	for _, d := range tx.drafts {
		for _, c := range d.after {
			if slices.Contains(d.before, c) {
				continue
			}
			digest := c.Digest()
			holder, released := changed[digest]
			if !released {
				var err error
				if holder, err = tx.holder(c, digest); err != nil {
					return nil, err
				}
			}
			if holder != "" && holder != d.record.ID {
				return nil, errs.New(errs.AlreadyExists, NameTaken, "the name is taken: choose another one")
			}
			set(digest, d.record.ID)
		}
	}
	return changed, nil
}

// Row gives a row of a side table that the command declared; nil when there is none or it has expired.
func (tx *Tx) Row(key RowKey) (*Row, error) {
	if !tx.declaredRow(key) {
		return nil, fmt.Errorf("event: row on %s was not declared", key.Table)
	}
	row, changed := tx.rows[key]
	if !changed {
		if row, changed = tx.batch.rows[key]; !changed {
			row = tx.batch.loaded.Rows[key].Open(tx.batch.master)
		}
	}
	if row != nil && row.Expires != 0 && row.Expires <= tx.batch.now {
		return nil, nil
	}
	return row, nil
}

// Every tells whether every node knows the facts of a version, see Gated. What it is asked about must be stored in the
// way of before otherwise.
func (tx *Tx) Every(version int) bool { return tx.batch.loaded.FactVersion >= version }

// PutRow writes a row of a side table.
func (tx *Tx) PutRow(row Row) {
	if row.Value == nil {
		row.Value = []byte{} // an empty value is a value, also where the database would take nil for NULL
	}
	tx.setRow(row.RowKey, &row)
}

// DropRow removes a row of a side table.
func (tx *Tx) DropRow(key RowKey) { tx.setRow(key, nil) }

func (tx *Tx) setRow(key RowKey, row *Row) {
	if tx.rows == nil { // most commands have none
		tx.rows = map[RowKey]*Row{}
	}
	tx.rows[key] = row
}

// destroyed tells whether a key was destroyed by this command, or by one before it.
func (tx *Tx) destroyed(keyID string) bool {
	key := RowKey{Keys, keyID}
	row, changed := tx.rows[key]
	if !changed {
		row, changed = tx.batch.rows[key]
	}
	return changed && row == nil
}

// draft is a command's own copy of one object.
type draft struct {
	tx       *Tx
	ref      Ref
	writable bool
	record   Record
	key      *secret.DataKey
	object   any // *Object[S] once somebody asked
	finish   func() error
	newer    bool // its state was written by a newer program, which knows more of it than would be written back
	match    IfMatch
	actor    string // who its new events say did it; empty: as the command says
	events   []Event
	size     int
	before   []Claim // held before the first new event
	after    []Claim
	left     []string // groups it was in before the first new event
	groups   []string

	textsBefore []string // whose words it was found by before the first new event
	texts       []string
}

func (tx *Tx) draft(ref Ref) (*draft, error) {
	if d := tx.known(ref); d != nil {
		return d, nil
	}
	writable, declared := tx.declared(ref)
	if !declared {
		return nil, fmt.Errorf("event: %s was not declared", ref.Kind)
	}
	d := &draft{tx: tx, ref: ref, writable: writable, record: Record{Ref: ref}}
	rec := tx.batch.records[ref]
	if rec == nil {
		rec = tx.batch.loaded.Records[ref]
	}
	if rec != nil {
		d.record, d.key = *rec, rec.key
	}
	tx.drafts = append(tx.drafts, d)
	if tx.byRef != nil {
		tx.byRef[ref] = d
	}
	return d, nil
}

// few objects are found sooner by looking at all of them than in a map.
const few = 16

// known finds the draft of an object that the command has looked at before.
func (tx *Tx) known(ref Ref) *draft {
	if tx.byRef == nil && len(tx.drafts) > few {
		tx.byRef = make(map[Ref]*draft, len(tx.command.Write))
		for _, d := range tx.drafts {
			tx.byRef[d.ref] = d
		}
	}
	if tx.byRef != nil {
		return tx.byRef[ref]
	}
	for _, d := range tx.drafts {
		if d.ref == ref {
			return d
		}
	}
	return nil
}

// declared tells whether the command named an object, and for writing.
func (tx *Tx) declared(ref Ref) (writable, declared bool) {
	c := tx.command
	if len(c.Create)+len(c.Write)+len(c.Read) <= few {
		writable = slices.Contains(c.Create, ref) || slices.Contains(c.Write, ref)
		return writable, writable || slices.Contains(c.Read, ref)
	}
	if tx.refs == nil {
		tx.refs = make(map[Ref]bool, len(c.Create)+len(c.Write)+len(c.Read))
		for _, r := range c.Read {
			tx.refs[r] = false
		}
		for _, r := range slices.Concat(c.Create, c.Write) {
			tx.refs[r] = true
		}
	}
	writable, declared = tx.refs[ref]
	return writable, declared
}

// declaredRow tells whether the command named a row.
func (tx *Tx) declaredRow(key RowKey) bool {
	if len(tx.command.Rows) <= few {
		return slices.Contains(tx.command.Rows, key)
	}
	if tx.rowKeys == nil {
		tx.rowKeys = set(tx.command.Rows)
	}
	return tx.rowKeys[key]
}

// declaredClaim tells whether the command named a claim.
func (tx *Tx) declaredClaim(c Claim) bool {
	if len(tx.command.Claims) <= few {
		return slices.Contains(tx.command.Claims, c)
	}
	if tx.claims == nil {
		tx.claims = set(tx.command.Claims)
	}
	return tx.claims[c]
}

func (d *draft) exists() bool { return d.record.Sequence > 0 }

var errNewer = &errs.Error{Kind: errs.Unavailable, Reason: NodeOutdated, RetryAfter: time.Second,
	Message: "a newer version of signet has written this object: upgrade this node, or use an upgraded one"}

// newKey gives a new object a key for its personal data.
func (d *draft) newKey() {
	key := secret.NewDataKey()
	d.record.KeyID = NewID("key")
	d.record.WrappedKey = d.tx.batch.master.WrapDataKey(key, d.record.KeyID)
	d.key, d.record.key = &key, &key
	d.tx.PutRow(Row{RowKey: RowKey{Keys, d.record.KeyID}, Value: d.record.WrappedKey})
}

// shortVersion is the version of facts from which on nodes know that an event behind the first one may leave out the
// key, if nothing in it is sealed.
const shortVersion = 5

func (d *draft) append(t Type, payload, personal []byte) error {
	if !d.writable {
		return fmt.Errorf("event: %s was declared for reading only", d.ref.Kind)
	}
	if d.newer {
		return errNewer
	}
	rec, origin := &d.record, d.tx.command.Origin
	origin.Actor = cmp.Or(d.actor, origin.Actor)
	e := Event{
		ObjectID: rec.ID, Sequence: rec.Sequence + 1, Org: rec.Org, Type: t, Payload: payload, KeyID: rec.KeyID,
		PrevHash: rec.Hash, Origin: origin,
		// A clock that was set back must not let an object's history run backwards.
		Time: max(d.tx.batch.now, rec.Changed),
	}
	if personal == nil && rec.Sequence > 0 && d.tx.batch.loaded.FactVersion >= shortVersion {
		e.KeyID = "" // it is that of the first event
	}
	if personal != nil {
		if rec.WrappedKey == nil || d.tx.destroyed(rec.KeyID) {
			return fmt.Errorf("event: the key of %s %s was destroyed: nothing personal is recorded of it any more",
				d.ref.Kind, rec.ID)
		}
		if d.key == nil {
			key, err := d.tx.batch.master.UnwrapDataKey(rec.WrappedKey, rec.KeyID)
			if err != nil {
				return fmt.Errorf("event: key of %s %s: %w", d.ref.Kind, rec.ID, err)
			}
			d.key, rec.key = &key, &key
		}
		e.Sealed = d.key.Seal(personal, e.sealContext())
	}
	if rec.Sequence == 0 {
		rec.Created = e.Time
	}
	e.written = e.Hash()
	rec.Sequence, rec.Changed, rec.Hash = e.Sequence, e.Time, e.written
	d.events = append(d.events, e)
	d.size += len(payload) + len(e.Sealed) + 200
	return nil
}
