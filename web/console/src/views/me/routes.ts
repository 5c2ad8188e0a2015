import UserIcon from '@lucide/svelte/icons/circle-user-round';
import type { Action, Route } from '../../routes.svelte';

// The texts are those of users: both views show the same things.
export const routes: readonly Route[] = [
  {
    path: '/me',
    area: 'users',
    view: () => import('./Me.svelte'),
    place: { group: 'me', text: 'nav.me', icon: UserIcon, order: 10 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.changeMyPassword', href: '/me?add=password' },
  { text: 'do.createMyToken', href: '/me?add=token' },
];
