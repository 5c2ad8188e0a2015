#!/usr/bin/env bash
# Formatting, vet and staticcheck. The tools come from tools/go.mod.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
unformatted=$(gofmt -l $(git ls-files -co --exclude-standard '*.go' | grep -v '^gen/' | while read -r f; do [[ -e $f ]] && echo "$f"; done))
if [[ -n $unformatted ]]; then
  echo "gofmt would change:" >&2
  echo "$unformatted" >&2
  exit 1
fi
go vet ./...
go vet -tags pictures,providers,joining,driving ./test/browser
go vet -tags driving ./test/console
go vet -tags faults ./test/faults
go vet -tags cost,faults,overload ./test/program
go vet -tags recovery ./test/recovery
go vet -tags rolling ./test/rolling
go vet -tags packages ./test/packaging
staticcheck ./...
