#!/usr/bin/env bash
# Makes everything that is published with a version into DIR (dist): programs, image, packages, chart, SBOMs, checksums. The same commit
# gives the same bytes on every machine: compiler and tools are pinned.
#
#   scripts/release.sh [DIR [SYSTEM/ARCH,...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=go1.26.8
source scripts/packaging-tools.sh
roots >.cache/roots.pem
go run ./packaging/release -out "${1-dist}" -certificates .cache/roots.pem -targets "${2-}"
ls -l "${1-dist}"
