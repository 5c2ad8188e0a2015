// Permissions in words.
import { hasText, t } from '../../lib/texts.svelte';

/** What a permission is about, and what it allows, in words. */
export function parts(permission: string): { about: string; allows: string } {
  const [thing = '', ...rest] = permission.split('.');
  const act = rest.join('_');
  return hasText(`roles.of_${thing}`) && hasText(`roles.may_${act}`)
    ? { about: t(`roles.of_${thing}`), allows: t(`roles.may_${act}`) }
    : { about: t('roles.of_others'), allows: permission };
}

/** A permission in words. */
export function words(permission: string): string {
  const { about, allows } = parts(permission);
  return allows === permission ? permission : `${about}: ${allows}`;
}
