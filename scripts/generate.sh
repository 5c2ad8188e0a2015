#!/usr/bin/env bash
# Generates gen/ (Go code and the OpenAPI document) from proto/, and lints proto/.
#
#   scripts/generate.sh          write gen/
#   scripts/generate.sh --check  write nothing, fail if gen/ is not up to date
set -euo pipefail

check=false
case "${1-}" in
  '') ;;
  --check) check=true ;;
  *)
    echo "usage: scripts/generate.sh [--check]" >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cache=$root/.cache
export GOWORK=off BUF_CACHE_DIR=$cache/buf
source scripts/tools.sh
source scripts/node.sh
go -C tools build -mod=readonly -trimpath -o "$tools_bin/openapi" ./openapi

work=$(mktemp -d "$cache/generate.XXXXXX")
trap 'rm -rf "$work"' EXIT

buf lint
buf generate --output "$work"
buf build --path proto/signet --output "$work/image.binpb"
openapi -descriptors "$work/image.binpb" -in "$work/gen/openapi/openapi.json" -out "$work/gen/openapi/openapi.json"

# embed.go is the one file in gen/ that is written by hand.
if difference=$(diff -rqN --exclude=embed.go gen "$work/gen"); then
  echo "gen/ is up to date" >&2
  exit 0
fi
if $check; then
  diff -ruN --exclude=embed.go gen "$work/gen" | head -n 60 >&2 || true
  echo "$difference" >&2
  echo "gen/ does not match proto/: run scripts/generate.sh and commit the result" >&2
  exit 1
fi

cp -R "$work/gen/." gen/
(cd gen && find . -type f ! -name embed.go) | while read -r file; do
  [[ -e $work/gen/$file ]] || rm "gen/$file"
done
echo "gen/ has been written" >&2
