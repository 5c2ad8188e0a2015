// What the parts of a user's view know about the user.
import type { User } from '../../gen/signet/v1/user_pb';

export interface Shown {
  readonly user: User;
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
