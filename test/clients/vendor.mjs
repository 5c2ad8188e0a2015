// A software vendor with two customers, as openid-client and a browser see it. What it needs to know comes as JSON on standard input: the issuer, another node
// (the same one where there is only one), and a token of an owner of the installation. The browser's part is played by fetch, as in openid-client.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as oidc from 'openid-client';
import { Browser } from './browser.mjs';

const given = JSON.parse(readFileSync(0, 'utf8'));
const password = 'correct horse battery staple';
const insecure = { execute: [oidc.allowInsecureRequests] }; // the server of the test has no certificate
const roles = 'urn:signet:app_roles';
const groups = 'urn:signet:groups';

// api calls Signet's own API; what is refused gives the error.
async function api(token, method, path, body) {
  const response = await fetch(given.issuer + path, {
    method, headers: { ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' }, body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  return response.ok ? answer : { refused: response.status, ...answer };
}

async function done(...call) {
  const answer = await api(...call);
  assert.equal(answer.refused, undefined, `${call[1]} ${call[2]}: ${JSON.stringify(answer)}`);
  return answer;
}

// organization sets one up, with an owner who is signed in to the API.
async function organization(name) {
  const domain = `${name}.test`;
  const { orgId, userId } = await done(given.token, 'POST', '/v1/orgs/_setup', {
    org: { name, domain },
    human: { userName: 'owner', profile: { firstName: 'Jo', lastName: name }, email: { email: `owner@${domain}`, isEmailVerified: true }, password },
  });
  const login = `owner@${domain}`;
  const { token } = await done('', 'POST', '/v1/sessions', { loginName: login, password });
  return { orgId, userId, login, token, browser: new Browser(given.issuer, login, password) };
}

// signIn gets tokens by a code; the person agrees to what the pages ask.
async function signIn(config, browser, scope) {
  const [verifier, state] = [oidc.randomPKCECodeVerifier(), oidc.randomState()];
  const { address, html } = await browser.go(oidc.buildAuthorizationUrl(config, {
    redirect_uri: given.callback, scope, state, code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  }).href);
  assert.ok(address.startsWith(`${given.callback}?`), `the pages lead to ${address}: ${html}`);
  return oidc.authorizationCodeGrant(config, new URL(address), { pkceCodeVerifier: verifier, expectedState: state, idTokenExpected: true });
}

const payload = (jwt) => JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url'));

const [vendor, one, two] = [await organization('vendor'), await organization('one'), await organization('two')];

// The vendor has a project with two roles and two applications: one that people use, and an API that checks its tokens.
const { projectId } = await done(vendor.token, 'POST', '/v1/projects', { name: 'Fieldbook' });
for (const key of ['admin', 'viewer']) await done(vendor.token, 'PUT', `/v1/projects/${projectId}/roles/${key}`, { name: key });
const web = await done(vendor.token, 'POST', '/v1/apps', {
  name: 'Fieldbook', type: 'APPLICATION_TYPE_WEB', redirectUris: [given.callback], tokenFormat: 'TOKEN_FORMAT_JWT',
  grantTypes: ['GRANT_TYPE_AUTHORIZATION_CODE', 'GRANT_TYPE_REFRESH_TOKEN'],
});
const server = await done(vendor.token, 'POST', '/v1/apps', { name: 'Fieldbook API', type: 'APPLICATION_TYPE_API' });
const stranger = await done(vendor.token, 'POST', '/v1/apps', { name: 'Another API', type: 'APPLICATION_TYPE_API' });
await done(vendor.token, 'PUT', `/v1/apps/${web.appId}/role_settings`, { projectId, rolesInTokens: true, groupsInTokens: true, roleRequired: true });
await done(vendor.token, 'PUT', `/v1/apps/${server.appId}/role_settings`, { projectId });

// It grants customer one the role viewer, and customer two both.
const grants = new Map();
for (const [customer, roleKeys] of [[one, ['viewer']], [two, ['admin', 'viewer']]]) {
  const { grantId } = await done(vendor.token, 'POST', `/v1/projects/${projectId}/grants`, { grantedOrgId: customer.orgId, roleKeys });
  grants.set(customer, grantId);
  await done(customer.token, 'POST', `/v1/granted_projects/${grantId}/_accept`, {});
}

// Their owners hand out what was granted, and no more.
await done(one.token, 'PUT', `/v1/users/${one.userId}/app_roles/${projectId}`, { roleKeys: ['viewer'] });
assert.ok((await api(one.token, 'PUT', `/v1/users/${one.userId}/app_roles/${projectId}`, { roleKeys: ['admin'] })).refused, 'more than was granted');
assert.ok((await api(one.token, 'PUT', `/v1/users/${two.userId}/app_roles/${projectId}`, { roleKeys: ['viewer'] })).refused, 'to people of another customer');
await done(two.token, 'PUT', `/v1/users/${two.userId}/app_roles/${projectId}`, { roleKeys: ['admin'] });
const { groupId } = await done(two.token, 'POST', '/v1/groups', { name: 'Accounting' });
await done(two.token, 'PUT', `/v1/groups/${groupId}/app_roles/${projectId}`, { roleKeys: ['viewer'] });
await done(two.token, 'PUT', `/v1/groups/${groupId}/members/${two.userId}`, {});

// Each person is told about under the organization in which the roles were given, wherever an application looks.
const config = await oidc.discovery(new URL(given.issuer), web.appId, {}, oidc.ClientSecretBasic(web.clientSecret), insecure);
const check = await oidc.discovery(new URL(given.issuer), server.appId, {}, oidc.ClientSecretBasic(server.clientSecret), insecure);
const outside = await oidc.discovery(new URL(given.issuer), stranger.appId, {}, oidc.ClientSecretBasic(stranger.clientSecret), insecure);
assert.ok(config.serverMetadata().claims_supported.includes(roles));
const scope = `openid offline_access urn:signet:app:${server.appId}:aud`;
for (const [customer, held, inGroups] of [[one, ['viewer'], {}], [two, ['admin', 'viewer'], { [two.orgId]: [groupId] }]]) {
  const tokens = (customer.tokens = await signIn(config, customer.browser, scope));
  for (const [where, claims] of [
    ['ID token', tokens.claims()], ['JWT', payload(tokens.access_token)], ['user info', await oidc.fetchUserInfo(config, tokens.access_token, customer.userId)],
    ['introspection', await oidc.tokenIntrospection(config, tokens.access_token)], ['introspection by the API', await oidc.tokenIntrospection(check, tokens.access_token)],
  ]) {
    assert.deepEqual(claims[roles], { [customer.orgId]: held }, where); // two's admin is nothing at one
    assert.deepEqual(claims[groups], inGroups, where);
  }
}
const foreign = await signIn(config, two.browser, `openid urn:signet:app:${stranger.appId}:aud`);
assert.equal((await oidc.tokenIntrospection(outside, foreign.access_token))[roles], undefined);
assert.equal(payload(foreign.access_token)[roles], undefined);

// What is taken away is gone on the other node at once.
const other = { [oidc.customFetch]: (address, options) => fetch(String(address).replace(given.issuer, given.other), options) };
Object.assign(config, other);
Object.assign(check, other);
await done(two.token, 'PUT', `/v1/users/${two.userId}/app_roles/${projectId}`, { roleKeys: [] });
assert.deepEqual((await oidc.tokenIntrospection(check, two.tokens.access_token))[roles], { [two.orgId]: ['viewer'] });
const refreshed = await oidc.refreshTokenGrant(config, two.tokens.refresh_token);
assert.deepEqual(refreshed.claims()[roles], { [two.orgId]: ['viewer'] });
assert.deepEqual(payload(refreshed.access_token)[roles], { [two.orgId]: ['viewer'] });

// Without a role nobody uses the application.
const refused = (error) => (e) => e instanceof oidc.ResponseBodyError && e.error === error;
const stopped = async (tokens, userId) => {
  assert.equal((await oidc.tokenIntrospection(check, tokens.access_token)).active, false);
  await assert.rejects(oidc.refreshTokenGrant(config, tokens.refresh_token), refused('invalid_grant'));
  await assert.rejects(oidc.fetchUserInfo(config, tokens.access_token, userId), (e) => e instanceof oidc.WWWAuthenticateChallengeError && e.status === 401);
};
await done(two.token, 'DELETE', `/v1/groups/${groupId}/members/${two.userId}`);
await stopped(refreshed, two.userId);
const { address } = await two.browser.go(oidc.buildAuthorizationUrl(config, { redirect_uri: given.callback, scope: 'openid', state: 'x' }).href);
assert.equal(new URL(address).searchParams.get('error'), 'access_denied', address); // the page's button leads back

// A grant that is withdrawn takes everything with it.
await done(vendor.token, 'DELETE', `/v1/projects/${projectId}/grants/${grants.get(one)}`);
await stopped(one.tokens, one.userId);

console.log('the vendor and the customers got what they should');
