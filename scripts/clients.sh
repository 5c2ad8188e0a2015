#!/usr/bin/env bash
# Runs clients that other people wrote, as they are, against Signet: those that are too heavy for make test. What is missing is installed
# where that can be done (as root, with apt), once.
#
#   scripts/clients.sh                     all of them
#   scripts/clients.sh -run TestPython     some of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need() { # COMMAND PACKAGE...
  local command=$1
  shift
  if eval "$command" >/dev/null 2>&1; then
    return
  fi
  if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "clients: installing $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >&2
  fi
  eval "$command" >/dev/null 2>&1 || { echo "clients: $* is missing (Debian: apt-get install $*)" >&2; exit 1; }
}

need 'protoc --version && test -e /usr/include/google/protobuf/descriptor.proto' protobuf-compiler libprotobuf-dev
need '/usr/bin/python3 -c "import grpc, google.protobuf"' python3-grpcio python3-protobuf
need '/usr/bin/python3 -c "import authlib, oauthlib, jwt, requests"' python3-authlib python3-oauthlib python3-jwt python3-requests
need 'npm --version' nodejs npm
need 'oidc-agent --version' oidc-agent-cli

# Each directory with a lock file of its own has what it needs.
for lock in test/clients/*/package-lock.json; do
  directory=$(dirname "$lock")
  stamp=$(cksum <"$lock")
  if [[ $(cat "$directory/node_modules/.stamp" 2>/dev/null) != "$stamp" ]]; then
    (cd "$directory" && npm ci --ignore-scripts >&2)
    echo "$stamp" >"$directory/node_modules/.stamp"
  fi
done

export CI=${CI-true} # nothing is skipped
scripts/with-browser.sh go test -count=1 -timeout 20m -tags clients ./test/clients "$@"
SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -timeout 20m -tags clients ./test/oidc "${@:--run=RelyingParties|ALibraryShows|ConformanceSuite|Dex|OAuth2Proxy|OIDCAgent}"
# 200 early errors of each kind before bodies of 3.9 MB, over h2c and behind each proxy.
SIGNET_EARLY_ERRORS=200 scripts/with-proxies.sh scripts/with-apache.sh go test -count=1 -timeout 20m ./test/proxies "${@:--run=TestEarlyErrors|TestBehindProxies}"
# Modules of their own, because of what these clients need. Those without a test only say how to build a program.
for module in $(dirname test/clients/*/*_test.go | sort -u); do
  go -C "$module" test -count=1 -timeout 5m ./... "$@"
done
