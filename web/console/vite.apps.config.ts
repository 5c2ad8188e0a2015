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
  },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      '^/(?!console/(?!token|sign_out))': { target: server, changeOrigin: false, headers: { origin: 'http://localhost:8203' } },
    },
  },
});
