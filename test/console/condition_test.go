package console

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

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
		w.WaitFor("main tbody tr")
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

	t.Run("what one person has typed is not sent as another", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		lou := s.person(jo.org, "lou", "ORG_OWNER")
		w.visit(users + "?add=human")
		w.fill("User name", "typed-by-jo")
		w.fill("First name", "Typed")
		w.fill("Last name", "Jo")
		w.fill("E-mail", "typed-by-jo@mail.test")
		s.in(jo.org, "DELETE", "/v1/users/"+jo.id+"/sessions", nil)
		w.press("Add")
		w.sees("Your session has ended")
		(&window{Tab: w.Opened(func() { w.press("Sign in") }), t: t, s: s}).enterAndClose(lou)
		w.sees("Another account is signed in now")
		if found, _ := s.in(jo.org, "GET", "/v1/users/_search?query=typed-by-jo",
			nil)["results"].([]any); len(found) > 0 {
			t.Errorf("it was sent as the other: %v", found)
		}
		w.press("Reload")
		w.settle()
		w.sees("Jo lou")
	})

	t.Run("what is wrong stands at its field, in the person's words", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.Evaluate(`localStorage.setItem('signet-console-language', 'de')`, nil)
		defer w.Evaluate(`localStorage.removeItem('signet-console-language')`, nil)
		w.visit(users + "?add=human")
		w.fill("Vorname", "Kim")
		w.fill("Nachname", "Kim")
		w.fill("E-Mail", "kim at mail.test")
		w.press("Hinzufügen")
		w.sees("Benutzername: darf nicht leer sein")
		w.sees("E-Mail: muss eine E-Mail-Adresse wie name@example.org sein")
		w.until("the first wrong field has the focus, and is to be seen", `(() => {
			const first = document.activeElement, box = first.getBoundingClientRect();
			return first.name === 'userName' && box.top >= 0 && box.bottom <= innerHeight;
		})()`)
		if said := w.Text(`[role="dialog"] .failure`); strings.Contains(said, "userName") ||
			strings.Contains(said, "must") {
			t.Errorf("above the form it says %q", said)
		}
		w.fill("Benutzername", "kim")
		w.until("what was changed is not called wrong", `document.querySelectorAll('[aria-invalid="true"]').length === 1`)
	})

	t.Run("what is gone is called gone, in the person's words", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit(users + "/usr_nobody")
		w.sees("This user was removed, never existed or belongs to another organization.")
		if said := w.Text("main .failure"); strings.Contains(said, "x-service-orgid") ||
			strings.Contains(said, "Try again") {
			t.Errorf("it says %q", said)
		}
	})

	t.Run("a server that restarts is noticed and comes back by itself", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit(users)
		s.stop()
		w.fill("Name begins with", "Jo jo")
		w.sees("The server does not answer")
		s.run()
		w.until("the list is there again",
			`document.querySelector('main .failure') === null && document.querySelectorAll('main tbody tr').length === 1`)
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
	t.Run("of two who change the same, nobody overwrites the other unawares", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		kim := s.person(jo.org, "kim")
		profile := func(display string) map[string]any {
			return map[string]any{"firstName": "Kim", "lastName": "Kim", "displayName": display, "nickName": "K",
				"preferredLanguage": "en"}
		}
		shown := func() string {
			user := s.in(jo.org, "GET", "/v1/users/"+kim.id, nil)["user"].(map[string]any)
			return user["human"].(map[string]any)["profile"].(map[string]any)["displayName"].(string)
		}
		w.visit(users + "/" + kim.id)
		for _, way := range []struct{ button, ends string }{{"Save my version", "Mine"},
			{"Use the current version", "Theirs"}} {
			w.press("Edit profile")
			w.fill("Display name", "Mine")
			s.in(jo.org, "PUT", "/v1/users/"+kim.id+"/profile", profile("Theirs"))
			w.press("Save")
			w.sees("Somebody else has changed this in the meantime")
			var row string
			if w.Evaluate(`document.querySelector('.conflict tbody').innerText.replace(/\s+/g, ' ')`,
				&row); !strings.Contains(row, "Display name Mine Theirs") {
				t.Errorf("the versions are shown as %q", row)
			}
			if got := shown(); got != "Theirs" {
				t.Errorf("before anybody chose it is %q", got)
			}
			w.press(way.button)
			w.until("the conflict is over",
				`document.querySelector('.conflict') === null && document.querySelector('main').getAttribute('aria-busy') === 'false'`)
			if way.ends == "Theirs" { // the form stays open for more changes
				w.until("the field has what was chosen",
					fmt.Sprintf(`document.querySelector(%q).value === %q`, w.labelled("Display name"), way.ends))
			}
			w.until("the view says so", fmt.Sprintf(`document.querySelector('main h1').innerText === %q`, way.ends))
			if got := shown(); got != way.ends {
				t.Errorf("after %q it is %q", way.button, got)
			}
			s.in(jo.org, "PUT", "/v1/users/"+kim.id+"/profile", profile("Before"))
			w.visit(users + "/" + kim.id)
		}
	})

	t.Run("too many requests are told with the time to wait, and tried again by itself", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		refusal, err := proto.Marshal(&statuspb.Status{Code: 8, Message: "too many", Details: []*anypb.Any{
			packed(t, &errdetails.ErrorInfo{Reason: "TOO_MANY_REQUESTS", Domain: "signet"}),
			packed(t, &errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})}})
		must(t, err)
		stop := w.intercept("UserService/ListUsers", 200, map[string]string{
			"content-type":            "application/grpc-web+proto",
			"grpc-status":             "8",
			"grpc-message":            "too many",
			"grpc-status-details-bin": base64.RawStdEncoding.EncodeToString(refusal),
		}, "")
		w.visit(users)
		w.sees("Too many requests")
		w.sees("Try again in 2 seconds.")
		stop()
		w.sees("Jo jo")
	})

	t.Run("a stream that is cut goes on where it was", func(t *testing.T) {
		w := s.signIn(t, b, jo)
		w.visit("/o/" + jo.org + "/events?follow=1")
		w.sees("Live")
		seen := func(name string) {
			id := s.person(jo.org, name).id
			w.until(name+" is in the log, once",
				fmt.Sprintf(`[...document.querySelectorAll('main tbody tr')].filter((r) => r.innerText.includes('A person was added') && r.querySelector('[href*="%s"]')).length === 1`, id))
		}
		seen("before")
		s.stop()
		w.sees("Interrupted, reconnecting")
		s.run()
		seen("after") // whether it was made before or after the stream was there again
		w.sees("Live")
	})
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	must(t, err)
	return a
}
