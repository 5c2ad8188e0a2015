package oidc

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
)

// asked makes a request whose form has been read, from pairs of names and values.
func asked(t *testing.T, header string, pairs ...string) *endpointRequest {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	plain := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(form.Encode()))
	plain.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if header != "" {
		plain.Header.Set("Authorization", header)
	}
	if err := readForm(plain); err != nil {
		t.Fatal(err)
	}
	return &endpointRequest{Request: plain, answer: http.Header{}}
}

func inHeader(id, secret string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(id, secret)
	return r.Header.Get("Authorization")
}

func TestClientsSayWhoTheyAreInOneWay(t *testing.T) {
	const twice, nobody = "client authentication must not use more than one method", "client_id or client_assertion must be provided"
	const notBasic = "the header authorization must be Basic with the client's id and secret, or be left out"
	for _, tt := range []struct {
		name, header string
		form         []string
		want         oauth.Credentials
		refused      string
	}{
		{"its id alone", "", []string{"client_id", "a"}, oauth.Credentials{Method: app.NoAuth, ClientID: "a"}, ""},
		{"a secret in the form", "", []string{"client_id", "a", "client_secret", "s"},
			oauth.Credentials{Method: app.SecretPost, ClientID: "a", Secret: "s"}, ""},
		{"a secret in the header", inHeader("a", "s"), nil,
			oauth.Credentials{Method: app.SecretBasic, ClientID: "a", Secret: "s"}, ""},
		{"a secret in the header, encoded", inHeader("a+%3A", "%73+"), nil,
			oauth.Credentials{Method: app.SecretBasic, ClientID: "a :", Secret: "s "}, ""},
		{"the header counts more than an id", inHeader("a", "s"), []string{"client_id", "b"},
			oauth.Credentials{Method: app.SecretBasic, ClientID: "a", Secret: "s"}, ""},
		{"an empty secret in the form", "", []string{"client_id", "a", "client_secret", ""},
			oauth.Credentials{Method: app.NoAuth, ClientID: "a"}, ""},
		{"an empty secret in the header", inHeader("a", ""), nil,
			oauth.Credentials{Method: app.NoAuth, ClientID: "a"}, ""},
		{"an empty secret in the header and its id", inHeader("a", ""), []string{"client_id", "a", "client_secret", ""},
			oauth.Credentials{Method: app.NoAuth, ClientID: "a"}, ""},
		{"a secret in the header and an empty one in the form", inHeader("a", "s"),
			[]string{"client_id", "a", "client_secret", ""},
			oauth.Credentials{Method: app.SecretBasic, ClientID: "a", Secret: "s"}, ""},
		{"an assertion", "", []string{"client_assertion", "j", "client_assertion_type", assertionType},
			oauth.Credentials{Method: app.PrivateKeyJWT, Assertion: "j"}, ""},
		{"an assertion and an id", "",
			[]string{"client_id", "a", "client_assertion", "j", "client_assertion_type", assertionType},
			oauth.Credentials{Method: app.PrivateKeyJWT, ClientID: "a", Assertion: "j"}, ""},

		{"nothing", "", nil, oauth.Credentials{}, nobody},
		{"a secret of nobody", "", []string{"client_secret", "s"}, oauth.Credentials{}, nobody},
		{"a header of another kind", "Bearer x", nil, oauth.Credentials{}, nobody},
		{"names in another case", "", []string{"Client_id", "a"}, oauth.Credentials{}, nobody},
		{"an empty secret in the header and one in the form", inHeader("a", ""),
			[]string{"client_id", "a", "client_secret", "s"}, oauth.Credentials{}, twice},
		{"another header", "Bearer x", []string{"client_id", "a"}, oauth.Credentials{}, notBasic},
		{"another header and a secret in the form", "Bearer x", []string{"client_id", "a", "client_secret", "s"},
			oauth.Credentials{}, notBasic},
		{"a header that cannot be read", "Basic !", []string{"client_id", "a"}, oauth.Credentials{}, notBasic},
		{"a header and a form", inHeader("a", "s"), []string{"client_id", "a", "client_secret", "s"},
			oauth.Credentials{}, twice},
		{"a header and an assertion", inHeader("a", "s"),
			[]string{"client_assertion", "j", "client_assertion_type", assertionType}, oauth.Credentials{}, twice},
		{"a form and an assertion", "",
			[]string{"client_id", "a", "client_secret", "s", "client_assertion", "j", "client_assertion_type",
				assertionType}, oauth.Credentials{}, twice},
		{"an id that cannot be decoded", inHeader("%", "s"), nil, oauth.Credentials{}, "invalid basic auth header"},
		{"a secret that cannot be decoded", inHeader("a", "%"), nil, oauth.Credentials{}, "invalid basic auth header"},
		{"an assertion of another type", "", []string{"client_assertion", "j", "client_assertion_type", "saml"},
			oauth.Credentials{}, "invalid client_assertion_type saml"},
		{"an assertion of no type", "", []string{"client_assertion", "j"}, oauth.Credentials{},
			"invalid client_assertion_type "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := asked(t, tt.header, tt.form...).credentials()
			if err == nil && (got != tt.want || tt.refused != "") {
				t.Errorf("got %+v", got)
			}
			if err != nil {
				if answer := refusalOf(err); answer.Status != http.StatusBadRequest ||
					answer.Description != tt.refused {
					t.Errorf("refused with %+v", answer)
				}
			}
		})
	}
}

func TestAccessTokensComeInTheHeaderOrInTheForm(t *testing.T) {
	for _, tt := range []struct{ name, header, form, want, scheme string }{
		{"in the header", "Bearer t", "", "t", "Bearer"},
		{"the scheme in another case", "bEARER t", "", "t", "Bearer"},
		{"bound to a key", "dPoP t", "u", "t", "DPoP"},
		{"in the form", "", "t", "t", "Bearer"},
		{"the header counts more", "Bearer t", "u", "t", "Bearer"},
		{"another header does not count", "Basic t", "u", "u", "Bearer"},
		{"a scheme without a token", "Bearer", "", "", "Bearer"},
		{"another white space", "Bearer\tt", "", "", "Bearer"},
		{"none", "", "", "", "Bearer"},
	} {
		token, scheme := asked(t, tt.header, "access_token", tt.form).accessToken()
		if token != tt.want || scheme != tt.scheme {
			t.Errorf("%s: %q by %s", tt.name, token, scheme)
		}
	}
}

func TestGrantTypesAreForThoseWhoAreRegisteredForThem(t *testing.T) {
	clients := map[string]*oauth.Client{clientCredentials: {Service: &event.Object[user.User]{}}}
	for _, grantType := range []app.GrantType{app.AuthorizationCode, app.RefreshToken, app.DeviceCode} {
		clients[string(grantType)] = &oauth.Client{App: &event.Object[app.App]{Data: app.App{Settings: app.Settings{GrantTypes: []app.GrantType{grantType}}}}}
	}
	for has, c := range clients {
		for _, grantType := range append([]string{tokenExchange, "password"}, grantTypes...) {
			if got := registered(c, grantType); got != (grantType == has) {
				t.Errorf("a client with %s may use %s: %t", has, grantType, got)
			}
		}
	}
}
