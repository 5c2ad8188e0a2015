// What a trial of a sign-in leaves in the browser until it comes back: where it was started, and with what.
import type { JsonObject } from '@bufbuild/protobuf';

export interface Started {
  readonly org: string;
  readonly value: JsonObject;
}

const key = (appId: string) => `signet-console-trial-${appId}`;

/** Remembers in this tab how a trial was started. */
export function keepStarted(appId: string, started: Started): void {
  try {
    sessionStorage.setItem(key(appId), JSON.stringify(started));
  } catch {
    // A browser that stores nothing asks the server for the organization.
  }
}

/** How the last trial of the application was started in this tab. */
export function lastStarted(appId: string): Started | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key(appId)) ?? 'null') as Partial<Started> | null;
    return kept && typeof kept.org === 'string' && kept.value && typeof kept.value === 'object'
      ? { org: kept.org, value: kept.value }
      : undefined;
  } catch {
    return undefined;
  }
}

/** A JSON text so that people can read it. */
export function readable(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    // Long numbers would lose digits: only what has parts is written anew.
    return value !== null && typeof value === 'object' && JSON.stringify(value).length > 60
      ? JSON.stringify(value, null, 2)
      : json;
  } catch {
    return json;
  }
}

/** The header and the claims of a JWT, as text; empty for other tokens. */
export function decoded(token: string): string {
  const parts = token.split('.');
  if (parts.length !== 3) return '';
  try {
    return parts
      .slice(0, 2)
      .map((part) => {
        const bytes = Uint8Array.from(atob(part.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
        return JSON.stringify(JSON.parse(new TextDecoder().decode(bytes)), null, 2);
      })
      .join('\n');
  } catch {
    return '';
  }
}
