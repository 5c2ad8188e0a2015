#!/usr/bin/env bash
# Makes one thing of a release into dist, for the processor of this machine: the Debian package (deb) or the image for containers (image). It builds
# only the tool that this needs.
#
#   scripts/package.sh deb|image
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/.cache/packaging-tools
mkdir -p "$tools"
echo '*' >.cache/.gitignore
install() { GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0 GOBIN=$tools go -C packaging/tools install -mod=readonly -trimpath "$1"; }
case ${1-} in
  deb) install github.com/goreleaser/nfpm/v2/cmd/nfpm ;;
  image)
    install ./roots
    "$tools/roots" >.cache/roots.pem
    ;;
  *)
    echo "usage: scripts/package.sh deb|image" >&2
    exit 2
    ;;
esac
PATH=$tools:$PATH go run ./packaging/release -out dist -certificates .cache/roots.pem -targets "linux/$(go env GOARCH)" -what "$1"
ls -l dist
