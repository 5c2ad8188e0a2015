// Follows the log of events as it grows. After a cut it resumes where it was, without gaps and without duplicates.
import { Code } from '@connectrpc/connect';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { EventService, type Event, type StreamEventsRequestSchema } from '../gen/signet/v1/event_pb';
import { follow, type CallOptions } from './api/call.svelte';
import { problemOf, type Problem } from './api/problem';

/** So many events are kept; older ones are in the list below, and on its pages. */
const most = 200;
/** A stream that is alive says so every ten seconds. One that is silent for longer was cut without notice. */
const silence = 25_000;
/** With these, another try would end the same. */
const final = new Set([
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.FailedPrecondition,
  Code.NotFound,
  Code.Unimplemented,
]);

type Request = Omit<MessageInitShape<typeof StreamEventsRequestSchema>, 'cursor' | '$typeName'>;

export class Tail {
  state = $state<'off' | 'connecting' | 'live' | 'interrupted'>('off');
  /** What has arrived, the newest first. */
  events = $state.raw<readonly Event[]>([]);
  /** How many have arrived in all. */
  arrived = $state(0);
  problem = $state.raw<Problem>();

  /**
   * Begins to follow. `begun` is called when nothing that happens from then on is missed. Gives the function that ends
   * it.
   */
  start(request: Request, options: CallOptions, begun: () => void): () => void {
    const abort = new AbortController();
    [this.state, this.events, this.arrived, this.problem] = ['connecting', [], 0, undefined];
    void this.#run(request, options, abort.signal, begun);
    return () => {
      abort.abort();
      this.state = 'off';
    };
  }

  async #run(request: Request, options: CallOptions, ended: AbortSignal, begun: () => void): Promise<void> {
    let cursor = '';
    for (let tries = 0; !ended.aborted; tries++) {
      const attempt = new AbortController();
      const stop = () => attempt.abort();
      ended.addEventListener('abort', stop, { once: true });
      let watch = setTimeout(stop, silence);
      let problem: Problem | undefined;
      try {
        for await (const message of follow(
          EventService.method.streamEvents,
          { ...request, cursor },
          { ...options, signal: attempt.signal },
        )) {
          if (ended.aborted) return;
          clearTimeout(watch);
          watch = setTimeout(stop, silence);
          if (!cursor) begun();
          cursor = message.cursor || cursor;
          [this.state, this.problem, tries] = ['live', undefined, 0];
          if (message.event) this.#add(message.event);
        }
      } catch (thrown) {
        problem = problemOf(thrown);
      } finally {
        clearTimeout(watch);
        ended.removeEventListener('abort', stop);
      }
      if (ended.aborted) return;
      if (problem?.code === Code.InvalidArgument && cursor) {
        // A log that was restored from a backup does not know the place: begin anew, with the list read again.
        cursor = '';
        this.events = [];
      } else if (problem && final.has(problem.code)) {
        [this.state, this.problem] = ['off', problem];
        return;
      }
      // A token that has run out is renewed at once, and nobody needs to know.
      if (problem?.code === Code.Unauthenticated && tries === 0) continue;
      this.state = 'interrupted';
      await pause(Math.max((problem?.retryAfter ?? 0) * 1000, Math.min(500 * 2 ** tries, 30_000)), ended);
    }
  }

  #add(event: Event): void {
    if (this.events.some((e) => e.eventId === event.eventId)) return;
    this.events = [event, ...this.events].slice(0, most);
    this.arrived++;
  }
}

/** Waits, but not longer than until the browser is online again or the signal ends it. */
function pause(millis: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      ended.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, millis);
    addEventListener('online', done);
    ended.addEventListener('abort', done);
  });
}
