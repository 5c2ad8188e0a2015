// Every view of the console: its address, who may see it, and where it is offered. Each area lists its own in
// views/<area>/routes.ts.
import type { Component } from 'svelte';
import { may } from './lib/access.svelte';
import type { OperationName } from './lib/api/rules';
import { matches } from './lib/router.svelte';
import { t } from './lib/texts.svelte';

// Views take what their address names, such as `org` and `user`.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type View = Component<any>;

/** The parts of the navigation, in their order. The first has no heading. */
const parts = ['home', 'people', 'applications', 'signIn', 'log', 'settings'] as const;
export type Part = (typeof parts)[number];

export interface Route {
  /** Path below /console, such as `/o/:org/users/:user`. */
  readonly path: string;
  /** Name of the file of its texts. */
  readonly area: string;
  readonly view: () => Promise<{ default: View }>;
  /** An operation that the view cannot do without: who may not call it is not led there. */
  readonly needs?: OperationName;
  /** It is needed in the whole installation, not in one organization. */
  readonly everywhere?: boolean;
  /** Where it stands in the navigation, and its text (in `common`). Views of single objects have no place. */
  readonly place?: {
    readonly group: 'organization' | 'installation' | 'both' | 'me';
    /** The part of the group that it stands in. */
    readonly part?: Part;
    readonly text: string;
    readonly icon: Component;
    readonly order: number;
  };
}

/** Something that can be done, for the command palette. Its text is in `common`. */
export interface Action {
  readonly text: string;
  readonly href: string;
  readonly needs?: OperationName;
}

const areas = import.meta.glob<{ routes: readonly Route[]; actions?: readonly Action[] }>('./views/*/routes.ts', {
  eager: true,
});

export const routes: readonly Route[] = Object.values(areas).flatMap((a) => a.routes);
const actions: readonly Action[] = Object.values(areas).flatMap((a) => a.actions ?? []);

/** The view of a path, and what the path names. */
export function find(path: string): { route: Route; parameters: Record<string, string> } | undefined {
  for (const route of routes) {
    const parameters = matches(route.path, path);
    if (parameters) return { route, parameters };
  }
  return undefined;
}

const filled = (path: string, org: string) => path.replace(':org', org);
const allowed = (needs: OperationName | undefined, org: string | undefined) => !needs || may(needs, org);

type Group = 'organization' | 'installation' | 'me';

function entriesOf(group: Group, org: string) {
  return routes
    .flatMap((r) =>
      r.place &&
      (r.place.group === group || (r.place.group === 'both' && group !== 'me')) &&
      allowed(r.needs, r.everywhere ? undefined : org)
        ? [{ part: 'settings' as Part, ...r.place, href: filled(r.path, org) }]
        : [],
    )
    .sort((a, b) => a.order - b.order);
}

/** The navigation of an organization, or of the installation: its parts with their entries. */
export function navigation(group: Group, org: string) {
  const entries = entriesOf(group, org);
  return parts
    .map((part) => ({ part, entries: entries.filter((e) => e.part === part) }))
    .filter((p) => p.entries.length > 0);
}

/** Every place and action that the caller may use, for the search. */
export function places(org: string, installation: boolean): { text: string; href: string; detail?: string }[] {
  const of = (group: Group) => navigation(group, org).flatMap((p) => p.entries);
  const seen = new Set<string>();
  return [
    ...of('organization').map((p) => ({ text: t(p.text), href: p.href })),
    ...(installation
      ? of('installation').map((p) => ({ text: t(p.text), href: p.href, detail: t('group.installation') }))
      : []),
    ...of('me').map((p) => ({ text: t(p.text), href: p.href })),
    ...actions.filter((a) => allowed(a.needs, org)).map((a) => ({ text: t(a.text), href: filled(a.href, org) })),
  ].filter((p) => !seen.has(p.href) && seen.add(p.href));
}
