// What the parts of a user's view know about the user.
import { toJson, type JsonObject } from '@bufbuild/protobuf';
import { User_ProfileSchema, type User } from '../../gen/signet/v1/user_pb';

export interface Shown {
  readonly user: User;
  /** The caller may give access to the user's account. Without it, nothing about how the user signs in can be changed. */
  readonly over: boolean;
  /** The caller may take away from the user: sessions, tokens, links, keys, and being able to sign in. */
  readonly atHome: boolean;
  /** Reads the user again. */
  readonly latest: () => Promise<User>;
  /** Says what was done, and shows the user anew. */
  readonly changed: (text: string) => void;
}

/** The profile of a person as a form holds it. */
export function profileOf(user: User): JsonObject {
  return user.type.case === 'human' && user.type.value.profile ? { gender: 'GENDER_UNSPECIFIED', ...(toJson(User_ProfileSchema, user.type.value.profile) as JsonObject) } : {};
}

export const profileFields = [
  { path: 'firstName', required: true },
  { path: 'lastName', required: true },
  { path: 'displayName', required: true },
  { path: 'nickName', required: false },
  { path: 'preferredLanguage', hint: 'hint.languageTag' },
  { path: 'gender' },
] as const;
