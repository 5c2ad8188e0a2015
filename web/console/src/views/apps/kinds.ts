// The kinds of applications that people think of, and what each of them needs to be told at first.
import type { JsonObject } from '@bufbuild/protobuf';
import { ApplicationType, AuthMethodSchema, GrantTypeSchema } from '../../gen/signet/v1/application_pb';
import { enumOptions, type Field } from '../../lib/form/fields';

export const kinds = ['web', 'spa', 'native', 'device', 'api'] as const;
export type Kind = (typeof kinds)[number];

/** How an application with a secret or a key may authenticate. */
export const confidentialMethods = () => enumOptions(AuthMethodSchema).filter((o) => o.value !== 'AUTH_METHOD_NONE');

const redirects = { path: 'redirectUris', required: true } as const;
const grants = (...values: string[]) => enumOptions(GrantTypeSchema).filter((o) => values.includes(o.value));
const inBrowser = () => grants('GRANT_TYPE_AUTHORIZATION_CODE', 'GRANT_TYPE_REFRESH_TOKEN');
const code = 'GRANT_TYPE_AUTHORIZATION_CODE';
const refresh = 'GRANT_TYPE_REFRESH_TOKEN';
const device = 'GRANT_TYPE_DEVICE_CODE';

/** The form that adds an application of a kind: what is fixed, what it holds at first, and its fields. */
export function addingForm(kind: Kind): { fixed: JsonObject; initial: JsonObject; fields: readonly Field[] } {
  switch (kind) {
    case 'web':
      return {
        fixed: { type: 'APPLICATION_TYPE_WEB' },
        initial: { authMethod: 'AUTH_METHOD_CLIENT_SECRET_BASIC', grantTypes: [code] },
        fields: [
          { path: 'name' },
          redirects,
          { path: 'postLogoutUris' },
          { path: 'authMethod', options: confidentialMethods() },
          { path: 'grantTypes', options: inBrowser() },
        ],
      };
    case 'spa':
      return {
        fixed: { type: 'APPLICATION_TYPE_SINGLE_PAGE' },
        initial: { grantTypes: [code, refresh] },
        fields: [{ path: 'name' }, redirects, { path: 'postLogoutUris' }, { path: 'grantTypes', options: inBrowser() }],
      };
    case 'native':
      return {
        fixed: { type: 'APPLICATION_TYPE_NATIVE' },
        initial: { grantTypes: [code, refresh] },
        fields: [
          { path: 'name' },
          { ...redirects, hint: 'hint.nativeRedirectUris' },
          { path: 'postLogoutUris' },
          { path: 'grantTypes', options: grants(code, refresh, device) },
        ],
      };
    case 'device':
      return {
        fixed: { type: 'APPLICATION_TYPE_NATIVE' },
        initial: { grantTypes: [device, refresh] },
        fields: [{ path: 'name' }, { path: 'grantTypes', options: grants(device, refresh) }],
      };
    case 'api':
      return {
        fixed: { type: 'APPLICATION_TYPE_API' },
        initial: { authMethod: 'AUTH_METHOD_CLIENT_SECRET_BASIC' },
        fields: [{ path: 'name' }, { path: 'authMethod', options: confidentialMethods() }],
      };
  }
}

/** Whether applications of a type can have a secret or a key. */
export function confidential(type: ApplicationType): boolean {
  return type === ApplicationType.WEB || type === ApplicationType.API;
}

/** Whether people sign in to applications of a type. */
export function signsIn(type: ApplicationType): boolean {
  return type !== ApplicationType.API;
}
