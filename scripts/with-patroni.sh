#!/usr/bin/env bash
# Runs a command with what make faults needs: PostgreSQL, Patroni, etcd, HAProxy and PgBouncer, as Debian ships them.
#
#   scripts/with-patroni.sh go test -tags faults ./test/faults
#
# What is missing is installed (as root, with apt), once. Only the programs are: no service is started, the test runs them itself.
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/with-patroni.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi

# The packages of those that are not there.
missing() {
  local program
  for program in patroni:patroni etcd:etcd-server haproxy:haproxy pgbouncer:pgbouncer; do
    PATH=$PATH:/usr/sbin command -v "${program%:*}" >/dev/null || printf '%s ' "${program#*:}"
  done
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || printf 'postgresql '
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
  apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-etcd $(missing)
)

if [[ -n $(missing) ]]; then
  echo "with-patroni: installing $(missing)" >&2
  install >&2
fi
exec "$@"
