package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// portal is where people come from who sign in through a JWT provider: it signs tokens, and publishes its key.
type portal struct {
	signer jose.Signer
	keys   string // address of the key set
}

const portalIssuer = "portal.example.org"

// thePortal serves everybody in this process, until that ends.
var thePortal = sync.OnceValues(func() (*portal, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		return nil, err
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Use: "sig",
		Algorithm: string(jose.ES256)}}})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(set)
		}))
	}()
	return &portal{signer: signer, keys: "http://" + listener.Addr().String() + "/keys"}, nil
})

// token says who has signed in at the portal. Each is another one.
func (p *portal) token(provider string) (string, error) {
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"iss":                portalIssuer,
		"aud":                provider,
		"sub":                "johanna",
		"iat":                now,
		"exp":                now + 300,
		"jti":                rand.Text(),
		"preferred_username": "portal",
		"given_name":         "Johanna",
		"family_name":        "Beispiel",
		"email":              "johanna@example.org",
		"email_verified":     true,
	})
	if err != nil {
		return "", err
	}
	signed, err := p.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// enterPortal adds the portal as a provider of the person's organization.
func (p *person) enterPortal(conn *restConn) error {
	at, err := thePortal()
	if err != nil {
		return err
	}
	var made signetv1.AddJWTIdentityProviderResponse
	err = conn.ask(call{
		token: p.token,
		verb:  "POST",
		path:  "/v1/idps/jwt",
		message: &signetv1.AddJWTIdentityProviderRequest{
			Name: "Portal", JwtEndpoint: "https://portal.example.org/login", Issuer: portalIssuer,
			KeysEndpoint: at.keys,
			HeaderName:   "x-portal-token", AutoRegister: true,
		},
	}, &made)
	p.portal = made.GetIdpId()
	return err
}

// throughPortal gives what signs somebody in through the portal, each time with a state and a token of its own, in one
// browser: the way there and the way back are two requests. The first time asks, and registers them; from then on the
// browser has chosen the portal.
func throughPortal(w *world, i int) func(conn *restConn) error {
	b := &portalBrowser{provider: w.people[i].portal, cookies: map[string]string{}}
	return func(conn *restConn) error {
		start := "/login/idp/" + b.provider + "?to=%2Faccount"
		if b.cookies[chosenCookie] == "" {
			if err := b.register(conn, start); err != nil {
				return err
			}
			delete(b.cookies, sessionCookie)
		}
		there, err := b.visit(conn, "GET", start, "", nil)
		if err != nil {
			return err
		}
		if _, err := b.back(conn, there.location); err != nil {
			return err
		}
		if b.cookies[sessionCookie] == "" {
			return errors.New("nobody is signed in")
		}
		delete(b.cookies, sessionCookie)
		return nil
	}
}

const (
	sessionCookie = "__Host-signet"
	chosenCookie  = "__Host-signet-chosen"
)

// portalBrowser is the browser of somebody who signs in through the portal.
type portalBrowser struct {
	provider string
	cookies  map[string]string
}

// visited is what a page answered.
type visited struct {
	status   int
	location string // where it leads on to
	body     string
}

var (
	onward = regexp.MustCompile(`<a class="button" href="([^"]*)">`)
	field  = regexp.MustCompile(`<input [^>]*name="(\w+)"[^>]* value="([^"]*)"`)
)

// register presses the button of the portal, comes back, and sends the form of a new account as it is.
func (b *portalBrowser) register(conn *restConn, start string) error {
	// the page with the button, which makes the browser known
	if _, err := b.visit(conn, "GET", start, "", nil); err != nil {
		return err
	}
	pressed, err := b.visit(conn, "POST", start, "", url.Values{})
	if err != nil {
		return err
	}
	to := onward.FindStringSubmatch(pressed.body)
	if to == nil {
		return fmt.Errorf("status %d: no way to the portal: %s", pressed.status, clip([]byte(pressed.body)))
	}
	arrived, err := b.back(conn, html.UnescapeString(to[1]))
	if err != nil {
		return err
	}
	if b.cookies[sessionCookie] != "" {
		return nil // known from a round before
	}
	form, err := b.visit(conn, "GET", arrived.location, "", nil)
	if err != nil {
		return err
	}
	values := url.Values{}
	for _, m := range field.FindAllStringSubmatch(form.body, -1) {
		values.Set(m[1], html.UnescapeString(m[2]))
	}
	made, err := b.visit(conn, "POST", arrived.location, "", values)
	if err == nil && b.cookies[sessionCookie] == "" {
		err = fmt.Errorf("status %d: nobody is registered: %s", made.status, clip([]byte(made.body)))
	}
	return err
}

// back comes from the portal with a token, for the attempt that an address of the portal carries.
func (b *portalBrowser) back(conn *restConn, portal string) (*visited, error) {
	at, err := thePortal()
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(portal)
	if err != nil {
		return nil, err
	}
	token, err := at.token(b.provider)
	if err != nil {
		return nil, err
	}
	v, err := b.visit(conn, "GET",
		"/login/idp/"+b.provider+"/callback?"+url.Values{"state": {address.Query().Get("state")}}.Encode(),
		"X-Portal-Token: "+token+"\r\n", nil)
	if err == nil && v.status != http.StatusSeeOther {
		err = fmt.Errorf("status %d: %s", v.status, clip([]byte(v.body)))
	}
	return v, err
}

// visit sends a request as a browser does, and keeps the cookies that it is given.
func (b *portalBrowser) visit(c *restConn, method, path, headers string, form url.Values) (*visited, error) {
	var request strings.Builder
	fmt.Fprintf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n%s", method, path, headers)
	for name, value := range b.cookies {
		fmt.Fprintf(&request, "Cookie: %s=%s\r\n", name, value)
	}
	body := form.Encode()
	if method == "POST" {
		fmt.Fprintf(&request, "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n", len(body))
	}
	request.WriteString("\r\n" + body)
	if _, err := c.conn.Write([]byte(request.String())); err != nil {
		return nil, err
	}
	return answered(c.r, b.cookies)
}

// answered reads an answer.
func answered(r *bufio.Reader, cookies map[string]string) (*visited, error) {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	for _, cookie := range resp.Cookies() {
		cookies[cookie.Name] = cookie.Value
	}
	v := &visited{resp.StatusCode, resp.Header.Get("Location"), string(text)}
	if v.status >= http.StatusBadRequest {
		return nil, fmt.Errorf("status %d: %s", v.status, clip(text))
	}
	return v, nil
}
