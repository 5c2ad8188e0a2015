// The values of a policy in the order and the parts in which people look for them.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { enumText, type Kind } from '../../lib/form/fields';
import { duration, list, number } from '../../lib/format';
import { t } from '../../lib/texts.svelte';

export interface Value {
  /** Name in the JSON form. */
  readonly name: string;
  readonly kind?: Kind;
  /** Only organizations have it. */
  readonly ofOrganizations?: true;
  /** Identity providers are chosen by it. */
  readonly providers?: true;
}

export interface Part {
  /** Key of its heading. */
  readonly title: string;
  readonly values: readonly Value[];
}

export const parts: readonly Part[] = [
  {
    title: 'policy.passwords',
    values: [
      { name: 'passwordMinLength' },
      { name: 'commonPasswordsRefused' },
      { name: 'passwordRulesForAdministrators' },
    ],
  },
  {
    title: 'policy.secondFactor',
    values: [
      { name: 'secondFactorRequired' },
      { name: 'secondFactorIdpIds', kind: 'choices', ofOrganizations: true, providers: true },
    ],
  },
  {
    title: 'policy.ways',
    values: [
      { name: 'signInMethods', ofOrganizations: true },
      { name: 'idpIds', kind: 'choices', ofOrganizations: true, providers: true },
      { name: 'defaultIdpId', kind: 'select', ofOrganizations: true, providers: true },
      { name: 'registersFromDefault', ofOrganizations: true },
    ],
  },
  {
    title: 'policy.registration',
    values: [
      { name: 'registration', ofOrganizations: true },
      { name: 'termsUri', ofOrganizations: true },
      { name: 'privacyUri', ofOrganizations: true },
    ],
  },
  { title: 'policy.guests', values: [{ name: 'guestProofSeconds', kind: 'duration', ofOrganizations: true }] },
  {
    title: 'policy.devices',
    values: [{ name: 'rememberDeviceSeconds', kind: 'duration' }, { name: 'devicesNotRemembered' }],
  },
  {
    title: 'policy.sessions',
    values: [
      { name: 'sessionSeconds', kind: 'duration' },
      { name: 'sessionIdleSeconds', kind: 'duration' },
    ],
  },
  {
    title: 'policy.attempts',
    values: [
      { name: 'networkAttempts' },
      { name: 'networkWaitSeconds', kind: 'duration' },
      { name: 'accountAttempts' },
      { name: 'accountWaitSeconds', kind: 'duration' },
    ],
  },
];

/** The parts for an organization, or for the installation. */
export function partsOf(organization: boolean): Part[] {
  return parts
    .map((p) => ({ ...p, values: p.values.filter((v) => organization || !v.ofOrganizations) }))
    .filter((p) => p.values.length > 0);
}

/** A value of a policy as people read it; empty if it requires nothing. */
export function valueText(value: Value, at: JsonValue | undefined, provider: (id: string) => string): string {
  if (
    at === undefined ||
    at === null ||
    at === '' ||
    at === 0 ||
    at === false ||
    (Array.isArray(at) && at.length === 0)
  )
    return '';
  if (at === true) return t('value.yes');
  if (Array.isArray(at))
    return list(at.map((one) => (value.providers ? provider(String(one)) : enumText(String(one)))));
  if (value.kind === 'duration') return duration(Number(at));
  if (typeof at === 'number') return number(at);
  return value.providers ? provider(at as string) : enumText(String(at));
}

/**
 * What is to be said about where a value comes from: what is in effect without an own one, and where the own one has no
 * effect.
 */
export function originText(
  value: Value,
  own: JsonObject,
  effective: JsonObject,
  organization: boolean,
  provider: (id: string) => string,
): string {
  const [mine, now] = [own[value.name], effective[value.name]];
  const [said, text] = [valueText(value, mine, provider), valueText(value, now, provider)];
  if (said === text || text === '') return '';
  if (typeof now === 'boolean') return t(organization ? 'policy.requiredByInstallation' : 'policy.always');
  if (said === '') return t(organization ? 'policy.inherited' : 'policy.default', { value: text });
  return t('policy.noEffect', { value: text });
}
