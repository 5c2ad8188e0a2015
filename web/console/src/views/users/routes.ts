import UsersIcon from '@lucide/svelte/icons/users';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/users',
    area: 'users',
    view: () => import('./Users.svelte'),
    needs: 'UserService/ListUsers',
    place: { group: 'organization', text: 'nav.users', icon: UsersIcon, order: 20 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addUser', href: '/o/:org/users?add=human', needs: 'UserService/AddHumanUser' },
  { text: 'do.addServiceUser', href: '/o/:org/users?add=service', needs: 'UserService/AddServiceUser' },
];
