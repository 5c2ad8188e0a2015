import AppWindow from '@lucide/svelte/icons/app-window';
import Globe from '@lucide/svelte/icons/globe';
import type { Action, Route } from '../../routes.svelte';

const one = { area: 'apps', needs: 'ApplicationService/GetApplication' } as const;

export const routes: readonly Route[] = [
  {
    path: '/o/:org/apps',
    area: 'apps',
    view: () => import('./Apps.svelte'),
    needs: 'ApplicationService/ListApplications',
    place: { group: 'organization', part: 'applications', text: 'nav.apps', icon: AppWindow, order: 50 },
  },
  {
    path: '/o/:org/apps/approvals',
    area: 'apps',
    view: () => import('./Approvals.svelte'),
    needs: 'ApplicationService/ListAudienceApprovals',
  },
  { ...one, path: '/o/:org/apps/:app', view: () => import('./Overview.svelte') },
  { ...one, path: '/o/:org/apps/:app/settings', view: () => import('./Settings.svelte') },
  { ...one, path: '/o/:org/apps/:app/credentials', view: () => import('./Credentials.svelte') },
  { ...one, path: '/o/:org/apps/:app/access', view: () => import('./Access.svelte') },
  { ...one, path: '/o/:org/apps/:app/claims', view: () => import('./Claims.svelte') },
  { ...one, path: '/o/:org/apps/:app/snippets', view: () => import('./Snippets.svelte') },
  {
    ...one,
    path: '/o/:org/apps/:app/try',
    view: () => import('./Try.svelte'),
    needs: 'SignInTrialService/StartSignInTrial',
  },
  { path: '/apps/:app/try', area: 'apps', view: () => import('./TryReturn.svelte') },
  {
    ...one,
    path: '/o/:org/apps/:app/metadata',
    view: () => import('./Metadata.svelte'),
    needs: 'MetadataService/GetApplicationMetadata',
  },
  {
    path: '/installation/apps',
    area: 'apps',
    view: () => import('./AllApps.svelte'),
    needs: 'ApplicationService/ListAllOrganizationsApplications',
    place: { group: 'installation', part: 'applications', text: 'nav.allApps', icon: Globe, order: 60 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addApp', href: '/o/:org/apps?add=choose', needs: 'ApplicationService/AddApplication' },
  { text: 'do.showApprovals', href: '/o/:org/apps/approvals', needs: 'ApplicationService/ListAudienceApprovals' },
];
