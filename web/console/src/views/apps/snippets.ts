// Code to paste, filled in for one application. Whatever comes from its settings is quoted as its language wants it.
import {
  ApplicationType,
  AuthMethod,
  GrantType,
  IDTokenClaims,
  SigningAlgorithm,
  type Application,
} from '../../gen/signet/v1/application_pb';
import { discoveryPath, type Discovery } from '../../lib/discovery';

export interface Snippet {
  readonly id: string;
  /** A name of products, the same in every language. */
  readonly title: string;
  readonly text: string;
  /** The redirect address that the library insists on. */
  readonly redirect?: string | undefined;
  /** The only way in which the library sends the secret. */
  readonly sends?: AuthMethod | undefined;
}

/** A string in JavaScript, Go, C#, Python, Swift and YAML. */
const q = (text: string) => JSON.stringify(text);
/** A string in Kotlin. */
const kotlin = (text: string) => q(text).replaceAll('$', '\\$');
/** A word of a shell. */
const sh = (text: string) => (/^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

interface Facts {
  app: Application;
  issuer: string;
  id: string;
  redirect: string;
  origin: string;
  path: string;
  scope: string;
  /** The issuer has no certificate: libraries want to be told. */
  insecure: boolean;
  post: boolean;
  server: Discovery;
}

function factsOf(app: Application, server: Discovery): Facts {
  const redirect = app.redirectUris[0] ?? 'http://localhost:3000/callback';
  const url = URL.canParse(redirect) ? new URL(redirect) : new URL('http://localhost:3000/callback');
  const web = url.protocol === 'http:' || url.protocol === 'https:';
  return {
    app,
    issuer: server.issuer,
    id: app.appId,
    redirect,
    origin: web ? url.origin : 'http://localhost:3000',
    path: web ? url.pathname : '/callback',
    scope: `openid profile email${app.grantTypes.includes(GrantType.REFRESH_TOKEN) ? ' offline_access' : ''}`,
    insecure: server.issuer.startsWith('http:'),
    post: app.authMethod === AuthMethod.CLIENT_SECRET_POST,
    server,
  };
}

/** The snippets for an application, those that fit it. */
export function snippetsFor(app: Application, server: Discovery): readonly Snippet[] {
  const facts = factsOf(app, server);
  const code = app.grantTypes.includes(GrantType.AUTHORIZATION_CODE);
  const device = app.grantTypes.includes(GrantType.DEVICE_CODE);
  switch (app.type) {
    case ApplicationType.WEB:
      return [express, nextJs, spring, aspNet, golang, django, oauth2Proxy].map((make) => make(facts));
    case ApplicationType.SINGLE_PAGE:
      return [oidcClientTs(facts)];
    case ApplicationType.NATIVE:
      return [...(code ? [android(facts), ios(facts)] : []), ...(device ? [deviceFlow(facts)] : [])];
    case ApplicationType.API:
      return [introspection(facts), jose(facts), goResource(facts)];
    default:
      return [];
  }
}

const express = (f: Facts): Snippet => ({
  id: 'express',
  title: 'Express, openid-client 6',
  text: `// npm install express express-session openid-client
// CLIENT_SECRET=… SESSION_SECRET=… node server.mjs
import express from 'express';
import session from 'express-session';
import * as oidc from 'openid-client';

const redirectUri = new URL(${q(f.redirect)});
const config = await oidc.discovery(
  new URL(${q(f.issuer)}), ${q(f.id)}, {},
  oidc.${f.post ? 'ClientSecretPost' : 'ClientSecretBasic'}(process.env.CLIENT_SECRET),${f.insecure ? '\n  { execute: [oidc.allowInsecureRequests] }, // only while the issuer has no https' : ''}
);

const app = express();
app.set('trust proxy', 1);
app.use(session({
  secret: process.env.SESSION_SECRET, resave: false, saveUninitialized: false,
  cookie: { httpOnly: true, sameSite: 'lax', secure: redirectUri.protocol === 'https:' },
}));

app.get('/sign-in', async (req, res) => {
  const verifier = oidc.randomPKCECodeVerifier();
  const [state, nonce] = [oidc.randomState(), oidc.randomNonce()];
  req.session.attempt = { verifier, state, nonce };
  res.redirect(oidc.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri.href, scope: ${q(f.scope)}, state, nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  }).href);
});

app.get(${q(f.path)}, async (req, res, next) => {
  const { verifier, state, nonce } = req.session.attempt ?? {};
  const tokens = await oidc.authorizationCodeGrant(config, new URL(req.originalUrl, redirectUri), {
    pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true,
  });
  req.session.regenerate((error) => {
    if (error) return next(error);
    req.session.person = tokens.claims(); // sub identifies the person
    res.redirect('/');
  });
});

app.get('/', (req, res) => res.json(req.session.person ?? null));
app.listen(${new URL(f.origin).port || '3000'});
`,
});

const nextJs = (f: Facts): Snippet => ({
  id: 'next',
  title: 'Next.js, Auth.js 5',
  redirect: `${f.origin}/api/auth/callback/signet`,
  text: `// npm install next-auth@beta
// .env.local: AUTH_SECRET (npx auth secret), CLIENT_SECRET

// auth.ts
import NextAuth from 'next-auth';

export const { handlers, auth, signIn, signOut } = NextAuth({
  providers: [
    {
      id: 'signet',
      name: 'Signet',
      type: 'oidc',
      issuer: ${q(f.issuer)},
      clientId: ${q(f.id)},
      clientSecret: process.env.CLIENT_SECRET,
      client: { token_endpoint_auth_method: '${f.post ? 'client_secret_post' : 'client_secret_basic'}' },
      authorization: { params: { scope: ${q(f.scope)} } },
      checks: ['pkce', 'state', 'nonce'],${f.app.idTokenClaims === IDTokenClaims.ID_TOKEN_CLAIMS_SCOPES ? '' : '\n      idToken: false, // names and addresses are in the user info'}
    },
  ],
});

// app/api/auth/[...nextauth]/route.ts
import { handlers } from '@/auth';
export const { GET, POST } = handlers;
`,
});

const spring = (f: Facts): Snippet => ({
  id: 'spring',
  title: 'Spring Boot',
  redirect: `${f.origin}/login/oauth2/code/signet`,
  text: `# Dependency: org.springframework.boot:spring-boot-starter-oauth2-client
# application.yml
spring:
  security:
    oauth2:
      client:
        registration:
          signet:
            client-id: ${q(f.id)}
            client-secret: \${CLIENT_SECRET}
            client-authentication-method: ${f.post ? 'client_secret_post' : 'client_secret_basic'}
            scope: ${f.scope.replaceAll(' ', ', ')}
        provider:
          signet:
            issuer-uri: ${q(f.issuer)}
            user-name-attribute: sub
${
  f.app.signingAlgorithm === SigningAlgorithm.RS256
    ? ''
    : `
// Spring expects RS256 unless it is told otherwise. In a @Configuration class:
@Bean
JwtDecoderFactory<ClientRegistration> idTokenDecoderFactory() {
  var factory = new OidcIdTokenDecoderFactory();
  factory.setJwsAlgorithmResolver(registration -> SignatureAlgorithm.ES256);
  return factory;
}
`
}`,
});

const aspNet = (f: Facts): Snippet => ({
  id: 'aspnet',
  title: 'ASP.NET Core',
  sends: AuthMethod.CLIENT_SECRET_POST,
  text: `// dotnet add package Microsoft.AspNetCore.Authentication.OpenIdConnect
// Program.cs
using Microsoft.AspNetCore.Authentication.Cookies;
using Microsoft.AspNetCore.Authentication.OpenIdConnect;

var builder = WebApplication.CreateBuilder(args);
builder.Services.AddAuthorization();
builder.Services.AddAuthentication(options =>
{
    options.DefaultScheme = CookieAuthenticationDefaults.AuthenticationScheme;
    options.DefaultChallengeScheme = OpenIdConnectDefaults.AuthenticationScheme;
}).AddCookie().AddOpenIdConnect(options =>
{
    options.Authority = ${q(f.issuer)};
    options.ClientId = ${q(f.id)};
    options.ClientSecret = builder.Configuration["CLIENT_SECRET"];
    options.CallbackPath = ${q(f.path)};
    options.ResponseType = "code";
    options.ResponseMode = "query";
    options.Scope.Clear();
    foreach (var scope in ${q(f.scope)}.Split(' ')) options.Scope.Add(scope);
    options.MapInboundClaims = false;
    options.TokenValidationParameters.NameClaimType = "name";
    options.GetClaimsFromUserInfoEndpoint = true;${f.insecure ? '\n    options.RequireHttpsMetadata = false; // only while the issuer has no https' : ''}
});

var app = builder.Build();
app.UseAuthentication();
app.UseAuthorization();
app.MapGet("/", (HttpContext context) => $"Hello {context.User.Identity?.Name}").RequireAuthorization();
app.Run();
`,
});

const golang = (f: Facts): Snippet => ({
  id: 'go',
  title: 'Go, golang.org/x/oauth2, go-oidc',
  text: `// go get github.com/coreos/go-oidc/v3 golang.org/x/oauth2
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

func main() {
	provider, err := oidc.NewProvider(context.Background(), ${q(f.issuer)})
	if err != nil {
		log.Fatal(err)
	}
	config := oauth2.Config{
		ClientID: ${q(f.id)}, ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint: provider.Endpoint(), RedirectURL: ${q(f.redirect)},
		Scopes: []string{${f.scope.split(' ').map(q).join(', ')}},
	}
	config.Endpoint.AuthStyle = oauth2.${f.post ? 'AuthStyleInParams' : 'AuthStyleInHeader'}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})
	set := func(w http.ResponseWriter, name, value string) {
		http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: 600, HttpOnly: true, Secure: ${f.origin.startsWith('https:')}, SameSite: http.SameSiteLaxMode})
	}
	get := func(r *http.Request, name string) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}

	http.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		state, nonce, pkce := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
		set(w, "state", state)
		set(w, "nonce", nonce)
		set(w, "pkce", pkce)
		http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(pkce)), http.StatusFound)
	})
	http.HandleFunc(${q(`GET ${f.path === '/' ? '/{$}' : f.path}`)}, func(w http.ResponseWriter, r *http.Request) {
		if state := get(r, "state"); state == "" || r.FormValue("state") != state {
			http.Error(w, "another browser, or too late", http.StatusBadRequest)
			return
		}
		tokens, err := config.Exchange(r.Context(), r.FormValue("code"), oauth2.VerifierOption(get(r, "pkce")))
		if err != nil {
			http.Error(w, "no tokens", http.StatusBadRequest)
			return
		}
		raw, _ := tokens.Extra("id_token").(string)
		person, err := verifier.Verify(r.Context(), raw)
		if err != nil || person.Nonce != get(r, "nonce") {
			http.Error(w, "invalid ID token", http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, "Hello", person.Subject) // begin a session of your own here
	})
	log.Fatal(http.ListenAndServe(${q(`localhost:${new URL(f.origin).port || '3000'}`)}, nil))
}
`,
});

const django = (f: Facts): Snippet => ({
  id: 'django',
  title: 'Django, Authlib',
  text: `# pip install django authlib requests

# settings.py
import os

AUTHLIB_OAUTH_CLIENTS = {
    "signet": {
        "client_id": ${q(f.id)},
        "client_secret": os.environ["CLIENT_SECRET"],
    },
}

# views.py
from authlib.integrations.django_client import OAuth
from django.shortcuts import redirect

oauth = OAuth()
oauth.register(
    "signet",
    server_metadata_url=${q(f.issuer + discoveryPath)},
    client_kwargs={
        "scope": ${q(f.scope)},
        "code_challenge_method": "S256",
        "token_endpoint_auth_method": "${f.post ? 'client_secret_post' : 'client_secret_basic'}",
    },
)

def sign_in(request):
    return oauth.signet.authorize_redirect(request, ${q(f.redirect)})

def callback(request):
    token = oauth.signet.authorize_access_token(request)
    request.session.cycle_key()
    request.session["person"] = dict(token["userinfo"])  # sub identifies the person
    return redirect("/")

# urls.py
from django.urls import path
from . import views

urlpatterns = [path("sign-in", views.sign_in), path(${q(f.path.slice(1))}, views.callback)]
`,
});

const oauth2Proxy = (f: Facts): Snippet => {
  const refresh = f.app.grantTypes.includes(GrantType.REFRESH_TOKEN);
  return {
    id: 'oauth2-proxy',
    title: 'oauth2-proxy',
    redirect: `${f.origin}/oauth2/callback`,
    text: `export OAUTH2_PROXY_CLIENT_SECRET="$CLIENT_SECRET"
export OAUTH2_PROXY_COOKIE_SECRET="$(openssl rand -base64 32 | tr -- '+/' '-_')"
oauth2-proxy --provider=oidc \\
  --oidc-issuer-url=${sh(f.issuer)} \\
  --client-id=${sh(f.id)} \\
  --redirect-url=${sh(`${f.origin}/oauth2/callback`)} \\
  --scope=${sh(f.scope)}${refresh ? ' --cookie-refresh=30m' : ''} \\
  --code-challenge-method=S256 \\
  --email-domain='*' --upstream=http://127.0.0.1:8081/${
    f.origin.startsWith('http:')
      ? ` \\
  --cookie-secure=false --http-address=${sh(new URL(f.origin).host)}`
      : ''
  }
`,
  };
};

const oidcClientTs = (f: Facts): Snippet => ({
  id: 'oidc-client-ts',
  title: 'oidc-client-ts',
  text: `// npm install oidc-client-ts
import { InMemoryWebStorage, UserManager, WebStorageStateStore } from 'oidc-client-ts';

const manager = new UserManager({
  authority: ${q(f.issuer)},
  client_id: ${q(f.id)},
  redirect_uri: ${q(f.redirect)},${f.app.postLogoutUris[0] ? `\n  post_logout_redirect_uri: ${q(f.app.postLogoutUris[0])},` : ''}
  scope: ${q(f.scope)},
  userStore: new WebStorageStateStore({ store: new InMemoryWebStorage() }), // no token in localStorage
});

/** The person who is signed in. Otherwise the browser goes to the sign-in. */
export async function signedIn() {
  if (new URLSearchParams(location.search).has('state')) {
    await manager.signinCallback();
    history.replaceState(null, '', location.pathname);
  }
  const user = await manager.getUser();
  if (!user) await manager.signinRedirect();
  return user; // user.profile.sub identifies the person, user.access_token is for your API
}

export const signOut = () => manager.signoutRedirect();
`,
});

const android = (f: Facts): Snippet => ({
  id: 'appauth-android',
  title: 'Android, AppAuth',
  text: `// build.gradle.kts
//   implementation("net.openid:appauth:0.11.1")
//   android.defaultConfig.manifestPlaceholders["appAuthRedirectScheme"] = ${kotlin(f.redirect.split(':')[0] ?? '')}
private val service by lazy { AuthorizationService(this) }

private val answer = registerForActivityResult(ActivityResultContracts.StartActivityForResult()) { result ->
    val response = result.data?.let { AuthorizationResponse.fromIntent(it) } ?: return@registerForActivityResult
    service.performTokenRequest(response.createTokenExchangeRequest()) { tokens, error ->
        Log.i("sign-in", if (tokens != null) "signed in" else "failed: $error")
    }
}

fun signIn() = AuthorizationServiceConfiguration.fetchFromIssuer(Uri.parse(${kotlin(f.issuer)})) { configuration, error ->
    if (configuration == null) {
        Log.e("sign-in", "no configuration", error)
        return@fetchFromIssuer
    }
    val request = AuthorizationRequest.Builder(
        configuration, ${kotlin(f.id)}, ResponseTypeValues.CODE, Uri.parse(${kotlin(f.redirect)}),
    ).setScope(${kotlin(f.scope)}).build() // with PKCE, state and nonce
    answer.launch(service.getAuthorizationRequestIntent(request))
}
`,
});

const ios = (f: Facts): Snippet => ({
  id: 'appauth-ios',
  title: 'iOS, macOS, AppAuth',
  text: `// Swift package: https://github.com/openid/AppAuth-iOS
import AppAuth

var flow: OIDExternalUserAgentSession?
var state: OIDAuthState?

func signIn() {
    OIDAuthorizationService.discoverConfiguration(forIssuer: URL(string: ${q(f.issuer)})!) { configuration, error in
        guard let configuration else { return print("no configuration", error as Any) }
        let request = OIDAuthorizationRequest(
            configuration: configuration, clientId: ${q(f.id)},
            scopes: [${f.scope.split(' ').map(q).join(', ')}],
            redirectURL: URL(string: ${q(f.redirect)})!,
            responseType: OIDResponseTypeCode, additionalParameters: nil) // with PKCE, state and nonce
        self.flow = OIDAuthState.authState(byPresenting: request, presenting: self) { state, error in
            self.state = state // state.performAction { accessToken, idToken, error in … }
        }
    }
}
`,
});

const deviceFlow = (f: Facts): Snippet => ({
  id: 'device',
  title: 'curl, device flow',
  text: `ANSWER=$(curl -s ${sh(f.server.device_authorization_endpoint)} -d client_id=${sh(f.id)} --data-urlencode ${sh(`scope=${f.scope}`)})
echo "Open $(echo "$ANSWER" | jq -r .verification_uri_complete) and compare the code: $(echo "$ANSWER" | jq -r .user_code)"

INTERVAL=$(echo "$ANSWER" | jq -r '.interval // 5')
while sleep "$INTERVAL"; do
  TOKENS=$(curl -s ${sh(f.server.token_endpoint)} -d client_id=${sh(f.id)} \\
    -d grant_type=urn:ietf:params:oauth:grant-type:device_code -d device_code="$(echo "$ANSWER" | jq -r .device_code)")
  case $(echo "$TOKENS" | jq -r '.error // "none"') in
    authorization_pending) ;;
    slow_down) INTERVAL=$((INTERVAL + 5)) ;;
    *) break ;;
  esac
done
curl -s ${sh(f.server.userinfo_endpoint)} -H "authorization: Bearer $(echo "$TOKENS" | jq -r .access_token)"
`,
});

const introspection = (f: Facts): Snippet => ({
  id: 'introspection',
  title: 'curl, introspection',
  text: `# Clients request the scope urn:signet:app:${f.id}:aud. Refuse everything unless "active" is true.
curl -s ${sh(f.server.introspection_endpoint)} ${f.post ? `-d client_id=${sh(f.id)} --data-urlencode "client_secret=$CLIENT_SECRET"` : `-u ${sh(f.id)}:"$CLIENT_SECRET"`} --data-urlencode "token=$TOKEN"
`,
});

const jose = (f: Facts): Snippet => ({
  id: 'jose',
  title: 'Node.js, jose (JWT)',
  text: `// npm install jose
// Clients request the scope urn:signet:app:${f.id}:aud, and their access tokens are JWTs (a setting of the client).
import { createRemoteJWKSet, jwtVerify } from 'jose';

const keys = createRemoteJWKSet(new URL(${q(f.server.jwks_uri)}));

/** The claims of a valid access token; throws otherwise. */
export async function check(authorization) {
  const token = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1] ?? '';
  const { payload } = await jwtVerify(token, keys, {
    issuer: ${q(f.issuer)}, audience: ${q(f.id)}, typ: 'at+jwt', algorithms: ['ES256', 'RS256'],
  });
  return payload; // payload.sub identifies the person, payload.client_id the client
}
`,
});

const goResource = (f: Facts): Snippet => ({
  id: 'go-jwt',
  title: 'Go, go-oidc (JWT)',
  text: `// go get github.com/coreos/go-oidc/v3
// Clients request the scope urn:signet:app:${f.id}:aud, and their access tokens are JWTs (a setting of the client).
package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Protect lets only requests with a valid access token through.
func Protect(ctx context.Context, next http.Handler) (http.Handler, error) {
	provider, err := oidc.NewProvider(ctx, ${q(f.issuer)})
	if err != nil {
		return nil, err
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: ${q(f.id)}}) // signature, issuer, audience, time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, err := verifier.Verify(r.Context(), raw); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}
`,
});
