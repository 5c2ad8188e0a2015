import { expect, test } from 'vitest';
import { csvLine } from './csv';

test.each([
  [['Anna', 'a@x.test'], '"Anna","a@x.test"'],
  [['Li, Anna', 'says "hi"', 'two\nlines'], '"Li, Anna","says ""hi""","two\nlines"'],
  [['=1+1', '+1', '-1', '@x', '\t=1', '\r=1'], '"\'=1+1","\'+1","\'-1","\'@x","\'\t=1","\'\r=1"'],
  [['a=1', ''], '"a=1",""'],
])('%j', (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});
