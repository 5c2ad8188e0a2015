# To be sourced at the root of the repository: builds the tools of packaging/tools into .cache/packaging-tools when their versions change, and puts
# them on the PATH. They are apart from tools/go.mod: make test does not need them, and a cold build takes many minutes. kubectl-validate has a module
# of its own: it needs older libraries of Kubernetes than helm does.
packaging_bin=$PWD/.cache/packaging-tools
mkdir -p "$packaging_bin"
echo '*' >.cache/.gitignore
packaging_stamp=$(go env GOVERSION GOOS GOARCH | cat - packaging/tools/{,validate/}go.{mod,sum} packaging/tools/*/*.go | cksum)
if [[ $(cat "$packaging_bin/.stamp" 2>/dev/null) != "$packaging_stamp" ]]; then
  echo "building the tools for packages, this takes a while once" >&2
  for module in packaging/tools packaging/tools/validate; do
    GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0 GOBIN=$packaging_bin go -C "$module" install -mod=readonly -trimpath tool ./...
  done
  echo "$packaging_stamp" >"$packaging_bin/.stamp"
fi
export PATH=$packaging_bin:$PATH
