#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (30s).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
grep -rl --include='*_test.go' '^func Fuzz' internal test 2>/dev/null | while read -r file; do
  grep -oE '^func (Fuzz[A-Za-z0-9_]+)' "$file" | awk '{print $2}' | while read -r target; do
    echo "== $(dirname "$file") $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 20x "./$(dirname "$file")"
  done
done
