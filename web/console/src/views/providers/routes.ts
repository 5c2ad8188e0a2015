import KeyRound from '@lucide/svelte/icons/key-round';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/providers',
    area: 'providers',
    view: () => import('./Providers.svelte'),
    needs: 'IdentityProviderService/ListIdentityProviders',
    place: { group: 'organization', part: 'signIn', text: 'nav.providers', icon: KeyRound, order: 70 },
  },
  {
    path: '/o/:org/providers/:provider',
    area: 'providers',
    view: () => import('./Provider.svelte'),
    needs: 'IdentityProviderService/GetIdentityProvider',
  },
  {
    path: '/o/:org/providers/:provider/settings',
    area: 'providers',
    view: () => import('./Settings.svelte'),
    needs: 'IdentityProviderService/ModifyIdentityProvider',
  },
];

export const actions: readonly Action[] = [
  {
    text: 'do.addProvider',
    href: '/o/:org/providers?add=choose',
    needs: 'IdentityProviderService/AddOIDCIdentityProvider',
  },
];
