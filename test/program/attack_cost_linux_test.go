//go:build cost

package program

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/costtest"
)

// meter judges what probes cost, and keeps the worst of each endpoint.
type meter struct {
	*target
	hash  time.Duration // what checking one password costs
	worst map[string]found
}

type found struct {
	cost time.Duration
	name string
}

func newMeter(t *testing.T, s *site) *meter {
	t.Helper()
	x := &meter{target: newTarget(t, s), hash: time.Hour, worst: map[string]found{}}
	x.try = x.judge
	for i := range 3 {
		before := x.used()
		x.send(&probe{method: "POST", path: "/v1/sessions", header: http.Header{"Content-Type": {"application/json"}},
			body: fmt.Appendf(nil, `{"loginName":"no%d","password":"wrong"}`, i)})
		x.hash = min(x.hash, x.used()-before)
	}
	return x
}

// used is the processor time of the server so far.
func (x *meter) used() (sum time.Duration) {
	x.t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", x.p.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		x.t.Fatal("the kernel does not tell what the server has used", err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ran, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			x.t.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// cost measures a request. The best of several counts, because the server has other things to do beside it; one that is
// cheap is enough.
func (x *meter) cost(p *probe, most time.Duration) time.Duration {
	x.t.Helper()
	best := time.Hour
	for range 6 {
		before := x.used()
		x.answered(p)
		best = min(best, x.used()-before)
		if best <= most || best > 10*most {
			break
		}
	}
	return best
}

// judge fails where a request costs too much.
func (x *meter) judge(endpoint string, p *probe) {
	x.t.Helper()
	most := costtest.Most
	if p.hashes {
		most += x.hash
	}
	cost := x.cost(p, most)
	if cost > most {
		x.t.Errorf("%s costs %v", p.name, cost)
	}
	if cost > x.worst[endpoint].cost {
		x.worst[endpoint] = found{cost, p.name}
	}
}

// report lists the worst.
func (x *meter) report() {
	x.t.Helper()
	endpoints := slices.SortedFunc(maps.Keys(x.worst),
		func(a, b string) int { return cmp.Compare(x.worst[b].cost, x.worst[a].cost) })
	x.t.Logf("checking a password costs %.1f ms; the most expensive requests:", x.hash.Seconds()*1000)
	for _, e := range endpoints[:min(len(endpoints), 12)] {
		x.t.Logf("%8.1f ms  %s", x.worst[e].cost.Seconds()*1000, x.worst[e].name)
	}
}

// TestNoRequestCostsMuch judges the processor time of the requests of TestTheWorstRequestsAreAnswered.
func TestNoRequestCostsMuch(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		x := newMeter(t, s)
		x.sendAll()
		x.report()
	})
}

// TestWhoHangsUpIsNotWorkedFor: eight of the most expensive requests that once were, whose callers leave at once, and
// then the server has to stop.
func TestWhoHangsUpIsNotWorkedFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		x := newMeter(t, s)
		body := "client_id=" + x.clientID + "&scope=urn:signet:org:domain:" + costtest.Alphabets[0].Text(4*20_900)
		before := x.used()
		for range 8 {
			conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", x.p.listen)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn,
				"POST /oauth/device_authorization HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
		began := time.Now()
		x.p.stop(t)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v to stop", took)
		}
		if cost := x.p.cmd.ProcessState.UserTime() +
			x.p.cmd.ProcessState.SystemTime() - before; cost > 8*costtest.Most+2*time.Second {
			t.Errorf("the eight requests and the end cost %v", cost)
		}
	})
}
