package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewcomersAreAwaitedUntilTheyAskOrGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Front{Next: refusing}
		open := func() (net.Conn, context.Context) {
			conn, there := net.Pipe()
			t.Cleanup(func() { conn.Close(); there.Close() })
			f.ConnState(conn, http.StateNew)
			return conn, ConnContext(t.Context(), conn)
		}
		open() // before: whoever is silent that long is not waited for
		f.EndConnections(false)
		_, asks := open()
		goes, _ := open()
		_, asksOver2 := open()
		ask := func(ctx context.Context, major int) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			r.ProtoMajor = major
			f.ServeHTTP(httptest.NewRecorder(), r)
		}

		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.AwaitNewcomers(ctx)
		if took := time.Since(began); took != time.Second {
			t.Fatalf("three that are silent: gave up after %v", took)
		}

		awaited := make(chan struct{})
		go func() {
			f.AwaitNewcomers(t.Context())
			close(awaited)
		}()
		for _, step := range []func(){
			func() { ask(asks, 1) },
			func() { f.ConnState(goes, http.StateClosed) },
			func() { ask(asksOver2, 2) },
		} {
			synctest.Wait()
			select {
			case <-awaited:
				t.Fatal("not all were awaited")
			default:
			}
			step()
		}
		<-awaited
		f.AwaitNewcomers(t.Context()) // nobody is left
	})
}
