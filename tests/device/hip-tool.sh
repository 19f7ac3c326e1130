#!/usr/bin/env bash
# A HIP program without prof, on the emulated runtime and rocprofiler (vendors: no device is behind
# them). If ROCP_TOOL_LIBRARIES names libprof_hip.so, prof records each kernel and copy, from the
# first call on. If recording was not requested, prof is not loaded. Also checks what prof doctor
# says.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
prof=$build/prof vendors=${PROF_TEST_PLUGIN_DIR:-$build/tests/device}/vendors
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
[ -x "$prof" ] && [ -e "$build/libprof_hip.so" ] || skip "$prof or libprof_hip.so was not built"
nm "$build/libprof.so" | grep __tsan_init >/dev/null &&
  skip "ThreadSanitizer must be in the program, which is not ours"
nm -D "$build/libprof.so" | grep __asan_init >/dev/null &&
  skip "AddressSanitizer must be in the program, which is not ours"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# It ends when there has been time for another thread to come, where one is to come; what that one
# is for goes on until the end.
cat >app.c <<'C'
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hang_guard.h"
int hipSetDevice(int device);
int hipStreamCreate(void **stream);
int hipStreamSynchronize(void *stream);
int hipModuleLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, unsigned, void *stream, void **parameters, void **extra);
int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream);
void *emulated_hip_kernel(const char *name, uint64_t ns);
static int has_thread(const char *wanted) {
  char path[300], name[32] = "";
  int has = 0;
  DIR *const all = opendir("/proc/self/task");
  for (struct dirent *one; (one = readdir(all)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", one->d_name);
    FILE *const file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file)) has |= strncmp(name, wanted, strlen(wanted)) == 0;
    if (file) fclose(file);
  }
  closedir(all);
  return has;
}
static int (*find(const char *name))(int) { return (int (*)(int))dlsym(RTLD_DEFAULT, name); }
/* Ends the recording where HIP has just begun. Starts another one when much has run. */
static int stops_and_starts(void *kernel, void *stream) {
  int (*const stop)(int) = find("prof_stop"), (*const level)(int) = find("prof_level");
  int (*const start)(int) = find("prof_start");
  if (!stop || !level || !start || stop(0) != 0 || level(0) != 0) return 1;
  for (int i = 0; i < 300; i++)
    hipModuleLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
  hipStreamSynchronize(stream);
  if (level(0) != 0) return 1;
  usleep(200000);
  return start(1) != 0;
}
int main(void) {
  static char room[1000];
  void *stream;
  if (hipSetDevice(1) || hipStreamCreate(&stream)) return 1;
  void *const kernel = emulated_hip_kernel("matmul", 20000);
  if (getenv("STOPS") && stops_and_starts(kernel, stream)) return 2;
  for (int i = 0; i < 100; i++) {
    if (hipMemcpyHtoDAsync(room, room, sizeof room, stream)) return 1;
    if (hipModuleLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)) return 1;
  }
  if (hipStreamSynchronize(stream)) return 1;
  if (getenv("PROF_LEVEL")) WAIT_WHILE(!has_thread("prof-collector"));
  puts("done");
  return 0;
}
C
ln -s "$vendors/libamdhip64.so.6" libamdhip64.so
${CC:-cc} -std=gnu11 -O1 -I"$here/.." app.c -L. -lamdhip64 -ldl -o app ||
  fail "the program does not compile"
export LD_LIBRARY_PATH=$vendors ROCP_TOOL_LIBRARIES=$build/libprof_hip.so

# usage: recorded NAME LEVEL: what it prints, what it says, and 200 records
recorded() {
  local name=$1
  PROF_LEVEL=$2 PROF_OUTPUT=$name.prof ./app >"$name.out" 2>"$name.err" ||
    fail "$name: the status is $?: $(cat "$name.err")"
  [ "$(cat "$name.out")" = done ] && ! [ -s "$name.err" ] ||
    fail "$name: it says $(cat "$name.out" "$name.err")"
  "$prof" info "$name.prof" >"$name.info" || fail "$name: no capture"
  grep -q ': 0 scopes, 200 kernels and copies' "$name.info" && grep -q 'no loss' "$name.info" ||
    fail "$name: $(cat "$name.info")"
  "$prof" table "$name.prof" >"$name.table"
  [ -n "${STOPS-}" ] || ! grep -q 'its records began' "$name.info" "$name.table" ||
    fail "$name is recorded from its first call on: $(cat "$name.info")"
  grep -qE '^matmul +kernel .* 100 *$' "$name.table" &&
    grep -qE '^Memcpy HtoD +gpu_memcpy .* 100 *$' "$name.table" ||
    fail "$name: $(cat "$name.table")"
  echo "ok: $name"
}
recorded one 1
grep -q hipModuleLaunchKernel one.table && fail "calls at level 1: $(cat one.table)"
recorded two 2
grep -qE '^hipModuleLaunchKernel +cuda_runtime .* 100 *$' two.table ||
  fail "no calls at level 2: $(cat two.table)"
"$here/columns-of-work.bash" two.prof hipModuleLaunchKernel hipMemcpyHtoDAsync || fail "columns"

env -u ROCP_TOOL_LIBRARIES "$prof" run -q --devices -o run.prof -- ./app >out 2>err ||
  fail "prof run --devices: $? $(cat err)"
[ "$(cat out)" = done ] && ! [ -s err ] || fail "prof run --devices: it says $(cat out err)"
"$prof" table run.prof >table
grep -qE '^matmul +kernel .* 100 *$' table || fail "prof run --devices: $(cat table)"
echo "ok: prof run --devices"

STOPS=1 recorded again 1 # none of what ran in between, and all of what came then
./app >out 2>err && [ "$(cat out)" = done ] && ! [ -s err ] ||
  fail "not asked to record: $(cat out err)"
[ "$(find . -newer err -name '*.prof' | wc -l)" = 0 ] ||
  fail "something was recorded that nobody asked for"
echo "ok: not asked to record"

# In the process as the program has it: another test queries /dev/kfd.
LD_PRELOAD=$vendors/libamdhip64.so.6 env -u ROCP_TOOL_LIBRARIES "$prof" doctor >doctor ||
  fail "prof doctor"
grep -A6 '^hip .*: works' doctor | grep "ROCP_TOOL_LIBRARIES=.*libprof_hip.so" >/dev/null ||
  fail "$(cat doctor)"
echo "ok: prof doctor"
