// What events say: their types as sentences, the objects they are about, and the difference that each one made.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Event } from '../gen/signet/v1/event_pb';
import type { OperationName } from './api/rules';
import { dateTime, list } from './format';
import { hasText, language, t } from './texts.svelte';

// The kinds with the names of their types. A number is the newest version of a type that has more than one.
const known = {
  app: `
    added api_access_set api_consents_ended audience_approved audience_withdrawn claim_mappings_set deactivated first_party_set
    key_added key_removed metadata_set own_sign_in_set reactivated removed role_settings_set secret_removed secret_set settings_changed
    vouched
  `,
  consent: 'erased given withdrawn',
  group: 'added app_roles_set changed member_added member_removed members_counted removed roles_set',
  idp: `
    changed client_secret_removed client_secret_set deactivated jwt_added jwt_changed oauth_added oauth_changed
    oidc_added oidc_changed reactivated removed vouched
  `,
  idp_sign_in: 'failed',
  installation: 'added members_changed owner_added owner_removed policy_set',
  invitation: 'accepted added erased expired removed sent withdrawn',
  offer: 'accepted made removed replaced withdrawn',
  org: `
    added deactivated domain_added domain_removed domain_routing_set domain_verified emptied guest_credential_set
    metadata_set owner_lost policy_set primary_domain_set reactivated removed renamed
  `,
  project: 'added emptied group_roles_set metadata_set removed renamed role_removed role_set',
  project_access: 'added group_roles_set removed roles_set',
  project_grant: 'accepted added removed roles_set',
  role: 'added changed holders_counted permissions_set removed',
  sign_in: `
    device_ended device_recognized device_remembered erased failed grant_reused opened_by_support password_reset_requested
    reauthenticated second_factor_guessed second_factor_proven session_ended succeeded throttled token_issued
    token_revoked
  `,
  signing: 'key_added key_retired',
  user: `
    app_roles_set custom_role_changed deactivated email_changed email_code_requested email_restored email_verified
    factor_removal_requested factor_removed factor_renamed group_joined group_left group_roles_set human_added human_imported key_added key_removed
    link_added link_confirmed link_removed locked membership_set metadata_set org_left passkey_added
    password_changed password_reset password_set password_setup_sent phone_changed phone_removed phone_verified
    profile_changed reactivated recovery_code_used recovery_codes_made removed roles_accepted secret_removed
    secret_set service_added service_changed sessions_ended terms_accepted throttle_cleared
    totp_added unlocked user_name_changed workload_rule_added workload_rule_removed
  `,
  webhook: 'added:2 deactivated reactivated removed replayed secret_set settings_changed:2 skipped',
} as const;

export type EventKind = keyof typeof known;
export const eventKinds = Object.keys(known) as EventKind[];

// Every type without its version, such as `user.locked`, with its newest version.
const versions = new Map(
  Object.entries(known).flatMap(([kind, entries]) =>
    entries
      .trim()
      .split(/\s+/)
      .map((entry): [string, number] => {
        const [name, version = '1'] = entry.split(':');
        return [`${kind}.${name}`, Number(version)];
      }),
  ),
);

/** The types of a kind without their versions. */
export function typesOfKind(kind: EventKind): string[] {
  return [...versions.keys()].filter((type) => type.startsWith(`${kind}.`));
}

/**
 * The types that the API knows for a type without its version; whatever else is given stays as it is, such as `user.*`.
 */
export function withVersions(type: string): string[] {
  const newest = versions.get(type);
  return newest === undefined ? [type] : Array.from({ length: newest }, (_, i) => `${type}.v${i + 1}`);
}

/** A type without its version. */
export function plainType(type: string): string {
  return type.replace(/\.v\d+$/, '');
}

/** What happened, as a sentence. A type that is not known is shown as it is. */
export function sentence(type: string, payload?: JsonObject): string {
  const key = `event.${plainType(type)}`;
  const count = payload?.['count'];
  return hasText(key) ? t(key, { n: typeof count === 'number' ? count : 1 }) : type;
}

/** A kind of events in the person's language. */
export function kindText(kind: string): string {
  return hasText(`eventKind.${kind}`) ? t(`eventKind.${kind}`) : kind;
}

// Sign-ins and consents of a person, and what failed at a provider, have histories of their own, which belong to these.
const owners: Record<string, string> = { sgi: 'usr', con: 'usr', ips: 'idp' };

/** The object that has a name and a view: the person of a sign-in, the provider of a failed one. */
export function ownerOf(objectId: string): string {
  const [prefix = '', rest = ''] = objectId.split('_');
  return owners[prefix] ? `${owners[prefix]}_${rest}` : objectId;
}

const nameable = new Set(['usr', 'org', 'app', 'prj', 'grp', 'idp', 'whk']);

/** Whether an identifier stands for something whose name can be looked up. */
export function hasName(id: string): boolean {
  return /^[a-z]{3}_[0-9a-f]+$/.test(id) && nameable.has(id.slice(0, 3));
}

// Objects without a name of their own are shown by their kind, with the view that they are part of.
const kindPlaces: Record<string, readonly [OperationName, (org: string) => string]> = {
  invitation: ['InvitationService/ListInvitations', (org) => `/o/${org}/invitations`],
  project_grant: ['ProjectService/ListProjects', (org) => `/o/${org}/projects`],
  project_access: ['ProjectService/ListGrantedProjects', (org) => `/o/${org}/granted`],
  signing: ['SigningKeyService/ListSigningKeys', () => '/installation/keys'],
  installation: ['PolicyService/GetInstallationPolicy', () => '/installation/policy'],
};

/** The view of an object that has no name, and the operation that it needs. */
export function placeOfKind(event: Event): { href: string; needs: OperationName } | undefined {
  const [needs, place] = kindPlaces[event.objectType] ?? [];
  return needs && place && { href: place(event.orgId), needs };
}

/** What an object without a name is called by the event that made it, or else its identifier; empty if it has none. */
export function calledBy(event: Event): { name: string; id: string } {
  const { name, email } = event.payload ?? {};
  const called = [name, email].find((text) => typeof text === 'string' && text !== '');
  return {
    name: typeof called === 'string' ? called : '',
    id: /^[a-z]+_[0-9a-f]+$/.test(event.objectId) ? event.objectId : '',
  };
}

/** The object of an event, by its identifier, and which event of the object it is. */
export function partsOf(eventId: string): { object: string; sequence: bigint } | undefined {
  const [, object, sequence] = /^(.+)\.(\d{1,18})$/.exec(eventId) ?? [];
  return object && sequence ? { object, sequence: BigInt(sequence) } : undefined;
}

export type Before =
  { readonly kind: 'value'; readonly value: JsonValue } | { readonly kind: 'none' | 'erased' | 'unknown' };

/** One field that an event changed. */
export interface Change {
  readonly path: string;
  readonly before: Before;
  /** `undefined`: it was removed. */
  readonly after: JsonValue | undefined;
}

// What a type says without data.
const implied: Record<string, JsonObject> = {
  deactivated: { state: 'inactive' },
  reactivated: { state: 'active' },
  locked: { state: 'locked' },
  unlocked: { state: 'active' },
  email_verified: { emailVerified: true },
  phone_verified: { phoneVerified: true },
  domain_verified: { verified: true },
};
// What was removed, by the type that says so.
const ended: Record<string, string[]> = {
  'user.phone_removed': ['phone', 'phoneVerified'],
  'app.secret_removed': ['secret'],
  'user.secret_removed': ['secret'],
  'idp.client_secret_removed': ['hasClientSecret'],
};

// Parts of an object that have an identity of their own: their values are compared with those of the same part.
const parts = [
  'factorId',
  'linkId',
  'keyId',
  'deviceId',
  'tokenId',
  'sessionId',
  'place',
  'group',
  'scope',
  'domain',
  'appId',
  'clientId',
  'userId',
  'eventId',
  'id',
] as const;

function partOf(event: Event): string {
  const payload = event.payload ?? {};
  for (const name of parts) if (typeof payload[name] === 'string') return `${name}=${payload[name]}`;
  return event.type.startsWith('project.role_') && typeof payload['key'] === 'string' ? `key=${payload['key']}` : '';
}

// Where objects are added, their fields are grouped; where they are changed, they are not.
const grouped = /^(profile|general|oidc|oauth|jwt)\./;

/** Keys by which the server finds texts: they repeat what another field says. */
function repeats(path: string): boolean {
  return /Key$|^phoneNormal$/.test(path) && !/(public|signing)Key$/i.test(path);
}

function flat(value: JsonObject | undefined, prefix = ''): [string, JsonValue][] {
  return Object.entries(value ?? {}).flatMap(([name, inner]): [string, JsonValue][] =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner) && Object.keys(inner).length > 0
      ? flat(inner, `${prefix}${name}.`)
      : [[`${prefix}${name}`, inner]],
  );
}

/** The fields that an event sets, and those that it removes (`undefined`). */
function fieldsOf(event: Event): Map<string, JsonValue | undefined> {
  const verb = plainType(event.type).split('.')[1] ?? '';
  const found = new Map<string, JsonValue | undefined>();
  const own = partOf(event).split('=')[0];
  for (const part of [implied[verb], event.payload, event.personal]) {
    for (const [path, value] of flat(part)) {
      const plain = path.replace(grouped, '');
      if (plain === own || repeats(plain)) continue;
      if (plain === 'remove' && Array.isArray(value))
        for (const key of value) found.set(`set.${String(key)}`, undefined);
      else found.set(plain, value);
    }
  }
  for (const path of ended[plainType(event.type)] ?? []) found.set(path, undefined);
  if (/_added$|^added$|_imported$/.test(verb) && !own) found.set('state', 'active');
  if (verb === 'removed') found.set('state', 'removed');
  return found;
}

/**
 * What an event changed: each of its fields with the value that earlier events of the same object gave it. The earlier ones come
 * newest first; `whole` says whether they reach back to the beginning.
 */
export function changesOf(event: Event, earlier: readonly Event[], whole: boolean): Change[] {
  const part = partOf(event);
  const comparable = earlier.filter((e) => partOf(e) === part).map((e) => ({ erased: e.erased, fields: fieldsOf(e) }));
  const fields = fieldsOf(event);
  // Whatever ends a part of an object ends all that was said about the part.
  if (part && /_(removed|left|ended|withdrawn|retired)$/.test(plainType(event.type)))
    for (const e of comparable) for (const path of e.fields.keys()) if (!fields.has(path)) fields.set(path, undefined);
  return [...fields].map(([path, after]) => ({ path, after, before: before(path) }));

  function before(path: string): Before {
    let erased = false;
    for (const e of comparable) {
      if (e.fields.has(path)) {
        const value = e.fields.get(path);
        return value === undefined ? { kind: 'none' } : { kind: 'value', value };
      }
      erased ||= e.erased;
    }
    return { kind: erased ? 'erased' : whole ? 'none' : 'unknown' };
  }
}

/** The name of a field of an event. */
export function fieldText(path: string): string {
  const name = path.split('.').at(-1) ?? path;
  return path.startsWith('set.') ? path.slice(4) : hasText(`field.${name}`) ? t(`field.${name}`) : path;
}

/** A value of an event, as text. */
export function valueText(value: JsonValue): string {
  if (value === true || value === false) return t(value ? 'value.yes' : 'value.no');
  // Times are counted in millionths of a second.
  if (typeof value === 'number')
    return value > 1e15 && value < 1e16 ? dateTime(new Date(value / 1000)) : value.toLocaleString(language());
  if (Array.isArray(value))
    return value.length === 0
      ? '–'
      : list(
          value.map((v) =>
            v !== null && typeof v === 'object' && !Array.isArray(v) && typeof v['key'] === 'string'
              ? v['key']
              : valueText(v),
          ),
        );
  if (value === null || value === '') return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
