package notify

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Meters tell in the metrics how the workers of one node do. It is a prometheus.Collector. Nil tells nothing.
type Meters struct {
	Names    []string         // of all workers that there can be
	Clock    func() time.Time // that of the workers
	Position func() int64     // of the last event of the log, as far as this node knows

	mu  sync.Mutex
	all []*meter
}

// meter is of one worker.
type meter struct {
	name     string
	held     atomic.Bool  // the node holds its lease
	position atomic.Int64 // up to here everything was sent, or is parked
	caughtUp atomic.Int64 // when nothing was left to be sent
	parked   atomic.Int64
}

func (m *Meters) add(name string) *meter {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	added := &meter{name: name}
	m.all = append(m.all, added)
	return added
}

func (m *Meters) drop(one *meter) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other *meter) bool { return other == one })
}

func (m *meter) acquired(position, now int64) {
	if m != nil {
		m.position.Store(position)
		m.caughtUp.Store(now)
		m.held.Store(true)
	}
}

func (m *meter) lost() {
	if m != nil {
		m.held.Store(false)
		m.parked.Store(0)
	}
}

// note takes in where a queue is.
func (m *meter) note(q *Queue, now int64) {
	if m == nil {
		return
	}
	s := q.survey(now)
	m.position.Store(s.position)
	if s.unsent == 0 && !q.more {
		m.caughtUp.Store(now)
	}
	parked := int64(0)
	for _, l := range q.lanes {
		if l.parked != nil && l.parked.Tries > 0 {
			parked++
		}
	}
	m.parked.Store(parked)
}

var (
	leases = prometheus.NewDesc("signet_follower_leases",
		"Leases of a follower that this node holds. Only the node that holds a lease does the work.",
		[]string{"follower"}, nil)
	behindEvents = prometheus.NewDesc("signet_follower_behind_events",
		"Events of the log that a follower has not looked at. Of several leases the one that is farthest behind counts.", []string{"follower"}, nil)
	behindSeconds = prometheus.NewDesc("signet_follower_behind_seconds",
		"For how long a follower has had something to do; about a second where it has not.", []string{"follower"}, nil)
	parkedEvents = prometheus.NewDesc("signet_follower_parked",
		"Events, and objects of webhooks, that have failed and wait for their next try.", []string{"follower"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Meters) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leases, behindEvents, behindSeconds, parkedEvents} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Meters) Collect(to chan<- prometheus.Metric) {
	end, now := m.Position(), event.Micros(m.Clock())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.Names {
		var held, events, since, parked int64
		for _, one := range m.all {
			if one.name == name && one.held.Load() {
				held++
				events, since = max(events, end-one.position.Load()), max(since, now-one.caughtUp.Load())
				parked += one.parked.Load()
			}
		}
		gauge := func(d *prometheus.Desc, v float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		gauge(leases, float64(held))
		gauge(behindEvents, float64(events))
		gauge(behindSeconds, micros(since).Seconds())
		gauge(parkedEvents, float64(parked))
	}
}
