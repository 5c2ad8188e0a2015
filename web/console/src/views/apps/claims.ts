// The claims that an application declares, as the console edits them: one after the other, and many at once by presets.
import { toJson, type JsonObject } from '@bufbuild/protobuf';
import { ClaimMappingSchema, type ClaimMapping } from '../../gen/signet/v1/application_pb';
import type { Field } from '../../lib/form/fields';
import file from './presets.json';

/** What a product reads, and the scopes that it has to ask for. */
export interface Preset {
  readonly id: string;
  readonly name: string;
  readonly scopes: string;
  readonly mappings: readonly JsonObject[];
}

type Product = keyof typeof file;
const kept = file as unknown as Readonly<Record<Product, Pick<Preset, 'scopes' | 'mappings'>>>;
const names: Readonly<Record<Product, string>> = {
  kubernetes: 'Kubernetes',
  argocd: 'Argo CD',
  vault: 'Vault',
  grafana: 'Grafana',
  gitlab: 'GitLab',
  aws: 'AWS',
  hasura: 'Hasura',
};

export const presets: readonly Preset[] = (Object.keys(names) as Product[]).map((id) => ({
  id,
  name: names[id],
  ...kept[id],
}));

/** The mappings of an application in the form of requests. */
export const mappingsOf = (mappings: readonly ClaimMapping[]): JsonObject[] =>
  mappings.map((m) => toJson(ClaimMappingSchema, m) as JsonObject);

/** What a mapping makes: its claim, the member of it, and where it is told. */
export const placeOf = (m: JsonObject): string => JSON.stringify([m['claim'], m['member'] ?? '', m['targets'] ?? []]);

/** The mappings with those of a preset, which replace what would make the same claims. */
export function withPreset(before: readonly JsonObject[], preset: Preset): JsonObject[] {
  const claims = new Set(preset.mappings.map((m) => String(m['claim']).toLowerCase()));
  return [...before.filter((m) => !claims.has(String(m['claim']).toLowerCase())), ...preset.mappings];
}

/** The mappings with another one in a place; without a place it is added, and without another one it is taken away. */
export function replaced(before: readonly JsonObject[], place: string, by?: JsonObject): JsonObject[] {
  const at = before.findIndex((m) => placeOf(m) === place);
  if (at < 0) return by ? [...before, by] : [...before];
  return [...before.slice(0, at), ...(by ? [by] : []), ...before.slice(at + 1)];
}

const lists = ['SOURCE_GROUP_NAMES', 'SOURCE_GROUP_IDS', 'SOURCE_APP_ROLES'];
const within = (value: JsonObject): JsonObject => (value['mappings'] as JsonObject | undefined) ?? {};
const from = (value: JsonObject): string => String(within(value)['source'] ?? '');
const listed = (value: JsonObject): boolean => lists.includes(from(value));
const shape = (value: JsonObject): string => String(within(value)['shape'] ?? '');

/** The fields of a mapping; what does not go with the others is not shown. */
export const fields: readonly Field[] = [
  { path: 'mappings.source', required: true },
  { path: 'mappings.metadataKey', required: true, when: (v) => from(v) === 'SOURCE_METADATA' },
  { path: 'mappings.constant', required: true, when: (v) => from(v) === 'SOURCE_CONSTANT' },
  { path: 'mappings.claim', required: true },
  { path: 'mappings.member' },
  { path: 'mappings.targets', required: true },
  { path: 'mappings.shape' },
  { path: 'mappings.separator', when: (v) => shape(v) === 'SHAPE_JOINED' },
  { path: 'mappings.prefix', when: (v) => shape(v) !== 'SHAPE_BOOLEAN' && from(v) !== 'SOURCE_CONSTANT' },
  { path: 'mappings.beginsWith', when: listed },
  { path: 'mappings.only', when: listed },
];
