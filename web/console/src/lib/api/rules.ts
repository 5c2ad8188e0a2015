// What the definition says beside its messages: the shapes of src/gen/operations.ts, which tools/operations.mjs makes.
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { fields, type operations } from '../../gen/operations';

/** What the definition says about an operation. */
export interface OperationRule {
  /** A permission such as `user.read`, or `authenticated`, or `public`. */
  readonly permission: string;
  /** Permissions that open a part of it to callers without `permission`. */
  readonly narrower?: readonly string[];
  /** How the organization of a call is found. */
  readonly scope: 'self' | 'context' | 'target' | 'path' | 'request';
  /** It honours `if-match`. */
  readonly updates?: boolean;
  /** It honours `idempotency-key`. */
  readonly creates?: boolean;
  /** The proof that people need to call it about themselves. */
  readonly proof?: 'session' | 'recent';
  readonly http: string;
  readonly path: string;
}

/** What the definition says about a field. */
export interface FieldRule {
  readonly secret?: boolean;
  readonly required?: boolean;
  /** The largest number of characters. */
  readonly max?: number;
  readonly from?: number;
  readonly to?: number;
}

/** The name of an operation, such as `UserService/GetUser`. */
export type OperationName = keyof typeof operations;

/** The rule of a field of a message. */
export function fieldRule(message: DescMessage, field: DescField): FieldRule {
  return fields[`${message.typeName.replace('signet.v1.', '')}.${field.localName}`] ?? {};
}
