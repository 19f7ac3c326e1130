#!/usr/bin/env bash
# usage: tools/wheel.sh [x86_64|aarch64]...     (x86_64)
# Builds one wheel for every Python from 3.9 on into build/wheel: py3-none-manylinux_2_17_ARCH.
# The compiler is PyPI's ziglang. It compiles against an old C library, whatever this machine has.
set -euo pipefail
cd "$(dirname "$0")/.."

glibc=2.17
out=$PWD/build/wheel
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# prof includes these headers and does not link their libraries: they do not depend on this
# machine. The compiler must not see other headers of it.
mkdir -p "$scratch/include/yajl"
for header in uthash.h zlib.h zconf.h sqlite3.h yajl/yajl_parse.h yajl/yajl_common.h \
  yajl/yajl_tree.h; do
  found=$(printf '#include <%s>\n' "$header" | cc -E - |
    sed -n "s|^# [0-9]* \"\(/.*/$header\)\".*|\1|p" | head -n 1)
  [ -n "$found" ] || { echo "prof: $header is missing; type: tools/setup.sh build" >&2; exit 1; }
  cp "$found" "$scratch/include/$header"
done

zig=$(.venv/bin/python -c \
  'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))') ||
  { echo "prof: ziglang is missing; type: tools/setup.sh wheel" >&2; exit 1; }
mkdir -p "$out"
for machine in "${@:-x86_64}"; do
  rm -f "$out"/libprof-*_"$machine".whl
  CC="$zig cc -target $machine-linux-gnu.$glibc" CFLAGS="-I$scratch/include" \
    tools/again.sh .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$out" \
    --config-settings="--build-option=--plat-name=manylinux_${glibc/./_}_$machine" ./bindings/python
  ls "$out"/libprof-*_"$machine".whl
done
