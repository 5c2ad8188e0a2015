// The profile of a person, as forms show it.
import { toJson, type JsonObject } from '@bufbuild/protobuf';
import { User_ProfileSchema, type User } from '../gen/signet/v1/user_pb';

/** The profile of a person as a form holds it. */
export function profileOf(user: User): JsonObject {
  return user.type.case === 'human' && user.type.value.profile
    ? { gender: 'GENDER_UNSPECIFIED', ...(toJson(User_ProfileSchema, user.type.value.profile) as JsonObject) }
    : {};
}

export const profileFields = [
  { path: 'firstName', required: true },
  { path: 'lastName', required: true },
  { path: 'displayName', required: true },
  { path: 'nickName', required: false },
  { path: 'preferredLanguage', hint: 'hint.languageTag' },
  { path: 'gender' },
] as const;
