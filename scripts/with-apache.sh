#!/usr/bin/env bash
# Runs a command with what the test of a web server as a client needs: Apache with mod_auth_openidc, as Debian ships them.
#
#   scripts/with-apache.sh go test -run TestAWebServer ./test/oidc
#
# What is missing is installed where that can be done (as root, with apt), once. Only the programs are: no service is set up or
# started, the test runs a server of its own.
#
#   CI=true  not having them is an error; elsewhere the command runs without
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/with-apache.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi

there() { [[ -x /usr/sbin/apache2 && -e /usr/lib/apache2/modules/mod_auth_openidc.so ]]; }

if ! there && [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "with-apache: installing Apache and mod_auth_openidc" >&2
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends libapache2-mod-auth-openidc; } >&2 ||
    echo "with-apache: the installation failed" >&2
fi
if ! there; then
  cat >&2 <<'MESSAGE'
*********************************************************************************
*  Apache with mod_auth_openidc was not found: signing in through a web server  *
*  is NOT being tested. (Debian: apt-get install libapache2-mod-auth-openidc.)  *
*********************************************************************************
MESSAGE
  if [[ ${CI-} == true ]]; then
    exit 1
  fi
fi

exec "$@"
