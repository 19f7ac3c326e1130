#!/usr/bin/env bash
# prof for aarch64, cross-built. In the machine code the commit must be a release, and the reader's
# load an acquire, also of the fault build that must not have it. Then the library, the command and
# C tests run under qemu-user. That proves that they run, and no more: no aarch64 hardware was used.
# PROF_LONG=1: with all flags, all C tests that can run there, and the wheel's tests in Python.
# tools/run-tests.sh calls it. Prints one line a check, and the counts last.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
CC=aarch64-linux-gnu-gcc OBJDUMP=aarch64-linux-gnu-objdump
QEMU=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

for command in "$CC" "$OBJDUMP" "${QEMU[0]}"; do
  command -v "$command" >/dev/null && continue
  echo "skip: $command is missing"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
done
mkdir "$work/include"
ln -s /usr/include/uthash.h "$work/include/" # and nothing else of this machine's

# check NAME COMMAND...: a line for it, and for what it said when it failed.
check() {
  local name=$1 begun=$SECONDS
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "passed: $name ($((SECONDS - begun)) s)"
    passed=$((passed + 1))
  else
    echo "FAILED: $name"
    tail -n 15 "$work/log"
    failed=$((failed + 1))
  fi
}

# objects NAME FLAG... -- SOURCE...: an object of each in $work/NAME. library NAME FLAG...: the
# archive $work/NAME.a of all.
objects() {
  local name=$1 flags=()
  shift
  while [ "$1" != -- ]; do flags+=("$1") && shift; done
  shift
  mkdir -p "$work/$name"
  printf '%s\n' "$@" |
    xargs -P 2 -I{} sh -c '"$@" -c "$0" -o "'"$work/$name"'/$(echo "$0" | tr / -).o"' {} \
    "$CC" -std=c11 -O2 -Iinclude -isystem "$work/include" "${flags[@]}"
}
library() {
  objects "$@" -- src/*/*.c src/core/*/*.c && aarch64-linux-gnu-ar rc "$work/$1.a" "$work/$1"/*.o
}

# code NAME FILE FUNCTION: the function's instructions, one a line.
code() {
  "$OBJDUMP" -d --no-show-raw-insn "$work/$1/$2.o" |
    awk -v wanted="<$3>:" \
      '$2 == wanted { on = 1; next } /^$/ { on = 0 } on { sub(/^[^\t]*\t/, ""); print }'
}

# In prof_i_end_1 the commit is the only release store of a register that is not zero; the other one
# empties the entry.
commit_is_release() {
  code "$1" src-core-record-scope.c prof_i_end_1 >"$work/code"
  [ -s "$work/code" ] && grep -E '^stlr\s+x[0-9]' "$work/code"
}
claims_by() { code "$1" src-core-record-scope.c prof_i_end_1 | grep -E "$2"; }
# The reader's copy of a chunk looks at the first word of each record.
reader_acquires() { "$OBJDUMP" -d --no-show-raw-insn "$work/$1/src-live-snapshot.c.o" |
  grep -E '\s(ldar|ldapr)\s+x[0-9]'; }
fails() { ! "$@"; }

# run NAME SOURCE ARGUMENT...: a program with that library, under qemu.
run() {
  local name=$1 source=$2 to
  shift 2
  to=$work/$name-$(basename "$source" .c)
  "$CC" -std=gnu11 -O2 -g -Iinclude -Isrc -Itests -isystem "$work/include" \
    -isystem "$cmocka/include" "$source" "$work/$name.a" -o "$to" -rdynamic \
    -L"$cmocka/lib/aarch64-linux-gnu" $with_cmocka -pthread -lm || return
  timeout -k 5 "${PROF_TEST_HANG_SECONDS:-300}" "${QEMU[@]}" \
    -E LD_LIBRARY_PATH="$cmocka/lib/aarch64-linux-gnu" "$to" "$@"
}

# records NAME: every kind of scope in threads, and the trace is read back here by python3.
records() {
  run "$1" tests/embed/busy.c "$work/trace.json" &&
    python3 -c 'import json, sys
names = [e["name"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
sys.exit(names != ["work"])' "$work/trace.json"
}

# A capture written there is read by the command there, and by this machine's, with the same result.
command_reads() {
  "$CC" -std=gnu11 -O0 -Iinclude -Isrc tools/prof/*.c tools/import/*.c tools/run/*.c \
    "$work/plain.a" -o "$work/prof" -pthread -lm &&
    run plain tests/embed/app.c "$work/app.prof" &&
      "${QEMU[@]}" "$work/prof" info "$work/app.prof" &&
    "${QEMU[@]}" "$work/prof" table "$work/app.prof" | grep -w work &&
    "${QEMU[@]}" "$work/prof" dump "$work/app.prof" -o "$work/there.json" || return
  [ ! -x build/dev/prof ] || { build/dev/prof dump "$work/app.prof" -o "$work/here.json" &&
    cmp "$work/there.json" "$work/here.json"; }
}

cmocka=$work/root/usr with_cmocka='' long=${PROF_LONG:-0}
looked_at=(src/core/record/scope.c src/live/snapshot.c) # whose machine code is
declare -A flags=([plain]='' [no_outline]=-mno-outline-atomics [lse]=-march=armv8.1-a)
declare -A claim=([plain]=__aarch64_ldadd8_relax [no_outline]='^stxr' [lse]='^ldadd\s')
for name in plain no_outline lse; do
  if [ $name = plain ] || [ $long = 1 ]; then
    check "built: $name ${flags[$name]}" library $name ${flags[$name]}
    check "records and reads back: $name" records $name
  else
    check "built: $name ${flags[$name]}" objects $name ${flags[$name]} -- "${looked_at[@]}"
  fi
  check "the commit is a release: $name" commit_is_release $name
  check "room is claimed by ${claim[$name]}: $name" claims_by $name "${claim[$name]}"
  check "the reader looks by an acquire: $name" reader_acquires $name
done
check "built: with the fault RELAXED" objects relaxed -DPROF_FAULT=PROF_I_FAULT_RELAXED -- \
  "${looked_at[@]}"
check "the commit of the fault RELAXED is none" fails commit_is_release relaxed
check "the command reads a capture" command_reads

# C tests. Left out are those that start programs: without the kernel's help, qemu-user starts none
# of its kind. Left out are those that measure memory that mremap() would share: qemu's mremap() has
# no old size of 0. Left out are those that fork and kill under load: the child has qemu's locks.
fetch() { # DEBIAN-PACKAGE...: unpacked into $work/root
  local apt="$work/apt" package options
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1)
  (cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@") || return
  for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
}
if ! fetch libcmocka0 libcmocka-dev >"$work/log" 2>&1; then
  echo "skip: cmocka for arm64 cannot be fetched: $(tail -n 1 "$work/log")"
  skipped=$((skipped + 1))
else
  with_cmocka=-lcmocka
  # Test_macros_c opens it.
  "$CC" -std=gnu11 -O2 -fPIC -shared -Iinclude -Itests tests/api/plugins/second_unit.c \
    -o "$work/second_unit.so"
  # Not buffer_clock: the emulator's counter and the host's clock are not one. Not record_site: it
  # builds a library and opens it.
  tests=(api/macros_c api/threads api/life unit/buffer_chunk unit/reader_walk fault/commit)
  [ $long != 1 ] ||
    tests+=(api/interleaved api/arguments api/disable unit/record_payload unit/analysis_aggregate
    unit/reader_no_memory unit/reader_timeline fault/generation)
  for test in "${tests[@]}"; do
    check "$test" run plain "tests/${test%/*}/test_${test#*/}.c"
  done
fi

# The wheel, under Debian's Python for aarch64. Processes that it starts run under qemu, too:
# sys.executable is a script that asks for it. Not test_command: qemu's /proc does not say when a
# process began, by which prof knows whether it still runs.
python_for_aarch64() {
  .venv/bin/python -c 'import ziglang' && tools/wheel.sh aarch64 &&
    python3 -m zipfile -e build/wheel/libprof-*_aarch64.whl "$work/site" &&
    fetch python3.11-minimal libpython3.11-minimal libpython3.11-stdlib zlib1g libexpat1 libffi8 \
      libssl3 libsqlite3-0 liblzma5 libbz2-1.0 libuuid1 ||
      return
  printf '#!/bin/sh\nexec %s -E LD_LIBRARY_PATH=%s -E PYTHONHOME=%s %s "$@"\n' "${QEMU[*]}" \
    "$work/root/usr/lib/aarch64-linux-gnu:$work/root/lib/aarch64-linux-gnu" "$work/root/usr" \
    "$work/root/usr/bin/python3.11" >"$work/python"
  chmod +x "$work/python"
  echo "import sys; sys.executable = '$work/python'" >"$work/site/sitecustomize.py"
}
runs_there() {
  local program='import platform, prof._scope; print(platform.machine(), prof._scope.is_fast)'
  [ "$("$work/python" -c "$program")" = "aarch64 True" ]
}
export PYTHONPATH="$work/site" PROF_TEST_EMULATED=1
if [ $long != 1 ]; then
  echo "the wheel under Python for aarch64: make test-long"
elif ! python_for_aarch64 >"$work/log" 2>&1; then
  echo "skip: the wheel and a Python for aarch64 cannot be had: $(tail -n 1 "$work/log")"
  skipped=$((skipped + 1))
else
  check "the wheel, imported, has C's scopes" runs_there
  for test in layout scopes decorated profile raf modules safety safety_memory interpreters run; do
    check "python.$test" tests/python/run.sh "$PWD/tests/python/test_$test.py" aarch64 \
      "$work/python"
  done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
