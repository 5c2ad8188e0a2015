// Package pages is the view layer of every hosted page, from entering a login name to the list of one's own sessions.
// It knows no flow: the handler of a path decides what happens next, fills in a view (one struct per page) and calls
// Render. Render picks the language, writes the page, and sets the security headers.
//
// A form posts to the address it was shown at. The Field constants name its fields; if there are several buttons,
// FieldDo holds the one that was pressed. Every string in a view may be hostile: it is escaped, set apart from the text
// around it, and never part of a link. Links are of type Link, which only this package makes.
//
// The pages work without script. One script drives passkeys, which browsers offer only to scripts. The other one shows
// passwords, copies secrets and shows times in the reader's time zone. Controls that need a script are not shown
// without it.
package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Config is what the pages need to know of the installation.
type Config struct {
	ExternalURL *url.URL // where people reach Signet
	Log         *slog.Logger
}

// Pages renders views and serves what they refer to.
type Pages struct {
	origin    string
	https     bool
	log       *slog.Logger
	assets    assets
	languages map[string]func() (*speech, error) // by tag, such as "de"; read when somebody first needs it
}

// speech is everything in one language.
type speech struct {
	texts     texts
	templates *template.Template
}

// New makes the pages. It fails only when this package itself is broken.
func New(c Config) (*Pages, error) {
	p := &Pages{
		origin: c.ExternalURL.Scheme + "://" + c.ExternalURL.Host, https: c.ExternalURL.Scheme == "https", log: c.Log,
		languages: map[string]func() (*speech, error){},
	}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	for _, tag := range Languages {
		p.languages[tag] = sync.OnceValues(func() (*speech, error) { return p.learn(tag) })
	}
	return p, nil
}

// learn parses the templates in one language. It takes some milliseconds and half a megabyte, which a start need not
// wait for.
func (p *Pages) learn(tag string) (*speech, error) {
	texts, err := loadTexts(tag)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("").Funcs(p.functions(texts)).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates in %s: %w", tag, err)
	}
	return &speech{texts: texts, templates: parsed}, nil
}

// sheet is what the outermost template shows.
type sheet struct {
	View
	Frame   Frame
	Account *Account // nil: not one of the account pages
	Section string   // the account page this is
	Title   string
	Origin  string
	Content template.HTML
	Passkey bool
	Script  bool
	Once    bool // the one thing that is wrong is said at its field
	Refresh Link
	Onward  bool // the page is on the way to the application
}

// Language is the one that a page would be shown in, for mails that follow from it.
func Language(r *http.Request, f Frame) string {
	return chooseLanguage(f.Language, f.Locales, r.Header.Get("Accept-Language"))
}

// Render answers a request with a page.
func (p *Pages) Render(w http.ResponseWriter, r *http.Request, status int, view View) {
	frame, about := view.frame(), view.about()
	language := chooseLanguage(frame.Language, frame.Locales, r.Header.Get("Accept-Language"))
	page, err := p.page(language, view)
	if err != nil {
		p.log.ErrorContext(r.Context(), "a page cannot be rendered", "page", about.template, "language",
			language, "error", err)
		http.Error(w, "this page cannot be shown: a bug in Signet", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	p.HardenPage(h, contentPolicy(about.script || about.passkey, frame.RedirectURI))
	if about.posts {
		p.HardenPage(h, postPolicy)
		h.Set("Referrer-Policy", "strict-origin") // the application may want to see in the header origin who posts
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", language)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page) // the person has gone: nobody is left to tell
	}
}

func (p *Pages) page(language string, view View) ([]byte, error) {
	speech, err := p.languages[language]()
	if err != nil {
		return nil, err
	}
	about := view.about()
	var content, page bytes.Buffer
	if err := speech.templates.ExecuteTemplate(&content, about.template, view); err != nil {
		return nil, err
	}
	title, err := speech.texts.plain(about.title)
	if err != nil {
		return nil, err
	}
	outer := sheet{
		View: view, Frame: view.frame(), Section: about.section, Title: title, Origin: p.origin,
		Content: template.HTML(content.String()), Passkey: about.passkey, Script: about.script || about.passkey,
		Onward: !about.end, Refresh: about.refresh,
		Once: saidOnce(view.frame().Problems, content.String()),
	}
	if a, ok := view.(interface{ account() Account }); ok {
		account := a.account()
		outer.Account = &account
	}
	err = speech.templates.ExecuteTemplate(&page, "layout", outer)
	return page.Bytes(), err
}

// saidOnce tells whether the only thing that is wrong is said at its field already.
func saidOnce(problems []Problem, content string) bool {
	return len(problems) == 1 && problems[0].Field != "" &&
		strings.Contains(content, `id="`+problems[0].Field+`-problem"`)
}

// HardenPage sets what keeps browsers on the safe side with a page, and what its policy allows it to load.
func (p *Pages) HardenPage(h http.Header, policy string) {
	p.Harden(h)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), "+
		"publickey-credentials-create=(self), publickey-credentials-get=(self)")
}

// Harden sets what holds for pages, assets and answers to their scripts alike.
func (p *Pages) Harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if p.https {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// postPolicy is contentPolicy for the page that posts to an application, without form-action: see PostBack.
const postPolicy = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; frame-ancestors 'none'; base-uri 'none'"

// contentPolicy allows a page what it needs and nothing else. Browsers apply form-action to the redirects that follow a
// form, so the application that the person goes back to has to be in it.
func contentPolicy(script bool, redirectURI string) string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self' data:; "
	if script {
		policy += "script-src 'self'; "
	}
	return policy + "form-action 'self'" + formTarget(redirectURI) + "; frame-ancestors 'none'; base-uri 'none'"
}
