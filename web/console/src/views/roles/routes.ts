import RolesIcon from '@lucide/svelte/icons/shield-check';
import type { Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/roles',
    area: 'roles',
    view: () => import('./Roles.svelte'),
    needs: 'AccessService/ListRoles',
    place: { group: 'me', text: 'nav.roles', icon: RolesIcon, order: 20 },
  },
];
