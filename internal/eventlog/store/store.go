// Package store keeps the log and its state in SQLite or PostgreSQL.
//
// One writer per node takes whatever commands have queued up (it never waits for more), loads everything they name,
// lets each decide in memory (event.Batch), writes what they decided and commits once: group commit. Nothing is
// answered before the commit is durable, and a command that refuses, refuses alone.
//
// The SQL is written once, with ? for parameters. What the engines do differently (how a batch is loaded and
// written, how a transaction starts) is in package engine, behind one interface; package storetest holds both to the
// same promises.
package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/eventlog/store/readbatch"
	"github.com/signet-idm/signet/internal/eventlog/store/schema"
)

// Bounds of one batch: commands, and bytes after which the rest waits for the next one.
const (
	maxBatch      = 128
	maxBatchBytes = 8 << 20
	maxQueue      = 4096
	maxLong       = 64 // long commands that wait
	maxAttempts   = 12 // of one command that keeps losing races
)

// How much of the end of the log is kept in memory: what a busy node writes until it is sealed.
const (
	recentEvents = 8_000
	recentBytes  = 4 << 20
)

// After a long command, ordinary commands have their turn, for othersTurn times as long as it took: long commands get a
// third of the writer's time, and most commands that come meanwhile wait for none. If no ordinary command has run for a
// while, the next long one begins at once. An ordinary command that comes then waits for at most one of them, and goes
// first after it.
const (
	othersTurn = 2
	mostTurn   = 2 * time.Second
	noOthers   = 100 * time.Millisecond
)

// Options say where the data is and what is in it.
type Options struct {
	Database string             // a postgres:// URL, or the path of an SQLite file
	Kinds    []event.Definition // every kind of object, in a fixed order (it is also the order of locks)
	Master   secret.MasterKey
	Clock    func() time.Time // time.Now when nil
	Log      *slog.Logger     // slog.Default() when nil
	ReadOnly bool             // never writes, runs beside a server
	Look     *Look            // at the same database with the same options; nil: nobody has looked. It is used up

	SweepInterval time.Duration // how often to delete what has expired; every minute when 0
	SealInterval  time.Duration // how long to wait for more events before the log is sealed up to them; a second when 0

	Remembered *proof.Mark            // see proof.Sealer
	Remember   func(proof.Mark) error // likewise

	// RememberedEnd is the last position that was durable when the embedded database was last used, and RememberEnd is
	// told of it whenever that grows, before anybody is answered. It costs a batch what a write of a few bytes to the
	// page cache costs.
	RememberedEnd int64
	RememberEnd   func(position int64)

	FactVersion int  // of the facts that this node knows, see event.Gated; event.FactVersion when 0
	Traced      bool // requests may be traced

	Stats *Stats // is told what the store does; nil: nobody is

	maxObjects int // of an ordinary command, for tests; event.MaxObjects when 0
	schema     int // the version to stop migrating at, for tests of what comes behind it; the newest when 0
	scrub      scrubTimes
	wrap       func(engine.Engine) engine.Engine // for tests that stand between; nil: nobody does
}

// Store implements event.Store.
type Store struct {
	engine     engine.Engine
	cache      *cache.Cache // of the embedded database; nil on PostgreSQL and when read-only
	kinds      []event.Definition
	byName     map[event.Kind]event.Definition
	byPrefix   map[string]event.Kind // of identifiers
	tokenKinds event.TokenKinds
	standings  [len(event.TokenKinds{})]int // the lookup column of that name in each of them
	sql        statements
	given      secret.MasterKey // by the operator; all it does is keep the root key
	root       secret.MasterKey
	clock      func() time.Time
	log        *slog.Logger
	name       string // of this node, for as long as it runs
	schema     int    // see Options
	postgres   bool
	facts      atomic.Int64 // version of the facts that every node knows, as far as this one has asked
	times      scrubTimes
	stats      *Stats

	queue             chan *pending // nil: read-only
	long              chan *pending // commands with many objects, see event.MaxObjects
	maxObjects        int
	line              turns // only the writer uses it
	seen              cache.Seen
	tokens            *readbatch.Lookups[[32]byte, *event.TokenContext]      // nil when read-only
	appTokens         *readbatch.Lookups[[32]byte, *event.TokenContext]      // likewise
	records           *readbatch.Lookups[event.Ref, *event.Record]           // on PostgreSQL; nil when read-only
	clientCredentials *readbatch.Lookups[event.Ref, *event.ClientCredential] // likewise
	decided           chan decision
	erasing           chan *pending  // decided and durable, but not answered before the files are scrubbed
	pace              fairqueue.Pace // of commands
	longPace          fairqueue.Pace // of long ones, with the turn of others after each
	written           event.Bell
	// the last durable events of the embedded database, for those who read each of them right after it was written
	recent      event.Tail
	ready       Readiness
	durable     atomic.Int64         // see onDisk
	rememberEnd func(position int64) // nil: nobody wants to know
	broken      atomic.Bool          // the disk failed: nothing is written any more
	stopping    chan struct{}
	background  context.Context // of what runs there; it ends with stopping
	stop        context.CancelFunc
	stopped     chan struct{} // closed once the writer has answered everything it ever will
	sweeping    chan struct{} // closed once nobody deletes what has expired any more
	sealing     chan struct{} // closed once the log is sealed for the last time
	sealer      *proof.Sealer // nil when read-only
	// closed once no object is folded into a new shape in the background any more; nil: none is
	folding  chan struct{}
	words    atomic.Int32  // how far the change from words to word_blocks is, as this node knows
	indexing chan struct{} // closed once nothing is done about that in the background any more
	// every object has the newest shape, and gets no other: nobody else writes, and this node has folded what there was
	newest     bool
	hashes     chan struct{} // closed once no hash of a password is sealed in the background any more
	hashesDone bool          // at the start: none was left to seal
	lastPass   bool          // over all hashes: nobody has to look again after it
	closing    sync.Once
	closed     error
}

var _ event.Log = (*Store)(nil)

// Open connects, migrates the schema (unless read-only), checks that the master key is the database's, and starts the
// writer. created tells that the database was empty: it has just been bound to this key.
func Open(ctx context.Context, o Options) (s *Store, created bool, err error) {
	s = &Store{
		kinds:    o.Kinds,
		byName:   map[event.Kind]event.Definition{},
		byPrefix: map[string]event.Kind{},
		given:    o.Master,
		clock:    o.Clock,
		log:      o.Log,
		name:     "node:" + rand.Text(),
		schema:   o.schema,
		postgres: engine.IsPostgres(o.Database),
		times:    o.scrub.orUsual(),
		stats:    o.Stats,
		decided:  make(chan decision, 8),
		erasing:  make(chan *pending, maxQueue),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
		sweeping: make(chan struct{}),
		sealing:  make(chan struct{}),
		hashes:   make(chan struct{}),
		indexing: make(chan struct{}),
	}
	background, stop := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			stop()
		}
	}()
	s.background, s.stop = background, stop
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	for _, k := range o.Kinds {
		s.byName[k.Name()], s.byPrefix[k.Prefix()] = k, k.Name()
	}
	s.tokenKinds = event.TokenKindsOf(o.Kinds)
	for part, k := range s.tokenKinds {
		if k != nil {
			s.standings[part] = slices.Index(k.Columns(), event.Standing)
		}
	}
	s.sql = newStatements(s.byName, s.tokenKinds)
	if !o.ReadOnly && !s.postgres {
		s.cache = cache.New(s.tokenKinds)
	}
	if o.Look != nil && o.Look.engine != nil {
		s.engine, o.Look.engine = o.Look.engine, nil
	} else if s.engine, err = engine.Open(ctx,
		engine.Options{Database: o.Database, Kinds: o.Kinds, Cache: s.cache, Log: s.log, ReadOnly: o.ReadOnly,
			FactVersion: o.FactVersion, Looked: o.Look != nil && o.Look.file}); err != nil {
		return nil, false, err
	}
	if o.Traced {
		s.engine = engine.Traced(s.engine, s.postgres)
	}
	if o.wrap != nil {
		s.engine = o.wrap(s.engine)
	}
	if !o.ReadOnly {
		if err := schema.Migrate(ctx, s.engine, o.schema); err != nil {
			s.engine.Close()
			return nil, false, fmt.Errorf("preparing the database: %w", err)
		}
	}
	if created, err = s.bindMasterKey(ctx, o.ReadOnly); err != nil {
		s.engine.Close()
		return nil, false, err
	}
	if !o.ReadOnly {
		if err := s.engine.Join(ctx); err != nil {
			s.engine.Close()
			return nil, false, err
		}
		if err := s.knownFacts(ctx); err != nil {
			s.engine.Close()
			return nil, false, err
		}
		if err := s.refold(ctx); err != nil {
			s.engine.Close()
			return nil, false, err
		}
		have, err := readMeta(ctx, s.engine)
		if err != nil {
			s.engine.Close()
			return nil, false, engine.Away(ctx, err)
		}
		if err := s.beginHashes(ctx, have, created); err != nil { // what is written first, too
			s.engine.Close()
			return nil, false, err
		}
		if err := s.beginWords(ctx, have, created); err != nil {
			s.engine.Close()
			return nil, false, err
		}
		s.newest = s.cache != nil && s.facts.Load() >= event.FactVersion
		if s.cache != nil {
			end, err := s.Position(ctx)
			if err != nil {
				s.engine.Close()
				return nil, false, err
			}
			s.durable.Store(end)
			s.recent.MaxEvents, s.recent.MaxBytes = recentEvents, recentBytes
			s.recent.Begin(end)
			s.rememberEnd = o.RememberEnd
		}
		s.queue, s.long, s.maxObjects = make(chan *pending, maxQueue), make(chan *pending, maxLong),
			cmp.Or(o.maxObjects, event.MaxObjects)
		s.ready.Read, s.ready.Write = s.Ping, s.tryWrite
		go s.write()
		go s.answerDurable()
		go s.answerErased()
		reader := readbatch.Start(s.stopping, s.engine.Ask)
		reader.OnRoundTrip = s.stats.Read
		s.tokens, s.appTokens = readbatch.Add(reader, s.askTokens), readbatch.Add(reader, s.askAppTokens)
		if s.cache == nil { // each read is a round trip
			s.seen = cache.NewSeen(s.tokenKinds)
			s.records, s.clientCredentials = readbatch.Add(reader, s.askRecords),
				readbatch.Add(reader, s.askClientCredentials)
		}
		go s.sweepAll(cmp.Or(o.SweepInterval, sweepInterval))
		s.sealer = &proof.Sealer{Engine: s.engine, Root: s.root, Log: s.log, Remembered: o.Remembered,
			Remember: o.Remember}
		if s.cache != nil { // before anybody writes
			s.sealer.Durable = s.durable.Load
			s.sealer.Recent = s.recent.After
			if end := s.durable.Load(); o.RememberedEnd > end {
				s.sealer.Behind(o.RememberedEnd, end)
			}
		}
		if s.cache == nil { // a node that starts needs its connections to get ready
			s.sealer.Delay = time.Second
		}
		s.stats.Begin(statsParts{Engine: s.engine, Cache: s.cache, Seen: s.seen.Lookups(), Sealer: s.sealer,
			Ready: &s.ready, Waiting: func() int { return len(s.queue) + len(s.long) }})
		go s.sealAll(cmp.Or(o.SealInterval, time.Second))
		go s.sealHashes()
		go s.indexAll()
	}
	return s, created, nil
}

// ErrInUse says that nodes are running on a PostgreSQL database that a rebuild needs for itself.
var ErrInUse = engine.ErrInUse

// ErrAway says that PostgreSQL cannot be reached now, and may be later.
var ErrAway = engine.ErrAway

// IsPostgres tells whether a database address means PostgreSQL.
func IsPostgres(database string) bool { return engine.IsPostgres(database) }

// Close stops the writer after what is queued and closes the database.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stopping)
		s.stop()
		if s.queue != nil {
			<-s.stopped
			<-s.sweeping
			<-s.sealing
			<-s.hashes
			<-s.indexing
			if s.folding != nil {
				<-s.folding
			}
		}
		s.closed = s.engine.Close()
	})
	return s.closed
}

// pending is a queued command and its answer.
type pending struct {
	command event.Command
	state   atomic.Int32 // waiting, started or abandoned
	upkeep  bool         // nobody waits for it, see event.InBackground
	erases  bool         // it has destroyed keys of personal data
	done    chan error
	trace   *commandTrace
}

const (
	waiting int32 = iota
	started
	abandoned
)

var errStopping = &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Second,
	Message: "the server is stopping: try again on another node, or in a moment"}

// Do implements event.Store.
func (s *Store) Do(ctx context.Context, c event.Command) error {
	for raisedTo := 0; ; { // a command may have facts of several versions: each try names one of them
		refusal := s.enqueue(ctx, c)
		needed, gated := errors.AsType[event.NeedsVersion](refusal)
		if !gated || int(needed) <= raisedTo {
			return refusal
		}
		if raised, err := s.raiseFactVersion(ctx, int(needed)); err != nil || !raised {
			return cmp.Or(err, refusal)
		}
		raisedTo = int(needed)
	}
}

// Unmarked is the message in the log about an operation that writes many objects, although its definition does not say
// so: it does not wait for its turn. Tests look for it.
const Unmarked = "an operation writes many objects, and its definition does not say so: please report this"

// enqueue hands a command to the writer and waits for its answer.
func (s *Store) enqueue(ctx context.Context, c event.Command) error {
	if err := ctx.Err(); err != nil {
		return engine.Left(ctx, err)
	}
	if err := s.check(&c); err != nil {
		return err
	}
	if s.broken.Load() {
		return errBroken
	}
	queue, pace := s.queue, &s.pace
	if c.Objects() > s.maxObjects {
		if queue, pace = s.long, &s.longPace; !event.MayWriteMany(ctx) {
			s.log.Error(Unmarked, "objects", c.Objects(), "actor", c.Actor)
		}
	}
	if err := pace.Admit(ctx, len(queue), fairqueue.ErrBusy); err != nil {
		return err
	}
	p := &pending{command: c, upkeep: event.IsInBackground(ctx), done: make(chan error, 1), trace: traceQueued(ctx)}
	select {
	case queue <- p:
	case <-ctx.Done():
		return notBegun(ctx)
	case <-s.stopping:
		return errStopping
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		if p.state.CompareAndSwap(waiting, abandoned) {
			return notBegun(ctx)
		}
		return engine.Left(ctx, ctx.Err())
	case <-s.stopped: // it may have been queued behind the writer's back
		select {
		case err := <-p.done:
			return err
		default:
			return errStopping
		}
	}
}

// notBegun is the answer to a caller whose context has ended before the writer came to its command.
func notBegun(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fairqueue.ErrBusy.Because(ctx.Err())
	}
	return engine.Left(ctx, ctx.Err())
}

// check finds mistakes in a command that would otherwise fail the whole batch.
func (s *Store) check(c *event.Command) error {
	if s.queue == nil {
		return errors.New("store: opened for reading only")
	}
	for _, refs := range [...][]event.Ref{c.Create, c.Write, c.Read} {
		for _, ref := range refs {
			if _, known := s.byName[ref.Kind]; !known {
				return fmt.Errorf("store: unknown kind %q", ref.Kind)
			}
		}
	}
	for _, key := range c.Rows {
		if !slices.Contains(event.SideTables, key.Table) {
			return fmt.Errorf("store: unknown table %q", key.Table)
		}
	}
	return nil
}

// write is the one writer of this node.
func (s *Store) write() {
	defer close(s.decided)
	batch := make([]*pending, 0, maxBatch)
	for {
		clear(batch[:cap(batch)]) // or what has been answered stays in memory until the next ones come
		batch = batch[:0]
		first, long := s.next()
		switch {
		case first == nil:
			return
		case long:
			if first.state.CompareAndSwap(waiting, started) {
				began := time.Now()
				s.run([]*pending{first}, 1, false)
				took := time.Since(began)
				s.longPace.Moved(1, took+s.line.ran(took))
			}
			continue
		}
		batch = append(batch, first)
		runtime.Gosched() // lets goroutines that are about to queue a command do so first
		for more := true; more && len(batch) < maxBatch; {
			select {
			case p := <-s.queue:
				batch = append(batch, p)
			default:
				more = false
			}
		}
		live := batch[:0]
		for _, p := range batch {
			if p.state.CompareAndSwap(waiting, started) {
				live = append(live, p)
			}
		}
		began := time.Now()
		for rest := live; len(rest) > 0; {
			rest = s.run(rest, 1, false)
		}
		s.pace.Moved(len(live), time.Since(began))
		s.line.ordinary(live, began)
	}
}

// turns is whose turn it is at the writer.
type turns struct {
	others time.Time // when an ordinary command ran last for which somebody waits
	until  time.Time // so long others have their turn
	owed   bool      // a long command ran last: commands that wait now go first, however short it was
}

// ordinary notes that such commands ran. The server's own upkeep does not count: it comes every second, and would make
// every import on a quiet server wait.
func (t *turns) ordinary(commands []*pending, began time.Time) {
	if slices.ContainsFunc(commands, func(p *pending) bool { return !p.upkeep }) {
		t.others = began
	}
}

// ran notes that a long command took so long, and gives the time that others have after it.
func (t *turns) ran(took time.Duration) time.Duration {
	turn := min(othersTurn*took, mostTurn)
	if time.Since(t.others) > noOthers+took {
		turn = 0
	}
	t.until, t.owed = time.Now().Add(turn), true
	return turn
}

// next waits for the command that the writer begins with: a long one, if one waits and others have had their turn. Nil:
// the store is stopping, and nobody waits.
func (s *Store) next() (p *pending, long bool) {
	line := &s.line
	for {
		queue, over := s.long, (<-chan time.Time)(nil)
		if left := time.Until(line.until); !line.until.IsZero() && left > 0 {
			queue, over = nil, time.After(left)
		}
		if line.owed {
			line.owed = false
			select {
			case p := <-s.queue:
				return p, false
			default:
			}
		}
		select {
		case p := <-queue:
			return p, true
		default:
		}
		select {
		case p := <-s.queue:
			return p, false
		case p := <-queue:
			return p, true
		case <-over:
		case <-s.stopping:
			select {
			case p := <-s.queue:
				return p, false
			case p := <-s.long:
				return p, true
			default:
				return nil, false
			}
		}
	}
}

// run takes commands through one transaction and answers them. What did not fit is given back. When the write fails, it
// runs again in halves until the culprit is alone. With a short lock timeout it hardly waits for locks: these commands
// have waited for one already, and everything behind them has, too.
func (s *Store) run(commands []*pending, attempt int, shortLockTimeout bool) (rest []*pending) {
	commands, rest, failed := s.transaction(commands, shortLockTimeout)
	if failed == nil {
		return rest
	}
	timedOut := s.engine.IsLockTimeout(failed)
	var refused *errs.Error
	switch {
	case errors.As(failed, &refused): // storage is away; trying again in halves would not help
		answer(commands, failed)
	case len(commands) > 1:
		half := len(commands) / 2
		for _, part := range [][]*pending{commands[:half], commands[half:]} {
			for len(part) > 0 {
				part = s.run(part, attempt, shortLockTimeout || timedOut)
			}
		}
	case !s.engine.IsConflict(failed):
		answer(commands, fmt.Errorf("writing: %w", failed))
	case timedOut && shortLockTimeout:
		answer(commands, &errs.Error{
			Kind:       errs.Aborted,
			Reason:     event.Contention,
			RetryAfter: 5 * time.Second,
			Cause:      failed,
			Message:    "another node has been changing the same object for too long: try again in a moment",
		})
	case attempt >= maxAttempts:
		answer(commands, errs.New(errs.Aborted, event.Contention,
			"too many requests are changing the same object at the same time: try again").Because(failed))
	default:
		s.run(commands, attempt+1, shortLockTimeout || timedOut)
	}
	return rest
}

func answer(commands []*pending, err error) {
	for _, p := range commands {
		p.done <- err
	}
}

// transaction runs one batch. It answers its commands itself unless writing failed; then it gives back those that
// wait for an answer, and why. Where what this node remembers was not true any more, the batch decides once more.
func (s *Store) transaction(commands []*pending, shortLockTimeout bool) (taken, rest []*pending, failed error) {
	n := s.needs(commands)
	n.ShortLockTimeout = shortLockTimeout
	if n.Remembered = s.remembered(n); n.Remembered != nil {
		taken, rest, failed = s.decideAndWrite(commands, n)
		if failed == nil || !s.engine.IsConflict(failed) || s.engine.IsLockTimeout(failed) {
			return taken, rest, failed
		}
		n.Remembered = nil
	}
	return s.decideAndWrite(commands, n)
}

// remembered gives all that a batch needs, if it is objects alone, and this node of a PostgreSQL database has seen them
// before.
func (s *Store) remembered(n *engine.Needs) map[event.Ref]*event.Record {
	if len(n.Claims)+len(n.Rows)+len(n.Tokens) > 0 || n.ShortLockTimeout {
		return nil
	}
	return s.seen.All(n.Write, n.Read)
}

func (s *Store) decideAndWrite(commands []*pending, n *engine.Needs) (taken, rest []*pending, failed error) {
	s.ready.Begin()
	wrote := false
	trace := traceBatch(commands, func(p *pending) *commandTrace { return p.trace })
	defer func() { s.ready.End(wrote, failed); trace.Failed(failed) }()
	defer s.stats.Batch(len(commands), time.Now())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	loaded, err := s.begin(ctx, n)
	if err != nil {
		return commands, nil, err
	}
	if !loaded.Assumed {
		s.seen.Reuse(loaded.Records)
	}
	trace.Loaded()
	loaded.FactVersion, loaded.KeepWords = int(s.facts.Load()), s.words.Load() != wordsGone
	batch := event.NewBatch(s.root, event.Micros(s.clock()), loaded)
	answers := decide(batch, commands)
	trace.Decided()
	taken, rest = commands[:len(answers)], commands[len(answers):]
	changes := batch.Changes()
	if wrote = !changes.Empty(); !wrote && !loaded.Assumed {
		s.engine.Rollback(ctx)
	} else if err := s.engine.Commit(ctx, changes); err != nil {
		s.engine.Rollback(ctx)
		return taken, rest, err
	}
	trace.Committed()
	s.seen.Written(changes)
	// Refusals too wait until what they may rest on is durable.
	d := decision{commands: slices.Clone(taken), answers: answers, wrote: wrote, events: changes.Events}
	s.decided <- d
	return taken, rest, nil
}

// decide has one command after the other decide, as many as fit into a batch.
func decide(batch *event.Batch, commands []*pending) (answers []error) {
	answers = make([]error, 0, len(commands))
	for _, p := range commands {
		if batch.Size() > maxBatchBytes {
			break
		}
		erased := batch.Erased()
		answers = append(answers, batch.Run(&p.command))
		p.erases = batch.Erased() > erased
	}
	return answers
}

// decision is a committed batch whose commands wait for it to be durable.
type decision struct {
	commands []*pending
	answers  []error
	wrote    bool
	events   []event.Event // with their positions, on the embedded database
}

// answerDurable answers batches once they are durable. While it waits for the disk the writer goes on with the next
// batch, and all that have come together by then become durable at once.
func (s *Store) answerDurable() {
	defer close(s.erasing)
	var all []decision
	for first := range s.decided {
		all = append(all[:0], first)
		for more := true; more; {
			select {
			case d, open := <-s.decided:
				if more = open; open {
					all = append(all, d)
				}
			default:
				more = false
			}
		}
		var failed error
		if slices.ContainsFunc(all, func(d decision) bool { return d.wrote }) {
			if failed = s.stats.Sync(s.engine); failed != nil {
				// What has been written since is built on what may be lost: nothing more can be promised.
				s.broken.Store(true)
				s.ready.Break(errBroken.Because(failed))
				s.log.Error("the disk does not store what is written: fix it and restart the server", "error", failed)
			}
		}
		if slices.ContainsFunc(all, func(d decision) bool { return len(d.events) > 0 }) {
			if s.cache != nil && !s.broken.Load() {
				s.remember(all)
			}
			s.written.Ring()
		}
		for _, d := range all {
			for i, p := range d.commands {
				p.trace.Durable(failed)
				switch {
				case failed != nil:
					p.done <- errBroken.Because(failed)
				case p.erases:
					s.erasing <- p
				default:
					p.done <- d.answers[i]
				}
			}
		}
	}
}

// remember notes that what batches wrote to the embedded database is durable.
func (s *Store) remember(all []decision) {
	for _, d := range all {
		if n := len(d.events); n > 0 {
			if before := d.events[0].Position - 1; before != s.durable.Load() { // the file was put back
				s.recent.Begin(before)
			}
			s.recent.Add(d.events)
			s.durable.Store(d.events[n-1].Position)
		}
	}
	if s.rememberEnd != nil {
		s.rememberEnd(s.durable.Load())
	}
}

var errBroken = &errs.Error{Kind: errs.Unavailable, Reason: event.StorageAway, RetryAfter: time.Minute,
	Message: "the disk does not store what is written: the outcome may be unknown, and an operator must fix the server"}

// begin starts the transaction of a batch. What a node of an older version has written since this one started is
// folded anew first; that node does not write to it any more then.
func (s *Store) begin(ctx context.Context, n *engine.Needs) (event.Loaded, error) {
	for again := false; ; again = true {
		loaded, err := s.engine.Begin(ctx, n)
		if err != nil {
			s.engine.Rollback(ctx)
			return loaded, err
		}
		old := s.outdated(loaded)
		if old == nil {
			return loaded, nil
		}
		s.engine.Rollback(ctx)
		if again {
			return loaded, fmt.Errorf("the state of %s has an older shape, and its events do not make a new one", old[0].ID)
		}
		n.Remembered = nil
		if err := s.refoldThese(ctx, old); err != nil {
			return loaded, err
		}
	}
}

func (s *Store) needs(commands []*pending) *engine.Needs {
	n := &engine.Needs{Write: map[event.Kind][]string{}, Read: map[event.Kind][]string{},
		Rows: map[event.SideTable][]string{}}
	for _, p := range commands {
		for _, ref := range p.command.Write {
			n.Write[ref.Kind] = append(n.Write[ref.Kind], ref.ID)
		}
		for _, ref := range p.command.Read {
			n.Read[ref.Kind] = append(n.Read[ref.Kind], ref.ID)
		}
		for _, c := range p.command.Claims {
			n.Claims = append(n.Claims, c.Digest())
		}
		for _, key := range p.command.Rows {
			n.Rows[key.Table] = append(n.Rows[key.Table], key.Key)
		}
		for _, id := range p.command.Tokens {
			if possible(id) { // it may be anything that somebody has sent
				n.Tokens = append(n.Tokens, id)
			}
		}
	}
	n.Sort()
	return n
}
