// What is known of common providers: which form adds them, and what their own pages call things.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import {
  IdentityProviderPreset,
  IdentityProviderType,
  type IdentityProvider,
} from '../../gen/signet/v1/identity_provider_pb';
import { holds } from '../../lib/access.svelte';
import { at, put, type Field } from '../../lib/form/fields';

export const presets = ['google', 'microsoft', 'apple', 'gitlab', 'github', 'oidc', 'oauth', 'jwt'] as const;
export type Preset = (typeof presets)[number];

const named: Partial<Record<Preset, IdentityProviderPreset>> = {
  google: IdentityProviderPreset.GOOGLE,
  microsoft: IdentityProviderPreset.MICROSOFT,
  apple: IdentityProviderPreset.APPLE,
  gitlab: IdentityProviderPreset.GITLAB,
  github: IdentityProviderPreset.GITHUB,
};

/** The preset of a provider. */
export function presetOf(idp: IdentityProvider): Preset {
  const config = idp.config;
  if (config.case === 'jwt' || config.case === undefined) return 'jwt';
  const preset = presets.find((p) => named[p] !== undefined && named[p] === config.value.preset);
  return preset ?? config.case;
}

/** The protocol of a provider, as the definition names it. */
export function typeOf(idp: IdentityProvider): IdentityProviderType {
  return { jwt: IdentityProviderType.JWT, oidc: IdentityProviderType.OIDC, oauth: IdentityProviderType.OAUTH }[
    idp.config.case ?? 'jwt'
  ];
}

/** The protocol that a preset speaks. */
export function protocolOf(preset: Preset): 'oidc' | 'oauth' | 'jwt' {
  return preset === 'jwt' ? 'jwt' : preset === 'github' || preset === 'oauth' ? 'oauth' : 'oidc';
}

/** The address of the guide about a preset, in the documentation that the server shows. */
export function guideOf(preset: Preset): string {
  const page = preset === 'oidc' ? 'openid-connect' : preset;
  return preset === 'oauth' ? '/docs/guides/identity-providers' : `/docs/guides/providers/${page}`;
}

/** Our address that a provider sends people back to. */
export function callbackOf(issuer: string, idpId: string): string {
  return `${issuer}/login/idp/${encodeURIComponent(idpId)}/callback`;
}

const endpoints = ['authorizationEndpoint', 'tokenEndpoint', 'userEndpoint', 'emailsEndpoint'];

/** The form that adds a provider of a preset. */
export function addingForm(preset: Preset, org: string): { fixed: JsonObject; initial: JsonObject; fields: Field[] } {
  const name: Field = { path: 'name' };
  const client: Field[] = [{ path: 'clientId', hint: 'hint.clientIdLater' }, { path: 'clientSecret' }];
  const last: Field[] = [{ path: 'autoRegister' }, ...(holds('policy.write', org) ? [{ path: 'linkByEmail' }] : [])];
  const fixed: JsonObject = {
    draft: true, // people see it once a check has passed
    ...(named[preset] === undefined ? {} : { preset: `IDENTITY_PROVIDER_PRESET_${preset.toUpperCase()}` }),
  };
  switch (preset) {
    case 'google':
      return {
        fixed,
        initial: { name: 'Google' },
        fields: [name, ...client, { path: 'tenants', hint: 'hint.googleTenants' }, ...last],
      };
    case 'microsoft':
      return {
        fixed,
        initial: { name: 'Microsoft' },
        fields: [name, ...client, { path: 'tenants', hint: 'hint.microsoftTenants', required: true }, ...last],
      };
    case 'apple':
      return {
        fixed,
        initial: { name: 'Apple' },
        fields: [
          name,
          { path: 'clientId', hint: 'providers.appleClientId' },
          { path: 'teamId', required: true },
          { path: 'keyId', required: true },
          {
            path: 'clientSecret',
            kind: 'multiline',
            hint: 'hint.appleSecret',
            label: 'providers.applePrivateKey',
            required: true,
          },
          { path: 'autoRegister' },
        ],
      };
    case 'gitlab':
      return {
        fixed,
        initial: { name: 'GitLab' },
        fields: [name, { path: 'issuer', hint: 'hint.gitlabIssuer' }, ...client, ...last],
      };
    case 'github':
      return {
        fixed,
        initial: { name: 'GitHub' },
        fields: [
          name,
          ...client,
          { path: 'autoRegister' },
          ...endpoints.map((path) => ({ path, hint: 'hint.githubEndpoints' })),
        ],
      };
    case 'oidc':
      return {
        fixed,
        initial: {},
        fields: [
          name,
          { path: 'issuer', required: true, hint: 'hint.issuerDiscovery' },
          ...client,
          { path: 'clientAuth' },
          { path: 'scopes' },
          { path: 'parameters', kind: 'lines' },
          ...last,
        ],
      };
    case 'oauth':
      return {
        fixed,
        initial: {},
        fields: [
          name,
          ...endpoints.map((path) => ({ path, required: path !== 'emailsEndpoint' })),
          ...client,
          { path: 'clientAuth' },
          { path: 'scopes' },
          { path: 'subject' },
          { path: 'parameters', kind: 'lines' },
          ...last,
        ],
      };
    case 'jwt':
      return {
        fixed,
        initial: {},
        fields: [
          name,
          { path: 'jwtEndpoint' },
          { path: 'issuer', hint: 'providers.jwtIssuer' },
          { path: 'keysEndpoint' },
          { path: 'headerName' },
          { path: 'audience', hint: 'hint.jwtAudience' },
          ...last,
        ],
      };
  }
}

/** Additional parameters as lines of a form, such as `hd=example.com`. */
export function asLines(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value)
    ? value.map((p) =>
        p !== null && typeof p === 'object' && !Array.isArray(p)
          ? `${String(p['name'] ?? '')}=${String(p['value'] ?? '')}`
          : p,
      )
    : [];
}

/** The request with additional parameters as the API expects them. */
export function withParametersOf(request: JsonObject, path: string): JsonObject {
  const lines = at(request, path);
  if (!Array.isArray(lines)) return request;
  return put(
    request,
    path,
    lines.map((line) => {
      const [name = '', ...value] = String(line).split('=');
      return { name: name.trim(), value: value.join('=').trim() };
    }),
  );
}
