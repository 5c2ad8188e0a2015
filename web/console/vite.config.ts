import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// Hot reload works against a running server: the browser talks to Vite, which passes everything but the console on.
const server = process.env['SIGNET_URL'] ?? 'http://localhost:8080';

export default defineConfig({
  base: '/console/',
  plugins: [svelte({ compilerOptions: { runes: true } })],
  build: {
    outDir: '../../.cache/console',
    emptyOutDir: true,
    target: 'es2023',
    // The security policy allows no inline script and no inline data.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // A view costs few requests: one file for what all views share, one for forms and dialogs, one for the views of an area, one for all styles.
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { debugName: 'views', name: (id) => /\/src\/views\/([a-z]+)\/(?!routes\.ts)/.exec(id)?.[1] ?? null, priority: 2 },
            {
              name: 'dialogs',
              test: /node_modules\/(bits-ui|@floating-ui|@internationalized|runed|svelte-toolbelt|tabbable|style-to-object|inline-style-parser)\/|\/src\/lib\/(form\/[A-Za-z]+\.svelte|ui\/(Menu|Modal|Dialogs|Palette|[A-Za-z]+Dialog|[A-Za-z]+Modal|SignInAgain|EventDetail|History)\.svelte)/,
              priority: 2,
            },
            { name: 'shared', test: /node_modules|\/src\/(lib|gen)\//, priority: 1 },
          ],
          includeDependenciesRecursively: false,
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
