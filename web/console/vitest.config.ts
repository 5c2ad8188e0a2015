import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  test: {
    include: ['src/**/*.test.ts'],
    // What is tested here needs no browser. The views are tested in a real one: test/console.
    environment: 'node',
    // No test changes what another one reads, so they share the modules.
    isolate: false,
    // Dates are written in the zone of the reader.
    env: { TZ: 'UTC' },
  },
});
