// Package browser drives a real Chromium for the tests of the pages: it opens them, fills in forms, presses buttons,
// holds a passkey in its hand, takes pictures, and asks axe whether people who do not see or do not use a mouse can use
// them.
//
// Start it through scripts/with-browser.sh, which installs what is missing. Nothing here waits for time: every step
// waits for what it needs, and fails when the deadline of the test's browser passes.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/signet-idm/signet/test/testkit"
)

// stepLimit is how long one step may take before the test fails. Machines that run tests are slow at times.
const stepLimit = testkit.Patience

// Browser is a Chromium with a profile of its own that is gone with the test.
type Browser struct{ ctx context.Context }

// Start starts one. Without a browser the test is skipped, and fails in CI.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := find()
	if path == "" {
		unavailable(t, "no Chromium was found: run this through scripts/with-browser.sh")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox}
	for _, flag := range []string{"disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check",
		"disable-background-networking",
		"disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions", "hide-scrollbars",
		"disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	options = append(options, chromedp.Flag("headless", "new"), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("lang", "en-US"),
		// a host that browsers do not take for this machine
		chromedp.Flag("host-resolver-rules", "MAP *.signet.test 127.0.0.1"),
		chromedp.WSURLReadTimeout(stepLimit))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	// A browser that is newer than the client says things that it does not know: nothing a test needs.
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until it has ended and its profile is gone
		cancel()
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return &Browser{ctx: ctx}
}

func find() string {
	if path := os.Getenv("SIGNET_TEST_BROWSER"); path != "" {
		return path
	}
	for _, name := range []string{"/usr/lib/chromium/chromium-headless-shell", "chromium", "chromium-browser",
		"google-chrome-stable", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func unavailable(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Tab is a window of its own, with cookies and passkeys of its own.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu        sync.Mutex
	complains []string
	complaint chan struct{} // has something when there may be a complaint
	moved     chan struct{} // has something when the page may be another one

	authenticator webauthn.AuthenticatorID
}

// Tab opens a window.
func (b *Browser) Tab(t testing.TB) *Tab {
	t.Helper()
	// A window of its own has to be asked for by name: without it the browser looks for one in which to open a tab.
	executor := cdp.WithExecutor(b.ctx, chromedp.FromContext(b.ctx).Browser)
	profile, err := target.CreateBrowserContext().Do(executor)
	if err != nil {
		t.Fatal(err)
	}
	// Chromium's shell asks nobody whether a page may copy what somebody pressed a button for; the whole browser lets
	// it.
	err = cdpbrowser.SetPermission(&cdpbrowser.PermissionDescriptor{Name: "clipboard-write"},
		cdpbrowser.PermissionSettingGranted).WithBrowserContextID(profile).Do(executor)
	if err != nil {
		t.Fatal(err)
	}
	window, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(executor)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(window))
	t.Cleanup(func() {
		cancel()
		_ = target.DisposeBrowserContext(profile).Do(executor) // the browser may have gone before
	})
	tab := &Tab{t: t, ctx: ctx, complaint: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
	chromedp.ListenTarget(ctx, tab.listen)
	tab.Do(chromedp.Navigate("about:blank"))
	return tab
}

// listen keeps what the browser complains about: errors of scripts, things that a policy did not allow, files that are
// missing.
func (tab *Tab) listen(e any) {
	var said string
	switch e := e.(type) {
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		said = fmt.Sprintf("console.%s: %s", e.Type, strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelVerbose || e.Entry.Level == log.LevelInfo {
			return
		}
		said = fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *page.EventFrameNavigated:
		wake(tab.moved)
		return
	default:
		return
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.complains = append(tab.complains, said)
	wake(tab.complaint)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// NextComplaint waits until the browser complains.
func (tab *Tab) NextComplaint() string {
	tab.t.Helper()
	limit := time.After(stepLimit)
	for {
		if said := tab.Complaints(); len(said) > 0 {
			return said[0]
		}
		select {
		case <-tab.complaint:
		case <-limit:
			tab.t.Fatalf("the browser had nothing to complain about for %s", stepLimit)
		}
	}
}

// WaitUntilAt waits until the page of this address is there, whatever comes in between.
func (tab *Tab) WaitUntilAt(address string) {
	tab.t.Helper()
	tab.waitUntilAt(address, func(at string) bool { return at == address })
}

// WaitUntilBelow waits until a page is there whose address begins in this way, whatever comes in between.
func (tab *Tab) WaitUntilBelow(address string) {
	tab.t.Helper()
	tab.waitUntilAt(address, func(at string) bool { return strings.HasPrefix(at, address) })
}

func (tab *Tab) waitUntilAt(address string, there func(at string) bool) {
	tab.t.Helper()
	limit := time.After(stepLimit)
	for {
		var at string
		err := tab.try(chromedp.Location(&at))
		if err == nil && there(at) {
			return
		}
		if err != nil { // the page left while it was asked: it says where to when it is there
			at = "on its way (" + err.Error() + ")"
		}
		select {
		case <-tab.moved:
		case <-limit:
			tab.t.Fatalf("the browser is at %s and not at %s", at, address)
		}
	}
}

// Complaints gives what the browser has complained about since they were last asked for.
func (tab *Tab) Complaints() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	said := tab.complains
	tab.complains = nil
	return said
}

// Do runs steps of chromedp's, for what has no name here.
func (tab *Tab) Do(actions ...chromedp.Action) {
	tab.t.Helper()
	if err := tab.try(actions...); err != nil {
		tab.t.Fatalf("in the browser, at %s: %v", tab.where(), err)
	}
}

func (tab *Tab) try(actions ...chromedp.Action) error {
	done := make(chan error, 1)
	go func() {
		err := chromedp.Run(tab.ctx, actions...)
		for limit := time.Now().Add(stepLimit); replaced(err) && time.Now().Before(limit); {
			err = chromedp.Run(tab.ctx, actions...)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(stepLimit):
		return fmt.Errorf("nothing happened for %s", stepLimit)
	}
}

// replaced says whether a step did nothing because its element was looked up in a document that was being replaced: a
// page that has just been opened may still announce itself.
func replaced(err error) bool {
	return err != nil && strings.Contains(err.Error(), "No node with given id found")
}

func (tab *Tab) where() string {
	var at string
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = chromedp.Run(tab.ctx, chromedp.Location(&at))
	}()
	select {
	case <-done:
		return at
	case <-time.After(stepLimit / 10):
		return "a page that does not answer"
	}
}

// Open goes to an address and waits until the page is there.
func (tab *Tab) Open(address string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(address))
}

// Fill types into a field, in place of what was there.
func (tab *Tab) Fill(selector, text string) {
	tab.t.Helper()
	if text == "" {
		text = kb.Delete
	}
	tab.Do(chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Focus(selector, chromedp.ByQuery),
		chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).select()", selector), nil),
		chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Choose selects an option by its value.
func (tab *Tab) Choose(selector, value string) {
	tab.t.Helper()
	tab.Do(chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.SetValue(selector, value, chromedp.ByQuery))
}

// Click presses something that leads to no other page.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.Do(chromedp.WaitEnabled(selector, chromedp.ByQuery), press(selector))
}

// Submit presses something that leads to another page, and waits until that is there.
func (tab *Tab) Submit(selector string) {
	tab.t.Helper()
	tab.Do(chromedp.WaitEnabled(selector, chromedp.ByQuery), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, press(selector))
		return err
	}))
}

// WaitFor waits until something can be seen.
func (tab *Tab) WaitFor(selector string) {
	tab.t.Helper()
	tab.Do(chromedp.WaitVisible(selector, chromedp.ByQuery))
}

// Text gives the text of the first element that fits, as people see it.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	var text string
	tab.Do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return strings.TrimSpace(text)
}

// Has tells whether there is such an element now.
func (tab *Tab) Has(selector string) bool {
	tab.t.Helper()
	var found bool
	tab.Evaluate(fmt.Sprintf("document.querySelector(%q) !== null", selector), &found)
	return found
}

// Evaluate runs an expression in the page, waits for it if it is a promise, and reads its value.
func (tab *Tab) Evaluate(expression string, into any) {
	tab.t.Helper()
	tab.Do(chromedp.Evaluate(expression, into,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// At gives the address of the page.
func (tab *Tab) At() string {
	tab.t.Helper()
	var at string
	tab.Do(chromedp.Location(&at))
	return at
}

// Cookies gives all cookies of this window, those that no script sees included.
func (tab *Tab) Cookies() []*network.Cookie {
	tab.t.Helper()
	var cookies []*network.Cookie
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	return cookies
}

// Look is how a page is looked at.
type Look struct {
	Width, Height int64
	Dark          bool
	Phone         bool
}

// The looks that pictures are taken of.
var (
	Desktop = Look{Width: 800, Height: 600}
	Night   = Look{Width: 800, Height: 600, Dark: true}
	Phone   = Look{Width: 390, Height: 780, Phone: true}
	Narrow  = Look{Width: 360, Height: 640, Phone: true} // the narrowest that everything has to fit
)

// Look changes how this window looks at pages, also at the one that is open.
func (tab *Tab) Look(l Look) {
	tab.t.Helper()
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	tab.Do(emulation.SetDeviceMetricsOverride(l.Width, l.Height, 1, l.Phone),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// Authenticator puts a device into this window that makes and uses passkeys without asking. It says that the person was
// recognised if verified.
func (tab *Tab) Authenticator(verified bool) {
	tab.t.Helper()
	tab.Do(webauthn.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		id, err := webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21,
			Transport:      webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: verified,
			AutomaticPresenceSimulation: true,
		}).Do(ctx)
		tab.authenticator = id
		return err
	}))
}

// Touch says whether the person touches the device of Authenticator whenever it asks for that, as at first.
func (tab *Tab) Touch(always bool) {
	tab.t.Helper()
	tab.Do(webauthn.SetAutomaticPresenceSimulation(tab.authenticator, always))
}

// Header makes this window send a header with every request. Empty: none.
func (tab *Tab) Header(name, value string) {
	tab.t.Helper()
	headers := network.Headers{}
	if name != "" {
		headers[name] = value
	}
	tab.Do(network.Enable(), network.SetExtraHTTPHeaders(headers))
}

// TrustAnybody makes this window take certificates that nobody vouches for.
func (tab *Tab) TrustAnybody() {
	tab.t.Helper()
	tab.Do(security.SetIgnoreCertificateErrors(true))
}

// Forget drops the cookies of this window.
func (tab *Tab) Forget() {
	tab.t.Helper()
	tab.Do(network.ClearBrowserCookies())
}

// Passkeys are those in the device of Authenticator, by the name that it shows, with what it calls the person.
func (tab *Tab) Passkeys() map[string]string {
	tab.t.Helper()
	held := map[string]string{}
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) error {
		all, err := webauthn.GetCredentials(tab.authenticator).Do(ctx)
		for _, c := range all {
			held[c.UserName] = c.UserDisplayName
		}
		return err
	}))
	return held
}

// Listen hears what the window says until the context ends.
func (tab *Tab) Listen(ctx context.Context, heard func(event any)) {
	merged, cancel := context.WithCancel(tab.ctx)
	context.AfterFunc(ctx, cancel)
	chromedp.ListenTarget(merged, heard)
}

// Opened gives the window that the page opens while it acts. It has the cookies of this one.
func (tab *Tab) Opened(act func()) *Tab {
	tab.t.Helper()
	executor := cdp.WithExecutor(tab.ctx, chromedp.FromContext(tab.ctx).Browser)
	windows := func() map[target.ID]cdp.BrowserContextID {
		all, err := target.GetTargets().Do(executor)
		if err != nil {
			tab.t.Fatal(err)
		}
		found := map[target.ID]cdp.BrowserContextID{}
		for _, w := range all {
			if w.Type == "page" {
				found[w.TargetID] = w.BrowserContextID
			}
		}
		return found
	}
	before := windows()
	own := before[chromedp.FromContext(tab.ctx).Target.TargetID]
	act()
	for limit := time.Now().Add(stepLimit); time.Now().Before(limit); {
		for id, profile := range windows() {
			if _, known := before[id]; known || profile != own {
				continue
			}
			ctx, cancel := chromedp.NewContext(tab.ctx, chromedp.WithTargetID(id))
			tab.t.Cleanup(cancel)
			opened := &Tab{t: tab.t, ctx: ctx, complaint: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
			chromedp.ListenTarget(ctx, opened.listen)
			opened.Do(chromedp.WaitReady("body"))
			return opened
		}
	}
	tab.t.Fatalf("no window was opened for %s", stepLimit)
	return nil
}
