// The values of a policy in the order and the parts in which people look for them.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { enumText, same, type Kind } from '../../lib/form/fields';
import { duration, list, number } from '../../lib/format';
import { hasText, t } from '../../lib/texts.svelte';

export interface Value {
  /** Name in the JSON form. */
  readonly name: string;
  readonly kind?: Kind;
  /** Only organizations have it. */
  readonly ofOrganizations?: true;
  /** Identity providers are chosen by it. */
  readonly providers?: true;
  /** It is a plain number. */
  readonly number?: true;
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
      { name: 'passwordMinLength', number: true },
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
      { name: 'networkAttempts', number: true },
      { name: 'networkWaitSeconds', kind: 'duration' },
      { name: 'accountAttempts', number: true },
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

/** Whether a value requires nothing. */
function unset(at: JsonValue | undefined): boolean {
  return same(at, undefined) || at === 0 || (typeof at === 'string' && at.endsWith('_UNSPECIFIED'));
}

/** A value of a policy as people read it; empty if it requires nothing. */
export function valueText(value: Value, at: JsonValue | undefined, provider: (id: string) => string): string {
  if (at === undefined || at === null || unset(at)) return '';
  if (at === true) return t('value.yes');
  if (Array.isArray(at))
    return list(at.map((one) => (value.providers ? provider(String(one)) : enumText(String(one)))));
  if (value.kind === 'duration') return duration(Number(at));
  if (typeof at === 'number') return number(at);
  return value.providers ? provider(at as string) : enumText(String(at));
}

/** The same, with words for a value that requires nothing. */
export function saidText(value: Value, at: JsonValue | undefined, provider: (id: string) => string): string {
  const text = valueText(value, at, provider);
  if (text) return text;
  const none = `policy.none.${value.name}`;
  if (hasText(none)) return t(none);
  return t(value.number || value.kind === 'duration' ? 'value.unset' : 'value.no');
}

/** Where what is in effect comes from. */
export type Origin = 'own' | 'installation' | 'default';

/** Where a value in effect comes from, and whether there is an own one that has no effect. */
export function originOf(
  value: Value,
  own: JsonObject,
  effective: JsonObject,
  defaults: JsonObject,
): { from: Origin; ignored: boolean } {
  const [mine, now] = [own[value.name], effective[value.name]];
  if (!unset(mine) && same(mine, now)) return { from: 'own', ignored: false };
  return { from: same(now, defaults[value.name]) ? 'default' : 'installation', ignored: !unset(mine) };
}

/** What a form says about a value in effect that is not the one in the field. */
export function originText(
  value: Value,
  own: JsonObject,
  effective: JsonObject,
  defaults: JsonObject,
  provider: (id: string) => string,
): string {
  const now = effective[value.name];
  const text = valueText(value, now, provider);
  const { from, ignored } = originOf(value, own, effective, defaults);
  if (from === 'own' || text === '') return '';
  if (typeof now === 'boolean') return t(from === 'installation' ? 'policy.requiredByInstallation' : 'policy.always');
  if (ignored) return t('policy.noEffect', { value: text });
  return t(from === 'installation' ? 'policy.inherited' : 'policy.default', { value: text });
}
