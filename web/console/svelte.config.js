// For editors and svelte-check: the build gets the same by vite.config.ts.
export default { compilerOptions: { runes: true } };
