import UsersRound from '@lucide/svelte/icons/users-round';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/groups',
    area: 'groups',
    view: () => import('./Groups.svelte'),
    needs: 'GroupService/ListGroups',
    place: { group: 'organization', part: 'people', text: 'nav.groups', icon: UsersRound, order: 20 },
  },
  {
    path: '/o/:org/groups/:group',
    area: 'groups',
    view: () => import('./Group.svelte'),
    needs: 'GroupService/GetGroup',
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addGroup', href: '/o/:org/groups?add=group', needs: 'GroupService/AddGroup' },
];
