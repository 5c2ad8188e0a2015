// Pushes authorization requests and binds tokens to a key with oauth4webapi, an OAuth library that has nothing to do with
// Signet. What it needs to know comes as JSON on standard input; it ends with a failure where anything is not as the
// library or this script expects. Each application demands what its name says: pushed requests, a key, or both.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as oauth from 'oauth4webapi';
import { Browser } from './browser.mjs';

const given = JSON.parse(readFileSync(0, 'utf8'));
const insecure = { [oauth.allowInsecureRequests]: true }; // the server of the test has no certificate
const issuer = new URL(given.issuer);
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure));

// withNonce asks, and once more where the server wants a nonce in the proof.
async function withNonce(ask) {
  try {
    return await ask();
  } catch (e) {
    if (!oauth.isDPoPNonceError(e)) throw e;
    return ask();
  }
}

async function wholeWay({ client, auth, pushes, DPoP }) {
  const browser = new Browser(given.issuer, given.name, given.password);
  const options = { ...insecure, DPoP };
  const [verifier, state, nonce] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState(), oauth.generateRandomNonce()];
  let parameters = {
    client_id: client.client_id, response_type: 'code', redirect_uri: given.callback, scope: 'openid email offline_access', state, nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  };
  if (pushes) {
    const pushed = await withNonce(async () => oauth.processPushedAuthorizationResponse(as, client,
      await oauth.pushedAuthorizationRequest(as, client, auth, parameters, options)));
    parameters = { client_id: client.client_id, request_uri: pushed.request_uri };
  }
  const address = new URL(as.authorization_endpoint);
  address.search = new URLSearchParams(parameters);
  const back = await browser.go(address.href);
  const answer = oauth.validateAuthResponse(as, client, new URL(back.address), state);
  const first = await withNonce(async () => oauth.processAuthorizationCodeResponse(as, client,
    await oauth.authorizationCodeGrantRequest(as, client, auth, answer, given.callback, verifier, options), { expectedNonce: nonce, requireIdToken: true }));
  assert.equal(first.token_type, DPoP ? 'dpop' : 'bearer');
  const person = await withNonce(async () => oauth.processUserInfoResponse(as, client, given.userId,
    await oauth.userInfoRequest(as, client, first.access_token, options)));
  assert.equal(person.email_verified, true);
  const second = await withNonce(async () => oauth.processRefreshTokenResponse(as, client,
    await oauth.refreshTokenGrantRequest(as, client, auth, first.refresh_token, options)));
  if (!DPoP) return;

  // A bound token is of no use to whoever has stolen it.
  const userinfo = new URL(as.userinfo_endpoint);
  const stolen = await fetch(userinfo, { headers: { authorization: `Bearer ${second.access_token}` } });
  assert.equal(stolen.status, 401);
  assert.match(stolen.headers.get('www-authenticate'), /^DPoP error="invalid_token"/);
  await assert.rejects(withNonce(async () => oauth.userInfoRequest(as, client, second.access_token,
    { ...insecure, DPoP: oauth.DPoP(client, await oauth.generateKeyPair('ES256')) }).then((r) => oauth.processUserInfoResponse(as, client, given.userId, r))),
  (e) => e instanceof oauth.WWWAuthenticateChallengeError);
  await assert.rejects(oauth.refreshTokenGrantRequest(as, client, auth, second.refresh_token, insecure)
    .then((r) => oauth.processRefreshTokenResponse(as, client, r)), oauth.ResponseBodyError);
}

for (const [name, { id, secret }] of Object.entries(given.apps)) {
  const client = { client_id: id };
  const auth = secret ? oauth.ClientSecretBasic(secret) : oauth.None();
  const keys = name.includes('key') ? ['ES256', 'PS256'] : [undefined];
  for (const algorithm of keys) {
    const DPoP = algorithm && oauth.DPoP(client, await oauth.generateKeyPair(algorithm));
    await wholeWay({ client, auth, pushes: name.includes('pushes'), DPoP });
  }
}

// A service user binds its tokens, too, and calls Signet's own API with them.
const robot = { client_id: given.robot.id };
const DPoP = oauth.DPoP(robot, await oauth.generateKeyPair('ES256'));
const options = { ...insecure, DPoP };
const own = await withNonce(async () => oauth.processClientCredentialsResponse(as, robot,
  await oauth.clientCredentialsGrantRequest(as, robot, oauth.ClientSecretPost(given.robot.secret), { scope: 'signet.self' }, options)));
for (let i = 0; i < 2; i++) {
  const me = await withNonce(() => oauth.protectedResourceRequest(own.access_token, 'GET', new URL('/v1/users/me', issuer), undefined, undefined, options));
  assert.equal((await me.json()).user.userId, given.robot.id);
}

console.log('every way was gone to its end');
