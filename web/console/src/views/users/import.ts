// Reads files of users as `signet import users` does: one user a line, as JSON or as CSV (docs/operations/import.md).
import {
  fromJson,
  ScalarType,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import {
  ImportUsersRequest_UserSchema,
  type ImportUsersRequest_User,
  type ImportUsersResponse_Result,
} from '../../gen/signet/v1/user_pb';
import { at, put } from '../../lib/form/fields';

export type Format = 'csv' | 'ndjson';

/** Why a line was not imported. It never holds what was in the line, but for the reference. */
export interface Rejection {
  readonly line: number;
  readonly reference?: string;
  readonly reason: string;
  readonly message: string;
  readonly fields?: readonly { readonly field: string; readonly description: string }[];
}

/** Some people that are sent in one request, with the lines they come from. */
export interface Chunk {
  readonly people: ImportUsersRequest_User[];
  readonly lines: number[];
  /** Lines that are not sent. */
  readonly rejected: Rejection[];
  /** How many bytes of the file have been read. */
  bytes: number;
}

/** What is wrong with the file as a whole: the key of a text, and its values. */
export class FileProblem extends Error {
  readonly key: string;
  readonly values: Record<string, string | number>;
  constructor(key: string, values: Record<string, string | number> = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

const maxLine = 64 << 10;
const chunkLines = 500;
const chunkBytes = 512 << 10;

/** The format that the name of a file says. */
export function formatOf(name: string): Format | undefined {
  if (/\.csv$/i.test(name)) return 'csv';
  return /\.(ndjson|jsonl)$/i.test(name) ? 'ndjson' : undefined;
}

interface Line {
  readonly number: number;
  readonly bytes: Uint8Array;
  /** Where it ends in the file. */
  readonly end: number;
}

/** The lines of a file. Of one that is too long, only the beginning is kept. */
async function* linesOf(file: Blob): AsyncGenerator<Line> {
  const reader = file.stream().getReader();
  let [rest, number, read] = [new Uint8Array(), 0, 0];
  const join = (a: Uint8Array, b: Uint8Array) => {
    const kept = b.subarray(0, Math.max(0, maxLine + 2 - a.length));
    const both = new Uint8Array(a.length + kept.length);
    both.set(a);
    both.set(kept, a.length);
    return both;
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      let from = 0;
      for (let end = value.indexOf(10); end >= 0; end = value.indexOf(10, from)) {
        yield { number: ++number, bytes: join(rest, value.subarray(from, end)), end: read + end + 1 };
        rest = new Uint8Array();
        from = end + 1;
      }
      rest = join(rest, value.subarray(from));
      read += value.length;
    }
    if (rest.length > 0) yield { number: ++number, bytes: rest, end: read };
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * The text of a line, without its end and the mark that some programs write at the beginning; `undefined` if it is not
 * UTF-8.
 */
function textOf(line: Line): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: line.number !== 1 })
      .decode(line.bytes)
      .replace(/\r$/, '');
  } catch {
    return undefined;
  }
}

/**
 * Takes a line of CSV (RFC 4180) apart. A field in quotes ends on its line, so that a quote too many spoils one line.
 */
export function split(text: string): string[] | { problem: string } {
  const cells: string[] = [];
  for (let rest = text; ;) {
    if (!rest.startsWith('"')) {
      const end = rest.indexOf(',');
      const cell = end < 0 ? rest : rest.slice(0, end);
      if (cell.includes('"'))
        return { problem: 'has a " inside a column: put quotes around it, and double those inside' };
      cells.push(cell);
      if (end < 0) return cells;
      rest = rest.slice(end + 1);
      continue;
    }
    const match = /^"((?:[^"]|"")*)"/.exec(rest);
    if (!match)
      return {
        problem: 'has a column that begins with " and does not end with one: no column goes over the end of a line',
      };
    cells.push((match[1] ?? '').replaceAll('""', '"'));
    rest = rest.slice(match[0].length);
    if (rest === '') return cells;
    if (!rest.startsWith(',')) return { problem: 'has something behind a closing ": there may be only a comma' };
    rest = rest.slice(1);
  }
}

/** The fields of a message that hold no message, by their path. */
function columnsOf(message: DescMessage, prefix = ''): Map<string, DescField> {
  return new Map(
    message.fields.flatMap((f): [string, DescField][] =>
      f.fieldKind === 'message' ? [...columnsOf(f.message, `${prefix}${f.jsonName}.`)] : [[prefix + f.jsonName, f]],
    ),
  );
}

const required = ['userName', 'profile.firstName', 'profile.lastName', 'email.address'];

function header(text: string | undefined): { name: string; field: DescField }[] {
  const names = text === undefined ? { problem: '' } : split(text);
  if (!Array.isArray(names)) throw new FileProblem('import.badHeader');
  const known = columnsOf(ImportUsersRequest_UserSchema);
  const columns = names.map((raw, i) => {
    const name = raw.trim();
    const field = known.get(name);
    // Only what can be a name is repeated: a file without names has a user there, perhaps with a hash.
    if (!field)
      throw new FileProblem('import.unknownColumn', {
        n: i + 1,
        name: /^[a-z._ -]{1,40}$/i.test(name) ? `“${name}”` : '',
      });
    return { name, field };
  });
  const twice = columns.find((c, i) => columns.findIndex((other) => other.name === c.name) !== i);
  if (twice) throw new FileProblem('import.sameColumn', { name: twice.name });
  const missing = required.find((name) => !columns.some((c) => c.name === name));
  if (missing) throw new FileProblem('import.missingColumn', { name: missing });
  return columns;
}

/** A person of a line of CSV. A cell that is empty is a field that is left out. */
function personOf(columns: { name: string; field: DescField }[], text: string): JsonObject | string {
  const cells = split(text);
  if (!Array.isArray(cells)) return `the line ${cells.problem}`;
  if (cells.length !== columns.length)
    return `the line has ${cells.length} columns, but the first line has ${columns.length}`;
  let person: JsonObject = {};
  for (const [i, { name, field }] of columns.entries()) {
    const cell = cells[i] ?? '';
    if (cell === '') continue;
    let value: JsonValue = cell;
    if (field.fieldKind === 'scalar' && field.scalar === ScalarType.BOOL) {
      const truth = cell.toLowerCase();
      if (truth !== 'true' && truth !== 'false') return `${name} must be true or false`;
      value = truth === 'true';
    }
    person = put(person, name, value);
  }
  return person;
}

/** Reads a file in parts that can be sent. */
export async function* chunksOf(file: Blob, format: Format): AsyncGenerator<Chunk> {
  let columns: { name: string; field: DescField }[] | undefined;
  let [begin, seen] = [0, 0];
  let chunk: Chunk = { people: [], lines: [], rejected: [], bytes: 0 };
  for await (const line of linesOf(file)) {
    const text = textOf(line);
    seen++;
    if (format === 'csv' && !columns) {
      columns = header(line.bytes.length > maxLine ? undefined : text);
      continue;
    }
    if (text?.trim() !== '') {
      const read = personOrRejection(line, text, columns);
      if ('reason' in read) chunk.rejected.push(read);
      else {
        chunk.people.push(read.person);
        chunk.lines.push(line.number);
      }
    }
    chunk.bytes = line.end;
    if (chunk.people.length + chunk.rejected.length >= chunkLines || line.end - begin >= chunkBytes) {
      yield chunk;
      begin = line.end;
      chunk = { people: [], lines: [], rejected: [], bytes: line.end };
    }
  }
  if (seen === 0) throw new FileProblem('import.emptyFile');
  yield { ...chunk, bytes: file.size };
}

function personOrRejection(
  line: Line,
  text: string | undefined,
  columns: { name: string; field: DescField }[] | undefined,
): Rejection | { person: ImportUsersRequest_User } {
  const reject = (reason: string, message: string, reference?: string): Rejection => ({
    line: line.number,
    ...(reference && { reference }),
    reason,
    message,
  });
  if (line.bytes.length > maxLine) return reject('LINE_TOO_LONG', `the line has more than ${maxLine} bytes`);
  if (text === undefined) return reject('LINE_INVALID', 'the line is not UTF-8');
  let person: JsonObject;
  if (columns) {
    const read = personOf(columns, text);
    if (typeof read === 'string') return reject('LINE_INVALID', read);
    person = read;
  } else {
    try {
      person = JSON.parse(text) as JsonObject;
    } catch {
      return reject('INVALID_REQUEST', 'the line is not valid: it must be a JSON object');
    }
    if (person === null || typeof person !== 'object' || Array.isArray(person))
      return reject('INVALID_REQUEST', 'the line is not valid: it must be a JSON object');
  }
  try {
    return { person: fromJson(ImportUsersRequest_UserSchema, person) };
  } catch (thrown) {
    // The messages name the field and its type; a value in them could be a hash.
    const field = /field ([\w.]+)/
      .exec(thrown instanceof Error ? thrown.message : '')?.[1]
      ?.split('.')
      .at(-1);
    const reference = at(person, 'reference');
    return reject(
      'INVALID_REQUEST',
      field ? `the line is not valid: ${field} is unknown or has another type` : 'the line is not valid',
      typeof reference === 'string' ? reference : undefined,
    );
  }
}

/** Why the server refused a line. */
export function refusal(line: number, result: ImportUsersResponse_Result): Rejection {
  const fields = result.error?.fieldViolations.map((v) => ({ field: v.field, description: v.description })) ?? [];
  return {
    line,
    ...(result.reference && { reference: result.reference }),
    reason: result.error?.reason ?? '',
    message: result.error?.message ?? '',
    ...(fields.length > 0 && { fields }),
  };
}
