#!/usr/bin/env bash
# Sets up what the tests need and runs all of them. In CI a skipped test is a failure; elsewhere it is said loudly.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Everything is built as the program is, so that nothing is compiled a second time.
export GOFLAGS=-trimpath CGO_ENABLED=0

echo "== generated code is what the definition says"
scripts/generate.sh --check
echo "== the built console is what its sources give"
scripts/console.sh --check
echo "== lint"
scripts/lint.sh
echo "== tests, both engines, a browser, foreign clients, proxies; race detector on what runs concurrently"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# suite runs packages, and shows what is installed for them and each as it ends.
suite() { # go vet was part of the lint
  SIGNET_TEST_POSTGRES_FAST=1 scripts/with-browser.sh scripts/with-apache.sh scripts/with-proxies.sh scripts/with-postgres.sh \
    go test -vet=off -timeout 12m -v "$@" 2>&1 | tee -a "$log" | { grep --line-buffered -E '^(ok|FAIL|panic:|with-|\s*--- FAIL)' || true; }
}
# The race detector makes tests several times as slow. It is on for packages with code that runs concurrently, unless they take minutes with it; make race has it for all.
inside=(./internal/... ./cmd/... ./bench/...)
uses_sync='{{range .Imports}}{{if or (eq . "sync") (eq . "sync/atomic")}}{{$.ImportPath}}{{println}}{{end}}{{end}}'
mapfile -t concurrent < <(go list -f "$uses_sync" "${inside[@]}" | grep . | grep -vE "/internal/(store/proof|store/engine/scrubvfs|session)$" | sort -u)
mapfile -t others < <(comm -23 <(go list "${inside[@]}" | sort) <(printf '%s\n' "${concurrent[@]}"))
# SQLite itself, translated from C, is left out of it: it would take most of the time.
# The longest come first: at the end, they would run alone. go test does not run a package twice.
CGO_ENABLED=1 suite -race -gcflags=modernc.org/sqlite/lib=-race=false ./internal/store "${concurrent[@]}" || status=$?
suite ./test/program ./test/api ./test/browser ./internal/session "${others[@]}" ./test/... || status=$?
if [[ $status -ne 0 ]]; then
  echo "== what failed"
  # What servers inside the tests log would bury it.
  grep -vE '^\s*(=== |--- PASS|PASS)|^time=|^[0-9]{4}/[0-9/]+ [0-9:]+ (INFO|WARN)' "$log" | tail -n 300
  exit "$status"
fi
skipped=$(grep -E '^\s*--- SKIP' "$log" || true)
if [[ -n $skipped ]]; then
  echo "== SKIPPED:"
  grep -A2 -E '^\s*--- SKIP' "$log"
  if [[ ${CI-} == true ]]; then
    echo "a skip is a failure in CI" >&2
    exit 1
  fi
fi
passed=$(grep -cE '^\s*--- PASS' "$log" || true)
echo "$passed passed, 0 failed"
