// The roles of the API, as they are offered and named.
import { create } from '@bufbuild/protobuf';
import { SvelteMap } from 'svelte/reactivity';
import { AccessService, RoleSchema, type Role } from '../gen/signet/v1/access_pb';
import type { Group } from '../gen/signet/v1/group_pb';
import { RoleService, type CustomRole } from '../gen/signet/v1/role_pb';
import { holds, may } from './access.svelte';
import { call } from './api/call.svelte';
import { enumText, type Option } from './form/fields';
import { hasText, t } from './texts.svelte';

let asked: Promise<readonly Role[]> | undefined;

/** Every fixed role, and the custom ones that the caller has. They come from the server's definition and are asked for once. */
export function allRoles(): Promise<readonly Role[]> {
  asked ??= call(AccessService.method.listRoles, {}).then((a) => a.roles);
  asked.catch(() => (asked = undefined));
  return asked;
}

// What the custom roles are called that have been read.
const customNames = new SvelteMap<string, string>();

/** The roles that there are in an organization, or without one in the installation, as far as the caller may see. */
export async function rolesIn(org?: string): Promise<readonly Role[]> {
  const all = await allRoles();
  for (const role of all) if (role.displayName) customNames.set(role.name, role.displayName);
  const own: CustomRole[] = [];
  if (
    org === undefined
      ? may(RoleService.method.listInstallationRoles)
      : may(RoleService.method.listOrganizationRoles, org)
  ) {
    const read =
      org === undefined
        ? await call(RoleService.method.listInstallationRoles, { pageSize: 500 })
        : await call(RoleService.method.listOrganizationRoles, { orgId: org, pageSize: 500 });
    own.push(...read.roles);
  }
  for (const role of own) customNames.set(role.roleId, role.name);
  return [
    ...all.filter((r) => !r.displayName),
    ...own.map((r) =>
      create(RoleSchema, {
        name: r.roleId,
        displayName: r.name,
        installation: org === undefined,
        permissions: r.permissions,
      }),
    ),
  ];
}

/** A role in the person's language; a custom one by its name, once it was read. */
export function roleText(name: string): string {
  return customNames.get(name) ?? enumText(name);
}

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
