// This file is what a store tells about itself in the metrics of a node: batches, syncs of the disk, read batches,
// connections, the cache, and how far the log is sealed. Telling costs no query.

package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/store/cache"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

// Stats are of one store. It is a prometheus.Collector. Nil counts nothing.
type Stats struct {
	batchSize, batchTime, syncTime, readSize, readTime prometheus.Histogram

	of statsParts
}

// statsParts of a store that tell something.
type statsParts struct {
	Engine  engine.Engine
	Cache   *cache.Cache   // nil: none
	Seen    *cache.Lookups // nil: none
	Sealer  *proof.Sealer
	Ready   *Readiness
	Waiting func() int // commands
}

var (
	times = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	sizes = []float64{1, 2, 4, 8, 16, 32, 64, 128}
)

// NewStats makes one that has counted nothing.
func NewStats() *Stats {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "signet", Name: name, Help: help,
			Buckets: buckets})
	}
	return &Stats{
		batchSize: histogram("batch_commands", "Commands that are decided in one transaction.", sizes),
		batchTime: histogram("batch_duration_seconds",
			"Time of a transaction that decides a batch, from the first lock to the commit, failed ones included.", times),
		syncTime: histogram("sync_duration_seconds",
			"Time until the disk has what was committed. PostgreSQL does that within the commit.", times),
		readSize: histogram("read_batch_lookups", "Reads that are sent to the database in one round trip.", sizes),
		readTime: histogram("read_batch_duration_seconds", "Time of such a round trip.", times),
	}
}

// Begin names the parts, before anybody collects. A store that only reads has none of some.
func (s *Stats) Begin(of statsParts) {
	if s != nil {
		s.of = of
	}
}

// Batch counts a batch.
func (s *Stats) Batch(commands int, begun time.Time) {
	if s != nil {
		s.batchSize.Observe(float64(commands))
		s.batchTime.Observe(time.Since(begun).Seconds())
	}
}

// Sync counts a sync of the disk, and does it.
func (s *Stats) Sync(e engine.Engine) error {
	begun := time.Now()
	err := e.Sync()
	if s != nil {
		s.syncTime.Observe(time.Since(begun).Seconds())
	}
	return err
}

// Read counts a read batch.
func (s *Stats) Read(lookups int, took time.Duration) {
	if s != nil {
		s.readSize.Observe(float64(lookups))
		s.readTime.Observe(took.Seconds())
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("signet_"+name, help, labels, nil)
}

var (
	isReady = desc("ready",
		"1 while the last batch was written and none hangs, otherwise 0. /readyz looks closer.")
	commandsWaiting = desc("batch_commands_waiting", "Commands that wait for the next batch.")
	inUse           = desc("database_connections_in_use", "Connections to the database on which something is read.")
	idle            = desc("database_connections_idle", "Open connections to the database on which nothing is read.")
	most            = desc("database_connections_max", "How many connections for reading there can be.")
	waits           = desc("database_connection_waits_total", "Reads that had to wait for a connection.")
	waited          = desc("database_connection_wait_seconds_total", "Time that reads have waited for a connection.")
	lookups         = desc("cache_lookups_total",
		"Lookups in the memory of this node. On PostgreSQL, what is found there is compared with the database before it is used.", "cache", "result")
	position = desc("log_position",
		"Position of the last event of the log when this node last looked, which is at most some seconds ago.")
	sealed = desc("log_sealed_position",
		"Position up to which the log is sealed, as far as this node has seen.")
	sealedAt = desc("log_sealed_timestamp_seconds",
		"When this node last saw that the whole log was sealed; 0: not yet.")
	lost = desc("log_lost_events",
		"How many events at least that this node had seen the database has lost since the node was started.")
)

// Describe implements prometheus.Collector.
func (s *Stats) Describe(to chan<- *prometheus.Desc) {
	for _, h := range s.histograms() {
		h.Describe(to)
	}
	for _, d := range []*prometheus.Desc{isReady, commandsWaiting, inUse, idle, most, waits, waited, lookups, position,
		sealed, sealedAt, lost} {
		to <- d
	}
}

func (s *Stats) histograms() []prometheus.Histogram {
	return []prometheus.Histogram{s.batchSize, s.batchTime, s.syncTime, s.readSize, s.readTime}
}

// Collect implements prometheus.Collector.
func (s *Stats) Collect(to chan<- prometheus.Metric) {
	for _, h := range s.histograms() {
		h.Collect(to)
	}
	gauge := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	known := 0.0
	if s.of.Ready.Known() {
		known = 1
	}
	gauge(isReady, known)
	gauge(commandsWaiting, float64(s.of.Waiting()))
	if e, ok := s.of.Engine.(engine.Pooled); ok {
		p := e.Pool()
		gauge(inUse, float64(p.InUse))
		gauge(idle, float64(p.Idle))
		gauge(most, float64(p.Most))
		counter(waits, float64(p.Waits))
		counter(waited, p.Waited.Seconds())
	}
	looked := func(name string, l *cache.Lookups) {
		counter(lookups, float64(l.Hits.Load()), name, "hit")
		counter(lookups, float64(l.Misses.Load()), name, "miss")
	}
	if s.of.Seen != nil {
		looked("records", s.of.Seen)
	}
	if s.of.Cache != nil {
		looked("records", &s.of.Cache.Records)
		looked("tokens", &s.of.Cache.Tokens)
	}
	end, upTo, at := s.of.Sealer.Seen()
	gauge(position, float64(end))
	gauge(sealed, float64(upTo))
	when := 0.0
	if !at.IsZero() {
		when = float64(at.UnixMilli()) / 1000
	}
	gauge(sealedAt, when)
	gauge(lost, float64(s.of.Sealer.Lost()))
}

// Position is where the log ended when this node last looked.
func (s *Stats) Position() int64 {
	end, _, _ := s.of.Sealer.Seen()
	return end
}
