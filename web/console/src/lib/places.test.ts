import { describe, expect, it } from 'vitest';
import { viewOf } from './places';

describe('the view of', () => {
  it.each([
    ['user', '/o/org_1/users/x', 'UserService/GetUser'],
    ['org', '/o/x', undefined],
    ['app', '/o/org_1/apps/x', 'ApplicationService/GetApplication'],
    ['idp', '/o/org_1/providers/x', 'IdentityProviderService/GetIdentityProvider'],
  ] as const)('%s', (kind, href, needs) => {
    expect(viewOf({ id: 'x', kind, name: 'X', org: 'org_1' })).toEqual({ href, needs });
  });
});
