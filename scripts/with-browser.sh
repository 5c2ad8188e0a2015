#!/usr/bin/env bash
# Runs a command with what the tests of the pages need: Chromium, and the packages of test/clients.
#
#   scripts/with-browser.sh go test ./test/browser
#
# The command finds the browser in SIGNET_TEST_BROWSER. Where that is set already, it is taken as it is. What is missing is
# installed where that can be done (as root, with apt), once.
#
#   CI=true  having no browser is an error; elsewhere the command runs without one
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/with-browser.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# missing says what is not there, and ends the matter in CI.
missing() {
  cat >&2 <<MESSAGE
*********************************************************************************
   $1 was not found: the pages are NOT being tested in a browser.
   Install it (Debian: apt-get install $2).
*********************************************************************************
MESSAGE
  if [[ ${CI-} == true ]]; then
    exit 1
  fi
}

install() {
  if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "with-browser: installing $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >&2 || echo "with-browser: the installation failed" >&2
  fi
}

# The shell is Chromium's engine without the windows of a desktop: tests take half the time with it. It is called itself, because Debian's
# script in front of it would leave it running if a test is killed.
shell=/usr/lib/chromium/chromium-headless-shell
browser() {
  local name
  for name in "$shell" chromium chromium-browser google-chrome-stable google-chrome; do
    if command -v "$name"; then
      return
    fi
  done
  return 1
}

if [[ -z ${SIGNET_TEST_BROWSER-} ]]; then
  if [[ ! -x $shell ]]; then
    install chromium-headless-shell fonts-dejavu-core
  fi
  SIGNET_TEST_BROWSER=$(browser) || missing Chromium chromium-headless-shell
  export SIGNET_TEST_BROWSER
elif [[ $SIGNET_TEST_BROWSER == chromium ]] && ! command -v chromium >/dev/null; then
  install chromium fonts-dejavu-core # the whole browser is wanted
fi

if "$root/scripts/npm.sh"; then
  stamp=$(cksum <"$root/test/clients/package-lock.json")
  if [[ $(cat "$root/test/clients/node_modules/.stamp" 2>/dev/null) != "$stamp" ]]; then
    if (cd "$root/test/clients" && npm ci --ignore-scripts --no-audit --no-fund >&2); then
      echo "$stamp" >"$root/test/clients/node_modules/.stamp"
    else
      missing "What test/clients/package-lock.json names" npm
    fi
  fi
else
  missing npm npm
fi

exec "$@"
