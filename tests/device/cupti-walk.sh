#!/usr/bin/env bash
# What src/cuda makes of CUPTI's records, walked by the real libcupti of CUDA 11.8 and 13.0.
# PROF_LONG=1: also of 12.0 and 12.9. Later ones walk nothing without a driver.
# In a process that has no driver, that library is quiet, and nothing is left.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(uname -m)" = x86_64 ] ||
  { echo "skip: the packages that hold libcupti are x86-64's"; exit 77; }
releases=(11.8 13.0)
if [ -n "${PROF_LONG:-}" ]; then releases=(11.8 12.0 12.9 13.0); fi
folder=$("$here/headers/fetch-cuda.sh" "$root/.cache/cuda" 13.5 "${releases[@]}") ||
  { echo "failed: the libraries could not be fetched"; exit 1; }
failed=0

for source in "$root"/src/cuda/*.c "$root"/src/base/library.c \
  "$root"/src/device/vendor.c "$root"/src/device/launches.c; do
  ${CC:-cc} -std=c11 -O1 -g -Wall -Wextra -Werror -DPROF_OPEN_LIBRARIES=1 -I"$root/include" \
    -I"$root/src" -c "$source" \
    -o "$work/$(basename "$(dirname "$source")")_$(basename "$source" .c).o" ||
    exit 1
done

# usage: walk VERSION VERSION-OF-CUDA.H [FLAG...]
walk() {
  local version=$1 cuda=$2
  shift 2
  if ${CXX:-c++} -std=c++17 -O1 -Wall -Wextra -Werror "$@" -I"$root/include" \
    -isystem "$here/headers/none" -isystem "$folder/$version/cupti" -isystem "$folder/$cuda" \
    "$here/headers/cupti_walk.cpp" "$work"/*.o -ldl -lm -lpthread -o "$work/walk" &&
    "$work/walk" "$folder/$version/libcupti.so"; then
    echo "ok: records of CUDA $version, walked by its own libcupti"
  else
    echo "failed: records of CUDA $version, walked by its own libcupti"
    failed=1
  fi
}
walk 11.8 11.8
if [ -n "${PROF_LONG:-}" ]; then
  walk 12.0 12.0 -DCUPTI_HAS_KERNEL9
  walk 12.9 12.9
fi
walk 13.0 13.5

# usage: quiet VERSION: it is loaded, no driver is there, and records are wanted.
quiet() {
  if "$work/quiet" "$folder/$1/libcupti.so" >"$work/out" 2>&1 && ! [ -s "$work/out" ]; then
    echo "ok: libcupti of CUDA $1 without a driver: nothing is said, no thread is left"
  else
    cat "$work/out"
    echo "failed: libcupti of CUDA $1 without a driver"
    failed=1
  fi
}
${CC:-cc} -std=c11 -O1 -g -Wall -Wextra -Werror -I"$root/include" "$here/headers/cupti_quiet.c" \
  -L"${PROF_TEST_BUILD_DIR:?}" -lprof -ldl -Wl,-rpath,"$PROF_TEST_BUILD_DIR" -o "$work/quiet" ||
  exit 1
for version in "${releases[@]}"; do quiet "$version"; done
exit "$failed"
