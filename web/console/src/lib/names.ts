// How things are called on a page.
import type { User } from '../gen/signet/v1/user_pb';

/** The name of a user to show to others. */
export function userText(user: User): string {
  const name = user.type.case === 'human' ? user.type.value.profile?.displayName : user.type.value?.name;
  return name || user.userName || user.userId;
}

/** A text as searches compare it: without case and accents. */
export function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}

/** The first letters of the first and the last word of a name, for an avatar. */
export function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => /^[\p{L}\p{N}]/u.test(word));
  const letters = [words[0], ...words.slice(1).slice(-1)].map((word) => [...(word ?? '')][0] ?? '');
  return letters.join('').toLocaleUpperCase();
}

/** A text in pieces, of which the long ones are single words: where a line may be shorter, they are cut. */
export function piecesOf(text: string): { text: string; long: boolean }[] {
  const longest = 16;
  if (!/\s/.test(text.trim())) return [{ text, long: false }];
  return text.split(/(?<=[\s-])(?=\S)/).reduce<{ text: string; long: boolean }[]>((pieces, part) => {
    const word = part.trimEnd();
    const last = pieces.at(-1);
    if ([...word].length > longest) {
      pieces.push({ text: word, long: true });
      if (word !== part) pieces.push({ text: part.slice(word.length), long: false });
    } else if (last && !last.long) last.text += part;
    else pieces.push({ text: part, long: false });
    return pieces;
  }, []);
}

/** The end of an address, behind the host, or of an identifier: what tells it from others of its kind. */
export function endOf(text: string): string {
  const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]+(\/.+)$/i.exec(text)?.[1] ?? '';
  return path && path.length <= 28 ? path : text.slice(-12);
}
