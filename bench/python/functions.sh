#!/usr/bin/env bash
# functions.sh BUILD: Runs functions.py under BENCH_PYTHON (.venv's by default) and under every
# Python from 3.12 on that tests/python/pythons.sh names: Those have sys.monitoring.
# For each, pip installs the viztracer of tools/setup.sh's list once, in BUILD/viztracer/VERSION. If
# it cannot, functions.py says that viztracer is missing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$1
viztracer=$(grep -o 'viztracer==[0-9.]*' tools/setup.sh)
export PROF_LIBRARY=$build/libprof.so
status=0 seen=

run_under() {
  local version=$1 python=$2 beside=$build/viztracer/$1
  case " $seen " in *" $version "*) return ;; esac
  seen="$seen $version"
  if [ ! -d "$beside" ] && [ "$(printf '%s\n' 3.10 "$version" | sort -V | head -n 1)" = 3.10 ]; then
    "$python" -m pip install -qq --disable-pip-version-check --target "$beside.new" "$viztracer" &&
      mv "$beside.new" "$beside"
  fi
  PYTHONPATH=bindings/python:$beside "$python" bench/python/functions.py || status=1
}

first=${BENCH_PYTHON:-.venv/bin/python}
if [ -x "$(command -v "$first")" ]; then
  run_under "$("$first" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$first"
fi
while IFS='|' read -r version python; do
  case $version in
    3.1[2-9] | 3.[2-9][0-9]) run_under "$version" "$python" ;;
  esac
done < <(tests/python/pythons.sh)
[ -n "$seen" ] || echo "skip: no Python from 3.12 on"
exit $status
