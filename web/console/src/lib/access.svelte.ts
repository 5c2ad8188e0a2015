// What the caller may do: asked once, and compared with the same rules that the server enforces.
import { AccessService, type GetMyAccessResponse } from '../gen/signet/v1/access_pb';
import { call, ruleOf, type Operation } from './api/call.svelte';
import type { OperationName } from './api/rules';

type Organization = GetMyAccessResponse['organizations'][number];

const state = $state({ everywhere: new Set<string>(), organizations: [] as Organization[], home: '', defaultOrg: '' });

/** Asks what the caller may do. */
export async function loadAccess(): Promise<void> {
  const answer = await call(AccessService.method.getMyAccess, {});
  state.everywhere = new Set(answer.installationPermissions);
  state.organizations = answer.organizations;
  state.defaultOrg = answer.defaultOrgId;
  state.home = answer.organizations[0]?.orgId ?? '';
}

/** The organizations that the caller is in, the own one first. */
export function myOrganizations(): readonly Organization[] {
  return state.organizations;
}

/** The organization that the caller belongs to. */
export function homeOrganization(): string {
  return state.home;
}

/** The default organization of the installation, of which others may use the identity providers. */
export function defaultOrganization(): string {
  return state.defaultOrg;
}

/** Whether it is the default organization of the installation. */
export function isDefault(org: string): boolean {
  return org === state.defaultOrg;
}

/** Whether the caller holds a permission in the organization, or in the whole installation. */
export function holds(permission: string, org?: string): boolean {
  if (state.everywhere.has(permission)) return true;
  return (
    org !== undefined && (state.organizations.find((o) => o.orgId === org)?.permissions.includes(permission) ?? false)
  );
}

/** Whether the caller may call an operation. What would be refused is not offered. */
export function may(operation: Operation | OperationName, org?: string): boolean {
  const { permission, narrower = [], scope } = ruleOf(operation);
  if (permission === 'authenticated' || permission === 'public') return true;
  return [permission, ...narrower].some((p) => holds(p, scope === 'self' ? undefined : org));
}

/** Whether the caller sees more than organizations: has a role in the installation. */
export function ofInstallation(): boolean {
  return state.everywhere.size > 0;
}
