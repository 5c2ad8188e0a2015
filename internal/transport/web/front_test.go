package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/test/testkit"
)

// serveFront runs a front with a server of HTTP/1.1 and cleartext HTTP/2, and gives a client for each.
func serveFront(t *testing.T, f *Front) (url string, clients map[string]*http.Client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: f, Protocols: protocols, ConnContext: ConnContext}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	clients = map[string]*http.Client{
		"HTTP/1.1": {Transport: &http.Transport{ExpectContinueTimeout: testkit.Patience}, Timeout: testkit.Patience},
		"HTTP/2": {Transport: &http.Transport{Protocols: two, ExpectContinueTimeout: testkit.Patience},
			Timeout: testkit.Patience},
	}
	t.Cleanup(func() {
		for _, c := range clients {
			c.CloseIdleConnections()
		}
	})
	return "http://" + listener.Addr().String(), clients
}

// refusing answers without a look at the body.
var refusing = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "no", http.StatusUnauthorized)
})

// arriving is a body of which a test sends parts.
func arriving(from string, promised int64) (*http.Request, *io.PipeWriter) {
	body, writer := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.ContentLength, r.RemoteAddr = promised, from+":1"
	return r, writer
}

func TestTheBudgetIsTakenForWhatArrivesAndGivenBack(t *testing.T) {
	read := make(chan error)
	f := &Front{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for buf := make([]byte, 10<<10); ; {
			_, err := r.Body.Read(buf)
			read <- err
			if err != nil {
				return
			}
		}
	})}
	r, body := arriving("192.0.2.1", 1<<30)
	done := make(chan struct{})
	go func() {
		f.ServeHTTP(httptest.NewRecorder(), r)
		close(done)
	}()
	held := func() int64 {
		f.Budget.mu.Lock()
		defer f.Budget.mu.Unlock()
		return f.Budget.held
	}
	for i, want := range []int64{12 << 10, 20 << 10, 32 << 10} { // of 10 KiB each, in steps of 4
		if _, err := body.Write(make([]byte, 10<<10)); err != nil {
			t.Fatal(err)
		}
		if err := testkit.Receive(t, read, "a part is read"); err != nil {
			t.Fatal(err)
		}
		if got := held(); got != want {
			t.Errorf("after part %d it holds %d bytes", i, got)
		}
	}
	body.Close()
	if err := testkit.Receive(t, read, "a part is read"); err != io.EOF {
		t.Fatal(err)
	}
	testkit.Receive(t, done, "the request is over")
	if b := &f.Budget; b.held != 0 || len(b.of) != 0 || b.begun != 0 || len(b.first) != 0 {
		t.Errorf("it still holds %d bytes of %v, %d of %v", b.held, b.of, b.begun, b.first)
	}
}

func TestBodiesWithoutRoomAreRefused(t *testing.T) {
	type ask struct {
		from string
		size int
		want error
	}
	for _, tt := range []struct {
		name            string
		here, ofNetwork int64
		asks            []ask // each stays while the next come
	}{
		{"of one network", 1 << 20, 16 << 10, []ask{
			{"192.0.2.1", 12 << 10, nil}, {"192.0.2.1", 5 << 10, errTooMuchOfYours}, {"192.0.2.1", 100, nil},
			{"192.0.2.1", 1, errTooMuchOfYours},
			{"192.0.2.2", 12 << 10, nil}, {"2001:db8::1", 12 << 10, nil}, {"2001:db8::2", 8 << 10, errTooMuchOfYours},
			{"2001:db8::2", 1, nil}, {"2001:db8::2", 1, errTooMuchOfYours}}},
		{"of the server", 16 << 10, 1 << 20, []ask{
			{"192.0.2.1", 13 << 10, errTooMuchHere}, {"192.0.2.1", 12 << 10, nil}, {"192.0.2.2", 100, nil},
			{"192.0.2.3", 1, errTooMuchHere}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leave := make(chan struct{})
			got := make(chan error)
			f := &Front{
				Budget: Budget{Here: tt.here, OfNetwork: tt.ofNetwork},
				Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.ReadAll(r.Body)
					got <- err
					if err == nil {
						<-leave
					}
				}),
			}
			for i, a := range tt.asks {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", a.size)))
				r.RemoteAddr = net.JoinHostPort(a.from, "1")
				left := make(chan struct{})
				go func() {
					defer close(left)
					f.ServeHTTP(httptest.NewRecorder(), r)
				}()
				err := testkit.Receive(t, got, "the body is read or refused")
				if !errors.Is(err, a.want) {
					t.Errorf("ask %d: %v", i, err)
				}
				if err != nil {
					testkit.Receive(t, left, "the request is over") // with what it had taken
				}
			}
			close(leave)
		})
	}
	for _, err := range []*errs.Error{errTooMuchHere, errTooMuchOfYours} {
		if err.RetryAfter == 0 {
			t.Errorf("%v does not say when to come again", err)
		}
	}
}

// Two networks that send large requests and very many small ones leave room for the small ones of others.
func TestItTakesManyNetworksToTakeAllRoom(t *testing.T) {
	for name, network := range map[string]func(i int) netip.Addr{
		"IPv4": func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) },
		"IPv6": func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i)}) },
	} {
		for _, large := range []bool{false, true} {
			b := new(Budget)
			fill := func(peer netip.Addr) (begun int) {
				for {
					s := reservation{budget: b}
					if s.begin(peer) != nil {
						return begun
					}
					begun++
					for large && s.add(leastBody) == nil {
					}
				}
			}
			most := budgetHere / firstShare / leastBody
			least := most
			if large {
				least /= 4
			}
			fill(network(1))
			for i := 2; i <= 7; i++ {
				if got := fill(network(i)); got < least || got > most {
					t.Errorf("%s, large: %t: network %d begins %d requests", name, large, i, got)
				}
			}
			if err := (&reservation{budget: b}).begin(network(8)); err != nil {
				t.Errorf("%s, large: %t: the eighth network has no room: %v", name, large, err)
			}
		}
	}
	b, begun := new(Budget), 0
	for ; (&reservation{budget: b}).begin(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, byte(begun >> 8),
		byte(begun)})) == nil; begun++ {
	}
	if begun != budgetHere/firstShare/leastBody {
		t.Errorf("the networks of one /48 begin %d requests", begun)
	}
}

func TestNothingOfABodyIsReadForWhichThereIsNoRoom(t *testing.T) {
	f := &Front{Budget: Budget{Here: 1}, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); !errors.Is(err, errTooMuchHere) {
			t.Errorf("got %v", err)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	url, clients := serveFront(t, f)
	for name, client := range clients {
		if invited, status := expecting(t, client, url); invited && name == "HTTP/1.1" ||
			status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d, invited: %t", name, status, invited)
		}
	}
}

// expecting sends a request that waits to be asked for its body.
func expecting(t *testing.T, client *http.Client, url string) (invited bool, status int) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { invited = true }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Repeat("x", 60<<10)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return invited, resp.StatusCode
}

func TestARefusedBodyIsNotAskedFor(t *testing.T) {
	url, clients := serveFront(t, &Front{Next: refusing})
	for name, client := range clients {
		if invited, status := expecting(t, client, url); invited && name == "HTTP/1.1" ||
			status != http.StatusUnauthorized {
			t.Errorf("%s: %d, invited: %t", name, status, invited)
		}
	}
	url, clients = serveFront(t,
		&Front{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1))
		})})
	for name, client := range clients {
		if invited, status := expecting(t, client, url); !invited || status != http.StatusOK {
			t.Errorf("%s, where it is wanted: %d, invited: %t", name, status, invited)
		}
	}
}

func TestAnEarlyAnswerKeepsTheConnection(t *testing.T) {
	for _, size := range []int{1, 60 << 10, 900 << 10, 3_900_000} {
		url, clients := serveFront(t, &Front{Next: refusing})
		for name, client := range clients {
			for i := range 5 {
				var reused bool
				ctx := httptrace.WithClientTrace(t.Context(),
					&httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url,
					strings.NewReader(strings.Repeat("x", size)))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(r)
				if err != nil {
					t.Fatalf("%s, %d bytes: %v", name, size, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized || i > 0 && !reused {
					t.Errorf("%s, %d bytes, request %d: %d, on the same connection: %t", name, size, i,
						resp.StatusCode, reused)
				}
			}
		}
	}
}

// endless is a body without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

func TestTheRestOfABodyIsReadUpToALimit(t *testing.T) {
	body := &endless{}
	w := httptest.NewRecorder()
	(&Front{Next: refusing}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", body))
	if body.read > maxRest+leastBody {
		t.Errorf("%d bytes were read", body.read)
	}
	if w.Header().Get("Connection") != "close" {
		t.Error("the connection is not closed, though the rest of the body is on it")
	}
	// A network that has no room left is not read from for long, and what is read is not kept.
	front := &Front{Next: refusing, Budget: Budget{Here: 1, OfNetwork: 1}}
	body = &endless{}
	front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", body))
	if body.read > leastRest+leastBody {
		t.Errorf("%d bytes were read where there is no room", body.read)
	}
	if held, _ := front.Budget.Held(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

// looking tells how much of the budget is taken while a body is read.
type looking struct {
	endless
	budget *Budget
	most   int64
}

func (l *looking) Read(p []byte) (int, error) {
	held, _ := l.budget.Held()
	l.most = max(l.most, held)
	return l.endless.Read(p)
}

func TestTheRestOfABodyCountsAsOneThatHasBegun(t *testing.T) {
	front := &Front{Next: refusing}
	body := &looking{budget: &front.Budget}
	front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", body))
	// what comes is thrown away: it takes no more, however much it is
	if body.most != leastBody || body.read < maxRest {
		t.Errorf("%d bytes were held while %d were read", body.most, body.read)
	}
	if held, _ := front.Budget.Held(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

func TestWhoSendsNothingMoreIsAnsweredAfterAMoment(t *testing.T) {
	url, clients := serveFront(t, &Front{Next: refusing, restTime: 50 * time.Millisecond})
	t.Run("HTTP/1.1", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn,
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf"); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(conn)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !resp.Close {
			t.Fatalf("%+v, %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if _, err := reader.ReadByte(); err != io.EOF {
			t.Errorf("the connection stays open: %v", err)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		body, writer := io.Pipe()
		defer writer.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := clients["HTTP/2"].Do(r)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%+v, %v", resp, err)
		}
		resp.Body.Close()
	})
}

func TestTheFrontCostsNoAllocations(t *testing.T) {
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	reader := strings.NewReader("")
	r := httptest.NewRequest(http.MethodPost, "/", reader)
	r.ContentLength = 5
	body, w := r.Body, httptest.NewRecorder()
	cost := func(h http.Handler) float64 {
		return testing.AllocsPerRun(1000, func() {
			reader.Reset("hello")
			r.Body = body
			h.ServeHTTP(w, r)
		})
	}
	if with, without := cost(&Front{Next: next}), cost(next); with > without {
		t.Errorf("%v allocations instead of %v", with, without)
	}
}

func BenchmarkFront(b *testing.B) {
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 16))
		_, _ = r.Body.Read(make([]byte, 16))
	})
	reader := strings.NewReader("")
	r := httptest.NewRequest(http.MethodPost, "/", reader)
	r.ContentLength = 5
	body, w := r.Body, httptest.NewRecorder()
	for name, h := range map[string]http.Handler{"with": &Front{Next: next}, "without": next} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset("hello")
				r.Body = body
				h.ServeHTTP(w, r)
			}
		})
	}
}

func TestHowManyMayBeGivenUp(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name    string
		rounds  int
		answers int64         // before each that is given up
		pause   time.Duration // before each of them
		tooMany bool
	}{
		{"as many as one may at once", givenUpAtOnce, 0, 0, false},
		{"one more", givenUpAtOnce + 1, 0, 0, true},
		{"many, one after the other", 50_000, 0, time.Second / givenUpPerSecond, false},
		{"many, faster", 50_000, 0, time.Second / givenUpPerSecond / 2, true},
		{"many among answers", 50_000, answersPerGiveUp, 0, false},
		{"many among fewer answers", 50_000, 1, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := connected(t)
			now, words := start, 0
			for range tt.rounds {
				now = now.Add(tt.pause)
				c.answered.Add(tt.answers)
				if c.givenUp(now) {
					words++
				}
			}
			if tt.tooMany != (words == 1) || words > 1 {
				t.Errorf("said so %d times", words)
			}
		})
	}
}

func connected(t *testing.T) (c *connection, there net.Conn) {
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return ConnContext(context.Background(), here).Value(connectionKey{}).(*connection), there
}

// giveUp has so many requests of a connection given up, and gives the answer to the next one.
func giveUp(t *testing.T, f *Front, c *connection, requests int) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), connectionKey{}, c))
	cancel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.ProtoMajor = 2
	for range requests {
		f.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(context.WithoutCancel(ctx)))
	return w
}

// One client of a proxy must not have the connection closed that all of them share.
func TestTheConnectionOfATrustedProxyIsNotCutOff(t *testing.T) {
	var log strings.Builder
	f := &Front{Next: refusing, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	c, _ := connected(t)
	for range 2 {
		if w := giveUp(t, f, c, 2*givenUpAtOnce); w.Code != http.StatusUnauthorized {
			t.Errorf("the next request is answered %d", w.Code)
		}
	}
	if strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log has %q", log.String())
	}
}

func TestAConnectionThatIsCutOffIsClosedWhenNothingRunsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct{ runs, closed time.Duration }{
			"nothing runs":         {0, lastAnswers},
			"one more is answered": {10 * time.Second, 10*time.Second + lastAnswers},
			"one takes very long":  {time.Hour, lastWork},
		} {
			c, there := connected(t)
			stop := make(chan struct{})
			f := &Front{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					select {
					case <-time.After(tt.runs):
					case <-stop:
					}
				}
			})}
			slow := httptest.NewRequest(http.MethodGet, "/slow", nil).WithContext(context.WithValue(t.Context(),
				connectionKey{}, c))
			slow.ProtoMajor = 2
			go f.ServeHTTP(httptest.NewRecorder(), slow)
			synctest.Wait()
			began := time.Now()
			if w := giveUp(t, f, c, givenUpAtOnce+1); w.Code != http.StatusTooManyRequests ||
				w.Header().Get("Connection") != "close" || !IsRequestID(w.Header().Get(RequestIDHeader)) {
				t.Errorf("%s: the next request is answered %d with %v", name, w.Code, w.Header())
			}
			if _, err := there.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took != tt.closed {
				t.Errorf("%s: closed after %s", name, took)
			}
			close(stop)
		}
	})
}
