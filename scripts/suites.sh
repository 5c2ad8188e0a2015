#!/usr/bin/env bash
# Runs the tests of all packages, and shows each package as it ends. scripts/test.sh gives it what they need, and a directory for their output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs=$1

suite() { # LOG FLAGS-AND-PACKAGES... ; go vet is part of the lint
  local log=$logs/$1.log
  shift
  go test -vet=off -timeout 15m -v "$@" 2>&1 | tee "$log" | { grep --line-buffered -E '^(ok|FAIL|panic:|\s*--- FAIL)' || true; }
}
# The race detector makes tests several times as slow. It is on for packages with code that runs concurrently, unless they take minutes with it; make race has it for all.
inside=(./internal/... ./cmd/... ./bench/... ./packaging/...)
uses_sync='{{range .Imports}}{{if or (eq . "sync") (eq . "sync/atomic")}}{{$.ImportPath}}{{println}}{{end}}{{end}}'
mapfile -t concurrent < <(go list -f "$uses_sync" "${inside[@]}" | grep . | grep -vE "/(cmd/signet|internal/(eventlog/store/proof|eventlog/store/engine/scrubvfs|signin/session|life/registration))$" | sort -u)
mapfile -t others < <(comm -23 <(go list "${inside[@]}" | sort) <(printf '%s\n' "${concurrent[@]}"))

# The longest packages come first: at the end, they would run alone. go test does not run a package twice.
# Both suites run at once: browsers and databases keep the tests of the second waiting much of their time. More than one package with the race
# detector beside them would make tests of times fail.
# SQLite itself, translated from C, is left out of the race detector: it would take most of the time.
CGO_ENABLED=1 suite race -p 1 -race -gcflags=modernc.org/sqlite/lib=-race=false ./internal/eventlog/store ./internal/domain/webhook "${concurrent[@]}" &
race=$!
tests() {
  mkdir -p .cache/test
  go build -o .cache/test/signet ./cmd/signet || return
  SIGNET_TEST_PROGRAM=$PWD/.cache/test/signet suite tests ./test/api ./test/program ./test/browser ./test/hosted ./test/console ./internal/signin/session "${others[@]}" ./test/...
}
status=0
tests || status=$?
wait "$race" || status=$?
exit "$status"
