// What a form knows of its fields: their types from the definition, their values by JSON paths.
import {
  ScalarType,
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import type { Component } from 'svelte';
import { fieldRule, type FieldRule } from '../api/rules';
import { hasText, t } from '../texts.svelte';

/** What a lookup has found. */
export interface Found {
  id: string;
  text: string;
  detail?: string | undefined;
}

export interface Option {
  readonly value: string;
  readonly text: string;
  readonly hint?: string;
  /** The heading that it stands under, with all others that have the same. */
  readonly heading?: string;
}

export type Kind =
  | 'text'
  | 'multiline'
  | 'lines'
  | 'secret'
  | 'email'
  | 'number'
  | 'checkbox'
  | 'select'
  | 'choices'
  | 'time'
  | 'user'
  | 'organization'
  | 'file'
  | 'groups'
  | 'duration'
  | 'lookup';

/** What a control for a list is given, where a view has its own. */
export interface ControlProps {
  id: string;
  value: readonly string[];
  onchange: (value: string[]) => void;
  'aria-describedby'?: string | undefined;
  'aria-invalid'?: 'true' | undefined;
  'aria-required'?: 'true' | undefined;
}

/** A field of a form. Only the path is needed: the rest follows from the definition. */
export interface Field {
  /** Path in the JSON form of the request, such as `profile.firstName`. */
  readonly path: string;
  readonly kind?: Kind | undefined;
  /** Keys of texts; `field.<name>` and `hint.<name>` (if it exists) unless they are given. */
  readonly label?: string | undefined;
  readonly hint?: string | undefined;
  /** What can be chosen; the values of an enum unless they are given. */
  readonly options?: readonly Option[] | undefined;
  /** Whether it is shown, and sent. */
  readonly when?: ((value: JsonObject) => boolean) | undefined;
  readonly required?: boolean | undefined;
  /** What the browser may fill in. */
  readonly autocomplete?: AutoFill | undefined;
  /** The organization in which users and groups are looked for; `*`: every one. */
  readonly org?: string | undefined;
  /** Guests of the organization can be chosen, too. */
  readonly guests?: boolean | undefined;
  /** Key of the heading of the part of the form that begins with this field. */
  readonly section?: string | undefined;
  /** What is said instead of the hint, where it depends on more than the field. */
  readonly note?: string | undefined;
  /** How a `lookup` finds what can be chosen, and the text of what was chosen before. */
  readonly find?: ((typed: string, signal: AbortSignal) => Promise<Found[]>) | undefined;
  readonly nameOf?: ((id: string) => Promise<string>) | undefined;
  /** The control of a list, instead of one line for each. */
  readonly control?: Component<ControlProps> | undefined;
  /** Nothing is said about that it can be left out: in this form, everything can. */
  readonly quiet?: boolean | undefined;
}

/** A field with everything that is known about it. */
export interface KnownField extends Omit<Field, 'label' | 'hint'> {
  readonly kind: Kind;
  readonly text: string;
  readonly note: string;
  readonly rule: FieldRule;
  readonly options: readonly Option[];
  readonly repeated: boolean;
}

/** Finds what the definition says about a field. */
export function known(message: DescMessage, field: Field): KnownField {
  const [owner, found] = resolve(message, field.path);
  const name = field.path.split('.').at(-1) ?? field.path;
  const rule = { ...fieldRule(owner, found), ...(field.required !== undefined && { required: field.required }) };
  const hint = field.hint ?? `hint.${name}`;
  return {
    ...field,
    kind: field.kind ?? kindOf(found, rule),
    text: t(field.label ?? `field.${name}`),
    note: field.note ?? (hasText(hint) ? t(hint) : ''),
    rule,
    options: field.options ?? (found.enum ? enumOptions(found.enum) : []),
    repeated: found.fieldKind === 'list',
  };
}

function resolve(message: DescMessage, path: string): [DescMessage, DescField] {
  const [first = '', ...rest] = path.split('.');
  const field = message.fields.find((f) => f.jsonName === first);
  if (!field) throw new Error(`${message.typeName} has no field ${path}`);
  return rest.length > 0 && field.message ? resolve(field.message, rest.join('.')) : [message, field];
}

function kindOf(field: DescField, rule: FieldRule): Kind {
  if (field.fieldKind === 'list') return field.listKind === 'enum' ? 'choices' : 'lines';
  if (field.fieldKind === 'enum') return 'select';
  if (field.message?.typeName === 'google.protobuf.Timestamp') return 'time';
  if (field.fieldKind === 'scalar') {
    if (field.scalar === ScalarType.BOOL) return 'checkbox';
    if (field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES) return 'number';
  }
  return rule.secret ? 'secret' : 'text';
}

/** The values of an enum, with their names in the person's language (`enum.<value>`). */
export function enumOptions(of: DescEnum): Option[] {
  return of.values
    .map((v) => ({ value: v.name, text: enumText(v.name) }))
    .filter((o) => !o.value.endsWith('_UNSPECIFIED') || hasText(`enum.${o.value}`));
}

/** A value of an enum in the person's language. */
export function enumText(name: string): string {
  return hasText(`enum.${name}`) ? t(`enum.${name}`) : name;
}

/** The name in the definition of a value of an enum, as messages have it. */
export function enumName(of: DescEnum, value: number): string {
  return of.value[value]?.name ?? String(value);
}

/** The value at a path. */
export function at(value: JsonObject, path: string): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const part of path.split('.')) {
    if (here === null || typeof here !== 'object' || Array.isArray(here)) return undefined;
    here = here[part];
  }
  return here;
}

/** A copy with another value at a path; `undefined` removes it. */
export function put(value: JsonObject, path: string, to: JsonValue | undefined): JsonObject {
  const [first = '', ...rest] = path.split('.');
  const copy = { ...value };
  if (rest.length > 0) copy[first] = put((copy[first] as JsonObject | undefined) ?? {}, rest.join('.'), to);
  else if (to === undefined) delete copy[first];
  else copy[first] = to;
  return copy;
}

/** Whether a value counts as not given. */
function nothing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/**
 * The request of a form: what is fixed, and what the fields say. Empty fields are left out, as the API expects of
 * optional ones.
 */
export function requestOf(
  fixed: JsonObject,
  fields: readonly Field[],
  value: JsonObject,
  before?: JsonObject,
): JsonObject {
  let request = fixed;
  const changed: string[] = [];
  for (const field of fields) {
    if (field.when && !field.when(value)) continue;
    const now = at(value, field.path);
    if (before && same(now, at(before, field.path))) continue;
    changed.push(field.path);
    if (!nothing(now)) request = put(request, field.path, now);
  }
  return before ? { ...request, updateMask: changed.join(',') } : request;
}

/** Whether two values say the same. */
export function same(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return (
    (nothing(a) && nothing(b)) ||
    (a === false && nothing(b)) ||
    (nothing(a) && b === false) ||
    JSON.stringify(a) === JSON.stringify(b)
  );
}

/** The paths at which two versions of a form differ. */
export function differences(fields: readonly Field[], a: JsonObject, b: JsonObject): string[] {
  return fields.map((f) => f.path).filter((path) => !same(at(a, path), at(b, path)));
}

/** What is wrong with a field, to be read behind `lead`, which names it. */
export interface Wrong {
  readonly lead: string;
  readonly text: string;
  /** It is said as the server says it. */
  readonly english: boolean;
}

/** What the server has found wrong: at the fields of a form, by their paths, and elsewhere. */
export function wrongIn(
  fields: readonly KnownField[],
  value: JsonObject,
  violations: ReadonlyMap<string, string>,
): { atFields: ReadonlyMap<string, Wrong>; elsewhere: readonly (readonly [string, string])[] } {
  const atFields = new Map<string, Wrong>();
  const elsewhere: (readonly [string, string])[] = [];
  for (const [path, said] of violations) {
    // An object that is missing is shown at the first field that would be in it.
    const field =
      fields.find((f) => path === f.path || path.startsWith(`${f.path}[`) || path.startsWith(`${f.path}.`)) ??
      fields.find((f) => f.path.startsWith(`${path}.`) && nothing(at(value, f.path)));
    if (!field) elsewhere.push([path, said]);
    else if (!atFields.has(field.path)) atFields.set(field.path, wrongOf(field, at(value, field.path), path, said));
  }
  return { atFields, elsewhere };
}

/** Says it in the person's language if it follows from the definition of the field. */
function wrongOf(field: KnownField, value: JsonValue | undefined, path: string, said: string): Wrong {
  const line = field.kind === 'lines' ? /^\[(\d+)\]/.exec(path.slice(field.path.length))?.[1] : undefined;
  const lead =
    line === undefined
      ? t('wrong.at', { field: field.text })
      : t('wrong.line', { field: field.text, n: Number(line) + 1 });
  const { required, max, from, to } = field.rule;
  const known = (text: string): Wrong => ({ lead, text, english: false });
  if (nothing(value) && (required || path.length < field.path.length)) return known(t('wrong.empty'));
  if (typeof value === 'string' && max !== undefined && [...value].length > max)
    return known(t('wrong.long', { n: max }));
  if (typeof value === 'number' && from !== undefined && to !== undefined && (value < from || value > to))
    return known(t('wrong.range', { from, to }));
  if (field.kind === 'email' && !nothing(value)) return known(t('wrong.email'));
  return { lead, text: said, english: true };
}
