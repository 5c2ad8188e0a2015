// Writes page.js with everything it needs into one file.
import { build } from "esbuild";
import { load } from "./root.mjs";

const definition = JSON.stringify((await load()).toJSON());
await build({
  entryPoints: [new URL("page.js", import.meta.url).pathname], outfile: process.argv[2], bundle: true, format: "iife",
  plugins: [{ name: "definition", setup(b) {
    b.onResolve({ filter: /definition\.json$/ }, () => ({ path: "definition", namespace: "definition" }));
    b.onLoad({ filter: /.*/, namespace: "definition" }, () => ({ contents: definition, loader: "json" }));
  } }],
});
