// What the console says, in four languages. Each area of views has its own file; `common` and `fields` are always
// there.

export const languages = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español' } as const;
export type Language = keyof typeof languages;

type Plural = Partial<Record<Intl.LDMLPluralRule, string>>;
type Texts = Record<string, string | Plural>;

const files = import.meta.glob<Texts>('../texts/*/*.json', { import: 'default' });
const stored = 'signet-console-language';

/** The language that the person chose here, else the first one of the browser that there is. */
function preferred(): Language {
  const wished = [readStored(), ...navigator.languages.map((l) => l.split('-')[0])];
  return (wished.find((l) => l !== undefined && l in languages) as Language | undefined) ?? 'en';
}

function readStored(): string | undefined {
  try {
    return localStorage.getItem(stored) ?? undefined;
  } catch {
    return undefined;
  }
}

const state = $state({ language: preferred(), texts: {} as Texts });
const loaded = new Set<string>();
let wanted = state.language;
let rules = new Intl.PluralRules(state.language);

/** The language of the page. */
export function language(): Language {
  return state.language;
}

const textsOf = (of: Language, areas: readonly string[]) =>
  Promise.all(areas.map((a) => files[`../texts/${of}/${a}.json`]?.() ?? Promise.resolve({})));

/** Loads the texts of areas. Views get theirs before they are shown. */
export async function loadTexts(...areas: string[]): Promise<void> {
  const missing = areas.filter((a) => !loaded.has(a));
  const found = await textsOf(state.language, missing);
  if (missing.length === 0) return;
  state.texts = Object.assign({}, state.texts, ...found) as Texts;
  for (const a of missing) loaded.add(a);
}

/** Changes the language and remembers it in this browser. */
export async function chooseLanguage(chosen: Language): Promise<void> {
  wanted = chosen;
  const areas = [...loaded];
  const found = await textsOf(chosen, areas);
  // Somebody who goes through the list has chosen another one meanwhile.
  if (wanted !== chosen) return;
  state.language = chosen;
  state.texts = Object.assign({}, ...found) as Texts;
  for (const a of loaded) if (!areas.includes(a)) loaded.delete(a);
  rules = new Intl.PluralRules(chosen);
  document.documentElement.lang = chosen;
  try {
    localStorage.setItem(stored, chosen);
  } catch {
    // A browser that stores nothing forgets it with the tab.
  }
}

type Values = Record<string, string | number>;

/**
 * The text of a key. `n` chooses between forms of a plural. A missing text shows as its key: tools/texts.mjs finds it.
 */
export function t(key: string, values: Values = {}): string {
  const text = state.texts[key];
  if (text === undefined) return key;
  const form = typeof text === 'string' ? text : (text[rules.select(Number(values['n'] ?? 0))] ?? text.other ?? key);
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === 'number' ? value.toLocaleString(state.language) : value;
  });
}

/** Whether there is a text. */
export function hasText(key: string): boolean {
  return key in state.texts;
}
