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

# The packages of those that are not there.
missing() {
  local program package
  for program in nginx:nginx-light haproxy:haproxy caddy:caddy apache2:apache2-bin; do
    package=${program#*:}
    PATH=$PATH:/usr/sbin command -v "${program%:*}" >/dev/null || printf '%s ' "$package"
  done
}

# Packages start their services, unless a policy says otherwise.
install() (
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2046
  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(missing)
)

if [[ -n $(missing) && $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "with-proxies: installing $(missing)" >&2
  install >&2 || echo "with-proxies: the installation failed" >&2
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
