import House from '@lucide/svelte/icons/house';
import type { Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org',
    area: 'overview',
    view: () => import('./Overview.svelte'),
    place: { group: 'organization', part: 'home', text: 'nav.overview', icon: House, order: 10 },
  },
];
