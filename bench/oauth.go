package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// client is who asks for tokens, or about them: an application or a service user, with a secret.
type client struct{ id, secret string }

// basic is what the client says in the header of a request.
func (c client) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.id) + ":" + url.QueryEscape(c.secret)))
}

// token asks for an access token of the client's own.
func (c client) token() call {
	return call{verb: "POST", path: "/oauth/token", client: c,
		form: url.Values{"grant_type": {"client_credentials"}, "scope": {"signet.self"}}}
}

// introspect asks what the person's access token is worth, as the application does that it is sent to.
func (p *person) introspect() call {
	return call{verb: "POST", path: "/oauth/introspect", client: p.api, form: url.Values{"token": {p.access}}}
}

// redirectURI is where browsers are sent back to. Nobody listens there: the code is read out of the address.
const redirectURI = "http://127.0.0.1/callback"

// enterApplication adds a service user and two applications to the organization, and signs the person in to one of them
// as a browser does, which gives an access token that the other may ask about.
func (p *person) enterApplication(conn *restConn) error {
	var robot signetv1.AddServiceUserResponse
	var secret signetv1.SetServiceSecretResponse
	var api, shop signetv1.AddApplicationResponse
	if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/users/service",
		message: &signetv1.AddServiceUserRequest{UserName: "robot", Name: "Robot"}}, &robot); err != nil {
		return err
	}
	if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/users/" + robot.GetUserId() + "/secret",
		message: &signetv1.SetServiceSecretRequest{}}, &secret); err != nil {
		return err
	}
	if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/apps", message: &signetv1.AddApplicationRequest{
		Name: "Warehouse", Type: signetv1.ApplicationType_APPLICATION_TYPE_API,
		AuthMethod: signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC}}, &api); err != nil {
		return err
	}
	if err := conn.ask(call{token: p.token, verb: "POST", path: "/v1/apps", message: &signetv1.AddApplicationRequest{
		Name: "Shop", Type: signetv1.ApplicationType_APPLICATION_TYPE_WEB,
		AuthMethod:   signetv1.AuthMethod_AUTH_METHOD_CLIENT_SECRET_BASIC,
		RedirectUris: []string{redirectURI}, AccessTokenSeconds: 86400}}, &shop); err != nil {
		return err
	}
	p.robot, p.api = client{robot.GetUserId(), secret.GetSecret()}, client{api.GetAppId(), api.GetClientSecret()}
	signedIn := client{shop.GetAppId(), shop.GetClientSecret()}
	code, err := browse("http://"+conn.conn.RemoteAddr().String(), signedIn.id,
		"openid profile email urn:signet:app:"+p.api.id+":aud", p.token)
	if err != nil {
		return fmt.Errorf("signing in to an application: %w", err)
	}
	exchange, err := call{verb: "POST", path: "/oauth/token", client: signedIn,
		form: url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirectURI}}}.rest()
	if err != nil {
		return err
	}
	body, err := conn.must(exchange.bytes)
	if err != nil {
		return fmt.Errorf("exchanging a code: %w", err)
	}
	var given struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &given); err != nil {
		return err
	}
	p.access = given.Access
	return p.checkTokens(conn)
}

// checkTokens makes sure that what is going to be measured is what it is taken for: an introspection that finds nothing
// is answered with 200, too.
func (p *person) checkTokens(conn *restConn) error {
	request, err := p.introspect().rest()
	if err != nil {
		return err
	}
	body, err := conn.must(request.bytes)
	if err == nil && !strings.Contains(string(body), `"active":true`) {
		err = fmt.Errorf("the access token does not count: %s", clip(body))
	}
	return err
}

// browse walks a browser that has a session through an authorization request, and gives the code.
func browse(server, clientID, scope, session string) (code string, err error) {
	// its own: others browse at the same time, and closing takes away connections that they are about to use
	connections := &http.Transport{}
	defer connections.CloseIdleConnections()
	browser := http.Client{Transport: connections, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cookies := []string{"__Host-signet=" + session}
	next := server + "/oauth/authorize?" + url.Values{"client_id": {clientID}, "redirect_uri": {redirectURI},
		"response_type": {"code"}, "scope": {scope}}.Encode()
	for range 3 {
		request, err := http.NewRequest(http.MethodGet, next, nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("Cookie", strings.Join(cookies, "; "))
		response, err := browser.Do(request)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			return "", err
		}
		for _, c := range response.Cookies() {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
		to, err := response.Location()
		if err != nil {
			return "", fmt.Errorf("%s answers %d: %w", request.URL.Path, response.StatusCode, err)
		}
		if next = to.String(); strings.HasPrefix(next, redirectURI) {
			return to.Query().Get("code"), nil
		}
	}
	return "", errors.New("the browser is sent round and round")
}
