import { create } from '@bufbuild/protobuf';
import { describe, expect, it, test } from 'vitest';
import { ImportUsersResponse_ResultSchema } from '../../gen/signet/v1/user_pb';
import { chunksOf, FileProblem, formatOf, refusal, split, type Chunk, type Format } from './import';

test.for([
  ['users.csv', 'csv'],
  ['USERS.CSV', 'csv'],
  ['users.ndjson', 'ndjson'],
  ['users.jsonl', 'ndjson'],
  ['users.json', undefined],
  ['users.csv.gz', undefined],
  ['csv', undefined],
] as const)('the format of %s is %s', ([name, format]) => {
  expect(formatOf(name)).toBe(format);
});

describe('split', () => {
  test.for<[string, string[]]>([
    ['', ['']],
    ['a', ['a']],
    ['a,b', ['a', 'b']],
    [',', ['', '']],
    ['a,', ['a', '']],
    ['"a,b",c', ['a,b', 'c']],
    ['"say ""hi""",x', ['say "hi"', 'x']],
    ['"",x', ['', 'x']],
    ['""""', ['"']],
    [' a , b ', [' a ', ' b ']],
    ["O'Hara,ü", ["O'Hara", 'ü']],
  ])('%j', ([line, cells]) => {
    expect(split(line)).toEqual(cells);
  });

  test.for<[string, string]>([
    ['a"b,c', 'inside a column'],
    ['x, "a"', 'inside a column'],
    ['"a', 'does not end'],
    ['"a""', 'behind a closing'],
    ['x,"a,b', 'does not end'],
    ['"a"b', 'behind a closing'],
    ['"a" ,b', 'behind a closing'],
  ])('%j is refused', ([line, problem]) => {
    expect(split(line)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

const head = 'userName,profile.firstName,profile.lastName,email.address';

async function read(content: BlobPart | BlobPart[], format: Format): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of chunksOf(new Blob([content].flat()), format)) chunks.push(chunk);
  return chunks;
}
async function one(content: BlobPart | BlobPart[], format: Format): Promise<Chunk> {
  const chunks = await read(content, format);
  expect(chunks).toHaveLength(1);
  return chunks[0]!;
}

describe('CSV', () => {
  it('reads people with the lines that they come from', async () => {
    const text = `${head},email.verified,passwordHash\nada,Ada,Lovelace,ada@a.test,TRUE,$2b$12$x\n\ngrace,Grace,"Hopper, USN",g@a.test,,\n`;
    const chunk = await one(text, 'csv');
    expect(chunk.lines).toEqual([2, 4]);
    expect(chunk.rejected).toEqual([]);
    expect(chunk.bytes).toBe(text.length);
    expect(chunk.people[0]).toMatchObject({
      userName: 'ada',
      profile: { firstName: 'Ada', lastName: 'Lovelace' },
      email: { address: 'ada@a.test', verified: true },
      passwordHash: '$2b$12$x',
    });
    expect(chunk.people[1]).toMatchObject({ profile: { lastName: 'Hopper, USN' }, email: { verified: false } });
  });

  it.for<[string, BlobPart]>([
    ['with the ends of lines of Windows', `${head}\r\nada,Ada,L,a@a.test\r\n`],
    ['without an end of the last line', `${head}\nada,Ada,L,a@a.test`],
    ['with a mark at the beginning', `\ufeff${head}\nada,Ada,L,a@a.test`],
    ['with spaces around the names of columns', `${head.replaceAll(',', ' , ')}\nada,Ada,L,a@a.test`],
    ['with quotes around the names of columns', `"${head.replaceAll(',', '","')}"\nada,Ada,L,a@a.test`],
  ])('is read %s', async ([, content]) => {
    const chunk = await one(content, 'csv');
    expect(chunk.people.map((p) => p.userName)).toEqual(['ada']);
    expect(chunk.people[0]?.email?.address).toBe('a@a.test');
  });

  test.for<[string, string, Record<string, unknown>]>([
    ['', 'import.emptyFile', {}],
    ['"userName', 'import.badHeader', {}],
    [`${'x'.repeat(70_000)}\n`, 'import.badHeader', {}],
    [`${head},nick name\n`, 'import.unknownColumn', { n: 5, name: '“nick name”' }],
    [`ada,Ada,Lovelace,ada@a.test\n`, 'import.unknownColumn', { n: 1, name: '“ada”' }],
    [`$2b$12$xo0Q0q0w0p3,Ada\n`, 'import.unknownColumn', { n: 1, name: '' }],
    [`${head},profile\n`, 'import.unknownColumn', { n: 5, name: '“profile”' }],
    [`${head},userName\n`, 'import.sameColumn', { name: 'userName' }],
    ['userName,profile.firstName,email.address\n', 'import.missingColumn', { name: 'profile.lastName' }],
  ])('a file is refused: %#', async ([content, key, values]) => {
    const problem = await read(content, 'csv').catch((thrown: unknown) => thrown);
    expect(problem).toBeInstanceOf(FileProblem);
    expect(problem).toMatchObject({ key, values });
  });

  test.for<[BlobPart, string, string]>([
    ['ada,Ada,L', 'LINE_INVALID', 'the line has 3 columns, but the first line has 5'],
    ['ada,Ada,L,a@a.test,yes', 'LINE_INVALID', 'email.verified must be true or false'],
    ['"ada,Ada,L,a@a.test,true', 'LINE_INVALID', 'the line has a column that begins with "'],
    [new Uint8Array([0x61, 0xff, 0x2c]), 'LINE_INVALID', 'the line is not UTF-8'],
    ['x'.repeat((64 << 10) + 1), 'LINE_TOO_LONG', 'the line has more than 65536 bytes'],
  ])('a line is refused, and the next is read: %#', async ([line, reason, message]) => {
    const chunk = await one([`${head},email.verified\n`, line, '\nbob,Bob,B,b@a.test,false\n'], 'csv');
    expect(chunk.rejected).toEqual([{ line: 2, reason, message: expect.stringContaining(message) }]);
    expect(chunk.lines).toEqual([3]);
    expect(chunk.people.map((p) => p.userName)).toEqual(['bob']);
  });
});

describe('NDJSON', () => {
  it('reads people', async () => {
    const chunk = await one('{"reference":"17","userName":"ada","email":{"address":"a@a.test"}}\n\n{}\n', 'ndjson');
    expect(chunk.lines).toEqual([1, 3]);
    expect(chunk.people[0]).toMatchObject({ reference: '17', userName: 'ada', email: { address: 'a@a.test' } });
  });

  test.for<[string, string, string?]>([
    ['ada,Ada', 'it must be a JSON object'],
    ['["ada"]', 'it must be a JSON object'],
    ['null', 'it must be a JSON object'],
    ['"ada"', 'it must be a JSON object'],
    ['{"userName":"ada"', 'it must be a JSON object'],
    ['{"reference":"17","userName":7}', 'is unknown or has another type', '17'],
    ['{"reference":"18","email":{"adress":"a@a.test"}}', 'the line is not valid', '18'],
    ['{"reference":19,"userName":"ada"}', 'is unknown or has another type'],
  ])('the line %s is refused', async ([line, message, reference]) => {
    const { rejected, people } = await one(`${line}\n`, 'ndjson');
    expect(people).toEqual([]);
    expect(rejected).toEqual([
      {
        line: 1,
        ...(reference && { reference }),
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining(message),
      },
    ]);
  });

  it('never repeats a value of a line that is refused', async () => {
    const { rejected } = await one('{"passwordHash":{"$2b$12$geheim":1}}\n{"$2b$12$geheim":1}\n', 'ndjson');
    expect(rejected).toHaveLength(2);
    expect(JSON.stringify(rejected)).not.toContain('geheim');
  });

  it('refuses an empty file', async () => {
    await expect(read('', 'ndjson')).rejects.toMatchObject({ key: 'import.emptyFile' });
  });
});

describe('parts', () => {
  const lines = (count: number, length: number) =>
    Array.from({ length: count }, (_, i) => JSON.stringify({ userName: String(i).padStart(length - 16, 'x') })).join(
      '\n',
    );

  it('hold at most 500 lines', async () => {
    const text = lines(1201, 40);
    const chunks = await read(text, 'ndjson');
    expect(chunks.map((c) => c.people.length)).toEqual([500, 500, 201]);
    expect(chunks.flatMap((c) => c.lines)).toEqual(Array.from({ length: 1201 }, (_, i) => i + 1));
    expect(chunks.at(-1)?.bytes).toBe(text.length);
  });

  it('hold about 512 KiB', async () => {
    const chunks = await read(lines(20, 60_000), 'ndjson');
    expect(chunks.map((c) => c.people.length)).toEqual([9, 9, 2]);
    for (const c of chunks.slice(0, -1)) expect(c.bytes % 60_000).toBeLessThan(100);
  });

  it('count lines that are refused', async () => {
    const chunks = await read('x\n'.repeat(501), 'ndjson');
    expect(chunks.map((c) => c.rejected.length)).toEqual([500, 1]);
  });
});

test('a refusal of the server is told with its line', () => {
  const result = create(ImportUsersResponse_ResultSchema, {
    reference: '17',
    error: {
      reason: 'INVALID_REQUEST',
      message: 'the request is not valid',
      fieldViolations: [{ field: 'email.address', description: 'must be an address' }],
    },
  });
  expect(refusal(7, result)).toEqual({
    line: 7,
    reference: '17',
    reason: 'INVALID_REQUEST',
    message: 'the request is not valid',
    fields: [{ field: 'email.address', description: 'must be an address' }],
  });
  expect(refusal(8, create(ImportUsersResponse_ResultSchema))).toEqual({ line: 8, reason: '', message: '' });
});
