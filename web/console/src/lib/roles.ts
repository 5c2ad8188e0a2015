// The roles of the API, as they are offered and named.
import { AccessService, type Role } from '../gen/signet/v1/access_pb';
import type { Group } from '../gen/signet/v1/group_pb';
import { holds, may } from './access.svelte';
import { call } from './api/call.svelte';
import { enumText, type Option } from './form/fields';
import { hasText, t } from './texts.svelte';

let asked: Promise<readonly Role[]> | undefined;

/** Every role. They come from the server's definition and are asked for once. */
export function allRoles(): Promise<readonly Role[]> {
  asked ??= call(AccessService.method.listRoles, {}).then((a) => a.roles);
  asked.catch(() => (asked = undefined));
  return asked;
}

/** A role in the person's language. */
export const roleText = enumText;

/** What a role may do, in a sentence, or else its permissions. */
export function roleHint(role: Role): string {
  return hasText(`hint.${role.name}`) ? t(`hint.${role.name}`) : role.permissions.join(', ');
}

/**
 * Whether the caller holds everything that the roles allow. Others cannot be given or taken away. Without an
 * organization: roles of the installation.
 */
export function coversRoles(roles: readonly Role[], names: readonly string[], org?: string): boolean {
  return names.every((name) => roles.find((r) => r.name === name)?.permissions.every((p) => holds(p, org)) ?? false);
}

/** Whether the caller may change who gets the roles that a group gives. */
export function coversGroup(roles: readonly Role[], group: Group, org: string): boolean {
  return (
    group.roles.length === 0 ||
    (may('MemberService/SetOrganizationMember', org) && coversRoles(roles, group.roles, org))
  );
}

/** The roles of an organization, or of the installation, as choices. */
export function roleOptions(roles: readonly Role[], installation: boolean): Option[] {
  return roles
    .filter((r) => r.installation === installation)
    .map((r) => ({ value: r.name, text: roleText(r.name), hint: roleHint(r) }));
}

/** The roles that the caller can give. */
export function givableRoles(roles: readonly Role[], org?: string): Option[] {
  return roleOptions(
    roles.filter((r) => coversRoles(roles, [r.name], org)),
    org === undefined,
  );
}
