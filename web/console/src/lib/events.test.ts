import { create, type JsonObject } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { EventSchema, type Event } from '../gen/signet/v1/event_pb';
import {
  changesOf,
  eventKinds,
  fieldText,
  hasName,
  kindText,
  ownerOf,
  partsOf,
  calledBy,
  placeOfKind,
  plainType,
  sentence,
  typesOfKind,
  valueText,
  withVersions,
} from './events';
import { loadTexts } from './texts.svelte';

beforeAll(() => loadTexts('common', 'fields', 'events'));

const event = (type: string, payload?: JsonObject, personal?: JsonObject): Event =>
  create(EventSchema, { type, ...(payload && { payload }), ...(personal && { personal }) });

describe('types', () => {
  it('are listed by kind, without versions', () => {
    expect(typesOfKind('consent')).toEqual(['consent.erased', 'consent.given', 'consent.withdrawn']);
    expect(typesOfKind('webhook')).toContain('webhook.added');
    // A kind whose name begins with that of another one is not mixed up with it.
    expect(typesOfKind('project')).not.toContain('project_grant.added');
    expect(typesOfKind('idp')).not.toContain('idp_sign_in.failed');
  });

  it('are one word each, and listed once', () => {
    const all = eventKinds.flatMap(typesOfKind);
    for (const type of all) expect(type).toMatch(/^[a-z_]+\.[a-z_]+$/);
    expect(new Set(all).size).toBe(all.length);
  });

  it('have a sentence and a kind in words', () => {
    for (const kind of eventKinds) {
      expect(kindText(kind)).not.toBe(kind);
      for (const type of typesOfKind(kind)) expect(sentence(`${type}.v1`)).not.toContain('.v1');
    }
  });

  test.for<[string, string[]]>([
    ['user.locked', ['user.locked.v1']],
    ['webhook.added', ['webhook.added.v1', 'webhook.added.v2']],
    ['user.*', ['user.*']],
    ['user.locked.v1', ['user.locked.v1']],
    ['nothing.known', ['nothing.known']],
    ['', ['']],
  ])('%s has the versions %j', ([type, versions]) => {
    expect(withVersions(type)).toEqual(versions);
  });

  test.for([
    ['user.locked.v1', 'user.locked'],
    ['user.locked.v12', 'user.locked'],
    ['user.locked', 'user.locked'],
    ['user.v1.locked', 'user.v1.locked'],
  ] as const)('%s without its version', ([type, plain]) => {
    expect(plainType(type)).toBe(plain);
  });
});

describe('sentence', () => {
  it('has a plural', () => {
    expect(sentence('sign_in.failed.v1')).toBe('A sign-in failed');
    expect(sentence('sign_in.failed.v1', { count: 3 })).toMatch(/3/);
    expect(sentence('sign_in.failed.v1', { count: 'many' })).toBe('A sign-in failed');
  });

  it('shows a type that is not known as it is', () => {
    expect(sentence('moon.landed.v1')).toBe('moon.landed.v1');
    expect(kindText('moon')).toBe('moon');
  });
});

describe('objects', () => {
  test.for([
    ['sgi_01ab', 'usr_01ab'],
    ['con_01ab', 'usr_01ab'],
    ['ips_01ab', 'idp_01ab'],
    ['usr_01ab', 'usr_01ab'],
    ['installation', 'installation'],
    ['', ''],
  ] as const)('%s belongs to %s', ([id, owner]) => {
    expect(ownerOf(id)).toBe(owner);
  });

  test.for([
    ['usr_01ab', true],
    ['whk_0', true],
    ['inv_01ab', false],
    ['usr_', false],
    ['usr_01AB', false],
    ['usr_01ab.7', false],
    ['Ada', false],
    ['', false],
  ] as const)('%s has a name: %s', ([id, expected]) => {
    expect(hasName(id)).toBe(expected);
  });

  test.for([
    ['usr_01ab.7', { object: 'usr_01ab', sequence: 7n }],
    ['a.b.12', { object: 'a.b', sequence: 12n }],
    ['usr_01ab.123456789012345678', { object: 'usr_01ab', sequence: 123456789012345678n }],
    ['usr_01ab.1234567890123456789', undefined],
    ['usr_01ab', undefined],
    ['usr_01ab.', undefined],
    ['.7', undefined],
    ['usr_01ab.-1', undefined],
  ] as const)('the event %s', ([id, expected]) => {
    expect(partsOf(id)).toEqual(expected);
  });

  it('without a name have the view that they are part of', () => {
    const of = (objectType: string) => placeOfKind(create(EventSchema, { objectType, orgId: 'org_1' }))?.href;
    expect(of('invitation')).toBe('/o/org_1/invitations');
    expect(of('signing')).toBe('/installation/keys');
    expect(of('user')).toBeUndefined();
  });

  it('are called by what the event says, or else by their identifier', () => {
    const of = (objectId: string, payload?: Record<string, string>) =>
      calledBy(create(EventSchema, { objectId, ...(payload && { payload }) }));
    expect(of('role_01ab', { name: 'Helpers' })).toEqual({ name: 'Helpers', id: 'role_01ab' });
    expect(of('inv_01ab', { email: 'jo@mail.test' }).name).toBe('jo@mail.test');
    expect(of('inv_01ab')).toEqual({ name: '', id: 'inv_01ab' });
    expect(of('installation').id).toBe('');
  });
});

describe('changesOf', () => {
  const added = event(
    'user.human_added.v1',
    { emailVerified: true },
    {
      userName: 'Zoë',
      userNameKey: 'zoë',
      profile: { firstName: 'Zoë', lastName: 'Müller' },
      phone: '+41-44',
      phoneNormal: '+4144',
    },
  );
  const find = (of: Event, earlier: Event[], whole: boolean, path: string) =>
    changesOf(of, earlier, whole).find((c) => c.path === path);

  it('tells the fields of a new object, without groups and keys', () => {
    const changes = changesOf(added, [], true);
    expect(changes.map((c) => c.path).sort()).toEqual(
      ['emailVerified', 'firstName', 'lastName', 'phone', 'state', 'userName'].sort(),
    );
    for (const c of changes) expect(c.before).toEqual({ kind: 'none' });
  });

  it('finds the value before in the newest event that has one', () => {
    const earlier = [
      event('user.locked.v1'),
      event('user.profile_changed.v1', {}, { firstName: 'Zoe' }),
      event('user.profile_changed.v1', {}, { firstName: 'Z' }),
      added,
    ];
    const change = event('user.profile_changed.v1', {}, { firstName: 'Zoé', nickName: 'Z' });
    expect(changesOf(change, earlier, true)).toEqual([
      { path: 'firstName', after: 'Zoé', before: { kind: 'value', value: 'Zoe' } },
      { path: 'nickName', after: 'Z', before: { kind: 'none' } },
    ]);
  });

  it('does not claim that there was nothing if it does not know', () => {
    const change = event('user.profile_changed.v1', {}, { nickName: 'Z' });
    expect(find(change, [], false, 'nickName')?.before).toEqual({ kind: 'unknown' });
    const erased = create(EventSchema, { type: 'user.human_added.v1', erased: true });
    expect(find(change, [erased], true, 'nickName')?.before).toEqual({ kind: 'erased' });
  });

  test.for<[string, string, unknown]>([
    ['user.locked.v1', 'state', 'locked'],
    ['user.unlocked.v1', 'state', 'active'],
    ['org.deactivated.v1', 'state', 'inactive'],
    ['user.email_verified.v1', 'emailVerified', true],
    ['user.removed.v1', 'state', 'removed'],
    ['user.phone_removed.v1', 'phone', undefined],
    ['idp.client_secret_removed.v1', 'hasClientSecret', undefined],
  ])('%s says %s without data', ([type, path, after]) => {
    const change = find(event(type), [event('x.y.v1', { [path]: 'before' })], true, path);
    expect(change).toEqual({ path, after, before: { kind: 'value', value: 'before' } });
  });

  it('compares a part of an object with the same part', () => {
    const earlier = [
      event('user.factor_renamed.v1', { factorId: 'b', name: 'of b' }),
      event('user.totp_added.v1', { factorId: 'a', name: 'of a' }),
    ];
    const renamed = event('user.factor_renamed.v1', { factorId: 'a', name: 'new' });
    expect(changesOf(renamed, earlier, true)).toEqual([
      { path: 'name', after: 'new', before: { kind: 'value', value: 'of a' } },
    ]);
    // With the part ends all that was said about it.
    expect(changesOf(event('user.factor_removed.v1', { factorId: 'a' }), earlier, true)).toEqual([
      { path: 'name', after: undefined, before: { kind: 'value', value: 'of a' } },
    ]);
  });

  it('tells roles of projects apart by their keys', () => {
    const earlier = [event('project.role_set.v1', { key: 'writer', name: 'W' })];
    const set = event('project.role_set.v1', { key: 'reader', name: 'R' });
    expect(find(set, earlier, true, 'name')?.before).toEqual({ kind: 'none' });
  });

  it('tells metadata key by key', () => {
    const earlier = [event('user.metadata_set.v1', { set: { plan: 'gold', note: 'x' } })];
    const change = event('user.metadata_set.v1', { set: { plan: 'free' }, remove: ['note'] });
    expect(changesOf(change, earlier, true)).toEqual([
      { path: 'set.plan', after: 'free', before: { kind: 'value', value: 'gold' } },
      { path: 'set.note', after: undefined, before: { kind: 'value', value: 'x' } },
    ]);
  });

  it('keeps keys that are keys', () => {
    expect(find(event('user.key_added.v1', { publicKey: 'PEM' }), [], true, 'publicKey')?.after).toBe('PEM');
  });
});

test.for<[string, string]>([
  ['phone', 'Phone'],
  ['profile.firstName', 'First name'],
  ['set.plan', 'plan'],
  ['set.a.b', 'a.b'],
  ['nothing.known', 'nothing.known'],
])('the field %s is called %s', ([path, text]) => {
  expect(fieldText(path)).toBe(text);
});

test.for([
  [true, 'Yes'],
  [false, 'No'],
  [1234, '1,234'],
  [1767323045678901, 'Jan 2, 2026, 3:04 AM'],
  ['', '–'],
  [null, '–'],
  [[], '–'],
  [['a', 'b'], 'a and b'],
  [[{ key: 'reader', name: 'R' }, 'x'], 'reader and x'],
  [{ a: 1 }, '{"a":1}'],
  ['text', 'text'],
] as const)('the value %j reads %s', ([value, text]) => {
  expect(valueText(value as unknown as JsonObject).replaceAll(/[\u00a0\u202f]/g, ' ')).toBe(text);
});
