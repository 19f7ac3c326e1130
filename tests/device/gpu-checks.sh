#!/usr/bin/env bash
# tools/gpu-check, and all that it runs on a device: tests/gpu, bench/gpu, the model of made-up
# weights. Here they run on the emulated driver, CUPTI and NVML, and HIP by the shim over the same
# driver. No device is behind it. Checks:
# - The programs do what they say. Counts and all else but the times, which are the emulator's.
# - What is skipped if something is missing, and why.
# - It fails if something is wrong.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
vendors=${PROF_TEST_PLUGIN_DIR:-$build/tests/device}/vendors
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
nm "$build/libprof.so" | grep __tsan_init >/dev/null &&
  skip "ThreadSanitizer must be in the program, which is not built so here"
nm -D "$build/libprof.so" | grep __asan_init >/dev/null &&
  skip "AddressSanitizer must be in the program, which is not built so here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1

# What "tools/gpu-check build" makes, but for the library, which is this build's.
export GPU_CHECK_BUILD=$work/gpu GPU_CHECK_RESULTS=$work/results.md BENCH_QUICK=1
mkdir -p "$work/gpu/shim"
ln -s "$build/libprof.so" "$work/gpu/libprof.so"
flags=(-std=c11 -O2 -Wall -Wextra -Werror "-I$root/include")
for program in tests/gpu/checks tests/gpu/hip_checks bench/gpu/launch; do
  ${CC:-cc} "${flags[@]}" "$root/$program.c" -L"$build" -lprof -lpthread -ldl -lm \
    -Wl,-rpath,"$build" -o "$work/gpu/$(basename "$program")" ||
    fail "$program does not compile"
done
${CC:-cc} "${flags[@]}" -fPIC -shared -fvisibility=hidden -Wl,-soname,libamdhip64.so.6 \
  "$root/tests/gpu/hip_on_cuda.c" -o "$work/gpu/shim/libamdhip64.so.6" -lpthread -ldl ||
  fail "the shim does not compile"

has_model=0
if [ -e "$build/examples/libminilm.so" ]; then
  has_model=1
  ${CC:-cc} "${flags[@]}" "-I$root/examples/minilm" "$root/tests/gpu/model.c" -L"$build" \
    -L"$build/examples" -lminilm -lprof -lpthread -ldl -lm -Wl,-rpath,"$build:$build/examples" \
    -o "$work/gpu/model" ||
    fail "tests/gpu/model does not compile"
fi

# usage: status_of NAME COMMAND...    what it prints is in NAME.out and NAME.err
status_of() {
  local name=$1
  shift
  "$@" >"$work/$name.out" 2>"$work/$name.err"
}
shown() { cat "$work/$1.out" "$work/$1.err"; }

if ! ldconfig -p | grep 'libcuda.so.1 ' >/dev/null; then
  for program in checks hip_checks; do
    status_of none env -u LD_LIBRARY_PATH PROF_BACKEND_CUPTI=none LD_LIBRARY_PATH="$work/gpu/shim" \
      "$work/gpu/$program"
    [ $? -eq 77 ] && grep -q "^skipped  ${program%_checks}  *[^ ]" "$work/none.out" &&
      ! [ -s "$work/none.err" ] || fail "$program without a driver: $(shown none)"
  done
  status_of none tools/gpu-check checks hip torch meters
  [ $? -eq 77 ] || fail "without a driver: $(shown none)"
  [ "$(grep -cE '^skipped  (checks|hip|torch|meters)  +[^ ]' "$work/none.out")" -eq 4 ] &&
    ! grep -q '^failed' "$work/none.out" || fail "without a driver: $(shown none)"
  [ ! -e "$work/results.md" ] &&
    grep -qx 'nothing was reached: no file of results is left' "$work/none.out" ||
    fail "without a driver a file is left, or nothing said: $(shown none)"
  GPU_CHECK_RESULTS=/dev/null status_of none tools/gpu-check checks
  [ $? -eq 77 ] && [ -c /dev/null ] || fail "what is no file is left alone: $(shown none)"
  echo "ok: without a driver it says so"
fi

export LD_LIBRARY_PATH=$vendors PATH=$here/gpu-check:$PATH MINILM_MODEL=$work/none
status_of all env PYTHONPATH="$here/gpu-check" PYTHONDONTWRITEBYTECODE=1 tools/gpu-check checks \
  hip launches torch meters model ||
  fail "$(shown all)"
file=$work/results.md
cat "$file"
! grep -q '^failed' "$file" && ! [ -s "$work/all.err" ] || fail "$(shown all)"
wanted=$((38 + 2 * has_model))
[ "$(grep -c '^ok ' "$file")" -eq $wanted ] ||
  fail "$(grep -c '^ok ' "$file") checks are well, not $wanted"
[ "$(grep -c '^emulated ' "$file")" -eq 9 ] ||
  fail "$(grep -c '^emulated ' "$file") are a device's to judge, not 9"
grep -q '^skipped  utilisation (%) .*\[N/A\]$' "$file" &&
  grep -q '^power.limit  *not told$' "$file" || fail "what nvidia-smi does not tell: $(cat "$file")"
[ $(($(grep -c '^```' "$file") % 2)) -eq 0 ] &&
  diff <(grep -v '^results: ' "$work/all.out") "$file" || fail "the file is not what was shown"
grep -q '^torch.profiler .* ns a launch' "$file" || fail "no torch: $(cat "$file")"
echo "ok: all parts"

if [ $has_model -eq 1 ]; then
  status_of hip "$work/gpu/model" hip && [ "$(grep -c '^ok ' "$work/hip.out")" -eq 2 ] &&
    ! [ -s "$work/hip.err" ] || fail "$(shown hip)"
  cat "$work/hip.out"
fi

PROF_BACKEND_CUPTI=/nowhere/libcupti.so status_of less "$work/gpu/checks" counts latency many ||
  fail "$(shown less)"
[ "$(grep -c '^skipped .*/nowhere/libcupti.so' "$work/less.out")" -eq 2 ] &&
  grep -q '^ok .*latency' "$work/less.out" || fail "without CUPTI: $(shown less)"
EMULATED_POWER=300 status_of wrong tools/gpu-check meters &&
  fail "other meters than nvidia-smi's: $(shown wrong)"
grep -q '^failed   power (W)  *the sampler 100.0, nvidia-smi 300.0' "$work/wrong.out" ||
  fail "$(shown wrong)"
GPU_CHECK_SECONDS=1 status_of late tools/gpu-check checks launches
[ $? -eq 77 ] && [ ! -e "$work/results.md" ] || fail "$(shown late)"
GPU_CHECK_RESULTS=/dev/full status_of full tools/gpu-check checks &&
  fail "a full disk: $(shown full)"
(
  cd "$work" && GPU_CHECK_RESULTS=here.md "$root/tools/gpu-check" hip >/dev/null && [ -s here.md ]
) || fail "a file as the caller names it"
[ "$(grep -c '^skipped .* seconds for all parts are over$' "$work/late.out")" -eq 2 ] ||
  fail "$(shown late)"
echo "ok: without CUPTI, with wrong meters, without time"

status_of help tools/gpu-check --help
[ $? -eq 0 ] && grep -q '^  meters: ' "$work/help.out" &&
  grep -q '^GPU_CHECK_RESULTS ' "$work/help.out" || fail "$(shown help)"
status_of usage tools/gpu-check everything
[ $? -eq 2 ] && grep -q '^usage: ' "$work/usage.out" || fail "$(shown usage)"
CC=/nowhere/cc status_of built tools/gpu-check build &&
  grep -q "^no compiler: $work/gpu is taken as it is$" "$work/built.out" || fail "$(shown built)"
GPU_CHECK_BUILD=$work/empty CC=/nowhere/cc status_of empty tools/gpu-check build &&
  fail "built without a compiler: $(shown empty)"
grep -q 'UTHASH_INCLUDE' "$work/empty.out" || fail "$(shown empty)"
echo "ok: without a compiler"
