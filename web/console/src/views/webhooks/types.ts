// How the types of events that a webhook sends are named.
import { kindText, plainType, sentence } from '../../lib/events';
import { t } from '../../lib/texts.svelte';

/** What a chosen type stands for: all of a kind, or one sentence. */
export function typeText(type: string): string {
  return type.endsWith('.*') ? t('events.allOf', { kind: kindText(type.slice(0, -2)) }) : sentence(type);
}

/** The chosen types, each once: their versions are of no interest to people. */
export function plainTypes(types: readonly string[]): string[] {
  return [...new Set(types.map(plainType))];
}
