#!/usr/bin/env bash
# Installs npm where it is missing and can be installed (as root, with apt).
set -euo pipefail
command -v npm >/dev/null && exit
if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "installing npm" >&2
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm; } >&2
fi
command -v npm >/dev/null || { echo "npm is missing (Debian: apt-get install npm)" >&2; exit 1; }
