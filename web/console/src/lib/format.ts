// Dates and numbers as people of the chosen language write them.
import { timestampDate, type Timestamp } from '@bufbuild/protobuf/wkt';
import { language, type Language } from './texts.svelte';

const formats = new Map<string, unknown>();

/** The format of that name in the language of the page. To make one takes longer than to use it a hundred times. */
function format<T>(name: string, make: (language: Language) => T): T {
  const key = `${language()} ${name}`;
  if (!formats.has(key)) formats.set(key, make(language()));
  return formats.get(key) as T;
}

const dates = (options: Intl.DateTimeFormatOptions) =>
  format(JSON.stringify(options), (of) => new Intl.DateTimeFormat(of, options));
const numbers = (options: Intl.NumberFormatOptions = {}) =>
  format(JSON.stringify(options), (of) => new Intl.NumberFormat(of, options));

/** A date does not break, nor does a time: a line may only end between them. */
function formatted(time: Timestamp | Date | undefined, options: Intl.DateTimeFormatOptions): string {
  if (!time) return '';
  return dates(options)
    .formatToParts(asDate(time))
    .map(({ value }, i, parts) => (parts[i + 1]?.type === 'hour' ? value : value.replaceAll(' ', '\u00a0')))
    .join('');
}

/** A time with date, to the minute. */
export function dateTime(time: Timestamp | Date | undefined): string {
  return formatted(time, { dateStyle: 'medium', timeStyle: 'short' });
}

/** A day that is counted in UTC, such as `2026-11-19`. */
export function day(of: string, style: 'short' | 'long' = 'short'): string {
  const options = style === 'long' ? ({ dateStyle: 'long' } as const) : ({ day: 'numeric', month: 'short' } as const);
  return dates({ timeZone: 'UTC', ...options }).format(new Date(`${of}T00:00:00Z`));
}

/** The time of a line in a log. */
export function logTime(time: Date): string {
  return formatted(time, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** A date alone. */
export function date(time: Timestamp | Date | undefined): string {
  return formatted(time, { dateStyle: 'medium' });
}

/** A time to the millisecond, as logs need it. */
export function exactTime(time: Timestamp | Date | undefined): string {
  if (!time) return '';
  const parts = {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    timeZoneName: 'short',
  } as const;
  return dates(parts).format(asDate(time));
}

/** How long ago, or in how long. */
export function relative(time: Timestamp | Date | undefined): string {
  if (!time) return '';
  const seconds = (asDate(time).getTime() - Date.now()) / 1000;
  const units = [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const;
  const from = format('relative', (of) => new Intl.RelativeTimeFormat(of, { numeric: 'auto' }));
  for (const [unit, length] of units)
    if (Math.abs(seconds) >= length) return from.format(Math.round(seconds / length), unit);
  return from.format(Math.round(seconds), 'second');
}

export function milliseconds(value: number): string {
  return numbers({ style: 'unit', unit: 'millisecond', unitDisplay: 'short' }).format(value);
}

export function number(value: number | bigint): string {
  return numbers().format(value);
}

/** The units in which durations are given, the largest first. */
export const durationUnits = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;
export type DurationUnit = (typeof durationUnits)[number][0];

/** The largest unit in which a number of seconds has no rest. */
export function durationUnit(seconds: number): DurationUnit {
  return durationUnits.find(([, length]) => seconds >= length && seconds % length === 0)?.[0] ?? 'second';
}

/** A duration in its largest whole unit, such as `12 hours`. */
export function duration(seconds: number): string {
  const unit = durationUnit(seconds);
  const length = durationUnits.find(([name]) => name === unit)?.[1] ?? 1;
  return numbers({ style: 'unit', unit, unitDisplay: 'long' }).format(seconds / length);
}

/** The name of a unit, as it stands behind a number. */
export function unitText(unit: DurationUnit, amount: number): string {
  const parts = numbers({ style: 'unit', unit, unitDisplay: 'long' }).formatToParts(amount);
  return parts.find((p) => p.type === 'unit')?.value ?? unit;
}

/** Several things in one sentence. */
export function list(items: readonly string[]): string {
  return format('list', (of) => new Intl.ListFormat(of, { type: 'conjunction' })).format(items);
}

export function asDate(time: Timestamp | Date): Date {
  return time instanceof Date ? time : timestampDate(time);
}
