package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/tracing"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// gauges are the metrics of a node that the server itself keeps. docs/operations/metrics.md lists all there are, with
// the meaning of each label.
type gauges struct {
	store     *store.Stats
	followers *notify.Meters
	mails     *prometheus.CounterVec
	hashWait  prometheus.Histogram
	hashWork  prometheus.Histogram
}

func newGauges(clock func() time.Time) *gauges {
	store := store.NewStats()
	g := &gauges{
		store: store,
		followers: &notify.Meters{Names: []string{oidc.FollowerName, webhook.FollowerName}, Clock: clock,
			Position: store.Position},
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signet_mails_total",
			Help: "Mails by how it ended to hand them to the mail server, every try for itself.",
		}, []string{"outcome"}),
		hashWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "signet_password_hashing_wait_seconds", Help: "Time that a password waits for its turn to be hashed.",
			Buckets: []float64{.001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		hashWork: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "signet_password_hashing_duration_seconds",
			Help:    "Time that hashing a password takes, without waiting.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	for _, outcome := range []string{"succeeded", "refused", "failed"} {
		g.mails.WithLabelValues(outcome)
	}
	return g
}

// timed is a hasher that tells how long passwords take.
func (g *gauges) timed(h *secret.Hasher) *secret.Hasher {
	return h.Timed(func(waited, worked time.Duration) {
		g.hashWait.Observe(waited.Seconds())
		g.hashWork.Observe(worked.Seconds())
	})
}

// registerMetrics shows what the parts of a server tell.
func (s *Server) registerMetrics(slots map[string]*fairqueue.Slots) error {
	g, bodies := s.gauges, &s.front.Budget
	if s.mails.sender != nil {
		g.followers.Names = append(g.followers.Names, mail.FollowerName)
	}
	slots["outbound_calls"] = s.outgoing.calls
	slots["password_hashing"], slots["password_hashing_costly"] = s.limits.hasher.Slots()
	all := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signet_build_info", Help: "Always 1; the label has the version of the program.",
			ConstLabels: prometheus.Labels{"version": s.config.Version},
		}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signet_request_bodies_bytes", Help: "Memory that is reserved for bodies of requests.",
		}, func() float64 { held, _ := bodies.Held(); return float64(held) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signet_request_bodies_max_bytes", Help: "Memory that can be reserved for bodies of requests.",
		}, func() float64 { _, limit := bodies.Held(); return float64(limit) }),
		g.store, g.followers, g.mails, g.hashWait, g.hashWork, signInCounts{s.counted}, slotMetrics(slots),
	}
	var failed []error
	for _, c := range all {
		failed = append(failed, s.metrics.Register(c))
	}
	return errors.Join(failed...)
}

// signInCounts shows the sign-ins that this node has counted.
type signInCounts struct{ *tally.Tally }

var signIns = prometheus.NewDesc("signet_sign_ins_total", "Attempts to sign in that came to a verdict.",
	[]string{"way", "outcome"}, nil)

var ways = map[tally.Way]string{tally.Password: "password", tally.Passkey: "passkey", tally.Provider: "provider"}

func (signInCounts) Describe(to chan<- *prometheus.Desc) { to <- signIns }

func (c signInCounts) Collect(to chan<- prometheus.Metric) {
	for way, name := range ways {
		total := c.Total(way)
		for outcome, n := range map[string]int64{"succeeded": total.Successes, "failed": total.Failures,
			"throttled": total.Throttled} {
			to <- prometheus.MustNewConstMetric(signIns, prometheus.CounterValue, float64(n), name, outcome)
		}
	}
}

// slotMetrics shows what organizations share of this node.
type slotMetrics map[string]*fairqueue.Slots

var (
	slotsMax = prometheus.NewDesc("signet_places_max", "How many can use a resource of this node at once.",
		[]string{"resource"}, nil)
	slotsInUse = prometheus.NewDesc("signet_places_in_use", "How many use a resource of this node.",
		[]string{"resource"}, nil)
	slotsWaiting = prometheus.NewDesc("signet_places_waiting", "How many wait for a resource of this node.",
		[]string{"resource"}, nil)
	slotsRefused = prometheus.NewDesc("signet_places_refused_total",
		"How many were refused because an organization has used up its share of a resource, or because there is none left, or not in time.", []string{"resource", "reason"}, nil)
)

func (slotMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{slotsMax, slotsInUse, slotsWaiting, slotsRefused} {
		to <- d
	}
}

func (p slotMetrics) Collect(to chan<- prometheus.Metric) {
	for name, slots := range p {
		gauge := func(d *prometheus.Desc, n int) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), name)
		}
		bounds, refused := slots.Bounds(), slots.Refused()
		held, waiting := slots.Load()
		gauge(slotsMax, bounds.Slots)
		gauge(slotsInUse, held)
		gauge(slotsWaiting, waiting)
		by := map[string]uint64{}
		by[string(bounds.UsedUp.Reason)] += refused.UsedUp
		by[string(bounds.Full.Reason)] += refused.Full
		for reason, n := range by {
			to <- prometheus.MustNewConstMetric(slotsRefused, prometheus.CounterValue, float64(n), name, reason)
		}
	}
}

// countedSender counts mails, and shows in traces how long the mail server takes.
type countedSender struct {
	mail.Sender
	mails *prometheus.CounterVec
}

// Send implements mail.Sender.
func (c countedSender) Send(ctx context.Context, m mail.Mail) error {
	ctx, span := tracing.Start(ctx, "mail.send")
	err := c.Sender.Send(ctx, m)
	span.End(err)
	outcome := "succeeded"
	if _, refused := errors.AsType[*notify.Refusal](err); refused {
		outcome = "refused"
	} else if err != nil {
		outcome = "failed"
	}
	c.mails.WithLabelValues(outcome).Inc()
	return err
}

// metricsHandler is what the metrics listener serves: the metrics and, where the operator wants them, profiles. Nothing
// else serves profiles, and the command line is not among them.
func (s *Server) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	if s.config.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and heap, goroutine, allocs, block, mutex, threadcreate
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}
