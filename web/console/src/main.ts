import { mount } from 'svelte';
import App from './App.svelte';
import { homeOrganization, loadAccess } from './lib/access.svelte';
import { problemOf } from './lib/api/problem';
import { announceSignIn, signedIn, SignedOut, token } from './lib/api/session.svelte';
import { base, go, startRouter } from './lib/router.svelte';
import { language, loadTexts } from './lib/texts.svelte';
import Failure from './lib/ui/Failure.svelte';
import './styles.css';

async function start(target: HTMLElement): Promise<void> {
  document.documentElement.lang = language();
  const texts = loadTexts('common', 'fields');
  try {
    await token();
  } catch (thrown) {
    if (thrown instanceof SignedOut) {
      location.replace(thrown.signIn);
      return;
    }
    await texts;
    mount(Failure, { target, props: { problem: problemOf(thrown), again: () => location.reload() } });
    return;
  }
  if (location.pathname === signedIn) {
    announceSignIn();
    window.close();
  }
  try {
    await Promise.all([texts, loadAccess()]);
  } catch (thrown) {
    await texts;
    mount(Failure, { target, props: { problem: problemOf(thrown), again: () => location.reload() } });
    return;
  }
  if (location.pathname === `${base}/` || location.pathname === signedIn) await go(`/o/${homeOrganization()}`, { replace: true });
  startRouter();
  mount(App, { target });
}

const target = document.getElementById('app');
if (target) void start(target);
