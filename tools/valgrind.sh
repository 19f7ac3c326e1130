#!/usr/bin/env bash
# usage: tools/valgrind.sh [FOLDER.NAME...]
# The C tests of build/dev that fit under valgrind's memcheck, each a process: what is read and was never written, what is read or written
# outside of its block, blocks that nothing points to any more. Children that a test forks are looked at too, programs that it starts are
# not. Prints one line a test, then the counts; fails when one has a finding or fails. FOLDER.NAME: these alone, fit or not.
# helgrind and drd are not asked: they know locks, and prof orders its stores by atomics; ThreadSanitizer looks at those (make test-tsan).
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# What does not fit, and why. fault, stress, failing: they walk by ptrace, filter by seccomp, stand in front of malloc() and kill at random
# instants, for minutes; valgrind has its own machine, and none of that reaches it.
unfit='
unit.trace_memory   | brings its own malloc()
unit.face_setuid    | starts copies of itself with more rights, where valgrind may not follow
api.bad_input       | starts itself anew from /proc/self/exe, which is valgrind then
api.limits          | starts itself anew from /proc/self/exe, which is valgrind then
api.security        | starts itself anew from /proc/self/exe, which is valgrind then
api.directory       | starts itself anew from /proc/self/exe, which is valgrind then
api.get_large       | measures the memory of the process, which has that of valgrind in it
hostile.memory      | measures the memory of the process, which has that of valgrind in it
api.interleaved     | its clocks are too tight: handlers at full rate, of which valgrind is in one always
hostile.flips       | three minutes; AddressSanitizer looks at the same
hostile.truncation  | ten minutes; AddressSanitizer looks at the same
'

if ! command -v valgrind >/dev/null; then
  echo "skip: valgrind is missing"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
tools/build.sh dev >/dev/null || exit
export PROF_TEST_SOURCE_DIR=$PWD PROF_TEST_BUILD_DIR=$PWD/build/dev logs=build/report/valgrind
rm -rf $logs
mkdir -p $logs

run_one() {
  local folder=${1%%.*} name=${1#*.} start=$SECONDS status
  PROF_TEST_PLUGIN_DIR=$PROF_TEST_BUILD_DIR/tests/$folder timeout -k 5 $((4 * ${PROF_TEST_HANG_SECONDS:-300})) valgrind --quiet --error-exitcode=99 --leak-check=full \
    --show-leak-kinds=definite --errors-for-leak-kinds=definite "build/dev/tests/$folder/$name" >"$logs/$1" 2>&1 </dev/null
  status=$?
  # A child's findings are not in the exit status of its parent.
  if [ $status -eq 0 ] && ! grep -qE '^==[0-9]+== +at 0x' "$logs/$1"; then
    echo "passed: $1, $((SECONDS - start)) s"
  else
    echo "failed: $1, exit status $status:"
    grep -E '^==|ERROR|LINE|FAILED' "$logs/$1" | head -n 60
  fi
}
export -f run_one

names=("$@")
if [ $# -eq 0 ]; then
  for at in build/dev/tests/{unit,api,hostile}/*; do
    [ -f "$at" ] && [ -x "$at" ] && [[ $at != *.so ]] || continue
    name=$(basename "$(dirname "$at")").$(basename "$at")
    if why=$(grep "^$name " <<<"$unfit"); then echo "not under valgrind: $name: ${why#*| }"; else names+=("$name"); fi
  done
fi
printf '%s\n' "${names[@]}" | xargs -P "${JOBS:-2}" -I{} bash -c 'run_one {}' >$logs/said
cat $logs/said
passed=$(grep -c '^passed: ' $logs/said) failed=$(grep -c '^failed: ' $logs/said)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
