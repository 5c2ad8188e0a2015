import { describe, expect, it } from 'vitest';
import { endOf, piecesOf } from './names';

describe('a text to read', () => {
  const long = (text: string) =>
    piecesOf(text)
      .filter((piece) => piece.long)
      .map((piece) => piece.text);

  it.each([
    ['a few short words', []],
    ['Verwaltungsgesellschaft mbH', ['Verwaltungsgesellschaft']],
    ['von Wittgenstein-Hohenlohe-Schillingsfürst', []],
    ['die Donau-Dampfschifffahrtsgesellschaft', ['Dampfschifffahrtsgesellschaft']],
    ['onewordwithoutanyspace-atall', []],
    ['', []],
  ])('%s', (text, expected) => {
    expect(long(text)).toEqual(expected);
    expect(
      piecesOf(text)
        .map((piece) => piece.text)
        .join(''),
    ).toBe(text);
  });
});

describe('the end of', () => {
  it.each([
    ['https://signet.test/oauth/token', '/oauth/token'],
    ['https://signet.test', '/signet.test'],
    ['https://signet.test/a/very/long/path/that/ends/somewhere/else', 'mewhere/else'],
    ['app_01a1f5d1626077adbaf25bcacf9', '77adbaf25bcacf9'.slice(-12)],
    ['short', 'short'],
  ])('%s', (text, expected) => {
    expect(endOf(text)).toBe(expected);
  });
});
