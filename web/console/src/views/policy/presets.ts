// Policies that many organizations want, with one choice instead of several fields.
import type { JsonObject } from '@bufbuild/protobuf';
import { same } from '../../lib/form/fields';
import type { Value } from './parts';

export type Preset = 'onlyProvider' | 'secondFactor';

const throughProvider = 'SIGN_IN_METHOD_IDENTITY_PROVIDER';

/** The policy with a preset. Nothing else of it changes. */
export function withPreset(preset: Preset, own: JsonObject, provider: string): JsonObject {
  return preset === 'secondFactor'
    ? { ...own, secondFactorRequired: true }
    : { ...own, signInMethods: [throughProvider], idpIds: [provider], defaultIdpId: provider };
}

/** Whether a preset would change nothing about what is in effect, whichever provider it is. */
export function inEffect(preset: Preset, effective: JsonObject): boolean {
  if (preset === 'secondFactor') return effective['secondFactorRequired'] === true;
  const provider = effective['defaultIdpId'];
  return (
    same(effective['signInMethods'], [throughProvider]) &&
    typeof provider === 'string' &&
    same(effective['idpIds'], [provider])
  );
}

/** The values in which two policies differ. */
export function changed(values: readonly Value[], before: JsonObject, after: JsonObject): Value[] {
  return values.filter((v) => !same(before[v.name], after[v.name]));
}
