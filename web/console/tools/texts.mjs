// Checks the texts: every language has the same keys with the same placeholders, every key that the sources name is
// there, none is left over, and French has no-break spaces before its signs.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('../src/', import.meta.url).pathname;
const languages = ['en', 'de', 'fr', 'es'];
/** @type {string[]} */
const wrong = [];

/** @param {string} file @returns {Record<string, string | Record<string, string>>} */
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
/** @param {string | Record<string, string>} text */
const whole = (text) => (typeof text === 'string' ? text : Object.values(text).join('\n'));
/** @param {string | Record<string, string>} text */
const placeholders = (text) => [...new Set(whole(text).match(/\{\w+\}/g) ?? [])].sort().join(' ');
/** @param {string} dir @returns {string[]} */
const files = (dir) =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? (e.name === 'gen' || e.name === 'texts' ? [] : files(join(dir, e.name))) : [join(dir, e.name)],
  );

/** @type {Map<string, string>} */
const keys = new Map();
for (const area of readdirSync(join(root, 'texts/en'))) {
  const english = read(join(root, 'texts/en', area));
  for (const key of Object.keys(english)) {
    if (keys.has(key)) wrong.push(`${key} stands in ${keys.get(key)} and in ${area}`);
    keys.set(key, area);
  }
  for (const language of languages) {
    const other = read(join(root, 'texts', language, area));
    for (const [key, text] of Object.entries(english)) {
      const theirs = other[key];
      if (theirs === undefined) wrong.push(`${language}/${area} lacks ${key}`);
      else if (placeholders(theirs) !== placeholders(text))
        wrong.push(`${language}/${area} ${key} has other placeholders than en`);
    }
    for (const key of Object.keys(other))
      if (!(key in english)) wrong.push(`${language}/${area} has ${key}, which en does not have`);
    // A plain space would let a line begin with the sign.
    if (language === 'fr') {
      for (const [key, text] of Object.entries(other)) {
        if (/ [:;?!»]|« /.test(whole(text)))
          wrong.push(
            `${language}/${area} ${key} has a plain space where U+00A0 must stand (before : ; ? ! », after «)`,
          );
      }
    }
  }
}
for (const language of languages) {
  if (readdirSync(join(root, 'texts', language)).join() !== readdirSync(join(root, 'texts/en')).join())
    wrong.push(`${language} has other files than en`);
}

// A key is named by a string literal, or made of a literal beginning: `field.${name}`.
const source = files(root)
  .filter((f) => /\.(svelte|ts)$/.test(f) && !f.endsWith('.test.ts'))
  .map((f) => readFileSync(f, 'utf8'))
  .join('\n');
const named = new Set([...source.matchAll(/['"`]([a-z]\w*(?:\.\w+)+)['"`]/g)].map((m) => m[1]));
const begun = [...source.matchAll(/`([a-z]\w*(?:\.\w+)*[._])\$\{/g)].map((m) => m[1] ?? '');
for (const m of source.matchAll(/\bt\(\s*['"]([^'"]+)['"]/g))
  if (!keys.has(m[1] ?? '')) wrong.push(`no text for ${m[1]}`);
for (const key of keys.keys())
  if (!named.has(key) && !begun.some((b) => b && key.startsWith(b)))
    wrong.push(`nobody uses ${key} (${keys.get(key)})`);

if (wrong.length > 0) {
  console.error(wrong.map((w) => `texts: ${w}`).join('\n'));
  process.exit(1);
}
