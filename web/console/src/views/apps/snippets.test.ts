import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it, test } from 'vitest';
import {
  ApplicationSchema,
  ApplicationType,
  AuthMethod,
  GrantType,
  IDTokenClaims,
  SigningAlgorithm,
} from '../../gen/signet/v1/application_pb';
import type { Discovery } from '../../lib/discovery';
import { snippetsFor } from './snippets';

const at = (issuer: string): Discovery => ({
  issuer,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  userinfo_endpoint: `${issuer}/oauth/userinfo`,
  jwks_uri: `${issuer}/oauth/keys`,
  end_session_endpoint: `${issuer}/oauth/end_session`,
  introspection_endpoint: `${issuer}/oauth/introspect`,
  revocation_endpoint: `${issuer}/oauth/revoke`,
  device_authorization_endpoint: `${issuer}/oauth/device`,
  scopes_supported: ['openid'],
});

type Settings = MessageInitShape<typeof ApplicationSchema>;
const web: Settings = {
  appId: 'app_1',
  type: ApplicationType.WEB,
  authMethod: AuthMethod.CLIENT_SECRET_BASIC,
  grantTypes: [GrantType.AUTHORIZATION_CODE],
  redirectUris: ['https://shop.test:8443/sign-in/done'],
};
const make = (settings: Settings, issuer = 'https://id.test') =>
  snippetsFor(create(ApplicationSchema, settings), at(issuer));
const one = (id: string, settings: Settings, issuer?: string) => {
  const found = make(settings, issuer).find((s) => s.id === id);
  if (!found) throw new Error(`no snippet ${id}`);
  return found;
};
const every: readonly Settings[] = [
  web,
  { ...web, type: ApplicationType.SINGLE_PAGE, authMethod: AuthMethod.NONE },
  { ...web, type: ApplicationType.NATIVE, grantTypes: [GrantType.AUTHORIZATION_CODE, GrantType.DEVICE_CODE] },
  { ...web, type: ApplicationType.API, redirectUris: [] },
];

test.for<[string, Settings, string[]]>([
  ['web', web, ['express', 'next', 'spring', 'aspnet', 'go', 'django', 'oauth2-proxy']],
  ['single page', { ...web, type: ApplicationType.SINGLE_PAGE }, ['oidc-client-ts']],
  ['native', { ...web, type: ApplicationType.NATIVE }, ['appauth-android', 'appauth-ios']],
  ['device', { ...web, type: ApplicationType.NATIVE, grantTypes: [GrantType.DEVICE_CODE] }, ['device']],
  ['native without a way', { ...web, type: ApplicationType.NATIVE, grantTypes: [] }, []],
  ['API', { ...web, type: ApplicationType.API }, ['introspection', 'jose', 'go-jwt']],
  ['a type of a newer server', { ...web, type: 99 as ApplicationType }, []],
])('an application of the type %s gets %j', ([, settings, ids]) => {
  expect(make(settings).map((s) => s.id)).toEqual(ids);
});

test('every snippet names the application and where the server is, and nothing is left unfilled', () => {
  for (const settings of every) {
    for (const { id, title, text } of make(settings)) {
      expect(text, id).toContain('app_1');
      expect(text, id).toContain('https://id.test');
      expect(text, id).not.toMatch(/undefined|\[object|NaN/);
      expect(text, id).toMatch(/[^\n]\n$/);
      expect(title).not.toBe('');
    }
  }
});

test('a snippet tells the redirect address that its library insists on', () => {
  expect(one('next', web).redirect).toBe('https://shop.test:8443/api/auth/callback/signet');
  expect(one('spring', web).redirect).toBe('https://shop.test:8443/login/oauth2/code/signet');
  expect(one('oauth2-proxy', web).redirect).toBe('https://shop.test:8443/oauth2/callback');
  expect(one('express', web).redirect).toBeUndefined();
  expect(one('express', web).text).toContain('app.get("/sign-in/done"');
  expect(one('express', web).text).toContain('app.listen(8443)');
});

test.for<[string, string[]]>([
  ['no redirect address', []],
  ['a broken one', ['not an address']],
  ['one of a scheme of its own', ['com.shop.app:/done']],
])('with %s the examples of a web application stand for localhost', ([, redirectUris]) => {
  const { text } = one('express', { ...web, redirectUris });
  expect(text).toContain('app.get("/callback"');
  expect(text).toContain('app.listen(3000)');
});

describe('how the secret is sent', () => {
  const post = { ...web, authMethod: AuthMethod.CLIENT_SECRET_POST };
  test.for([
    ['express', 'ClientSecretBasic', 'ClientSecretPost'],
    ['next', 'client_secret_basic', 'client_secret_post'],
    ['spring', 'client_secret_basic', 'client_secret_post'],
    ['go', 'AuthStyleInHeader', 'AuthStyleInParams'],
    ['django', 'client_secret_basic', 'client_secret_post'],
  ] as const)('%s', ([id, header, body]) => {
    expect(one(id, web).text).toContain(header);
    expect(one(id, web).text).not.toContain(body);
    expect(one(id, post).text).toContain(body);
    expect(one(id, post).text).not.toContain(header);
  });

  it('follows the library where the library has one way', () => {
    expect(one('aspnet', web).sends).toBe(AuthMethod.CLIENT_SECRET_POST);
  });

  it('follows the setting for introspection', () => {
    const api = { ...web, type: ApplicationType.API };
    expect(one('introspection', api).text).toContain('-u app_1:"$CLIENT_SECRET"');
    expect(one('introspection', { ...post, type: ApplicationType.API }).text).toContain('-d client_id=app_1');
  });
});

test('an issuer without https is told to the libraries that want to know', () => {
  for (const [id, said] of [
    ['express', 'allowInsecureRequests'],
    ['aspnet', 'RequireHttpsMetadata = false'],
  ] as const) {
    expect(one(id, web, 'http://localhost:8080').text).toContain(said);
    expect(one(id, web).text).not.toContain(said);
  }
  const local = { ...web, redirectUris: ['http://localhost:3000/callback'] };
  expect(one('oauth2-proxy', local).text).toContain('--cookie-secure=false --http-address=localhost:3000');
  expect(one('oauth2-proxy', web).text).not.toContain('--cookie-secure');
});

test('refresh tokens are asked for if they may be used', () => {
  const refresh = { ...web, grantTypes: [GrantType.AUTHORIZATION_CODE, GrantType.REFRESH_TOKEN] };
  for (const { text } of make(web)) expect(text).not.toContain('offline_access');
  for (const { id, text } of make(refresh)) expect(text, id).toContain('offline_access');
  expect(one('oauth2-proxy', refresh).text).toContain('--cookie-refresh');
});

test('the settings of tokens are told to the libraries that expect others', () => {
  expect(one('spring', { ...web, signingAlgorithm: SigningAlgorithm.RS256 }).text).not.toContain('ES256');
  expect(one('spring', { ...web, signingAlgorithm: SigningAlgorithm.ES256 }).text).toContain('ES256');
  const claims = { ...web, idTokenClaims: IDTokenClaims.ID_TOKEN_CLAIMS_SCOPES };
  expect(one('next', claims).text).not.toContain('idToken: false');
  expect(one('next', web).text).toContain('idToken: false');
});

describe('quotes', () => {
  // Whatever an application is set to must stay a string in the snippet.
  const hostile = { ...web, redirectUris: ['https://shop.test/"; $(rm -rf ~) \'`\\${x}'] };

  it('keep an address together in code', () => {
    const literal = JSON.stringify(hostile.redirectUris?.[0]);
    expect(one('express', hostile).text).toContain(`new URL(${literal})`);
    expect(one('go', hostile).text).toContain(`RedirectURL: ${literal}`);
    expect(one('django', hostile).text).toContain(`authorize_redirect(request, ${literal})`);
  });

  it('escape what Kotlin would fill in', () => {
    const { text } = one('appauth-android', { ...hostile, type: ApplicationType.NATIVE });
    expect(text).toContain('\\${x}');
    expect(text).not.toMatch(/[^\\]\$\{x\}/);
  });

  it('make one word for a shell', () => {
    const { text } = one('introspection', { ...web, type: ApplicationType.API }, "https://id.test/it's $(me)");
    expect(text).toContain(`'https://id.test/it'\\''s $(me)/oauth/introspect'`);
  });
});
