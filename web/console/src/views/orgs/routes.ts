import Building from '@lucide/svelte/icons/building';
import Globe from '@lucide/svelte/icons/globe';
import Settings from '@lucide/svelte/icons/settings';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/organizations',
    area: 'orgs',
    view: () => import('./Organizations.svelte'),
    needs: 'OrganizationService/ListOrganizations',
    place: { group: 'installation', part: 'people', text: 'nav.organizations', icon: Building, order: 10 },
  },
  {
    path: '/o/:org/domains',
    area: 'orgs',
    view: () => import('./Domains.svelte'),
    needs: 'OrganizationService/ListDomains',
    place: { group: 'organization', part: 'signIn', text: 'nav.domains', icon: Globe, order: 120 },
  },
  {
    path: '/o/:org/settings',
    area: 'orgs',
    view: () => import('./Settings.svelte'),
    needs: 'OrganizationService/GetOrganization',
    place: { group: 'organization', part: 'settings', text: 'nav.settings', icon: Settings, order: 120 },
  },
];

export const actions: readonly Action[] = [
  {
    text: 'do.setUpOrganization',
    href: '/organizations?add=organization',
    needs: 'OrganizationService/SetupInvitedOrganization',
  },
  { text: 'do.addDomain', href: '/o/:org/domains?add=domain', needs: 'OrganizationService/AddDomain' },
];
