import { describe, expect, it } from 'vitest';
import { placeOf, presets, replaced, withPreset } from './claims';

const groups = { source: 'SOURCE_GROUP_NAMES', claim: 'groups', targets: ['TARGET_ID_TOKEN'] };
const mail = { source: 'SOURCE_EMAIL', claim: 'mail', targets: ['TARGET_USER_INFO'] };
const both = [groups, mail];

describe('the claims of an application', () => {
  it('are changed one after the other', () => {
    const renamed = { ...mail, claim: 'upn' };
    expect(replaced(both, placeOf(mail), renamed)).toEqual([groups, renamed]);
    expect(replaced(both, '', renamed)).toEqual([...both, renamed]);
    expect(replaced(both, placeOf(groups))).toEqual([mail]);
    expect(replaced(both, placeOf(renamed))).toEqual(both);
  });
  it('get those of a preset, which replace what makes the same', () => {
    const vault = presets.find((p) => p.id === 'vault');
    if (!vault) throw new Error('no preset');
    expect(withPreset([{ ...groups, claim: 'Groups' }, mail], vault)).toEqual([mail, ...vault.mappings]);
  });
});
