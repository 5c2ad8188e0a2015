import { create, type JsonObject } from '@bufbuild/protobuf';
import { beforeAll, expect, it } from 'vitest';
import { EventSchema } from '../gen/signet/v1/event_pb';
import { causesOf } from './sign-ins';
import { loadTexts, t } from './texts.svelte';

beforeAll(() => loadTexts('common', 'fields', 'events'));

const causes = (type: string, payload: JsonObject) => causesOf(create(EventSchema, { type, payload }));

it('says how somebody signed in', () => {
  const { causes: found } = causes('sign_in.succeeded.v1', { method: 'fed', provider: 'idp_1', application: 'app_1' });
  expect(found).toEqual([
    {
      count: 0,
      method: t('way.fed'),
      provider: 'idp_1',
      application: 'app_1',
      why: '',
      whatToDo: '',
      check: '',
    },
  ]);
  expect(causes('sign_in.succeeded.v1', { sessionId: 'ses_1' }).causes).toEqual([]);
});

it('says why sign-ins failed', () => {
  const found = causes('sign_in.failed.v1', {
    count: 9,
    by: [
      { method: 'pwd', reason: 'way_not_allowed', count: 2 },
      { method: 'new', reason: 'brand_new', count: 1 },
    ],
    others: 6,
  });
  expect(found.others).toBe(6);
  expect(found.causes.map((c) => [c.count, c.method, c.why, c.whatToDo])).toEqual([
    [2, t('way.pwd'), t('why.way_not_allowed'), t('whatToDo.way_not_allowed')],
    [1, 'new', 'brand_new', ''],
  ]);
  expect(causes('sign_in.failed.v1', { count: 3 })).toEqual({ causes: [], others: 0 });
});

it('says which check of a provider failed, of older events, too', () => {
  const [old] = causes('idp_sign_in.failed.v1', { check: 'nonce', count: 3, at: 1 }).causes;
  expect([old?.check, old?.count, old?.why]).toEqual(['nonce', 3, t('check.token')]);
  const by = [{ check: 'logout_nonce', application: 'app_1', count: 2 }];
  const [now] = causes('idp_sign_in.failed.v1', { check: 'logout_nonce', count: 2, at: 1, by }).causes;
  expect([now?.application, now?.why]).toEqual(['app_1', t('check.logout')]);
});

it('says nothing about other events', () => {
  expect(causes('user.locked.v1', { by: [{ reason: 'user_locked' }] })).toEqual({ causes: [], others: 0 });
});
