#!/usr/bin/env bash
# What tools/gpu-check runs on a device (tests/gpu, bench/gpu), on the emulated driver and CUPTI: that the programs themselves do what they say, counts and all but the times, which are the emulator's. No device is behind it.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
vendors=${PROF_TEST_PLUGIN_DIR:-$build/tests/device}/vendors
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
nm "$build/libprof.so" | grep -q __tsan_init && skip "ThreadSanitizer must be in the program, which is not built so here"
nm -D "$build/libprof.so" | grep -q __asan_init && skip "AddressSanitizer must be in the program, which is not built so here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in tests/gpu/checks bench/gpu/launch; do
  ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror -I"$root/include" "$root/$program.c" -L"$build" -lprof -lpthread -ldl -lm -Wl,-rpath,"$build" -o "$work/$(basename "$program")" || fail "$program does not compile"
done
env -u LD_LIBRARY_PATH PROF_BACKEND_CUPTI=none "$work/checks" >"$work/out" 2>"$work/err"
status=$?
if ! ldconfig -p | grep -q 'libcuda.so.1 '; then
  [ $status -eq 77 ] && grep -q '^skipped .*libcuda.so.1' "$work/out" && ! [ -s "$work/err" ] || fail "without a driver: status $status, $(cat "$work/out" "$work/err")"
  echo "ok: without a driver it says so"
fi
export LD_LIBRARY_PATH=$vendors
"$work/checks" counts graphs again threads many exits >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"
[ "$(grep -c '^ok ' "$work/out")" -eq 8 ] && ! [ -s "$work/err" ] || fail "$(cat "$work/out" "$work/err")"
cat "$work/out"
"$work/launch" 2 >"$work/out" 2>"$work/err" && [ "$(grep -c ' ns' "$work/out")" -eq 8 ] && ! [ -s "$work/err" ] || fail "$(cat "$work/out" "$work/err")"
echo "ok: bench/gpu"
