#!/usr/bin/env bash
# Makes the packages for this processor, then installs, runs, uses and removes them: the image under runc, the Debian package in a fresh Debian, where
# a systemd of its own runs the unit; and renders and validates the chart and the compose files. Needs root and Debian; what is missing is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "packages: this needs root on Debian: it installs packages and starts containers" >&2
  exit 1
fi
missing=()
for program in runc:runc debootstrap:debootstrap systemd-analyze:systemd skopeo:skopeo; do
  PATH=$PATH:/usr/sbin command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
done
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "packages: installing ${missing[*]}" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
debian=$PWD/.cache/debian
if [[ ! -e $debian/made ]]; then
  rm -rf "$debian"
  debootstrap --variant=minbase --include=systemd,systemd-sysv bookworm "$debian/root"
  touch "$debian/made"
fi
export PATH=$PATH:/usr/sbin
source scripts/packaging-tools.sh
dist=$PWD/.cache/packages-dist
scripts/release.sh "$dist" "linux/$(go env GOARCH)"
PACKAGES_DIST=$dist PACKAGES_DEBIAN=$debian/root go test -count=1 -tags packages -run Packages -v ./test/packaging
