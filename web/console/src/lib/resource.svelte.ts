// What a view shows of the server: pending, there, or failed.
import { untrack } from 'svelte';
import { abandoned, problemOf, type Problem } from './api/problem';

export class Resource<T> {
  /** The last answer; it stays while a newer one is awaited. */
  data = $state.raw<T>();
  problem = $state.raw<Problem>();
  pending = $state(true);
  #load: (signal: AbortSignal) => Promise<T>;
  #abort: AbortController | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;

  constructor(load: (signal: AbortSignal) => Promise<T>) {
    this.#load = load;
  }

  /** Loads again and shows what it gives. */
  reload = async (): Promise<void> => {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    this.pending = true;
    try {
      const data = await this.#load(abort.signal);
      if (abort.signal.aborted) return;
      this.data = data;
      this.problem = undefined;
      this.#tries = 0;
    } catch (thrown) {
      if (abort.signal.aborted || abandoned(thrown)) return;
      this.problem = problemOf(thrown);
      // A server that restarts or is busy comes back: a read is simply tried again, ever more slowly.
      if (this.problem.passing && this.#tries < 8) {
        const wait = Math.max(this.problem.retryAfter, Math.min(2 ** this.#tries++, 30));
        this.#retry = setTimeout(() => void this.reload(), wait * 1000);
      }
    } finally {
      if (!abort.signal.aborted) this.pending = false;
    }
  };

  /** Shows another answer without asking, for example that of a change. */
  set(data: T): void {
    this.data = data;
    this.problem = undefined;
  }

  stop(): void {
    this.#abort?.abort();
    clearTimeout(this.#retry);
  }
}

/** Those that are shown now. */
const shown = new Set<Resource<unknown>>();

/** Loads everything on the page again: somebody else has changed something. */
export function reloadShown(): void {
  for (const one of shown) void one.reload();
}

/** Loads while the component is shown, and again whenever something that `load` reads at its beginning changes. */
export function resource<T>(load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  let promise: Promise<T> | undefined;
  const made = new Resource<T>((signal) => {
    const begun = promise ?? load(signal);
    promise = undefined;
    return begun;
  });
  $effect(() => {
    const abort = new AbortController();
    promise = load(abort.signal);
    promise.catch(() => {});
    untrack(() => void made.reload());
    shown.add(made as Resource<unknown>);
    return () => {
      shown.delete(made as Resource<unknown>);
      abort.abort();
      made.stop();
    };
  });
  return made;
}
