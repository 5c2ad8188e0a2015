// Package cache holds committed records and tokens of the embedded database in memory. The data directory is locked, so
// one process writes, and its writer updates the cache before any caller is answered. So the cache always holds what a
// query would find. PostgreSQL has other writers, and no cache.
package cache

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Cache is what is held. A nil one holds nothing. Safe for concurrent use.
type Cache struct {
	kinds   event.TokenKinds
	mu      sync.RWMutex
	records map[event.Ref]*event.Record // never altered once they are here
	absent  map[event.Ref]struct{}      // objects that were looked for and are not there
	tokens  map[[32]byte]*event.Token
	hashes  map[string][32]byte      // of tokens, by id
	rows    map[event.SideTable]rows // of the tables that are kept; never altered either
	holders map[[32]byte]string      // of claims; empty: nobody
	size    int
	changes uint64 // how many commits have been told

	Records, Tokens Lookups // that were answered from here, or could not be
}

// rows are those of one table that were looked for; nil where there is none.
type rows map[event.RowKey]*event.Row

// Lookups counts those that were looked for.
type Lookups struct{ Hits, Misses atomic.Int64 }

func (l *Lookups) count(hit bool) {
	if hit {
		l.Hits.Add(1)
	} else {
		l.Misses.Add(1)
	}
}

// How much the cache may hold.
const (
	MaxBytes = 16 << 20 // of records, about
	maxRow   = 256      // bytes of a row
	maxRows  = 4096     // of a table

	maxAbsent  = 4096
	maxHolders = 4096
)

// New makes an empty cache, which knows the kinds of objects that decide about tokens.
func New(kinds event.TokenKinds) *Cache {
	c := &Cache{kinds: kinds}
	c.empty()
	return c
}

func (c *Cache) empty() {
	c.records, c.tokens, c.hashes, c.size = map[event.Ref]*event.Record{}, map[[32]byte]*event.Token{},
		map[string][32]byte{}, 0
	// Clients prove who they are with a secret in each request, and an attempt to sign in reads its counters twice.
	// Rows of other tables are read once or twice.
	c.rows = map[event.SideTable]rows{event.Secrets: {}, event.Throttle: {}}
	c.absent, c.holders = map[event.Ref]struct{}{}, map[[32]byte]string{}
}

// Clear forgets everything, after changes that were not told one by one.
func (c *Cache) Clear() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.empty()
}

// Record gives a record; nil when it is not here.
func (c *Cache) Record(ref event.Ref) *event.Record {
	if c == nil {
		return nil
	}
	r := c.record(ref)
	c.Records.count(r != nil)
	return r
}

func (c *Cache) record(ref event.Ref) *event.Record {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.records[ref]
}

// Absent tells that there is no such object, which is true of everything that is longer than an identifier. So looking
// for somebody who does not exist takes as long as looking for somebody who does.
func (c *Cache) Absent(ref event.Ref) bool {
	if c == nil {
		return false
	}
	if len(ref.ID) > event.MaxID {
		return true
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, absent := c.absent[ref]
	return absent
}

// KeepAbsent keeps that a query has found nothing, unless that may be old already. It keeps nothing that is longer than
// an identifier, so that what strangers ask for fills no memory.
func (c *Cache) KeepAbsent(moment uint64, ref event.Ref) {
	if c == nil || len(ref.ID) > event.MaxID {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != moment {
		return
	}
	if len(c.absent) >= maxAbsent {
		c.absent = map[event.Ref]struct{}{}
	}
	c.absent[ref] = struct{}{}
}

// Row gives a row; nil where there is none. known is false if a query has to tell.
func (c *Cache) Row(key event.RowKey) (r *event.Row, known bool) {
	if c == nil {
		return nil, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, known = c.rows[key.Table][key]
	return r, known
}

// Holder gives who holds a claim; empty where nobody does. known is false if a query has to tell.
func (c *Cache) Holder(digest [32]byte) (holder string, known bool) {
	if c == nil {
		return "", false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	holder, known = c.holders[digest]
	return holder, known
}

// KeepHolder keeps what a query has told of a claim, unless that may be old already.
func (c *Cache) KeepHolder(moment uint64, digest [32]byte, holder string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != moment {
		return
	}
	if len(c.holders) >= maxHolders {
		c.holders = map[[32]byte]string{}
	}
	c.holders[digest] = holder
}

// Token gives a token by its id; nil when it is not here.
func (c *Cache) Token(id string) *event.Token {
	if c == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tokens[c.hashes[id]]
}

// TokenContext is a token with all that decides about it, of one moment.
type TokenContext struct {
	Token                   *event.Token
	User, Org, Installation *event.Record
	Client, ClientOrg       *event.Record // of a token that an application was given
	Session                 *event.Token  // that the token lives with; nil: it lives with none
	Provider                *event.Record // that the token or its session came through; nil: none
}

// TokenContext gives a token; false when something that decides about it is not here. Of a token that lives with a
// session and an application it gives these, too.
func (c *Cache) TokenContext(hash [32]byte) (b TokenContext, ok bool) {
	if c == nil {
		return b, false
	}
	defer func() { c.Tokens.count(ok) }()
	c.mu.RLock()
	defer c.mu.RUnlock()
	if b.Token = c.tokens[hash]; b.Token == nil {
		return b, false
	}
	if b.User = c.part(event.TokenUser, b.Token.UserID); b.User == nil {
		return b, false
	}
	b.Org, b.Installation = c.part(event.TokenOrg, b.User.Org), c.part(event.TokenInstallation, "")
	if b.Org == nil || b.Installation == nil && c.kinds[event.TokenInstallation] != nil {
		return b, false
	}
	if id := b.Token.Client; id != "" {
		if b.Client = c.part(event.TokenApp, id); b.Client == nil {
			return b, false
		}
		if b.ClientOrg = c.part(event.TokenOrg, b.Client.Org); b.ClientOrg == nil {
			return b, false
		}
	}
	if id := b.Token.Session; id != "" {
		if b.Session = c.tokens[c.hashes[id]]; b.Session == nil {
			return b, false
		}
	}
	if id := ProviderOf(b.Token, b.Session); id != "" {
		if b.Provider = c.part(event.TokenProvider, id); b.Provider == nil && c.kinds[event.TokenProvider] != nil {
			return b, false
		}
	}
	return b, true
}

// ProviderOf is the identity provider that a token came through, or else its session; empty where there is none.
func ProviderOf(t, session *event.Token) string {
	if t.Provider == "" && session != nil {
		return session.Provider
	}
	return t.Provider
}

// part gives an object that decides about a token; nil when it is not here.
func (c *Cache) part(part event.TokenPart, id string) *event.Record {
	return c.records[c.kinds.Ref(part, id)]
}

// Moment is to be taken before a query whose result is to be kept: if anything is committed before that, the result may
// be old already, and is not kept.
func (c *Cache) Moment() uint64 {
	if c == nil {
		return 0
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

// KeepRecord keeps what a query has found, unless it may be old already.
func (c *Cache) KeepRecord(moment uint64, r *event.Record) {
	if c == nil || r == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == moment {
		c.put(r)
	}
}

// Same gives the record that is here if it is of the same state as one that was just read; else nil.
func (c *Cache) Same(now *event.Record) *event.Record {
	if c == nil {
		return nil
	}
	old := c.record(now.Ref)
	if old != nil && old.Sequence == now.Sequence && old.Shape == now.Shape && bytes.Equal(old.Hash, now.Hash) {
		return old
	}
	return nil
}

// KeepToken is KeepRecord for a token.
func (c *Cache) KeepToken(moment uint64, t *event.Token) {
	if c == nil || t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == moment {
		c.putToken(t)
	}
}

// KeepRow is that for a row; nil where there is none.
func (c *Cache) KeepRow(moment uint64, key event.RowKey, r *event.Row) {
	if c == nil || !small(key, r) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows[key.Table] == nil || c.changes != moment {
		return
	}
	if len(c.rows[key.Table]) >= maxRows {
		c.rows[key.Table] = rows{}
	}
	c.rows[key.Table][key] = r
}

// small tells whether a row is worth its memory.
func small(key event.RowKey, r *event.Row) bool {
	return len(key.Key) <= maxRow && (r == nil || len(r.Value) <= maxRow)
}

// applyRow takes over what became of a row; nil: it was dropped. Counters are read again soon, secrets are not.
func (c *Cache) applyRow(key event.RowKey, r *event.Row) {
	held := c.rows[key.Table]
	if _, known := held[key]; !known {
		return
	}
	if key.Table == event.Throttle && small(key, r) {
		held[key] = r
	} else {
		delete(held, key)
	}
}

// Apply takes over what a batch has committed.
func (c *Cache) Apply(changes *event.Changes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyRecords(changes)
	for _, change := range changes.Tokens {
		if id := change.ID(); id == "" {
			c.dropTokens(change.Drops)
		} else {
			old := c.tokens[c.hashes[id]]
			delete(c.tokens, c.hashes[id])
			delete(c.hashes, id)
			if now := change.After(id, old); now != nil {
				c.putToken(now)
			}
		}
	}
	for _, rows := range [][]event.Row{changes.Inserted, changes.Updates, changes.Put} {
		for i := range rows {
			c.applyRow(rows[i].RowKey, &rows[i])
		}
	}
	for _, k := range changes.Dropped {
		c.applyRow(k, nil)
	}
	for i := range changes.Claims {
		delete(c.holders, changes.Claims[i].Digest)
	}
}

// applyRecords takes over the records alone, and drops those of destroyed keys.
func (c *Cache) applyRecords(changes *event.Changes) {
	c.changes++
	for _, r := range changes.Created {
		c.put(r)
	}
	for _, r := range changes.Updated {
		c.put(r)
	}
	c.forget(changes.Erased)
}

// forget drops what belongs to destroyed keys: it is personal, and nothing may be sealed with them any more.
func (c *Cache) forget(keys map[string]bool) {
	if len(keys) == 0 {
		return
	}
	for _, r := range c.records {
		if keys[r.KeyID] {
			c.remove(r)
		}
	}
}

// drop forgets an object, if it is here.
func (c *Cache) drop(ref event.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[ref]; r != nil {
		c.remove(r)
	}
}

// replace puts a record in the place of the same one.
func (c *Cache) replace(r *event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records[r.Ref] != nil {
		c.put(r)
	}
}

// keepNewer keeps a record, unless a later one of the same object is here.
func (c *Cache) keepNewer(r *event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.records[r.Ref]; old == nil || old.Sequence <= r.Sequence {
		c.put(r)
	}
}

func (c *Cache) remove(r *event.Record) {
	c.size -= weight(r)
	delete(c.records, r.Ref)
}

func (c *Cache) dropTokens(drop func(*event.Token) bool) {
	for hash, t := range c.tokens {
		if drop(t) {
			delete(c.tokens, hash)
			delete(c.hashes, t.ID)
		}
	}
}

func (c *Cache) put(r *event.Record) {
	if old := c.records[r.Ref]; old != nil {
		c.size -= weight(old)
	}
	c.records[r.Ref] = r
	delete(c.absent, r.Ref)
	c.size += weight(r)
	for _, old := range c.records { // in random order
		if c.size <= MaxBytes {
			break
		}
		c.remove(old)
	}
}

func (c *Cache) putToken(t *event.Token) {
	const most = MaxBytes / 512
	if len(c.tokens) >= most {
		c.tokens, c.hashes = map[[32]byte]*event.Token{}, map[string][32]byte{}
	}
	c.tokens[[32]byte(t.Hash)] = t
	c.hashes[t.ID] = [32]byte(t.Hash)
}

func weight(r *event.Record) int { return 2*len(r.Doc) + len(r.WrappedKey) + 1024 }
