import Mail from '@lucide/svelte/icons/mail';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/invitations',
    area: 'invitations',
    view: () => import('./Invitations.svelte'),
    needs: 'InvitationService/ListInvitations',
    place: { group: 'organization', part: 'people', text: 'nav.invitations', icon: Mail, order: 30 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.invite', href: '/o/:org/invitations?add=invitation', needs: 'InvitationService/CreateInvitation' },
];
