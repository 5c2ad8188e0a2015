// How fields find what can be chosen.
import { OrganizationService } from '../../gen/signet/v1/organization_pb';
import { may, myOrganizations } from '../access.svelte';
import { call } from '../api/call.svelte';
import type { Found } from './fields';

/** Finds organizations: among all where the caller may list them, else among the caller's own. */
export async function findOrganizations(typed: string, signal: AbortSignal): Promise<Found[]> {
  if (!may(OrganizationService.method.listOrganizations)) {
    const wanted = typed.toLocaleLowerCase();
    return myOrganizations()
      .filter((o) => o.name.toLocaleLowerCase().startsWith(wanted))
      .slice(0, 20)
      .map((o) => ({ id: o.orgId, text: o.name }));
  }
  const { orgs } = await call(OrganizationService.method.listOrganizations, { name: typed, pageSize: 10 }, { signal });
  return orgs.map((o) => ({ id: o.orgId, text: o.name, detail: o.primaryDomain }));
}
