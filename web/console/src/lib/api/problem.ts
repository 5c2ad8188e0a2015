import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb';

/** An error as the server states it: the same over every protocol (docs/api/errors.md). */
export class Problem extends Error {
  readonly code: Code;
  /** Stable and upper-case, such as `USER_NOT_FOUND`. `NETWORK` if the server did not answer at all. */
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** What is wrong, by the JSON path of the field. */
  readonly violations: ReadonlyMap<string, string>;
  readonly requestId: string;
  /** After how many seconds to try again; 0 if the server does not say. */
  readonly retryAfter: number;

  constructor(from: ConnectError) {
    super(from.rawMessage);
    this.name = 'Problem';
    this.code = from.code;
    const info = from.findDetails(ErrorInfoSchema)[0];
    const delay = from.findDetails(RetryInfoSchema)[0]?.retryDelay;
    this.reason = info?.reason ?? 'NETWORK';
    this.metadata = info?.metadata ?? {};
    this.requestId = from.findDetails(RequestInfoSchema)[0]?.requestId ?? from.metadata.get('x-request-id') ?? '';
    this.retryAfter = delay ? Number(delay.seconds) + Math.ceil(delay.nanos / 1e9) : 0;
    this.violations = new Map(
      from
        .findDetails(BadRequestSchema)
        .flatMap((d) => d.fieldViolations.map((v) => [v.field, v.description] as const)),
    );
  }

  /** Whether the same request may succeed in a moment. */
  get passing(): boolean {
    return (
      this.code === Code.Unavailable || this.code === Code.ResourceExhausted || this.code === Code.DeadlineExceeded
    );
  }

  /** Whether it is unknown if a change was made. */
  get uncertain(): boolean {
    return this.code === Code.Unavailable || this.code === Code.DeadlineExceeded || this.code === Code.Unknown;
  }
}

/** Turns whatever was thrown into a problem that can be shown. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  const error = ConnectError.from(thrown);
  // A server that is away is not an internal error of it: fetch throws a TypeError.
  if (error.cause instanceof TypeError || thrown instanceof TypeError)
    return new Problem(new ConnectError('', Code.Unavailable));
  return new Problem(error);
}

/** Whether somebody gave up waiting: leaving a page, or typing on. */
export function abandoned(thrown: unknown): boolean {
  return (
    (thrown instanceof Problem && thrown.code === Code.Canceled) ||
    (thrown instanceof DOMException && thrown.name === 'AbortError')
  );
}
