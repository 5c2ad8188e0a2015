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
  },
  {
    path: '/installation/roles',
    area: 'roles',
    view: () => import('./CustomRoles.svelte'),
    needs: 'RoleService/ListInstallationRoles',
  },
];
