#!/usr/bin/env bash
# Runs the tests of all packages, and shows each package as it ends. scripts/test.sh gives it what they need, and a directory for their output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs=$1

# The timeout is for tests that hang: on a machine with much other work, packages take 15 minutes that otherwise take four.
suite() { # LOG FLAGS-AND-PACKAGES... ; go vet is part of the lint
  local log=$logs/$1.log
  shift
  go test -vet=off -timeout 45m -v "$@" 2>&1 | tee "$log" | { grep --line-buffered -E '^(ok|FAIL|panic:|\s*--- FAIL)' || true; }
}
# The race detector makes tests several times as slow: here it is on for those packages whose code runs concurrently the most. make race has
# it for all. SQLite itself, translated from C, is left out of it: it would take most of the time.
racing=(./internal/eventlog/store ./internal/domain/webhook ./internal/signin/session)
mapfile -t others < <(comm -23 <(go list ./internal/... ./cmd/... ./bench/... ./packaging/... | sort) <(go list "${racing[@]}" | sort))

# Both suites run at once: browsers and databases keep the tests of the second waiting much of their time.
# The longest packages come first: at the end, they would run alone. go test does not run a package twice.
CGO_ENABLED=1 suite race -p 1 -race -gcflags=modernc.org/sqlite/lib=-race=false "${racing[@]}" &
race=$!
tests() {
  mkdir -p .cache/test
  go build -o .cache/test/signet ./cmd/signet || return
  SIGNET_TEST_PROGRAM=$PWD/.cache/test/signet suite tests ./test/api ./test/program ./test/browser ./test/hosted ./test/console "${others[@]}" ./test/...
}
status=0
tests || status=$?
wait "$race" || status=$?
exit "$status"
