import { mount } from 'svelte';
import App from './App.svelte';
import { homeOrganization, loadAccess } from './lib/access.svelte';
import { problemOf } from './lib/api/problem';
import { announceSignIn, signedIn, SignedOut, token } from './lib/api/session.svelte';
import { address, base, go, startRouter } from './lib/router.svelte';
import { language, loadTexts } from './lib/texts.svelte';
import Failure from './lib/ui/Failure.svelte';
import { find } from './routes.svelte';
import './styles.css';

async function start(target: HTMLElement): Promise<void> {
  document.documentElement.lang = language();
  const texts = loadTexts('common', 'fields');
  // The first view is loaded while the server is asked who this is.
  const first = find(address.path === '/' ? '/o/home' : address.path)?.route;
  void Promise.all([first?.view(), first && loadTexts(first.area)]).catch(() => {});
  const fail = async (thrown: unknown) => {
    await texts;
    target.replaceChildren();
    mount(Failure, { target, props: { problem: problemOf(thrown), again: () => location.reload() } });
  };
  try {
    await token();
  } catch (thrown) {
    if (thrown instanceof SignedOut) {
      location.replace(thrown.signIn);
      return;
    }
    return fail(thrown);
  }
  if (location.pathname === signedIn) {
    announceSignIn();
    window.close();
  }
  try {
    await Promise.all([texts, loadAccess()]);
  } catch (thrown) {
    return fail(thrown);
  }
  if (location.pathname === `${base}/` || location.pathname === signedIn)
    await go(`/o/${homeOrganization()}`, { replace: true });
  startRouter();
  // The page has come with the beginning of the frame.
  target.replaceChildren();
  mount(App, { target });
}

const target = document.getElementById('app');
if (target) void start(target);
