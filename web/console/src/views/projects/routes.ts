import Boxes from '@lucide/svelte/icons/boxes';
import Handshake from '@lucide/svelte/icons/handshake';
import type { Action, Route } from '../../routes.svelte';

const one = { area: 'projects', needs: 'ProjectService/GetProject' } as const;

export const routes: readonly Route[] = [
  {
    path: '/o/:org/projects',
    area: 'projects',
    view: () => import('./Projects.svelte'),
    needs: 'ProjectService/ListProjects',
    place: { group: 'organization', part: 'applications', text: 'nav.projects', icon: Boxes, order: 60 },
  },
  { ...one, path: '/o/:org/projects/:project', view: () => import('./Roles.svelte') },
  { ...one, path: '/o/:org/projects/:project/people', view: () => import('./People.svelte') },
  { ...one, path: '/o/:org/projects/:project/apps', view: () => import('./ProjectApps.svelte') },
  { ...one, path: '/o/:org/projects/:project/grants', view: () => import('./Grants.svelte') },
  {
    ...one,
    path: '/o/:org/projects/:project/metadata',
    view: () => import('./Metadata.svelte'),
    needs: 'MetadataService/GetProjectMetadata',
  },
  {
    path: '/o/:org/granted',
    area: 'projects',
    view: () => import('./Granted.svelte'),
    needs: 'ProjectService/ListGrantedProjects',
    place: { group: 'organization', part: 'applications', text: 'nav.granted', icon: Handshake, order: 65 },
  },
  {
    path: '/o/:org/granted/:grant',
    area: 'projects',
    view: () => import('./GrantedProject.svelte'),
    needs: 'ProjectService/ListGrantedProjects',
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addProject', href: '/o/:org/projects?add=1', needs: 'ProjectService/AddProject' },
];
