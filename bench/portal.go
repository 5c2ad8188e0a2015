package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		return nil, err
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Use: "sig", Algorithm: string(jose.ES256)}}})
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
	claims, err := json.Marshal(map[string]any{"iss": portalIssuer, "aud": provider, "sub": "johanna", "iat": now, "exp": now + 300, "jti": rand.Text(), "preferred_username": "portal",
		"given_name": "Johanna", "family_name": "Beispiel", "email": "johanna@example.org", "email_verified": true})
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
	err = conn.ask(call{token: p.token, verb: "POST", path: "/v1/idps/jwt", message: &signetv1.AddJWTIdentityProviderRequest{
		Name: "Portal", JwtEndpoint: "https://portal.example.org/login", Issuer: portalIssuer, KeysEndpoint: at.keys, HeaderName: "x-portal-token", AutoRegister: true,
	}}, &made)
	p.portal = made.GetIdpId()
	return err
}

// throughPortal gives what signs somebody in through the portal, each time with a state and a token of its own, in one browser: the way there and the way
// back are two requests. The first time registers them.
func throughPortal(w *world, i int) func(conn *restConn) error {
	provider, cookies := w.people[i].portal, map[string]string{}
	return func(conn *restConn) error {
		at, err := thePortal()
		if err != nil {
			return err
		}
		there, err := conn.visit("/login/idp/"+provider+"?to=%2Faccount", "", cookies)
		if err != nil {
			return err
		}
		address, err := url.Parse(there)
		if err != nil {
			return err
		}
		token, err := at.token(provider)
		if err != nil {
			return err
		}
		delete(cookies, sessionCookie)
		_, err = conn.visit("/login/idp/"+provider+"/callback?"+url.Values{"state": {address.Query().Get("state")}}.Encode(), "X-Portal-Token: "+token+"\r\n", cookies)
		if err == nil && cookies[sessionCookie] == "" {
			err = errors.New("nobody is signed in")
		}
		delete(cookies, sessionCookie)
		return err
	}
}

const sessionCookie = "__Host-signet"

// visit sends a request as a browser does, keeps the cookies that it is given, and says where it is sent on to.
func (c *restConn) visit(path, headers string, cookies map[string]string) (location string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n%s", path, headers)
	for name, value := range cookies {
		fmt.Fprintf(&b, "Cookie: %s=%s\r\n", name, value)
	}
	b.WriteString("\r\n")
	if _, err := c.conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return answered(c.r, cookies)
}

// answered reads a redirect.
func answered(r *bufio.Reader, cookies map[string]string) (string, error) {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	body := make([]byte, 300)
	n, _ := resp.Body.Read(body)
	if err := resp.Body.Close(); err != nil { // it reads the rest
		return "", err
	}
	for _, cookie := range resp.Cookies() {
		cookies[cookie.Name] = cookie.Value
	}
	if resp.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, clip(body[:n]))
	}
	return resp.Header.Get("Location"), nil
}
