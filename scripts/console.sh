#!/usr/bin/env bash
# Builds the console (web/console) into web/console/dist, from where the server embeds it.
#
#   scripts/console.sh           check the types and texts, build, write dist
#   scripts/console.sh --check   the same, but write nothing and fail if dist is not what the sources give
#   scripts/console.sh --clients only write the generated clients (src/gen), which editors and hot reload need
#   scripts/console.sh --dev     hot reload at http://localhost:5173/console/ against the server at SIGNET_URL
#
# The build runs on the Node that package-lock.json names, so that every machine gives the same bytes.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
mode=${1-}
case "$mode" in
  '' | --check | --clients | --dev) ;;
  *)
    echo "usage: scripts/console.sh [--check | --clients | --dev]" >&2
    exit 2
    ;;
esac

app=$root/web/console
stamp=$(cksum <"$app/package-lock.json")
if [[ $(cat "$app/node_modules/.stamp" 2>/dev/null) != "$stamp" ]]; then
  (cd "$app" && npm ci --ignore-scripts --no-audit --no-fund >&2)
  echo "$stamp" >"$app/node_modules/.stamp"
fi
node=$app/node_modules/.bin/node
if ! "$node" --version >/dev/null 2>&1; then
  node=$(command -v node)
  echo "console: no pinned Node for this machine, using $("$node" --version)" >&2
fi
export PATH=$(dirname "$node"):$PATH
export BUF_CACHE_DIR=$root/.cache/buf
source scripts/tools.sh

rm -rf "$app/src/gen"
buf generate --template web/console/buf.gen.yaml
buf build --path proto/signet --output .cache/console-image.binpb
(cd "$app" && "$node" tools/operations.mjs ../../.cache/console-image.binpb src/gen/operations.ts)
case "$mode" in
  --clients) exit 0 ;;
  --dev) cd "$app" && exec "$node" node_modules/vite/bin/vite.js ;;
esac

cd "$app"
"$node" tools/texts.mjs
"$node" node_modules/svelte-check/bin/svelte-check --tsconfig ./tsconfig.json --fail-on-warnings --output human --threshold warning
"$node" node_modules/vite/bin/vite.js build --logLevel warn
cd "$root"
go run ./web/console/pack ${mode:+-check} .cache/console web/console/dist
