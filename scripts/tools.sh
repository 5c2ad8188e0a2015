# To be sourced at the root of the repository: builds the tools of tools/go.mod into .cache/tools when their versions
# change, and puts them on the PATH. A cold build takes a minute.
tools_bin=$PWD/.cache/tools
mkdir -p "$tools_bin"
echo '*' >.cache/.gitignore
tools_stamp=$(go env GOVERSION GOOS GOARCH | cat - tools/go.mod tools/go.sum | cksum)
if [[ $(cat "$tools_bin/.stamp" 2>/dev/null) != "$tools_stamp" ]]; then
  echo "building the tools, this takes a while once" >&2
  GOWORK=off GOBIN=$tools_bin go -C tools install -mod=readonly tool
  echo "$tools_stamp" >"$tools_bin/.stamp"
fi
export PATH=$tools_bin:$PATH
