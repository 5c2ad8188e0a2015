// Command web is a small web application that people sign in to with Signet. docs/guides/web-application.md explains
// it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

type person struct {
	Subject string `json:"sub"` // the only claim that always means the same person
	Name    string `json:"name"`
	Email   string `json:"email"`
	idToken string
}

type application struct {
	address  string
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	signOut  string // Signet's address for signing out
	sessions sync.Map
}

func main() {
	listen := cmp.Or(os.Getenv("LISTEN"), "localhost:3000")
	app, err := connect(cmp.Or(os.Getenv("ISSUER"), "http://localhost:8080"), "http://"+listen)
	if err != nil {
		log.Fatalf("cannot read the configuration of Signet: is it running? %v", err)
	}
	http.HandleFunc("GET /{$}", app.home)
	http.HandleFunc("GET /sign-in", app.signIn)
	http.HandleFunc("GET /callback", app.callback)
	http.HandleFunc("POST /sign-out", app.leave)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Open http://" + listen)
	log.Fatal(http.Serve(listener, nil))
}

// connect reads Signet's discovery document. Everything else follows from it.
func connect(issuer, address string) (*application, error) {
	provider, err := oidc.NewProvider(context.Background(), issuer)
	if err != nil {
		return nil, err
	}
	var more struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, err
	}
	return &application{
		address: address, signOut: more.EndSession,
		oauth: oauth2.Config{
			ClientID: os.Getenv("CLIENT_ID"), ClientSecret: os.Getenv("CLIENT_SECRET"), Endpoint: provider.Endpoint(),
			RedirectURL: address + "/callback", Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
		},
		verifier: provider.Verifier(&oidc.Config{ClientID: os.Getenv("CLIENT_ID")}),
	}, nil
}

var page = template.Must(template.New("").Parse(`<!DOCTYPE html><title>Example</title>
{{if .}}<h1>Hello, {{.Name}}</h1><p>{{.Email}}, {{.Subject}}</p><form method="post" action="/sign-out"><button>Sign out</button></form>
{{else}}<h1>Hello</h1><a href="/sign-in">Sign in</a>{{end}}`))

func (a *application) home(w http.ResponseWriter, r *http.Request) {
	var who any
	if c, err := r.Cookie("session"); err == nil {
		who, _ = a.sessions.Load(c.Value)
	}
	_ = page.Execute(w, who)
}

// signIn sends the browser to Signet. Three random values stay in its cookies, so that only this browser can come back
// with the answer.
func (a *application) signIn(w http.ResponseWriter, r *http.Request) {
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	for name, value := range map[string]string{"state": state, "nonce": nonce, "verifier": verifier} {
		setCookie(w, name, value, 600)
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	if name := r.FormValue("login_hint"); name != "" { // from Signet, which knows already who is coming
		options = append(options, oauth2.SetAuthURLParam("login_hint", name))
	}
	http.Redirect(w, r, a.oauth.AuthCodeURL(state, options...), http.StatusFound)
}

func (a *application) callback(w http.ResponseWriter, r *http.Request) {
	who, err := a.finish(r)
	if err != nil {
		log.Print(err)
		http.Error(w, "Signing in failed. Go back and try again.", http.StatusBadRequest)
		return
	}
	session := rand.Text()
	a.sessions.Store(session, who)
	setCookie(w, "session", session, 0)
	http.Redirect(w, r, "/", http.StatusFound)
}

// finish exchanges the code for an ID token and checks it.
func (a *application) finish(r *http.Request) (*person, error) {
	cookie := func(name string) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
	if state := cookie("state"); state == "" || r.FormValue("state") != state {
		return nil, fmt.Errorf("this answer belongs to another browser, or it is too late")
	}
	if code := r.FormValue("error"); code != "" {
		return nil, fmt.Errorf("nobody signed in: Signet answered %s: %s", code, r.FormValue("error_description"))
	}
	token, err := a.oauth.Exchange(r.Context(), r.FormValue("code"), oauth2.VerifierOption(cookie("verifier")))
	if err != nil {
		return nil, err
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := a.verifier.Verify(r.Context(), raw)
	if err != nil {
		return nil, err
	}
	if id.Nonce != cookie("nonce") {
		return nil, fmt.Errorf("the ID token was made for another request")
	}
	who := &person{idToken: raw}
	return who, id.Claims(who)
}

// leave ends the session here and at Signet.
func (a *application) leave(w http.ResponseWriter, r *http.Request) {
	to := a.address
	if c, err := r.Cookie("session"); err == nil {
		if who, ok := a.sessions.LoadAndDelete(c.Value); ok {
			to = a.signOut + "?" + url.Values{"id_token_hint": {who.(*person).idToken},
				"post_logout_redirect_uri": {a.address + "/"}}.Encode()
		}
	}
	setCookie(w, "session", "", -1)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// setCookie keeps a value in the browser. Add Secure: true as soon as the application has https.
func setCookie(w http.ResponseWriter, name, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}
