#!/usr/bin/env bash
# Runs a command beside a throw-away PostgreSQL server, for the tests that want a real one. PgBouncer is installed beside it.
#
#   scripts/with-postgres.sh go test ./...
#
# The command finds the server's address in SIGNET_TEST_POSTGRES. Where that is set already, the server it names is
# used and none is started. The server keeps its data in a temporary directory and is gone when the command ends.
#
#   SIGNET_TEST_POSTGRES_FAST=1  do not wait for the disk: quicker, and fine for tests that do not pull the plug
#   CI=true                      having no PostgreSQL is an error; elsewhere the command runs without one
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/with-postgres.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi
if [[ -n ${SIGNET_TEST_POSTGRES-} ]]; then
  exec "$@"
fi

# bindir prints the directory that holds the server's programs; the newest version wins.
bindir() {
  local candidates=() dir
  if command -v pg_config >/dev/null; then
    candidates+=("$(pg_config --bindir)")
  fi
  while IFS= read -r dir; do
    candidates+=("$dir")
  done < <(compgen -G '/usr/lib/postgresql/*/bin' | sort -rV; compgen -G '/usr/pgsql-*/bin' | sort -rV
    compgen -G '/opt/homebrew/opt/postgresql*/bin' | sort -rV; compgen -G '/usr/local/opt/postgresql*/bin' | sort -rV)
  if command -v initdb >/dev/null && command -v postgres >/dev/null; then
    candidates+=("$(dirname "$(command -v initdb)")")
  fi
  for dir in ${candidates[@]+"${candidates[@]}"}; do
    if [[ -x $dir/initdb && -x $dir/postgres && -x $dir/pg_ctl ]]; then
      echo "$dir"
      return
    fi
  done
  return 1
}

if ! bin=$(bindir); then
  if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "with-postgres: installing PostgreSQL" >&2
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } >&2 ||
      echo "with-postgres: the installation failed" >&2
  fi
  if ! bin=$(bindir); then
    cat >&2 <<'MESSAGE'
*********************************************************************************
*  PostgreSQL was not found: everything that needs it is NOT being tested.      *
*  Install it (Debian: apt-get install postgresql), or put the address of a     *
*  server into SIGNET_TEST_POSTGRES.                                            *
*********************************************************************************
MESSAGE
    if [[ ${CI-} == true ]]; then
      exit 1
    fi
    exec "$@"
  fi
fi

# PgBouncer, which tests put in front of the server themselves. Its service is not started: the package would, unless a policy says otherwise.
if ! PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null && [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "with-postgres: installing PgBouncer" >&2
  (
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
      trap 'rm -f "$policy"' EXIT
      printf '#!/bin/sh\nexit 101\n' >"$policy"
      chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends pgbouncer
  ) >&2 || echo "with-postgres: the installation failed" >&2
fi

# The server refuses to run as root. Another user has to be able to reach its directory, so that is made under /tmp
# and not under a TMPDIR that may be private.
as=()
owner=
if [[ $(id -u) -eq 0 ]]; then
  owner=nobody
  if id postgres >/dev/null 2>&1; then
    owner=postgres
  fi
  if command -v setpriv >/dev/null; then
    as=(setpriv --reuid "$owner" --regid "$(id -g "$owner")" --clear-groups)
  elif command -v runuser >/dev/null; then
    as=(runuser -u "$owner" --)
  else
    as=(su -s /bin/sh "$owner" -c 'exec "$0" "$@"')
  fi
fi
# server runs one of PostgreSQL's programs as the user it may run as.
server() { (cd / && HOME=$work exec ${as[@]+"${as[@]}"} "$@"); }

work=$(mktemp -d /tmp/signet-postgres.XXXXXX)
running=false
child=
stop() {
  status=$?
  trap - EXIT
  trap '' INT TERM HUP
  if [[ -n $child ]]; then
    kill -TERM -- "-$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  if $running; then
    server "$bin/pg_ctl" stop -D "$work/data" -m immediate -s >&2 || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

if [[ -n $owner ]]; then
  chown "$owner" "$work"
fi

# A collation that is not the byte order, as most installations have it: what relies on byte order should fail here.
initdb() { server "$bin/initdb" -D "$work/data" -U postgres -A trust -E UTF8 --no-sync "$@" >"$work/initdb.log" 2>&1; }
if ! initdb --locale=C --locale-provider=icu --icu-locale=en; then
  rm -rf "$work/data"
  if ! initdb; then
    cat "$work/initdb.log" >&2
    exit 1
  fi
fi

{
  echo "listen_addresses = '127.0.0.1'"
  echo "unix_socket_directories = '$work'"
  echo "max_connections = 300"
  echo "log_min_messages = fatal"
  if [[ ${SIGNET_TEST_POSTGRES_FAST-} == 1 ]]; then
    echo "fsync = off"
    echo "synchronous_commit = off"
    echo "full_page_writes = off"
  fi
} >>"$work/data/postgresql.conf"

# Somebody may take a free port before the server does: then another one is tried.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  port=$((20000 + RANDOM % 12000))
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    continue
  fi
  if server "$bin/pg_ctl" start -D "$work/data" -w -t 60 -s -l "$work/data/server.log" -o "-p $port" >&2; then
    running=true
    break
  fi
done
if ! $running; then
  echo "with-postgres: the server does not start" >&2
  cat "$work/data/server.log" >&2 || true
  exit 1
fi

export SIGNET_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
status=0
if [[ -t 0 ]]; then
  "$@" || status=$?
else
  # Without a terminal an interrupt may reach this script alone: it is passed on to the command and all it started.
  set -m
  "$@" <&0 &
  child=$!
  set +m
  wait "$child" || status=$?
  child=
fi
exit "$status"
