// The address says what is shown: the view by its path, filters and page by its query.
import { tick } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { forgetCalls } from './api/call.svelte';

export const base = '/console';

const read = () => location.pathname.slice(base.length) || '/';

const state = $state({ path: read(), within: '' });
/** Whoever reads one parameter is not told about the others. */
const query = new SvelteMap<string, string>(new URLSearchParams(location.search));
let guards: (() => boolean)[] = [];

/** Where the console is. */
export const address = {
  get path() {
    return state.path;
  },
  /** The path of the view that this one belongs to, for the navigation: its own, unless it says otherwise. */
  get within() {
    return state.within || state.path;
  },
};

/** Says to which view another one belongs whose address does not tell, as long as it is shown. */
export function belongsTo(path: string): () => void {
  state.within = path;
  return () => (state.within = '');
}

/** A parameter of the query, empty if it is not there. */
export function parameter(name: string): string {
  return query.get(name) ?? '';
}

/** The address inside the console that differs from this one by some parameters; empty ones are left out. */
export function withParameters(changes: Record<string, string | undefined>): string {
  const changed = new URLSearchParams([...query]);
  for (const [name, value] of Object.entries(changes)) {
    if (value) changed.set(name, value);
    else changed.delete(name);
  }
  return state.path + (changed.size > 0 ? `?${changed}` : '');
}

/** Asks before leaving, as long as the given function says so. Gives the function that takes it back. */
export function guardLeaving(guard: () => boolean): () => void {
  guards.push(guard);
  return () => (guards = guards.filter((g) => g !== guard));
}

/** Loads the console anew without asking: what was typed cannot be sent any more. */
export function reload(): void {
  guards = [];
  location.assign(`${base}/`);
}

let ask: () => Promise<boolean> = () => Promise.resolve(true);
const unsaved = () => guards.some((g) => g());

/** Sets how to ask whether to leave what was typed. */
export function askBeforeLeaving(how: () => Promise<boolean>): void {
  ask = how;
}

/** Goes to an address inside the console, such as `/o/org_1/users`. */
export async function go(to: string, { replace = false } = {}): Promise<void> {
  const samePath = to.split('?')[0] === state.path;
  if (!samePath && unsaved() && !(await ask())) return;
  if (replace) history.replaceState(null, '', base + to);
  else history.pushState(null, '', base + to);
  await arrive();
}

let moved = false;

/** Whether another view than the first one is shown. */
export function hasMoved(): boolean {
  return moved;
}

async function arrive(): Promise<void> {
  const [before, now, asked] = [state.path, read(), new URLSearchParams(location.search)];
  if (now !== before) forgetCalls();
  state.path = now;
  for (const name of [...query.keys()]) if (!asked.has(name)) query.delete(name);
  for (const [name, value] of asked) query.set(name, value);
  if (now === before) return;
  moved = true;
  await tick();
  window.scrollTo(0, 0);
}

/** Starts to listen for links and for the browser's own buttons. */
export function startRouter(): void {
  moved = false;
  window.addEventListener('popstate', () => {
    if (!unsaved()) {
      void arrive();
      return;
    }
    // The page stays until the person has answered.
    const to = read() + location.search;
    history.pushState(null, '', base + withParameters({}));
    void ask().then((leave) => {
      if (!leave) return;
      history.replaceState(null, '', base + to);
      void arrive();
    });
  });
  window.addEventListener('beforeunload', (event) => {
    if (unsaved()) event.preventDefault();
  });
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = (event.target as Element).closest('a');
    if (
      !link ||
      link.target ||
      link.hasAttribute('download') ||
      link.origin !== location.origin ||
      !link.pathname.startsWith(`${base}/`)
    )
      return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    void go(link.pathname.slice(base.length) + link.search);
  });
}

/** The address of a link. */
export function href(to: string): string {
  return base + to;
}

/** Matches a path with a pattern such as `/o/:org/users/:user`. */
export function matches(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.replace(/\/+$/, '').split('/')];
  if (pattern === '/') return path === '/' ? {} : undefined;
  if (wanted.length !== given.length) return undefined;
  const found: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    const value = given[i] ?? '';
    if (part.startsWith(':')) {
      try {
        found[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
      if (!value) return undefined;
    } else if (part !== value) return undefined;
  }
  return found;
}
