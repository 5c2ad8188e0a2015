// The same for many objects: one request each, a few at a time.
import { problemOf, type Problem } from './api/problem';

/** How many can be chosen, and how many requests are under way at a time. */
export const mostChosen = 500;
const atOnce = 4;
const tries = 5;

export interface Failed {
  readonly id: string;
  readonly problem: Problem;
}

/**
 * Does something for each of them until the signal stops it. What is under way then is finished. A server that is busy
 * is asked again after the time that it names.
 */
export async function each(
  ids: readonly string[],
  act: (id: string) => Promise<unknown>,
  signal: AbortSignal,
  ondone: (done: number) => void,
): Promise<Failed[]> {
  const failed: Failed[] = [];
  let [next, done] = [0, 0];
  async function work() {
    for (let id = ids[next++]; id !== undefined && !signal.aborted; id = ids[next++]) {
      for (let attempt = 1; ; attempt++) {
        try {
          await act(id);
        } catch (thrown) {
          const problem = problemOf(thrown);
          if (problem.passing && attempt < tries && !signal.aborted) {
            await pause(Math.max(problem.retryAfter * 1000, 100 * 2 ** attempt), signal);
            continue;
          }
          failed.push({ id, problem });
        }
        break;
      }
      ondone(++done);
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work));
  return failed;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    }
    signal.addEventListener('abort', end);
  });
}
