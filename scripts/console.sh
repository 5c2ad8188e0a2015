#!/usr/bin/env bash
# Builds the console (web/console) into web/console/dist.zip, which the server embeds.
#
#   scripts/console.sh            write the clients (src/gen), format, check, test and build the sources, write dist.zip
#   scripts/console.sh --check    the same, but write nothing and fail if a file is not what it should be
#   scripts/console.sh --clients  only write the clients, after a change of proto/
#   scripts/console.sh --dev      hot reload at http://localhost:5173/console/ against the server at SIGNET_URL; needs only Node
#
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

source scripts/node.sh
if [[ $mode == --dev ]]; then
  cd web/console && exec vite
fi

export BUF_CACHE_DIR=$root/.cache/buf
source scripts/tools.sh
work=$(mktemp -d "$root/.cache/console.XXXXXX")
trap 'rm -rf "$work"' EXIT
gen=web/console/src/gen
buf generate --template web/console/buf.gen.yaml --output "$work"
buf build --path proto/signet --output "$work/image.binpb"
(cd web/console && node tools/operations.mjs "$work/image.binpb" "$work/$gen/operations.ts")
if ! difference=$(diff -rqN "$gen" "$work/$gen"); then
  if [[ $mode == --check ]]; then
    echo "$difference" >&2
    echo "$gen does not match proto/: run scripts/console.sh and commit the result" >&2
    exit 1
  fi
  rm -rf "$gen"
  cp -R "$work/$gen" "$gen"
fi
if [[ $mode == --clients ]]; then
  exit 0
fi

cd web/console
node tools/texts.mjs
if [[ $mode == --check ]]; then
  prettier --cache --check --log-level warn .
else
  prettier --cache --write --log-level warn .
fi
# The type checker, the linter and the tests run side by side: they read the same files and do not know each other.
checks=()
check() {
  local log=$work/$1.log
  shift
  { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; } &
  checks+=($!)
}
check types svelte-check --tsconfig ./tsconfig.json --fail-on-warnings --output human --threshold warning
check lint eslint --cache --cache-location node_modules/.cache/eslint/ --cache-strategy content --max-warnings 0 .
check tests vitest run
status=0
for pid in "${checks[@]}"; do
  wait "$pid" || status=$?
done
if [[ $status -ne 0 ]]; then
  exit "$status"
fi
vite build --logLevel warn --outDir "$work/dist"
cd "$root"
go run ./web/console/pack ${mode:+-check} "$work/dist" web/console/dist.zip
