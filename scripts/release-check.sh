#!/usr/bin/env bash
# Makes the release of the last commit twice, in two clones with other names and compilers that remember nothing of each other, and compares the bytes.
#
#   scripts/release-check.sh [SYSTEM/ARCH,...]
#
#   SIGNET_SHARED_CACHE=1  let both use the compiler's usual cache: much faster, and still links and packs everything twice
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/packaging-tools.sh
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD)
for side in one a/deeper/two; do
  git clone --quiet --no-hardlinks . "$work/$side"
  git -C "$work/$side" checkout --quiet "$commit"
  mkdir -p "$work/$side/.cache"
  cp -r .cache/packaging-tools "$work/$side/.cache/" # the tools make the bytes, they are not what is compared
  [[ -n ${SIGNET_SHARED_CACHE-} ]] || export GOCACHE=$work/$side-cache # outside, or the clone would count as changed
  "$work/$side/scripts/release.sh" "$work/$side-dist" "${1-}" >/dev/null
done
diff -r "$work/one-dist" "$work/a/deeper/two-dist"
(cd "$work/one-dist" && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS)
echo "both are the same, byte for byte"
