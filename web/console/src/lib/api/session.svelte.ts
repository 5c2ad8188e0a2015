// The browser's session as a token for the API. The token lives in memory only, for a few minutes, and is asked for
// again.
import { Code, ConnectError } from '@connectrpc/connect';
import { Problem } from './problem';

interface Token {
  token: string;
  /** By this browser's clock, which may differ from the server's. */
  expiresAt: number;
  sessionId: string;
  userId: string;
  name: string;
  prove: string;
}

/** Renewed this long before it expires, so that no request is sent with a token that dies on its way. */
const margin = 30_000;

/** The page of the console at which another window ends. */
export const signedIn = '/console/signed-in';

/** Tabs tell each other about sign-ins: a tab that waits goes on. */
const channel = new BroadcastChannel('signet-console');

let current: Token | undefined;
let asking: Promise<Token> | undefined;
let waiting: Promise<void> | undefined;

/** What the page shows about the session. */
export const session = $state({
  userId: '',
  /** The name of the user. */
  name: '',
  sessionId: '',
  /**
   * The page of the server at which the person can prove again who they are, with whatever way of signing in they have.
   */
  prove: '',
  /** The address to sign in again at, while the session is gone and a request waits for it. */
  signIn: '',
  /** Somebody else has signed in meanwhile: what is on the page is not theirs. */
  stranger: false,
});

/** The session is gone; `signIn` is where to get another one. */
export class SignedOut extends Error {
  constructor(readonly signIn: string) {
    super('signed out');
  }
}

async function ask(): Promise<Token> {
  const back = location.pathname + location.search;
  let answer: Response;
  try {
    answer = await fetch('/console/token', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ returnTo: back, ...(session.sessionId && { sessionId: session.sessionId }) }),
    });
  } catch {
    throw new Problem(new ConnectError('', Code.Unavailable));
  }
  const body = (await answer.json().catch(() => ({}))) as Partial<Omit<Token, 'expiresAt'>> & {
    expiresIn?: number;
    signIn?: string;
    next?: string;
    message?: string;
  };
  const elsewhere = body.signIn ?? body.next;
  if (elsewhere) throw new SignedOut(elsewhere);
  const { token, expiresIn, sessionId, userId, name, prove } = body;
  if (!answer.ok || !token || !expiresIn || !userId || !sessionId) {
    throw new Problem(
      new ConnectError(
        body.message ?? '',
        answer.status === 429 ? Code.ResourceExhausted : answer.status >= 500 ? Code.Unavailable : Code.Unknown,
      ),
    );
  }
  return { token, expiresAt: Date.now() + expiresIn * 1000, sessionId, userId, name: name ?? '', prove: prove ?? '' };
}

/** Gives a token that is good for the next request. */
export async function token(): Promise<string> {
  if (current && current.expiresAt - Date.now() > margin) return current.token;
  asking ??= ask().finally(() => (asking = undefined));
  const fresh = await asking;
  if (session.userId && session.userId !== fresh.userId) {
    session.stranger = true;
    throw new Problem(new ConnectError('', Code.Unauthenticated));
  }
  session.userId = fresh.userId;
  session.name = fresh.name;
  session.sessionId = fresh.sessionId;
  session.prove = inWindow(fresh.prove);
  current = fresh;
  return fresh.token;
}

/** The same page of the server for another window, which ends at a page that tells this one. */
function inWindow(address: string): string {
  const url = new URL(address, location.origin);
  url.searchParams.set('to', signedIn);
  return url.href;
}

/** Opens a page of the server in another window. What is on this page stays. */
export function openWindow(address: string): void {
  window.open(address, '_blank');
}

/** Forgets the token: the server no longer takes it. */
export function forgetToken(): void {
  current = undefined;
}

/** Waits until the person has signed in again, in another window. What was typed here stays. */
export function signInAgain(address: string): Promise<void> {
  session.signIn = inWindow(address);
  // Another session of the same person is as good.
  session.sessionId = '';
  forgetToken();
  waiting ??= new Promise<void>((resolve) => {
    const look = async () => {
      try {
        await token();
      } catch {
        if (!session.stranger) return;
      }
      channel.removeEventListener('message', look);
      window.removeEventListener('focus', look);
      session.signIn = '';
      waiting = undefined;
      resolve();
    };
    channel.addEventListener('message', look);
    window.addEventListener('focus', look);
  });
  return waiting;
}

/** Tells the other tabs that this one has a session, or a newer proof. */
export function announceSignIn(): void {
  channel.postMessage('signed in');
}

/** Calls back when another window has signed in or proven. Gives the function that stops it. */
export function onSignIn(told: () => void): () => void {
  channel.addEventListener('message', told);
  return () => channel.removeEventListener('message', told);
}

/** Ends the session in this browser. */
export async function signOut(): Promise<void> {
  const answer = await fetch('/console/sign_out', {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sessionId: session.sessionId }),
  });
  if (!answer.ok)
    throw new Problem(new ConnectError('', answer.status === 429 ? Code.ResourceExhausted : Code.Unavailable));
  forgetToken();
  location.assign('/console/');
}
