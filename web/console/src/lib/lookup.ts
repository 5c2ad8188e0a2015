// Names for identifiers. However many a view shows, it asks once: all that are wanted in the same moment go into one
// request.
import { SvelteMap } from 'svelte/reactivity';
import { NameService } from '../gen/signet/v1/name_pb';
import { may } from './access.svelte';
import { call } from './api/call.svelte';
import { viewOf, type Named } from './places';
import { address } from './router.svelte';

export type { Named };

const most = 500;
const known = new SvelteMap<string, Named>();
/** What was asked for on this page, found or not. */
let asked = new Map<string, Promise<void>>();
let page = '';
let wanted: string[] = [];
let batch: Promise<void> | undefined;

/** Asks for everything that was wanted in this moment. */
async function ask(): Promise<void> {
  // Everything that is drawn together is wanted together.
  await new Promise((resolve) => setTimeout(resolve));
  const ids = wanted;
  [wanted, batch] = [[], undefined];
  for (let i = 0; i < ids.length; i += most) {
    const { names } = await call(NameService.method.lookUpNames, { ids: ids.slice(i, i + most) });
    for (const n of names) known.set(n.id, { id: n.id, kind: n.kind as Named['kind'], name: n.name, org: n.orgId });
  }
}

/**
 * Finds out what identifiers stand for; those that the caller may not read are left out of the answer. It never fails: without
 * an answer, there are no names. What was asked for once is not asked for again on the same page.
 */
export async function namesOf(ids: Iterable<string>): Promise<ReadonlyMap<string, Named>> {
  if (page !== address.path) [page, asked] = [address.path, new Map()];
  const all = [...new Set(ids)].filter(Boolean);
  for (const id of all) {
    if (asked.has(id)) continue;
    wanted.push(id);
    batch ??= ask().catch(() => {});
    asked.set(id, batch);
  }
  await Promise.all(all.map((id) => asked.get(id)));
  return new Map(all.flatMap((id) => (known.has(id) ? [[id, known.get(id) as Named]] : [])));
}

/** What is known of an identifier now. Whatever shows it is drawn again when its name arrives. */
export function named(id: string): Named | undefined {
  return known.get(id);
}

/** The name of an identifier as text, or else the identifier itself. */
export function nameText(id: string): string {
  return known.get(id)?.name || id;
}

/** The address of the view of an object, empty if there is none that the caller may open. */
export function placeOf(object: Named): string {
  const { needs, href } = viewOf(object);
  return !needs || may(needs, object.org) ? href : '';
}

/** An identifier short enough for a line; its end tells it from others. */
export function shortId(id: string): string {
  return id.length <= 14 ? id : `…${id.slice(-12)}`;
}
