#!/usr/bin/env bash
# check.sh OBJECT...: none of these objects of the library reads the processor's counter. The tests
# of tests/clock take them as they are, so one that did would not see the scripted counter.
set -uo pipefail
[ $# -gt 100 ] || { echo "failed: $# objects are fewer than the library has" >&2; exit 1; }
readers=$(objdump -d --no-show-raw-insn "$@" |
  awk '/file format/ { file = $1 } /\t(rdtsc|mrs.*cntvct_el0)/ { print file }' |
  sed 's/:$//; s/.*\/src\//src\//' | sort -u)
if [ -n "$readers" ]; then
  # shellcheck disable=SC2086 # a list
  printf 'failed: %s reads the counter; add it to clock_readers in tests/CMakeLists.txt\n' $readers
  exit 1
fi
echo "$# objects do not read the counter"
