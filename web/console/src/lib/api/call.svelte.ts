// Calls of the API over gRPC-Web. Every call of the console goes through here.
import {
  create,
  fromJson,
  toJson,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type JsonObject,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { Code, createContextValues } from '@connectrpc/connect';
import { createGrpcWebTransport } from '@connectrpc/connect-web';
import { untrack } from 'svelte';
import { operations } from '../../gen/operations';
import { prove } from './proof.svelte';
import { Problem, problemOf } from './problem';
import type { OperationName, OperationRule } from './rules';
import { forgetToken, SignedOut, signInAgain, token } from './session.svelte';

export type Unary<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> = DescMethodUnary<I, O>;
export type Operation = Unary | DescMethodServerStreaming<DescMessage, DescMessage>;

export interface CallOptions {
  /** The organization the call is about, where the request does not say it. */
  org?: string | undefined;
  /** The sequence of the object that the change is based on. */
  match?: bigint | string | undefined;
  /** With the same key, an object is created once, however often it is sent. */
  key?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** A call as it was made, to be shown as a command. */
export interface Recorded {
  readonly operation: Operation;
  readonly request: JsonObject;
  readonly options: CallOptions;
  readonly failed: boolean;
}

const transport = createGrpcWebTransport({ baseUrl: location.origin, useBinaryFormat: true, defaultTimeoutMs: 30_000 });

const kept = 40;

/** The calls since the page was opened, the newest last, and how many are under way. */
export const calls = $state({ recorded: [] as readonly Recorded[], pending: 0 });

/** Starts a new page: what earlier ones called is no longer shown. */
export function forgetCalls(): void {
  calls.recorded = [];
}

/** What the definition says about an operation. */
export function ruleOf(operation: Operation | OperationName): OperationRule {
  return operations[typeof operation === 'string' ? operation : nameOf(operation)];
}

/** The name of an operation, such as `UserService/GetUser`. */
export function nameOf(operation: Operation): OperationName {
  return `${operation.parent.name}/${operation.name}` as OperationName;
}

function record(operation: Operation, request: JsonObject, options: CallOptions, failed: boolean): void {
  calls.recorded = [...calls.recorded.slice(1 - kept), { operation, request, options, failed }];
}

function headers(operation: Operation, options: CallOptions, bearer: string): Headers {
  const rule = ruleOf(operation);
  const set = new Headers({ authorization: `Bearer ${bearer}` });
  if (options.org && rule.scope !== 'self' && rule.scope !== 'path') set.set('x-service-orgid', options.org);
  if (options.match !== undefined && rule.updates) set.set('if-match', `"${options.match}"`);
  if (options.key && rule.creates) set.set('idempotency-key', options.key);
  return set;
}

/** Gets a token, and lets the person sign in again if the session is gone. */
async function bearer(): Promise<string> {
  for (;;) {
    try {
      return await token();
    } catch (thrown) {
      if (!(thrown instanceof SignedOut)) throw thrown;
      await signInAgain(thrown.signIn);
    }
  }
}

/** Calls an operation. It throws a `Problem` if the server refuses. */
export function call<I extends DescMessage, O extends DescMessage>(
  operation: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  // What calls note down about themselves must not make an effect that calls run again.
  return untrack(() => send(operation, request, options));
}

async function send<I extends DescMessage, O extends DescMessage>(
  operation: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions,
): Promise<MessageShape<O>> {
  const input = create(operation.input, request);
  const shown = toJson(operation.input, input) as JsonObject;
  calls.pending++;
  let failed = true;
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await transport.unary(
          operation,
          options.signal,
          undefined,
          headers(operation, options, await bearer()),
          input as MessageInitShape<I>,
          createContextValues(),
        );
        failed = false;
        return answer.message;
      } catch (thrown) {
        const problem = problemOf(thrown);
        if (attempt >= 2 || !(await mended(problem))) throw problem;
      }
    }
  } finally {
    calls.pending--;
    record(operation, shown, options, failed);
  }
}

/** Does what a refused call asks for, and says whether to send it again. */
async function mended(problem: Problem): Promise<boolean> {
  if (problem.code === Code.Unauthenticated && problem.reason !== 'NETWORK') {
    forgetToken();
    return true;
  }
  if (problem.reason === 'RECENT_PROOF_REQUIRED' || problem.reason === 'SECOND_FACTOR_REQUIRED')
    return prove(problem.reason);
  return false;
}

/** Calls an operation with a request in the JSON form of the API. */
export function callJson<I extends DescMessage, O extends DescMessage>(
  operation: DescMethodUnary<I, O>,
  request: JsonObject,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  return call(operation, fromJson(operation.input, request) as MessageInitShape<I>, options);
}

/** Follows a stream until it ends, is cut, or the signal says so. */
export async function* follow<I extends DescMessage, O extends DescMessage>(
  operation: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions = {},
): AsyncGenerator<MessageShape<O>> {
  const input = create(operation.input, request);
  untrack(() => record(operation, toJson(operation.input, input) as JsonObject, options, false));
  async function* once() {
    yield input as MessageInitShape<I>;
  }
  try {
    // A stream has no end, so it has no deadline either.
    const answer = await transport.stream(
      operation,
      options.signal,
      0,
      headers(operation, options, await bearer()),
      once(),
      createContextValues(),
    );
    yield* answer.message;
  } catch (thrown) {
    const problem = problemOf(thrown);
    if (problem.code === Code.Unauthenticated) forgetToken();
    throw problem;
  }
}

/** A key for `idempotency-key`. */
export function newKey(): string {
  return crypto.randomUUID();
}
