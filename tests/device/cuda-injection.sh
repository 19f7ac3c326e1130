#!/usr/bin/env bash
# A CUDA program without prof, on the emulated driver and CUPTI (vendors: no device is behind them).
# If CUDA_INJECTION64_PATH names prof, or it is preloaded, prof records each kernel and copy.
# If recording was not requested, prof is not loaded. Also checks what prof doctor says.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
prof=$build/prof vendors=${PROF_TEST_PLUGIN_DIR:-$build/tests/device}/vendors
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
[ -x "$prof" ] && [ -e "$build/libprof_cuda.so" ] || skip "$prof or libprof_cuda.so was not built"
nm "$build/libprof.so" | grep __tsan_init >/dev/null &&
  skip "ThreadSanitizer must be in the program, which is not ours"
nm -D "$build/libprof.so" | grep __asan_init >/dev/null &&
  skip "AddressSanitizer must be in the program, which is not ours"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

cat >app.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "hang_guard.h"
#include "device/vendors/cupti.h"
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void *stream, void **parameters, void **extra);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream);
void *emulated_cuda_kernel(const char *name, uint64_t ns);
/* A program that links prof, or knows it another way: it ends what it has not begun. */
static int stops(void) {
  void *const prof = dlopen("libprof.so.0", RTLD_NOW | RTLD_NOLOAD);
  int (*const stop)(void) = prof ? (int (*)(void))dlsym(prof, "prof_stop") : 0;
  int (*const level)(void) = prof ? (int (*)(void))dlsym(prof, "prof_level") : 0;
  return !stop || !level || stop() != 0 || level() != 0;
}
/* CUPTI, which prof loads, records something. */
static int is_recording(void) {
  void *const cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  emulated_cupti *(*state)(void) = 0;
  if (cupti) state = (emulated_cupti *(*)(void))dlsym(cupti, "emulated_cupti_state");
  return state && __atomic_load_n(&state()->kinds, __ATOMIC_RELAXED) > 0;
}
int main(void) {
  static char room[1000];
  void *context, *stream;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuStreamCreate(&stream, 0)) return 1;
  if (getenv("WAITS_FOR_CUPTI")) WAIT_WHILE(!is_recording());
  if (getenv("WAITS")) usleep(1500000); /* to make a context takes its time on a device, too */
  if (getenv("STOPS") && stops()) return 2;
  void *const kernel = emulated_cuda_kernel("matmul", 20000);
  for (int i = 0; i < 100; i++) {
    if (cuMemcpyHtoDAsync_v2(1, room, sizeof room, stream)) return 1;
    if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)) return 1;
  }
  if (cuStreamSynchronize(stream)) return 1;
  puts("done");
  return 0;
}
C
ln -s "$vendors/libcuda.so.1" libcuda.so
${CC:-cc} -std=gnu11 -O1 -I"$here/.." app.c -L. -lcuda -ldl -o app ||
  fail "the program does not compile"
export LD_LIBRARY_PATH=$vendors
mkdir alone && ln -s "$vendors/libcuda.so.1" alone/

# usage: recorded NAME COMMAND...: what it prints, what it says, and 200 records
recorded() {
  local name=$1
  shift
  "$@" >"$name.out" 2>"$name.err" || fail "$name: the status is $?: $(cat "$name.err")"
  [ "$(cat "$name.out")" = done ] && ! [ -s "$name.err" ] ||
    fail "$name: it says $(cat "$name.out" "$name.err")"
  "$prof" info "$name.prof" >"$name.info" || fail "$name: no capture"
  grep -q ': 0 scopes, 200 kernels and copies' "$name.info" && grep -q 'no loss' "$name.info" ||
    fail "$name: $(cat "$name.info")"
  "$prof" table "$name.prof" | grep -E '^matmul +kernel .* 100 *$' >/dev/null ||
    fail "$name: $("$prof" table "$name.prof")"
  "$prof" table "$name.prof" |
    grep -E '^Memcpy HtoD \(Pageable -> Device\) +gpu_memcpy .* 100 *$' >/dev/null ||
    fail "$name: $("$prof" table "$name.prof")"
  echo "ok: $name"
}
recorded injected env CUDA_INJECTION64_PATH="$build/libprof_cuda.so" PROF_LEVEL=1 \
  PROF_OUTPUT=injected.prof ./app
recorded calls env CUDA_INJECTION64_PATH="$build/libprof_cuda.so" PROF_LEVEL=2 \
  PROF_OUTPUT=calls.prof ./app
"$prof" table calls.prof | grep -E '^cuLaunchKernel +cuda_driver .* 100 *$' >/dev/null ||
  fail "no calls at level 2: $("$prof" table calls.prof)"
"$here/columns-of-work.bash" calls.prof cuLaunchKernel cuMemcpyHtoDAsync_v2 || fail "columns"
recorded run "$prof" run -q --devices -o run.prof -- ./app
# Prof's thread is there before the driver begins.
recorded asked env CUDA_INJECTION64_PATH="$build/libprof_cuda.so" PROF_DEVICES=records \
  PROF_LEVEL=1 PROF_OUTPUT=asked.prof ./app
grep 'its records began' injected.info calls.info asked.info run.info &&
  fail "it was there from the first call on"
recorded preloaded env WAITS_FOR_CUPTI=1 WAITS=1 LD_PRELOAD="$build/libprof.so" \
  PROF_DEVICES=records PROF_LEVEL=1 PROF_OUTPUT=preloaded.prof ./app
grep -qE 'its records began up to [0-9.]+[mun]?s after the program began with it' preloaded.info ||
  fail "it does not say since when: $(cat preloaded.info)"

# It stops when prof's thread has taken over what CUPTI records, and before it can have.
for waits in 1 ''; do
  rm -f stopped.prof
  env STOPS=1 ${waits:+WAITS=1} CUDA_INJECTION64_PATH="$build/libprof_cuda.so" PROF_LEVEL=1 \
    PROF_OUTPUT=stopped.prof ./app >out 2>err && ! [ -s err ] ||
    fail "a program that stops: $? $(cat out err)"
  "$prof" info stopped.prof >info || fail "no capture of a program that stops"
  grep -q 'kernels and copies' info && fail "recorded after prof_stop(): $(cat info)"
done
echo "ok: prof_stop() ends it"

WAITS=1 CUDA_INJECTION64_PATH=$build/libprof_cuda.so PROF_BACKEND_CUPTI=/nowhere/libcupti.so \
  LD_LIBRARY_PATH=$work/alone PROF_LEVEL=1 PROF_OUTPUT=bare.prof ./app >out 2>err && ! [ -s err ] ||
  fail "without CUPTI: $(cat out err)"
nowhere='records no kernels by itself: PROF_BACKEND_CUPTI: /nowhere/libcupti.so'
"$prof" table bare.prof >table && grep -q "^cuda:0 .*: it $nowhere" table ||
  fail "without CUPTI: $(cat table)"
"$prof" dump bare.prof -o bare.json &&
  grep -q '"devices without times":\["cuda:0 .*records no kernels by itself' bare.json ||
  fail "without CUPTI: $(tail -3 bare.json)"
echo "ok: without CUPTI the capture says so"

CUDA_INJECTION64_PATH=$build/libprof_cuda.so ./app >out 2>err && [ "$(cat out)" = done ] &&
  ! [ -s err ] || fail "not asked to record: $(cat out err)"
[ "$(find . -newer err -name '*.prof' | wc -l)" = 0 ] ||
  fail "something was recorded that nobody asked for"
echo "ok: not asked to record"

"$prof" doctor >doctor || fail "prof doctor"
grep -A3 '^cuda .*: works$' doctor | grep "CUDA_INJECTION64_PATH=.*libprof_cuda.so" >/dev/null ||
  fail "$(cat doctor)"
grep -q '^  but ' doctor && fail "$(cat doctor)"
LD_LIBRARY_PATH=$PWD/alone PROF_BACKEND_CUPTI=/nowhere/libcupti.so "$prof" doctor >doctor ||
  fail "prof doctor without CUPTI"
grep -A3 '^cuda .*: works$' doctor | grep "^  but  *$nowhere: cannot open" >/dev/null ||
  fail "$(cat doctor)"
echo "ok: prof doctor, with CUPTI and without"
