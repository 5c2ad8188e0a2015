package oidc_test

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/transport/pages"
)

// visitor is a person at a browser that runs no script: it keeps cookies, follows redirects as long as they lead to
// Signet, and presses buttons.
type visitor struct {
	w       *world
	name    string // empty: the person is signed in already
	cookies map[string]string
	asked   []string // what the pages asked for, in that order
}

// visitor is somebody who is not signed in yet.
func (w *world) visitor(userID string) *visitor {
	return &visitor{w: w, name: w.names[userID], cookies: map[string]string{}}
}

// with is the visitor whose browser holds a session.
func (w *world) with(token string) *visitor {
	return &visitor{w: w, cookies: map[string]string{"__Host-signet": token}}
}

// place is where a browser has arrived: a page of Signet, or an address elsewhere.
type place struct {
	reply
	at   *url.URL
	form *form // nil: none
	on   string
}

// form is the first form of a page, with the first of its buttons pressed.
type form struct {
	values   url.Values
	password bool // it asks for one
}

// visit opens an address, or sends a form there.
func (v *visitor) visit(method, address string, body url.Values) *place {
	v.w.t.Helper()
	for range 10 {
		at, err := url.Parse(address)
		must(v.w.t, err)
		if !strings.HasPrefix(address, v.w.url+"/") {
			return &place{at: at}
		}
		r, err := http.NewRequestWithContext(v.w.t.Context(), method, address, strings.NewReader(body.Encode()))
		must(v.w.t, err)
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", v.w.url)
		}
		for name, value := range v.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		got := v.w.send(r)
		v.keep(got.header)
		to := got.header.Get("Location")
		if to == "" {
			p := &place{reply: got, at: at}
			p.read(v.w)
			return p
		}
		next, err := at.Parse(to)
		must(v.w.t, err)
		method, address, body = http.MethodGet, next.String(), nil
	}
	v.w.t.Fatalf("sent round in circles at %s", address)
	return nil
}

// keep takes over cookies, which have to be as safe as they can be.
func (v *visitor) keep(h http.Header) {
	v.w.t.Helper()
	for _, c := range (&http.Response{Header: h}).Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode {
			v.w.t.Errorf("the cookie is %s", c)
		}
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
}

// read finds what can be done on a page.
func (p *place) read(w *world) {
	w.t.Helper()
	root, err := html.Parse(strings.NewReader(p.body))
	must(w.t, err)
	for n := range root.Descendants() {
		get := func(name string) string {
			for _, a := range n.Attr {
				if a.Key == name {
					return a.Val
				}
			}
			return ""
		}
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "a" && get("class") == "button":
			p.on = get("href")
		case n.Data == "form" && p.form == nil:
			p.form = &form{values: url.Values{}}
		case n.Data == "form":
			return
		case p.form != nil && (n.Data == "input" || n.Data == "button") && get("name") != "" &&
			!p.form.values.Has(get("name")):
			p.form.values.Set(get("name"), get("value"))
			p.form.password = p.form.password || get("type") == "password"
		}
	}
}

// goOn does what the pages ask for, until they lead somewhere else or ask for nothing more.
func (v *visitor) goOn(address string) *place {
	v.w.t.Helper()
	p := v.visit(http.MethodGet, address, nil)
	for range 10 {
		switch {
		case p.form != nil:
			if p.form.values.Has(pages.FieldLoginName) && p.form.values.Get(pages.FieldLoginName) == "" {
				v.asked = append(v.asked, "name")
				p.form.values.Set(pages.FieldLoginName, v.name)
			}
			if p.form.password {
				v.asked = append(v.asked, "password")
				p.form.values.Set(pages.FieldPassword, password)
			}
			if do := p.form.values.Get(pages.FieldDo); do != "" {
				v.asked = append(v.asked, do)
			}
			p = v.visit(http.MethodPost, p.at.String(), p.form.values)
		case p.on != "":
			next, err := p.at.Parse(p.on)
			must(v.w.t, err)
			p = v.visit(http.MethodGet, next.String(), nil)
		default:
			return p
		}
	}
	v.w.t.Fatalf("the pages ask for %q and come to no end: %d %s", v.asked, p.status, p.body)
	return nil
}

// signIn goes the whole way through the pages and gives what the application is sent.
func (v *visitor) signIn(authorizeURL string) url.Values {
	v.w.t.Helper()
	p := v.goOn(authorizeURL)
	if !strings.HasPrefix(p.at.String(), callback+"?") {
		v.w.t.Fatalf("came to %s: %d %s", p.at, p.status, p.body)
	}
	return p.at.Query()
}
