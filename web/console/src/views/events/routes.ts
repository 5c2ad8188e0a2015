import ScrollText from '@lucide/svelte/icons/scroll-text';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/events',
    area: 'events',
    view: () => import('./Events.svelte'),
    needs: 'EventService/StreamEvents',
    place: { group: 'organization', part: 'log', text: 'nav.events', icon: ScrollText, order: 75 },
  },
  {
    path: '/installation/events',
    area: 'events',
    view: () => import('./InstallationEvents.svelte'),
    needs: 'EventService/StreamEvents',
    everywhere: true,
    place: { group: 'installation', part: 'log', text: 'nav.allEvents', icon: ScrollText, order: 60 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.followEvents', href: '/o/:org/events?follow=1', needs: 'EventService/StreamEvents' },
  { text: 'do.failedSignIns', href: '/o/:org/events?type=sign_in.failed', needs: 'EventService/StreamEvents' },
];
