// Permissions in words.
import { hasText, t } from '../../lib/texts.svelte';

/** A permission in words: what it is about, and what it allows. */
export function words(permission: string): string {
  const [thing = '', ...rest] = permission.split('.');
  const act = rest.join('_');
  return hasText(`roles.of_${thing}`) && hasText(`roles.may_${act}`)
    ? `${t(`roles.of_${thing}`)}: ${t(`roles.may_${act}`)}`
    : permission;
}
