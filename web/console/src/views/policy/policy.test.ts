import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { loadTexts } from '../../lib/texts.svelte';
import { originOf, originText, parts, saidText, type Origin, type Value } from './parts';
import { changed, inEffect, withPreset, type Preset } from './presets';

beforeAll(() => loadTexts('common', 'fields', 'policy'));

const all = parts.flatMap((p) => p.values);
const value = (name: string): Value => {
  const found = all.find((v) => v.name === name);
  if (!found) throw new Error(name);
  return found;
};
const name = (id: string) => `<${id}>`;

describe('where a value comes from', () => {
  test.for<[string, string, JsonValue | undefined, JsonValue | undefined, JsonValue | undefined, Origin, boolean]>([
    ['an own one', 'passwordMinLength', 12, 12, 8, 'own', false],
    ['an own one like the default', 'passwordMinLength', 8, 8, 8, 'own', false],
    ['none of its own', 'passwordMinLength', undefined, 8, 8, 'default', false],
    ['the installation’s', 'passwordMinLength', undefined, 10, 8, 'installation', false],
    ['one that is less strict', 'passwordMinLength', 4, 10, 8, 'installation', true],
    ['one that is less strict than the default', 'passwordMinLength', 4, 8, 8, 'default', true],
    ['an own requirement', 'secondFactorRequired', true, true, undefined, 'own', false],
    ['one of the installation', 'secondFactorRequired', undefined, true, undefined, 'installation', false],
    ['nobody’s', 'secondFactorRequired', undefined, undefined, undefined, 'default', false],
    ['what is always so', 'commonPasswordsRefused', undefined, true, true, 'default', false],
    ['what the installation does not allow', 'rememberDeviceSeconds', 86400, undefined, undefined, 'default', true],
    ['a list', 'idpIds', ['idp_a'], ['idp_a'], undefined, 'own', false],
    ['nobody registers', 'registration', 'REGISTRATION_MODE_UNSPECIFIED', undefined, undefined, 'default', false],
  ])('%s', ([, field, own, effective, defaults, from, ignored]) => {
    const of = (v: JsonValue | undefined): JsonObject => (v === undefined ? {} : { [field]: v });
    expect(originOf(value(field), of(own), of(effective), of(defaults))).toEqual({ from, ignored });
  });

  it('is said in the form where the field does not show it', () => {
    const said = (field: string, own: JsonObject, effective: JsonObject, defaults: JsonObject) =>
      originText(value(field), own, effective, defaults, name);
    expect(said('passwordMinLength', {}, { passwordMinLength: 8 }, { passwordMinLength: 8 })).toContain('default');
    expect(said('passwordMinLength', {}, { passwordMinLength: 9 }, { passwordMinLength: 8 })).toContain('installation');
    expect(said('passwordMinLength', { passwordMinLength: 4 }, { passwordMinLength: 8 }, {})).toContain('no effect');
    expect(said('passwordMinLength', { passwordMinLength: 9 }, { passwordMinLength: 9 }, {})).toBe('');
    expect(said('secondFactorRequired', {}, { secondFactorRequired: true }, {})).toContain('requires it');
  });
});

test('a value that requires nothing has words', () => {
  for (const v of all) expect(saidText(v, undefined, name), v.name).not.toBe('');
  expect(saidText(value('signInMethods'), undefined, name)).toBe('Every way');
  expect(saidText(value('secondFactorRequired'), undefined, name)).toBe('No');
  expect(saidText(value('idpIds'), ['a', 'b'], name)).toBe('<a> and <b>');
  expect(saidText(value('sessionSeconds'), 43200, name)).toBe('12 hours');
});

describe('a preset', () => {
  const own: JsonObject = { passwordMinLength: 12, idpIds: ['idp_old'], secondFactorIdpIds: ['idp_old'] };

  test.for<[Preset, string[]]>([
    ['onlyProvider', ['signInMethods', 'idpIds', 'defaultIdpId']],
    ['secondFactor', ['secondFactorRequired']],
  ])('%s changes its own values and no others', ([preset, names]) => {
    const after = withPreset(preset, own, 'idp_a');
    expect(changed(all, own, after).map((v) => v.name)).toEqual(
      all.map((v) => v.name).filter((n) => names.includes(n)),
    );
    expect(inEffect(preset, own)).toBe(false);
    expect(inEffect(preset, after)).toBe(true);
    expect(changed(all, after, withPreset(preset, after, 'idp_a'))).toEqual([]);
  });

  it('is not in effect if there is another way', () => {
    const after = withPreset('onlyProvider', own, 'idp_a');
    expect(inEffect('onlyProvider', { ...after, idpIds: ['idp_a', 'idp_b'] })).toBe(false);
    expect(inEffect('onlyProvider', { ...after, idpIds: [] })).toBe(false);
    expect(inEffect('onlyProvider', { ...after, defaultIdpId: '' })).toBe(false);
    expect(
      inEffect('onlyProvider', { ...after, signInMethods: ['SIGN_IN_METHOD_PASSWORD', 'SIGN_IN_METHOD_PASSKEY'] }),
    ).toBe(false);
  });
});
