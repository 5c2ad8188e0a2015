// What the events of sign-ins say about how and why, in words with what to do.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Event } from '../gen/signet/v1/event_pb';
import { plainType } from './events';
import { hasText, t } from './texts.svelte';

/** How one or more sign-ins ended. What is not known is empty. */
export interface Cause {
  readonly count: number;
  readonly method: string;
  readonly provider: string;
  readonly application: string;
  /** Why it failed; empty where it did not. */
  readonly why: string;
  readonly whatToDo: string;
  /** The check of a provider, as the documentation names it. */
  readonly check: string;
}

// Checks of providers that say the same to an administrator.
const groups: Record<string, string> = {
  interrupted: 'state state_expired state_used provider browser changed',
  inactive: 'inactive',
  denied: 'denied',
  client: 'refused code client',
  token: `
    iss_parameter token_answer token algorithm key signature issuer audience azp replayed subject nonce at_hash
  `,
  clock: 'expired issued_at not_before',
  tenant: 'tenant',
  userinfo: 'userinfo userinfo_subject',
  configuration: 'configuration address',
  away: 'discovery keys unreachable busy',
};
const groupOf = new Map(
  Object.entries(groups).flatMap(([group, checks]) =>
    checks
      .trim()
      .split(/\s+/)
      .map((check): [string, string] => [check, group]),
  ),
);

const text = (of: JsonObject, name: string): string => (typeof of[name] === 'string' ? of[name] : '');
const number = (of: JsonObject, name: string): number => (typeof of[name] === 'number' ? of[name] : 0);
const known = (key: string): string => (hasText(key) ? t(key) : '');

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value)
    ? value.filter((v): v is JsonObject => v !== null && typeof v === 'object' && !Array.isArray(v))
    : [];
}

function causeOf(of: JsonObject): Cause {
  const [method, check, reason] = [text(of, 'method'), text(of, 'check'), text(of, 'reason')];
  const group = check.startsWith('logout_') ? 'logout' : (groupOf.get(check) ?? '');
  return {
    count: number(of, 'count'),
    method: method && (known(`way.${method}`) || method),
    provider: text(of, 'provider'),
    application: text(of, 'application'),
    // A newer server may know more of them.
    why: check ? known(`check.${group}`) : reason && (known(`why.${reason}`) || reason),
    whatToDo: check ? known(`checkToDo.${group}`) : known(`whatToDo.${reason}`),
    check,
  };
}

/** How and why the sign-ins of an event ended, and how many more failures there were; nothing for other events. */
export function causesOf(event: Event): { causes: readonly Cause[]; others: number } {
  const payload = event.payload ?? {};
  const others = number(payload, 'others');
  switch (plainType(event.type)) {
    case 'sign_in.succeeded':
    case 'sign_in.second_factor_guessed': {
      const cause = causeOf({ ...payload, reason: '' });
      return { causes: cause.method || cause.provider || cause.application ? [cause] : [], others: 0 };
    }
    case 'sign_in.failed':
      return { causes: objects(payload['by']).map(causeOf), others };
    case 'idp_sign_in.failed': {
      const by = objects(payload['by']);
      return { causes: (by.length > 0 ? by : [payload]).map(causeOf), others };
    }
  }
  return { causes: [], others: 0 };
}
