import Activity from '@lucide/svelte/icons/activity';
import type { Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/installation/status',
    area: 'status',
    view: () => import('./Status.svelte'),
    needs: 'StatusService/GetStatus',
    place: { group: 'installation', part: 'settings', text: 'nav.status', icon: Activity, order: 10 },
  },
];
