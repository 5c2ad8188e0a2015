import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it, test } from 'vitest';
import {
  AddApplicationRequestSchema,
  ApplicationTypeSchema,
  AuthMethodSchema,
} from '../../gen/signet/v1/application_pb';
import { CreateUserTokenRequestSchema } from '../../gen/signet/v1/credential_pb';
import { AddHumanUserRequestSchema, User_ProfileSchema } from '../../gen/signet/v1/user_pb';
import { loadTexts } from '../texts.svelte';
import {
  at,
  differences,
  enumName,
  enumOptions,
  enumText,
  known,
  put,
  requestOf,
  same,
  wrongIn,
  type Field,
  type KnownField,
} from './fields';

beforeAll(() => loadTexts('common', 'fields'));

describe('known', () => {
  test.for([
    [AddApplicationRequestSchema, 'name', { kind: 'text', repeated: false, rule: { required: true, max: 200 } }],
    [AddApplicationRequestSchema, 'type', { kind: 'select', rule: { required: true } }],
    [AddApplicationRequestSchema, 'redirectUris', { kind: 'lines', repeated: true, text: 'Redirect addresses' }],
    [AddApplicationRequestSchema, 'grantTypes', { kind: 'choices', repeated: true }],
    [AddApplicationRequestSchema, 'accessTokenSeconds', { kind: 'number', rule: { from: 0, to: 86400 } }],
    [AddHumanUserRequestSchema, 'password', { kind: 'secret', rule: { secret: true, max: 72 } }],
    [AddHumanUserRequestSchema, 'noChangeRequired', { kind: 'checkbox' }],
    [AddHumanUserRequestSchema, 'profile.firstName', { kind: 'text', text: 'First name' }],
    [CreateUserTokenRequestSchema, 'expirationDate', { kind: 'time' }],
  ] as const)('%s, %s', ([message, path, expected]) => {
    expect(known(message, { path })).toMatchObject(expected);
  });

  it('takes what the field says before what the definition says', () => {
    const field = known(AddApplicationRequestSchema, {
      path: 'name',
      kind: 'multiline',
      label: 'field.firstName',
      note: 'a note',
      required: false,
    });
    expect(field).toMatchObject({ kind: 'multiline', text: 'First name', note: 'a note', rule: { required: false } });
  });

  it('takes a hint if there is one', () => {
    expect(known(User_ProfileSchema, { path: 'preferredLanguage', hint: 'hint.languageTag' }).note).toMatch(/^A tag/);
    expect(known(User_ProfileSchema, { path: 'nickName', hint: 'hint.nowhere' }).note).toBe('');
  });

  test.for(['nowhere', 'profile.nowhere', '', 'Name'])('refuses the path %j', (path) => {
    expect(() => known(AddHumanUserRequestSchema, { path })).toThrow('has no field');
  });
});

describe('enums', () => {
  it('offers the values in words, without the unspecified one', () => {
    expect(enumOptions(ApplicationTypeSchema)).toContainEqual({
      value: 'APPLICATION_TYPE_WEB',
      text: 'Web application',
    });
    expect(enumOptions(AuthMethodSchema).map((o) => o.value)).not.toContain('AUTH_METHOD_UNSPECIFIED');
  });

  it('offers the unspecified value if there is a text for it', () => {
    expect(known(User_ProfileSchema, { path: 'gender' }).options.map((o) => o.text)).toContain('Prefer not to say');
  });

  it('shows what it does not know as it is', () => {
    expect(enumText('SOMETHING_NEW')).toBe('SOMETHING_NEW');
    expect(enumName(ApplicationTypeSchema, 1)).toMatch(/^APPLICATION_TYPE_/);
    expect(enumName(ApplicationTypeSchema, 99)).toBe('99');
  });
});

test.for<[JsonObject, string, unknown]>([
  [{ name: 'a' }, 'name', 'a'],
  [{ profile: { firstName: 'Ada' } }, 'profile.firstName', 'Ada'],
  [{ profile: {} }, 'profile.firstName', undefined],
  [{}, 'profile.firstName', undefined],
  [{ profile: null }, 'profile.firstName', undefined],
  [{ profile: 'text' }, 'profile.length', undefined],
  [{ uris: ['x'] }, 'uris.0', undefined],
  [{ uris: ['x'] }, 'uris', ['x']],
])('at %j, %s', ([value, path, expected]) => {
  expect(at(value, path)).toEqual(expected);
});

test.for<[JsonObject, string, string | undefined, JsonObject]>([
  [{}, 'name', 'a', { name: 'a' }],
  [{ name: 'a', type: 'b' }, 'name', undefined, { type: 'b' }],
  [{}, 'profile.firstName', 'Ada', { profile: { firstName: 'Ada' } }],
  [{ profile: { lastName: 'L' } }, 'profile.firstName', 'Ada', { profile: { lastName: 'L', firstName: 'Ada' } }],
  [{ profile: { firstName: 'Ada' } }, 'profile.firstName', undefined, { profile: {} }],
])('put into %j at %s', ([value, path, to, expected]) => {
  const before = structuredClone(value);
  expect(put(value, path, to)).toEqual(expected);
  expect(value).toEqual(before);
});

test.for<[JsonValue | undefined, JsonValue | undefined, boolean]>([
  [undefined, undefined, true],
  [undefined, '', true],
  [null, '', true],
  ['', [], true],
  [false, undefined, true],
  ['', false, true],
  [true, undefined, false],
  [0, undefined, false],
  [0, false, false],
  ['a', 'a', true],
  ['a', 'A', false],
  [['a', 'b'], ['a', 'b'], true],
  [['a', 'b'], ['b', 'a'], false],
  ['1', 1, false],
])('same(%j, %j) is %s', ([a, b, expected]) => {
  expect(same(a, b)).toBe(expected);
  expect(same(b, a)).toBe(expected);
});

describe('requestOf', () => {
  const fields: Field[] = [
    { path: 'name' },
    { path: 'redirectUris' },
    { path: 'profile.firstName' },
    { path: 'secret', when: (value) => value['type'] === 'web' },
  ];
  test.for<[string, JsonObject, JsonObject | undefined, JsonObject]>([
    ['leaves empty fields out', { name: '', redirectUris: [] }, undefined, { appId: '1' }],
    [
      'keeps what is given',
      { name: 'n', redirectUris: ['u'], profile: { firstName: 'Ada' } },
      undefined,
      { appId: '1', name: 'n', redirectUris: ['u'], profile: { firstName: 'Ada' } },
    ],
    ['leaves out what is not shown', { name: 'n', secret: 's' }, undefined, { appId: '1', name: 'n' }],
    ['leaves out what is no field', { name: 'n', other: 'o' }, undefined, { appId: '1', name: 'n' }],
    ['sends what is shown', { type: 'web', secret: 's' }, undefined, { appId: '1', secret: 's' }],
    [
      'sends a change alone',
      { name: 'n', redirectUris: ['u'] },
      { name: 'n' },
      { appId: '1', redirectUris: ['u'], updateMask: 'redirectUris' },
    ],
    ['names what was emptied', { name: '' }, { name: 'n' }, { appId: '1', updateMask: 'name' }],
    ['sends nothing without a change', { name: 'n' }, { name: 'n' }, { appId: '1', updateMask: '' }],
    [
      'names every change',
      { name: 'm', profile: { firstName: 'B' } },
      { name: 'n' },
      { appId: '1', name: 'm', profile: { firstName: 'B' }, updateMask: 'name,profile.firstName' },
    ],
  ])('%s', ([, value, before, expected]) => {
    expect(requestOf({ appId: '1' }, fields, value, before)).toEqual(expected);
  });

  it('does not change what is fixed', () => {
    const fixed = { profile: { lastName: 'L' } };
    requestOf(fixed, fields, { profile: { firstName: 'Ada' } });
    expect(fixed).toEqual({ profile: { lastName: 'L' } });
  });
});

test('differences names the paths that differ', () => {
  const fields = [{ path: 'name' }, { path: 'profile.firstName' }, { path: 'done' }];
  expect(differences(fields, { name: 'a', done: false }, { name: 'a', other: 1 })).toEqual([]);
  expect(differences(fields, { name: 'a', done: true }, { profile: { firstName: 'x' } })).toEqual([
    'name',
    'profile.firstName',
    'done',
  ]);
});

describe('wrongIn', () => {
  const human = () =>
    ['userName', 'password', 'profile.firstName', 'email.email'].map((path) =>
      known(AddHumanUserRequestSchema, { path, ...(path === 'email.email' && { kind: 'email' }) }),
    );
  const app = () =>
    ['name', 'redirectUris', 'accessTokenSeconds'].map((path) => known(AddApplicationRequestSchema, { path }));
  const said = (fields: () => KnownField[], value: JsonObject, path: string) => {
    const { atFields, elsewhere } = wrongIn(fields(), value, new Map([[path, 'is wrong']]));
    expect(atFields.size + elsewhere.length).toBe(1);
    return [...atFields].map(([at, w]) => `${at} > ${w.lead} ${w.text}${w.english ? ' (en)' : ''}`)[0];
  };

  test.for<[string, () => KnownField[], JsonObject, string, string | undefined]>([
    ['nothing in a field', human, {}, 'userName', 'userName > User name: must not be empty'],
    [
      'too much',
      human,
      { userName: 'x'.repeat(201) },
      'userName',
      'userName > User name: must have at most 200 characters',
    ],
    [
      'characters, not their halves',
      human,
      { userName: '😀'.repeat(200) },
      'userName',
      'userName > User name: is wrong (en)',
    ],
    [
      'no address',
      human,
      { email: { email: 'x' } },
      'email.email',
      'email.email > E-mail: must be an e-mail address such as name@example.org',
    ],
    ['an object that is missing', human, {}, 'profile', 'profile.firstName > First name: must not be empty'],
    ['an object that is there', human, { profile: { firstName: 'Ada' } }, 'profile', undefined],
    [
      'a number',
      app,
      { accessTokenSeconds: 90000 },
      'accessTokenSeconds',
      'accessTokenSeconds > Lifetime of access tokens: must be from 0 to 86,400',
    ],
    [
      'one of several lines',
      app,
      { redirectUris: ['a', 'b'] },
      'redirectUris[1]',
      'redirectUris > Redirect addresses, line 2: is wrong (en)',
    ],
    ['what only the server knows', app, { name: 'x' }, 'name', 'name > Name: is wrong (en)'],
    ['no field of the form', app, {}, 'nameOfSomething', undefined],
    ['the whole request', app, {}, '', undefined],
  ])('%s', ([, fields, value, path, expected]) => {
    expect(said(fields, value, path)).toBe(expected);
  });

  it('keeps the first of a field', () => {
    const { atFields } = wrongIn(
      app(),
      {},
      new Map([
        ['redirectUris[0]', 'one'],
        ['redirectUris[1]', 'two'],
      ]),
    );
    expect(atFields.get('redirectUris')?.text).toBe('one');
  });
});
