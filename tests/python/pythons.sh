#!/usr/bin/env bash
# pythons.sh: prints "VERSION|PATH" of one Python of each version from 3.9 on that this machine has, CPython and PyPy; that of .venv, which has numpy and pandas, stands for its version.
set -uo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
declare -A seen

for python in "$source/.venv/bin/python" python3 python3.{9,10,11,12,13,14} "${HOME:-/}"/.pyenv/versions/3.*/bin/python3 pypy3; do
  path=$(command -v "$python") || continue
  version=$("$path" -c 'import ctypes, sys; print(("" if sys.implementation.name == "cpython" else sys.implementation.name + " ") + "%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) else "")' 2>/dev/null) || continue
  if [ -z "$version" ] || [ -n "${seen[$version]:-}" ]; then continue; fi
  seen[$version]=1
  echo "$version|$path"
done
