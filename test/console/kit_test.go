// Package console drives the console in a real browser, against the built program.
package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// program is the built binary.
var program string

func TestMain(m *testing.M) { os.Exit(testkit.RunWithProgram(m, &program)) }

// installation is a running server with its first administrator.
type installation struct {
	t       testing.TB
	args    []string
	cmd     *exec.Cmd
	log     *testkit.Log
	stopped bool

	url   string
	admin account
	token string // of the first service user, who owns the installation
}

// account is somebody who can sign in.
type account struct{ org, id, login, password string }

// start starts a server on a new database of an engine. It has the same address after a restart.
func start(t testing.TB, engine string, args ...string) *installation {
	t.Helper()
	database := ""
	if engine == testdb.Postgres {
		database = testdb.New(t, engine).URL
	}
	return startAt(t, filepath.Join(t.TempDir(), "data"), database, args...)
}

// startAt starts a server on a data directory and, if it is not in there, a database.
func startAt(t testing.TB, dir, database string, args ...string) *installation {
	t.Helper()
	address := "localhost:" + testkit.FreePort(t)
	s := &installation{t: t, log: &testkit.Log{}, url: "http://" + address}
	s.args = append([]string{"start", "--data-dir", dir, "--listen", address}, args...)
	if database != "" {
		s.args = append(s.args, "--database", database)
	}
	s.run()
	t.Cleanup(s.stop)
	text, err := os.ReadFile(filepath.Join(dir, "first-admin.json"))
	must(t, err)
	var first struct{ OrgID, UserID, LoginName, Password, Token string }
	must(t, json.Unmarshal(text, &first))
	s.admin, s.token = account{first.OrgID, first.UserID, first.LoginName, first.Password}, first.Token
	return s
}

// run starts the server and waits until it is ready.
func (s *installation) run() {
	s.t.Helper()
	s.cmd = testkit.Command(program, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	must(s.t, s.cmd.Start())
	s.stopped = false
	testkit.Await(s.t, "the server is ready", func() bool {
		answer, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// stop ends the server as an operator does.
func (s *installation) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait()
}

// rest calls the API over REST as the first service user, and gives the answer.
func (s *installation) rest(method, path string, body any) map[string]any {
	s.t.Helper()
	return s.as(s.token, "", method, path, body)
}

// in is rest in an organization.
func (s *installation) in(org, method, path string, body any) map[string]any {
	s.t.Helper()
	return s.as(s.token, org, method, path, body)
}

func (s *installation) as(token, org, method, path string, body any) map[string]any {
	s.t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		must(s.t, err)
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, s.url+path, content)
	must(s.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if org != "" {
		request.Header.Set("X-Service-Orgid", org)
	}
	response, err := http.DefaultClient.Do(request)
	must(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(s.t, err)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s is %d: %s", method, path, response.StatusCode, text)
	}
	var answer map[string]any
	must(s.t, json.Unmarshal(text, &answer))
	return answer
}

const password = "a long word with Sense 7"

// person adds somebody who can sign in, with roles of the organization.
func (s *installation) person(org, name string, roles ...string) account {
	s.t.Helper()
	made := s.in(org, "POST", "/v1/users/human", map[string]any{
		"userName": name, "password": password, "noChangeRequired": true,
		"profile": map[string]any{"firstName": "Jo", "lastName": name},
		"email":   map[string]any{"email": name + "@mail.test", "isEmailVerified": true},
	})
	id := made["userId"].(string)
	user := s.in(org, "GET", "/v1/users/"+id, nil)["user"].(map[string]any)
	if len(roles) > 0 {
		s.rest("PUT", "/v1/orgs/"+org+"/members/"+id, map[string]any{"roles": roles})
	}
	return account{org, id, user["loginNames"].([]any)[0].(string), password}
}

// window is a browser window at the console.
type window struct {
	*browser.Tab
	t testing.TB
	s *installation
}

// newOrganization sets up an organization.
func (s *installation) newOrganization(name string) string {
	s.t.Helper()
	return s.rest("POST", "/v1/orgs/_setup", map[string]any{
		"org": map[string]any{"name": name},
		"human": map[string]any{"userName": "first",
			"profile": map[string]any{"firstName": name, "lastName": "First"},
			"email":   map[string]any{"email": "first@mail.test", "isEmailVerified": true}, "password": password},
	})["orgId"].(string)
}

// signIn opens a window of its own and signs somebody in to the console.
func (s *installation) signIn(t testing.TB, b *browser.Browser, a account) *window {
	t.Helper()
	w := &window{Tab: b.Tab(t), t: t, s: s}
	w.Look(browser.Look{Width: 1280, Height: 900})
	w.Open(s.url + "/console/")
	w.enter(a)
	w.settle()
	return w
}

// enter fills in the pages of the sign-in.
func (w *window) enter(a account) {
	w.t.Helper()
	w.Fill("#loginName", a.login)
	w.Submit("button.primary")
	w.Fill("#password", a.password)
	w.Submit("button.primary")
}

// enterAndClose is enter in a window that closes itself at the end.
func (w *window) enterAndClose(a account) {
	w.t.Helper()
	w.Fill("#loginName", a.login)
	w.Submit("button.primary")
	w.Fill("#password", a.password)
	// Not a click that waits for the page: it may be gone before it answers.
	w.Evaluate(`setTimeout(() => document.querySelector('button.primary').click(), 100), true`, nil)
}

// at is the window for what every test of the console does, in the words of package browser.
func (w *window) at() browser.Window {
	return browser.Window{Tab: w.Tab, Console: w.s.url + "/console"}
}

func (w *window) visit(path string)               { w.t.Helper(); w.at().Visit(path) }
func (w *window) settle()                         { w.t.Helper(); w.at().Settle() }
func (w *window) until(what, expression string)   { w.t.Helper(); w.at().Until(what, expression) }
func (w *window) sees(text string)                { w.t.Helper(); w.at().Sees(text) }
func (w *window) mark(what, script string) string { w.t.Helper(); return w.at().Mark(what, script) }
func (w *window) press(text string)               { w.t.Helper(); w.at().Press(text) }
func (w *window) labelled(label string) string    { w.t.Helper(); return w.at().Labelled(label) }
func (w *window) fill(label, text string)         { w.t.Helper(); w.at().Type(label, text) }

// visitInside goes to a view as a link inside the console does: the page stays.
func (w *window) visitInside(path string) {
	w.t.Helper()
	w.Evaluate(fmt.Sprintf(`(() => { const a = document.createElement('a'); a.href = '/console' + %q; document.body.append(a); a.click(); a.remove(); })()`, path), nil)
	w.settle()
}

// key presses keys. Each is one event with its text, as from a keyboard: a page that takes the key keeps the text from
// what would follow, such as a form that is sent.
func (w *window) key(keys string, modifiers ...input.Modifier) {
	w.t.Helper()
	var actions []chromedp.Action
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := events[0], events[len(events)-1]
		if len(events) > 2 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, m := range modifiers {
			down.Modifiers, up.Modifiers = down.Modifiers|m, up.Modifiers|m
		}
		actions = append(actions, down, up)
	}
	w.Do(actions...)
}

// speak changes the language as the person does in the menu of the account.
func (w *window) speak(language string) {
	w.t.Helper()
	w.Click("button.account")
	w.Choose("#language", language)
	w.Click("button.account")
	w.until("the page is in "+language, fmt.Sprintf(`document.documentElement.lang === %q`, language))
	w.settle()
}

// quiet fails the test if the browser has complained.
func (w *window) quiet() {
	w.t.Helper()
	if said := w.Complaints(); len(said) > 0 {
		w.t.Errorf("at %s the browser complains: %q", w.At(), said)
	}
}

// requests counts the calls of the API that an action makes.
func (w *window) requests(act func()) []string {
	w.t.Helper()
	var made []string
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan string, 1000)
	w.Listen(ctx, func(e any) {
		if sent, ok := e.(*network.EventRequestWillBeSent); ok && strings.Contains(sent.Request.URL, "/signet.v1.") &&
			sent.Request.Method == http.MethodPost {
			seen <- sent.Request.URL[strings.LastIndex(sent.Request.URL, "signet.v1.")+len("signet.v1."):]
		}
	})
	w.Do(network.Enable())
	act()
	for {
		select {
		case url := <-seen:
			made = append(made, url)
		default:
			return made
		}
	}
}
