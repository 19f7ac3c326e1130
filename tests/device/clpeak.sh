#!/usr/bin/env bash
# An unchanged program from Debian runs with libprof_opencl.so. Each kernel and copy is in the
# capture, under its name, launched by its call. The program's output is unchanged, on both streams.
set -uo pipefail
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
layer=$build/libprof_opencl.so prof=$build/prof
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
command -v clpeak >/dev/null || skip "clpeak is missing: apt-get install clpeak"
[ -x "$prof" ] && [ -e "$layer" ] || skip "$prof or $layer was not built"
nm "$build/libprof.so" | grep __tsan_init >/dev/null &&
  skip "ThreadSanitizer must be in the program, which is not ours"
nm -D "$build/libprof.so" | grep __asan_init >/dev/null &&
  skip "AddressSanitizer must be in the program, which is not ours"
unset OCL_ICD_VENDORS # tests/CMakeLists.txt: the other tests do without the machine's drivers
export POCL_CACHE_DIR=$build/pocl-cache
mkdir -p "$POCL_CACHE_DIR"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# Numbers are measured, and differ.
said() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g' "$1"; }
# The driver compiles the kernels into its cache, and says so.
clpeak --kernel-latency >/dev/null 2>&1 ||
  skip "clpeak finds no device: apt-get install pocl-opencl-icd"
clpeak --kernel-latency >bare 2>bare.err ||
  skip "clpeak finds no device: apt-get install pocl-opencl-icd"
grep -q 'Kernel launch latency' bare ||
  skip "clpeak finds no device: apt-get install pocl-opencl-icd"

for level in 1 2; do
  OPENCL_LAYERS=$layer PROF_LEVEL=$level PROF_OUTPUT=level$level.prof clpeak --kernel-latency \
    >out 2>err ||
    fail "level $level: the status is $?"
  cmp -s err bare.err || fail "level $level: stderr has $(cat err)"
  diff <(said bare) <(said out) || fail "level $level: clpeak says something else"
  "$prof" info level$level.prof >info || fail "level $level: no capture"
  kernels=$(sed -nE 's/.*: 0 scopes, ([0-9]+) kernels and copies.*/\1/p' info)
  [ "${kernels:-0}" -gt 1000 ] || fail "level $level: ${kernels:-no} kernels: $(cat info)"
  grep -q 'no loss' info || fail "level $level: $(cat info)"
  eval "kernels$level=$kernels"
done
[ "$kernels1" = "$kernels2" ] || fail "$kernels1 kernels at level 1, $kernels2 at level 2"

# At level 1 the kernel has a row; at level 2 the call that launched it.
"$prof" table level1.prof |
  grep -E "^global_bandwidth_v1_local_offset +kernel .* $kernels1 *\$" >/dev/null ||
  fail "$("$prof" table level1.prof)"
"$prof" table level2.prof |
  grep -E "^clEnqueueNDRangeKernel +opencl_runtime .* $kernels2( +[^ ]+)? *\$" >/dev/null ||
  fail "$("$prof" table level2.prof)"

"$prof" run -q --devices -o run.prof -- clpeak --kernel-latency >out 2>err && cmp -s err bare.err &&
  diff <(said bare) <(said out) || fail "prof run --devices: $(cat err)"
"$prof" table run.prof |
  grep -E "^global_bandwidth_v1_local_offset +kernel .* $kernels1 *\$" >/dev/null ||
  fail "prof run --devices: $("$prof" table run.prof)"

# Not asked to record, it is not there.
OPENCL_LAYERS=$layer clpeak --kernel-latency >out 2>err && cmp -s err bare.err &&
  diff <(said bare) <(said out) || fail "with nothing recorded clpeak says something else"
[ "$(find . -newer err -name '*.prof' | wc -l)" = 0 ] ||
  fail "something was recorded that nobody asked for"
