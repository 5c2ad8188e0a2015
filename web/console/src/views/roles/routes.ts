import OwnRolesIcon from '@lucide/svelte/icons/user-check';
import RolesIcon from '@lucide/svelte/icons/shield-check';
import type { Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/roles',
    area: 'roles',
    view: () => import('./Roles.svelte'),
    needs: 'AccessService/ListRoles',
    place: { group: 'both', part: 'settings', text: 'nav.roles', icon: RolesIcon, order: 20 },
  },
  {
    path: '/o/:org/roles',
    area: 'roles',
    view: () => import('./CustomRoles.svelte'),
    needs: 'RoleService/ListOrganizationRoles',
    place: { group: 'organization', part: 'people', text: 'nav.ownRoles', icon: OwnRolesIcon, order: 45 },
  },
  {
    path: '/installation/roles',
    area: 'roles',
    view: () => import('./CustomRoles.svelte'),
    needs: 'RoleService/ListInstallationRoles',
    everywhere: true,
    place: { group: 'installation', part: 'people', text: 'nav.ownRoles', icon: OwnRolesIcon, order: 25 },
  },
];
