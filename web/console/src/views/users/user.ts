// What the parts of a user's view know about the user.
import type { User } from '../../gen/signet/v1/user_pb';
import { holds } from '../../lib/access.svelte';

export interface Shown {
  readonly user: User;
  /** A person has a password. Not known of service users. */
  readonly hasPassword: boolean | undefined;
  /** A service user has a secret. Not known of people. */
  readonly hasSecret: boolean | undefined;
  /**
   * The caller may give access to the user's account. Without it, nothing about how the user signs in can be changed.
   */
  readonly over: boolean;
  /** The caller may take away from the user: sessions, tokens, links, keys, and being able to sign in. */
  readonly atHome: boolean;
  /** Reads the user again. */
  readonly latest: () => Promise<User>;
  /** Says what was done, and shows the user anew. */
  readonly changed: (text: string) => void;
}

/**
 * Whether the caller may read when and how a user signed in: who reads the log, or else who may end the user's
 * sessions.
 */
export function readsSignIns(org: string, atHome: boolean): boolean {
  const some = ['sign_in.read', 'user.support'].some((p) => holds(p, org));
  return holds('event.read', org) || holds('audit.read', org) || (atHome && some);
}
