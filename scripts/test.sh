#!/usr/bin/env bash
# Sets up what the tests need and runs all of them. In CI a skipped test is a failure; elsewhere it is said loudly.
# Checks and tests run side by side, because installations, browsers and databases leave the processors idle at times.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Everything is built as the program is, so that nothing is compiled a second time.
export GOFLAGS=-trimpath CGO_ENABLED=0

work=$(mktemp -d)
checking=
finish() {
  if [[ -n $checking ]]; then
    kill -TERM -- "-$checking" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# check runs a command, and shows what it says when it has ended.
check() { # TITLE COMMAND...
  local title=$1 status=0
  shift
  "$@" >"$work/check" 2>&1 || status=$?
  echo "== $title"
  cat "$work/check"
  if [[ $status -ne 0 ]]; then
    echo "== FAILED: $title"
    cat "$work/check" >>"$work/failed"
    return "$status"
  fi
}
checks() {
  local status=0
  check "generated code is what the definition says" scripts/generate.sh --check || status=$?
  check "the built console is what its sources give" scripts/console.sh --check || status=$?
  check "lint" scripts/lint.sh || status=$?
  return "$status"
}
# failures shows of a log what the failed tests said, and what does not compile. Thousands of lines of the others would bury it.
failures() { # LOG
  awk '
    FNR == NR { if ($1 == "---" && $2 == "FAIL:") failed[$3] = 1; next }
    /^=== / { shown = ($3 in failed); next }
    /^# |^panic: |^fatal error: |^WARNING: DATA RACE/ { shown = 1 }
    /^ *--- FAIL|^FAIL/ { print; shown = 0; next }
    /^ *--- |^ok / { shown = 0 }
    shown && !/^time=/ && !/^ *\{"time":.*"level":"INFO"/ && !/^[0-9]+\/[0-9\/]+ [0-9:]+ (INFO|WARN)/ { print }' "$1" "$1"
}
scripts/npm.sh # for the checks and the browser's packages, which would install it at the same time
set -m # a process group of its own, which finish can end
checks &
checking=$!
set +m

# Every process that the tests start has this in its environment, and all of them must be gone in the end.
export TEST_RUN_MARK="${work##*/}-$$"

echo "== tests, both engines, a browser, foreign clients, proxies; race detector on what runs concurrently; checks beside them"
status=0
SIGNET_TEST_POSTGRES_FAST=1 scripts/with-browser.sh scripts/with-apache.sh scripts/with-proxies.sh scripts/with-postgres.sh scripts/suites.sh "$work" || status=$?
wait "$checking" || status=$?
checking=
mark=$TEST_RUN_MARK
unset TEST_RUN_MARK
check "the tests leave no process behind" scripts/left-behind.sh "$mark" 20 || status=$?
touch "$work/tests.log" "$work/race.log"
if [[ $status -ne 0 ]]; then
  echo "== what failed"
  if [[ -e $work/failed ]]; then
    cat "$work/failed"
  fi
  for log in "$work"/*.log; do
    failures "$log" | tail -n 300
  done
  exit "$status"
fi
skipped=$(grep -hE '^\s*--- SKIP' "$work"/*.log || true)
if [[ -n $skipped ]]; then
  echo "== SKIPPED:"
  grep -h -A2 -E '^\s*--- SKIP' "$work"/*.log
  if [[ ${CI-} == true ]]; then
    echo "a skip is a failure in CI" >&2
    exit 1
  fi
fi
# What to look at first if the check takes too long. Tests run beside each other, so their times do not add up.
echo "== the slowest tests"
cat "$work"/*.log | sed -nE 's/^--- PASS: ([^ ]+) \(([0-9.]+)s\)$/\2 s  \1/p' | sort -rn | sed -n 1,15p
passed=$(cat "$work"/*.log | grep -cE '^\s*--- PASS' || true)
echo "$passed passed, 0 failed"
