#!/usr/bin/env bash
# Runs a command with the proxies that people put in front of Signet: nginx, HAProxy, Caddy and Apache, as Debian ships them.
#
#   scripts/with-proxies.sh go test ./test/proxies
#
# What is missing is installed where that can be done (as root, with apt), once. Only the programs are: no service is set up or
# started, the test runs them itself.
#
#   CI=true  not having them is an error; elsewhere the command runs without
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/with-proxies.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi

missing() {
  local path packages=()
  for path in nginx haproxy caddy apache2; do
    PATH=$PATH:/usr/sbin command -v "$path" >/dev/null || packages+=("$path")
  done
  echo "${packages[*]/%nginx/nginx-light}"
}

if [[ -n $(missing) && $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "with-proxies: installing $(missing)" >&2
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  # A package that starts its service is told not to, where the machine does not say so itself.
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
  fi
  # shellcheck disable=SC2046
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $(missing); } >&2 ||
    echo "with-proxies: the installation failed" >&2
  [[ -z $(trap -p EXIT) ]] || rm -f "$policy"
  trap - EXIT
fi
if [[ -n $(missing) ]]; then
  cat >&2 <<MESSAGE
*******************************************************************************
*  Proxies are missing: what Signet answers behind them is NOT being tested.  *
*  (Debian: apt-get install $(missing).)
*******************************************************************************
MESSAGE
  if [[ ${CI-} == true ]]; then
    exit 1
  fi
fi

exec "$@"
