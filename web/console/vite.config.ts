import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

// Hot reload works against a running server: the browser talks to Vite, which passes everything but the console on.
const server = process.env['SIGNET_URL'] ?? 'http://localhost:8080';

const sources = fileURLToPath(new URL('src/', import.meta.url));
/** The folder of a module below src, such as `lib/ui`; empty for a module of a package. */
const folderOf = (id: string) => (id.startsWith(sources) ? dirname(id.slice(sources.length)) : '');
const inFolder =
  (...folders: string[]) =>
  (id: string) =>
    folders.includes(folderOf(id));

/** Clients that one area alone calls: they are loaded with it. */
const ofOneArea = /\/(?:link|policy|remembered_device|sign_in_count|sign_in_trial|signing_key|status|webhook)_pb\.ts$/;
const inShared = inFolder('lib', 'lib/api', 'lib/ui', 'gen', 'gen/signet/v1');
/** The list of users, the search and the import are not what the page of one user needs. */
const manyUsers = /\/views\/users\/(?:Users\.svelte|Search\.svelte|Import\.svelte|import\.ts)$/;
/** The page of a user reads the policy, too, without its views. */
const policyClient = /\/policy_pb\.ts$/;
/** Most views do not need this client; the search loads it when somebody searches. */
const providerClient = /\/identity_provider_pb\.ts$/;
/** Trials of sign-ins are not what most views of an application need. */
const trials = /\/(?:sign_in_trial_pb\.ts|views\/apps\/(?:Try|Trial)\w*\.svelte)$/;
/** The examples for applications are as long as the rest of a view, and seldom looked at. */
const snippets = /\/views\/apps\/(?:snippets\.ts|Snippets\.svelte)$/;

/**
 * Generated clients hold their definition in base64, in which nothing repeats: as plain bytes, it takes two thirds of
 * the room when it is compressed.
 */
const plainDefinitions: Plugin = {
  name: 'plain-definitions',
  apply: 'build',
  transform: {
    filter: { id: /_pb\.ts$/ },
    handler: (code) =>
      code.replace(
        /\bfileDesc\(\s*"([A-Za-z0-9+/=]+)"/g,
        (_, text: string) => `fileDesc(btoa(${JSON.stringify(Buffer.from(text, 'base64').toString('latin1'))})`,
      ),
  },
};

export default defineConfig({
  base: '/console/',
  plugins: [plainDefinitions, svelte({ compilerOptions: { runes: true } })],
  build: {
    outDir: '../../.cache/console',
    emptyOutDir: true,
    target: 'es2023',
    // The security policy allows no inline script and no inline data.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    cssCodeSplit: false,
    // A view costs few requests: one file for what all views share, one for forms and dialogs, one for the views of an
    // area. The folder of a module decides. A group takes along what its modules import, unless a group above has it.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: 'shared',
              test: (id) => inShared(id) && !ofOneArea.test(id) && !providerClient.test(id),
              priority: 4,
            },
            // The frame names the files of all areas, so it changes with each of them. No other file imports it.
            { name: 'index', test: inFolder('.'), priority: 3 },
            { name: 'policy-client', test: policyClient, priority: 2 },
            { name: 'provider-client', test: providerClient, priority: 2 },
            { name: 'dialogs', test: inFolder('lib/form', 'lib/dialog'), priority: 2 },
            {
              debugName: 'views',
              name: (id) =>
                snippets.test(id) || manyUsers.test(id) || trials.test(id)
                  ? null
                  : (folderOf(id).split('views/')[1] ?? null),
              priority: 1,
            },
            { name: 'trials', test: trials, priority: 0 },
            { name: 'snippets', test: snippets, priority: 0 },
            { name: 'many-users', test: manyUsers, priority: 0 },
          ],
        },
      },
    },
  },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      '^/(?!console/(?!token|sign_out))': { target: server, changeOrigin: true, headers: { origin: server } },
    },
  },
});
