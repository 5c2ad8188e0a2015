package console

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
)

// intercept answers the calls of an operation in place of the server until the function that it gives is called.
func (w *window) intercept(operation string, status int64, headers map[string]string, body string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.Listen(ctx, func(e any) {
		paused, ok := e.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		answer := fetch.FulfillRequest(paused.RequestID, status).WithBody(body)
		for name, value := range headers {
			answer.ResponseHeaders = append(answer.ResponseHeaders, &fetch.HeaderEntry{Name: name, Value: value})
		}
		go w.Do(answer)
	})
	w.Do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/signet.v1." + operation}}))
	return func() {
		cancel()
		w.Do(fetch.Disable())
	}
}

// What people see when something goes wrong, and that nothing of theirs is lost.
func TestWhenSomethingGoesWrong(t *testing.T) {
	b := browser.Start(t)
	s := start(t, testdb.SQLite)
	users := "/o/" + s.admin.org + "/users"
	jo := s.person(s.admin.org, "jo", "ORG_OWNER")

	t.Run("a server that fails says so, with a way to go on", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		stop := w.intercept("UserService/ListUsers", 500, map[string]string{"content-type": "text/plain"}, "oops")
		w.visit(users)
		w.sees("Something went wrong on the server")
		stop()
		w.press("Try again")
		w.sees("Jo jo")
		if w.Has("main .failure") {
			t.Error("the failure stays")
		}
	})

	t.Run("a session that ends in the middle of a form loses nothing", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit(users + "?add=human")
		w.fill("User name", "typed-before")
		w.fill("First name", "Typed")
		w.fill("Last name", "Before")
		w.fill("E-mail", "typed@mail.test")
		s.in(jo.org, "DELETE", "/v1/users/"+jo.id+"/sessions", nil)
		w.press("Add")
		w.sees("Your session has ended")
		again := w.Opened(func() { w.press("Sign in") })
		other := &window{Tab: again, t: t, s: s}
		other.enterAndClose(jo)
		w.sees("The user was added.")
		if !strings.Contains(w.At(), users+"/usr_") {
			t.Errorf("the window is at %s", w.At())
		}
	})

	t.Run("a server that restarts is noticed and comes back by itself", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit(users)
		s.stop()
		w.fill("Begins with", "Jo")
		w.sees("The server does not answer")
		s.run()
		w.until("the list is there again", `document.querySelector('main .failure') === null && document.querySelectorAll('main tbody tr').length === 1`)
	})

	t.Run("a slow network shows that something is on its way", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit("/roles")
		w.Do(network.Enable(), network.EmulateNetworkConditions(false, 1500, 50_000, 50_000))
		w.press("Users")
		w.until("something is on its way", `document.querySelector('main .pending') !== null`)
		w.settle()
		w.sees("Jo jo")
	})
}
