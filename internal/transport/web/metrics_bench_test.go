package web

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkCount is what a request pays for being counted.
func BenchmarkCount(b *testing.B) {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	operations := []string{"signet.v1.UserService/GetUser", "signet.v1.UserService/GetMyUser",
		"signet.v1.SessionService/CreateSession", "/login"}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			m.Count(operations[i%len(operations)], "rest", "OK", "", 3*time.Millisecond)
		}
	})
}
