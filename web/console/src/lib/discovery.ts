// What the server says about itself to applications.
import { Code, ConnectError } from '@connectrpc/connect';
import { Problem, problemOf } from './api/problem';

export interface Discovery {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly userinfo_endpoint: string;
  readonly jwks_uri: string;
  readonly end_session_endpoint: string;
  readonly introspection_endpoint: string;
  readonly revocation_endpoint: string;
  readonly device_authorization_endpoint: string;
  readonly scopes_supported: readonly string[];
}

export const discoveryPath = '/.well-known/openid-configuration';

let asked: Promise<Discovery> | undefined;

async function ask(): Promise<Discovery> {
  let answer: Response;
  try {
    answer = await fetch(discoveryPath, { credentials: 'omit' });
  } catch (thrown) {
    throw problemOf(thrown);
  }
  if (!answer.ok)
    throw new Problem(new ConnectError('', answer.status === 429 ? Code.ResourceExhausted : Code.Unavailable));
  return (await answer.json()) as Discovery;
}

/** The server's discovery document, asked for once. */
export function discovery(): Promise<Discovery> {
  asked ??= ask().catch((thrown: unknown) => {
    asked = undefined;
    throw thrown;
  });
  return asked;
}
