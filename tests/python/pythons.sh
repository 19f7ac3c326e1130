#!/usr/bin/env bash
# pythons.sh: prints "VERSION|PATH" of one Python of each version from 3.9 on that this machine has,
# CPython and PyPy. The one of .venv, which has numpy and pandas, stands for its version.
# PROF_TEST_PYTHONS says which of them: one (the first of .venv, the default), ends (the oldest and
# the newest CPython) or all.
set -uo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
declare -A seen

which='import ctypes, sys
name = "" if sys.implementation.name == "cpython" else sys.implementation.name + " "
print(name + "%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) else "")'

# list_all [COUNT]: no more than that many.
list_all() {
  local python path version
  for python in "$source/.venv/bin/python" python3 python3.{9,10,11,12,13,14} \
    "${HOME:-/}"/.pyenv/versions/3.*/bin/python3 pypy3; do
    path=$(command -v "$python") || continue
    version=$("$path" -c "$which" 2>/dev/null) || continue
    if [ -z "$version" ] || [ -n "${seen[$version]:-}" ]; then continue; fi
    seen[$version]=1
    echo "$version|$path"
    [ ${#seen[@]} -ne "${1:-0}" ] || return 0
  done
}

case ${PROF_TEST_PYTHONS:-one} in
  one) list_all 1 ;;
  ends) list_all | grep -v '^pypy' | sort -t '|' -V | sed -n '1p; 1d; $p' ;;
  all) list_all ;;
  *) echo "pythons.sh: PROF_TEST_PYTHONS is '$PROF_TEST_PYTHONS'; it may be one, ends or all" >&2 &&
    exit 2 ;;
esac
