import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default defineConfig(
  { ignores: ['src/gen/'] },
  js.configs.recommended,
  ts.configs.recommended,
  svelte.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      // A parameter in front of one that is used, or a field that is left out of the rest, is named _.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_$', varsIgnorePattern: '^_$' }],
    },
  },
  {
    files: ['**/*.ts', '**/*.svelte'],
    rules: {
      // The compiler finds undefined names, and knows the types of the DOM.
      'no-undef': 'off',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig } },
    rules: {
      // Collections that are replaced as a whole, or that no view reads, need not be reactive themselves.
      'svelte/prefer-svelte-reactivity': 'off',
      // {' '} is a space at the edge of an element, which Svelte would trim.
      'svelte/no-useless-mustaches': 'off',
    },
  },
  {
    files: ['src/views/**'],
    rules: {
      // An area is one file of the build. What two areas need belongs to lib, or one would load the other.
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^\\.\\./(?!\\.\\./)', message: 'Views of another area: move what both need to lib.' }] },
      ],
    },
  },
  { files: ['*.ts', '*.js', 'tools/**'], languageOptions: { globals: globals.node } },
);
