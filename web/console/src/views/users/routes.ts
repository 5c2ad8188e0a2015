import UsersIcon from '@lucide/svelte/icons/users';
import { UserService } from '../../gen/signet/v1/user_pb';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/users',
    area: 'users',
    view: () => import('./Users.svelte'),
    needs: UserService.method.listUsers,
    place: { group: 'organization', text: 'nav.users', icon: UsersIcon, order: 20 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addUser', href: '/o/:org/users?add=human', needs: UserService.method.addHumanUser },
  { text: 'do.addServiceUser', href: '/o/:org/users?add=service', needs: UserService.method.addServiceUser },
];
