import UserCog from '@lucide/svelte/icons/user-cog';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/members',
    area: 'members',
    view: () => import('./Members.svelte'),
    needs: 'MemberService/ListOrganizationMembers',
    place: { group: 'organization', part: 'people', text: 'nav.members', icon: UserCog, order: 40 },
  },
  {
    path: '/installation/members',
    area: 'members',
    view: () => import('./Members.svelte'),
    needs: 'MemberService/ListInstallationMembers',
    place: { group: 'installation', part: 'people', text: 'nav.installationMembers', icon: UserCog, order: 20 },
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addMember', href: '/o/:org/members?add=member', needs: 'MemberService/SetOrganizationMember' },
  {
    text: 'do.addInstallationMember',
    href: '/installation/members?add=member',
    needs: 'MemberService/SetInstallationMember',
  },
];
