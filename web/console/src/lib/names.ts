// How things are called on a page.
import type { User } from '../gen/signet/v1/user_pb';

/** The name of a user to show to others. */
export function userText(user: User): string {
  const name = user.type.case === 'human' ? user.type.value.profile?.displayName : user.type.value?.name;
  return name || user.userName || user.userId;
}
