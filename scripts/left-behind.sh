#!/usr/bin/env bash
# Fails with the names of processes that have TEST_RUN_MARK=MARK in their environment, and do not end within some seconds.
set -euo pipefail
mark=$1
patience=$2

if [[ ! -r /proc/self/environ ]]; then
  echo "this system does not show the environment of processes: not checked"
  exit 0
fi
unset TEST_RUN_MARK # or what looks would find itself
left() { grep -lzxs -- "TEST_RUN_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null || true; }

until=$((SECONDS + patience))
while found=$(left) && [[ -n $found ]]; do
  if ((SECONDS >= until)); then
    for file in $found; do
      pid=${file#/proc/}
      pid=${pid%/environ}
      echo "process $pid is left behind: $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || echo 'it has just ended')"
    done
    exit 1
  fi
  sleep 0.2
done
