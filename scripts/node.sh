# To be sourced at the root of the repository: installs the packages of web/console when package-lock.json changes, and
# puts their programs on the PATH. Node is one of them, so that the build of the console gives the same bytes on every
# machine, and so is buf, which takes longer to compile than everything else.
app=$PWD/web/console
packages_stamp=$(cksum <"$app/package-lock.json")
if [[ $(cat "$app/node_modules/.stamp" 2>/dev/null) != "$packages_stamp" ]]; then
  scripts/npm.sh
  (cd "$app" && npm ci --ignore-scripts --no-audit --no-fund >&2)
  echo "$packages_stamp" >"$app/node_modules/.stamp"
fi
if ! "$app/node_modules/.bin/node" --version >/dev/null 2>&1; then
  echo "no pinned Node for this machine, using $(node --version)" >&2
fi
export PATH=$app/node_modules/.bin:$PATH
