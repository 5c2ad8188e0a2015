import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { each } from './bulk';

const ids = Array.from({ length: 20 }, (_, i) => `usr_${i}`);

test('each object gets one request, four at a time', async () => {
  let [now, most] = [0, 0];
  const asked: string[] = [];
  const progress: number[] = [];
  const failed = await each(
    ids,
    async (id) => {
      asked.push(id);
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
    },
    new AbortController().signal,
    (done) => progress.push(done),
  );
  expect(failed).toEqual([]);
  expect(asked.sort()).toEqual([...ids].sort());
  expect(most).toBe(4);
  expect(progress).toEqual(ids.map((_, i) => i + 1));
});

test('what fails is told with its reason, and does not stop the others', async () => {
  let asked = 0;
  const failed = await each(
    ids,
    (id) => {
      asked++;
      return id === 'usr_7' ? Promise.reject(new ConnectError('no', Code.PermissionDenied)) : Promise.resolve();
    },
    new AbortController().signal,
    () => {},
  );
  expect(asked).toBe(20);
  expect(failed.map((f) => [f.id, f.problem.code])).toEqual([['usr_7', Code.PermissionDenied]]);
});

test('a server that is busy is asked again', async () => {
  let asked = 0;
  const failed = await each(
    ['usr_1'],
    () => (++asked < 3 ? Promise.reject(new ConnectError('busy', Code.Unavailable)) : Promise.resolve()),
    new AbortController().signal,
    () => {},
  );
  expect([asked, failed]).toEqual([3, []]);
});

test('nothing is begun after a stop', async () => {
  const abort = new AbortController();
  let asked = 0;
  await each(
    ids,
    () => {
      if (++asked === 6) abort.abort();
      return Promise.resolve();
    },
    abort.signal,
    () => {},
  );
  expect(asked).toBeLessThan(10);
});
