#!/usr/bin/env bash
# Debian's own libamdhip64.so.5 on a machine that has no AMD GPU. prof doctor says why nothing can
# be recorded. A program that asks for scopes is not disturbed: nothing is printed, and no thread is
# left.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
[ -e /dev/kfd ] && skip "there is /dev/kfd: a device may be behind it"
ldconfig -p | grep 'libamdhip64.so.5 ' >/dev/null ||
  skip "libamdhip64.so.5 is missing: apt-get install libamdhip64-5"
nm "$build/libprof.so" | grep __tsan_init >/dev/null &&
  skip "ThreadSanitizer must be in the program, which is not ours"
nm -D "$build/libprof.so" | grep __asan_init >/dev/null &&
  skip "AddressSanitizer must be in the program, which is not ours"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cat >app.c <<'C'
#include <dirent.h>
#include <dlfcn.h>
#include <prof/profiler.h>
#include <stdio.h>
static int threads(void) {
  DIR *const folder = opendir("/proc/self/task");
  int count = 0;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}
int main(void) {
  const prof_device device = {PROF_DEVICE_ROCM, 0};
  if (!dlopen("libamdhip64.so.5", RTLD_NOW)) return puts(dlerror()), 1;
  prof_start(1);
  const int before = threads();
  for (int i = 0; i < 100; i++) WITH_HIP_PROFILER(device, 0, "nowhere", "test", PROF_NO_ARGS, {});
  prof_stop();
  if (threads() > before) return printf("%d threads before, %d after\n", before, threads()), 1;
  return 0;
}
C
${CC:-cc} -std=gnu11 -I"$root/include" app.c -L"$build" -lprof -ldl -Wl,-rpath,"$build" -o app ||
  fail "the program does not compile"
./app >out 2>err || fail "the program: $(cat out err)"
[ -s out ] || [ -s err ] && fail "it says $(cat out err)"
echo "ok: a program that has the runtime and no device"
"$build/prof" doctor >doctor 2>err || fail "prof doctor: $(cat err)"
[ -s err ] && fail "prof doctor writes to stderr: $(cat err)"
grep -A3 '^hip ' doctor | grep '/dev/kfd is not there' >/dev/null || fail "$(cat doctor)"
echo "ok: prof doctor says why"
