import UsersIcon from '@lucide/svelte/icons/users';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/users',
    area: 'users',
    view: () => import('./Users.svelte'),
    needs: 'UserService/ListUsers',
    place: { group: 'organization', part: 'people', text: 'nav.users', icon: UsersIcon, order: 10 },
  },
  { path: '/o/:org/search', area: 'users', view: () => import('./Search.svelte'), needs: 'UserService/SearchUsers' },
  { path: '/o/:org/import', area: 'users', view: () => import('./Import.svelte'), needs: 'UserService/ImportUsers' },
  { path: '/o/:org/users/:user', area: 'users', view: () => import('./Overview.svelte'), needs: 'UserService/GetUser' },
  {
    path: '/o/:org/users/:user/sign-in',
    area: 'users',
    view: () => import('./SignIn.svelte'),
    needs: 'UserService/GetUser',
  },
  {
    path: '/o/:org/users/:user/access',
    area: 'users',
    view: () => import('./Access.svelte'),
    needs: 'UserService/GetUser',
  },
  {
    path: '/o/:org/users/:user/metadata',
    area: 'users',
    view: () => import('./Metadata.svelte'),
    needs: 'MetadataService/GetUserMetadata',
  },
  {
    path: '/o/:org/users/:user/history',
    area: 'users',
    view: () => import('./UserHistory.svelte'),
    needs: 'EventService/ListEvents',
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addUser', href: '/o/:org/users?add=human', needs: 'UserService/AddHumanUser' },
  { text: 'do.addServiceUser', href: '/o/:org/users?add=service', needs: 'UserService/AddServiceUser' },
  { text: 'do.searchUsers', href: '/o/:org/search', needs: 'UserService/SearchUsers' },
  { text: 'do.importUsers', href: '/o/:org/import', needs: 'UserService/ImportUsers' },
];
