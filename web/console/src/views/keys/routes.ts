import KeyRound from '@lucide/svelte/icons/key-round';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/installation/keys',
    area: 'keys',
    view: () => import('./Keys.svelte'),
    needs: 'SigningKeyService/ListSigningKeys',
    place: { group: 'installation', part: 'signIn', text: 'nav.keys', icon: KeyRound, order: 40 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.rotateKeys', href: '/installation/keys?rotate=later', needs: 'SigningKeyService/RotateSigningKeys' },
];
