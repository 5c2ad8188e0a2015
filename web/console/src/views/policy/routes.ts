import ShieldCheck from '@lucide/svelte/icons/shield-check';
import type { Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/policy',
    area: 'policy',
    view: () => import('./Policy.svelte'),
    needs: 'PolicyService/GetOrganizationPolicy',
    place: { group: 'organization', part: 'signIn', text: 'nav.policy', icon: ShieldCheck, order: 110 },
  },
  {
    path: '/installation/policy',
    area: 'policy',
    view: () => import('./Policy.svelte'),
    needs: 'PolicyService/GetInstallationPolicy',
    place: { group: 'installation', part: 'signIn', text: 'nav.installationPolicy', icon: ShieldCheck, order: 30 },
  },
];
