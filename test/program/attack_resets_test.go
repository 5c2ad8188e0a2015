package program

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestAConnectionOfNothingButResetsIsCutOff: requests that are given up at once are work past the limit on open
// streams.
func TestAConnectionOfNothingButResetsIsCutOff(t *testing.T) {
	const streams, together = 200_000, 100
	for _, attack := range []struct {
		name, procedure string
		request         []string
	}{
		{"that wait for a body", "signet.v1.SessionService/CreateSession",
			post("/v1/sessions", "content-type", "application/json")},
		{"that could be answered at once", "signet.v1.OrganizationService/GetOrganization",
			[]string{":method", "GET", ":scheme", "http", ":authority", "localhost", ":path", "/v1/orgs/any"}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s *site) {
				p := s.start(t)
				c := newClient(t, p, s.admin(t).Token)
				f := dialFrames(t, p)
				sent, gone := 0, make(chan error, 1)
				go func() {
					for ; sent < streams; sent += together {
						for i := range uint32(together) {
							id := uint32(2*sent) + 2*i + 1
							if err := errors.Join(f.request(id, attack.request...),
								f.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
								gone <- err
								return
							}
						}
						// net/http has a limit on requests that wait to be handled, and it is not reached like that
						if err := f.seen(); err != nil {
							gone <- err
							return
						}
					}
					gone <- nil
				}()
				var reads []time.Duration
				for ended := false; !ended; {
					began := time.Now()
					c.want(t, 200, "GET", "/v1/users/me", nil)
					reads = append(reads, time.Since(began))
					select {
					case err := <-gone:
						if ended = true; err == nil {
							t.Errorf("all of the %d were taken", sent)
						} else if !f.away {
							t.Errorf("it was closed without a word: %v", err)
						}
					default:
					}
				}
				slices.Sort(reads)
				handled := strings.Count(p.stderr.String(), `"operation":"`+attack.procedure+`"`)
				t.Logf("closed after %d streams, %d of them handled; reads beside took %v in the middle, %v at most",
					sent, handled, reads[len(reads)/2], reads[len(reads)-1])
				if handled > streams/20 {
					t.Errorf("%d of them were handled", handled)
				}
				c.want(t, 200, "GET", "/v1/users/me", nil)
			})
		})
	}
}

// TestWhoGivesUpNowAndThenKeepsTheConnection: pages are closed, deadlines pass, and that is nobody's fault.
func TestWhoGivesUpNowAndThenKeepsTheConnection(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		var dials atomic.Int32
		transport := cleartext2()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: patience}
		ask := func() {
			if resp := answer(t, client, newRequest(t, "GET", p.url+"/healthz")); resp.StatusCode != 200 {
				t.Fatalf("status %d", resp.StatusCode)
			}
		}
		ask()
		for range 400 {
			ctx, cancel := context.WithCancel(t.Context())
			body, writer := io.Pipe()
			// The server asks for a body when somebody reads it: then the request is on its way.
			r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx,
				&httptrace.ClientTrace{Got100Continue: cancel}), "POST", p.url+"/v1/sessions", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Expect", "100-continue")
			if resp, err := client.Do(r); err == nil {
				resp.Body.Close()
				t.Fatalf("answered with %d", resp.StatusCode)
			}
			writer.Close()
			cancel()
			ask()
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections were needed", n)
		}
	})
}
