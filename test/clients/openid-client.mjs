// Goes every way to tokens with openid-client, an OAuth library that has nothing to do with Signet. What it needs to know
// comes as JSON on standard input; it ends with a failure where anything is not as the library or this script expects.
//
// The browser's part is played by fetch: it keeps cookies, fills in the forms of the pages, and presses their first button.
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as oidc from 'openid-client';
import { Browser } from './browser.mjs';

const given = JSON.parse(readFileSync(0, 'utf8'));
const insecure = { execute: [oidc.allowInsecureRequests] }; // the server of the test has no certificate

const refused = (error) => (e) => e instanceof oidc.ResponseBodyError && e.error === error;

// signIn gets tokens by a code.
async function signIn(config, browser, scope) {
  const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()];
  const { address } = await browser.go(oidc.buildAuthorizationUrl(config, {
    redirect_uri: given.callback, scope, state, nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  }).href);
  assert.ok(address.startsWith(`${given.callback}?`), `the pages lead to ${address}`);
  return oidc.authorizationCodeGrant(config, new URL(address), {
    pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true, maxAge: 600,
  });
}

async function wholeWay(config) {
  const browser = new Browser(given.issuer, given.name, given.password);
  const first = await signIn(config, browser, 'openid profile email offline_access');
  assert.equal(first.claims().sub, given.userId);
  const person = await oidc.fetchUserInfo(config, first.access_token, given.userId);
  assert.equal(person.name, 'Jo Doe');
  assert.equal(person.email_verified, true);

  const second = await oidc.refreshTokenGrant(config, first.refresh_token);
  assert.notEqual(second.refresh_token, first.refresh_token);
  assert.equal(second.claims().sub, given.userId);
  const seen = await oidc.tokenIntrospection(config, second.access_token);
  assert.deepEqual([seen.active, seen.sub], [true, given.userId]);

  await oidc.tokenRevocation(config, second.refresh_token);
  assert.equal((await oidc.tokenIntrospection(config, second.access_token)).active, false);
  await assert.rejects(oidc.refreshTokenGrant(config, second.refresh_token), refused('invalid_grant'));
  await assert.rejects(oidc.fetchUserInfo(config, second.access_token, given.userId), (e) => e instanceof oidc.WWWAuthenticateChallengeError && e.status === 401);

  const third = await signIn(config, browser, 'openid'); // signed in already
  const { address } = await browser.go(oidc.buildEndSessionUrl(config, { id_token_hint: third.id_token, post_logout_redirect_uri: given.bye, state: 'x' }).href);
  assert.equal(address, `${given.bye}?state=x`);
  assert.equal((await oidc.tokenIntrospection(config, third.access_token)).active, false);
}

const server = new URL(given.issuer);

for (const [method, { id, secret }] of [[oidc.ClientSecretBasic, given.basic], [oidc.ClientSecretPost, given.post]]) {
  const config = await oidc.discovery(server, id, {}, method(secret), insecure);
  assert.ok(config.serverMetadata().supportsPKCE());
  await wholeWay(config);
}

const key = await webcrypto.subtle.importKey('pkcs8', Buffer.from(given.signs.key, 'base64'), { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']);
await wholeWay(await oidc.discovery(server, given.signs.id, {}, oidc.PrivateKeyJwt({ key, kid: given.signs.kid }), insecure));

const robot = await oidc.discovery(server, given.robot.id, {}, oidc.ClientSecretPost(given.robot.secret), insecure);
const own = await oidc.clientCredentialsGrant(robot, { scope: 'signet.self' });
const me = await oidc.fetchProtectedResource(robot, own.access_token, new URL('/v1/users/me', server), 'GET');
assert.equal(me.status, 200);
assert.equal((await me.json()).user.userId, given.robot.id);

const television = await oidc.discovery(server, given.device.id, {}, oidc.None(), insecure);
const shown = await oidc.initiateDeviceAuthorization(television, { scope: 'openid offline_access' });
const at = await new Browser(given.issuer, given.name, given.password).go(shown.verification_uri_complete);
assert.equal(at.status, 200);
const tokens = await oidc.pollDeviceAuthorizationGrant(television, { ...shown, interval: 1 });
assert.equal(tokens.claims().sub, given.userId);
await oidc.refreshTokenGrant(television, tokens.refresh_token);

console.log('every way was gone to its end');
