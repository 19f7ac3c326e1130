#!/usr/bin/env bash
# usage: tools/valgrind.sh [FOLDER.NAME...]
#
# Runs the C tests of build/dev that fit under valgrind's memcheck, one process for each test.
# memcheck finds reads of unwritten memory, accesses outside a block, and leaked blocks. It follows
# the children that a test forks, but not the programs that it starts.
# Prints one line for each test, then the counts. Fails if a test fails or has a finding.
# FOLDER.NAME: runs only these tests, even if they do not fit.
# helgrind and drd do not serve here: they know locks, and prof orders its stores by atomics.
# ThreadSanitizer checks those (make test-tsan).
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The tests that do not fit, and the reasons. The folders fault, stress and failing are left out:
# they use ptrace and seccomp, replace malloc() and kill at random instants, for minutes. Under
# valgrind all of that reaches valgrind's machine, not the test.
unfit='
unit.reader_no_memory | brings its own malloc()
unit.lib_setuid       | starts copies of itself with more rights, where valgrind may not follow
api.bad_input         | starts itself anew from /proc/self/exe, which is valgrind then
api.limits            | starts itself anew from /proc/self/exe, which is valgrind then
api.security          | starts itself anew from /proc/self/exe, which is valgrind then
api.directory         | starts itself anew from /proc/self/exe, which is valgrind then
api.get_large         | measures the memory of the process, which has that of valgrind in it
hostile.memory        | measures the memory of the process, which has that of valgrind in it
api.interleaved       | its clocks are too tight: valgrind is always in one of its handlers
hostile.flips         | three minutes; AddressSanitizer looks at the same
hostile.truncation    | ten minutes; AddressSanitizer looks at the same
'

if ! command -v valgrind >/dev/null; then
  echo "skip: valgrind is missing"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
tools/build.sh dev all prof_later_tests >/dev/null || exit
export PROF_TEST_SOURCE_DIR=$PWD PROF_TEST_BUILD_DIR=$PWD/build/dev logs=build/report/valgrind
rm -rf $logs
mkdir -p $logs

run_one() {
  local folder=${1%%.*} name=${1#*.} start=$SECONDS status
  PROF_TEST_PLUGIN_DIR=$PROF_TEST_BUILD_DIR/tests/$folder \
    timeout -k 5 $((4 * ${PROF_TEST_HANG_SECONDS:-300})) \
    valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
    --errors-for-leak-kinds=definite "build/dev/tests/$folder/$name" \
    >"$logs/$1" 2>&1 </dev/null
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
    if why=$(grep "^$name " <<<"$unfit"); then
      echo "not under valgrind: $name: ${why#*| }"
    else
      names+=("$name")
    fi
  done
fi
printf '%s\n' "${names[@]}" | xargs -P "${JOBS:-2}" -I{} bash -c 'run_one {}' >$logs/said
cat $logs/said
passed=$(grep -c '^passed: ' $logs/said) failed=$(grep -c '^failed: ' $logs/said)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
