#!/usr/bin/env bash
# usage: tools/build.sh PRESET [TARGET...]
# Configures build/PRESET if that was not done, and builds the targets, or everything. ninja
# configures again when a CMake file changes. A target that this configuration does not have is
# named, and the build fails.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/cache.bash

preset=$1
shift
dir=build/$preset
log=$dir/configure.log

# One at a time: ninja does not look whether another one builds the same.
mkdir -p "$dir"
exec 9>"$dir/build.lock"
flock 9

if [ ! -e "$dir/build.ninja" ] || [ CMakePresets.json -nt "$dir/build.ninja" ]; then
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  grep -A3 -E '^CMake Warning|^-- prof:' "$log" || true
fi
# Ninja says one line when there was nothing to do, and shows progress in place on a terminal.
exec cmake --build "$dir" -j "${JOBS:-$(nproc)}" ${1:+--target "$@"}
