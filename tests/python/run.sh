#!/usr/bin/env bash
# run.sh TEST.py: runs it under every Python that pythons.sh names, with the package where it stands and the library in PROF_LIBRARY. A line each; the last one counts.
# run.sh TEST.py VERSION PYTHON: under this one alone, with the package that is installed in it.
set -uo pipefail
test=$1
export PYTHONDONTWRITEBYTECODE=1 PROF_TEST_SOURCE_DIR
PROF_TEST_SOURCE_DIR=$(cd "$(dirname "$0")/../.." && pwd)
passed=0 failed=0 skipped=0 count=0

run_under() {
  local version=$1 python=$2 log status good ran skips bad
  log=$("$python" "$test" -v 2>&1 </dev/null)
  status=$?
  good=$(grep -c '\.\.\. ok$' <<<"$log") # Python 3.12 leaves what is skipped out of "Ran"
  ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' <<<"$log")
  skips=$(sed -n 's/.*skipped=\([0-9]*\).*/\1/p' <<<"$log")
  bad=$(grep -cE '^(FAIL|ERROR): ' <<<"$log")
  sed -n "s/^\(test_[a-z0-9_]*\) .* skipped '\(.*\)'$/skip: Python $version: \1: \2/p" <<<"$log"
  [ "$status" -eq 0 ] || { [ "$bad" -gt 0 ] || bad=1; printf '%s\n' "$log"; }
  echo "Python $version: $(basename "$test"): ${ran:-0} tests, $bad failed, ${skips:-0} skipped"
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + ${skips:-0})) count=$((count + 1))
}

if [ $# -eq 3 ]; then
  run_under "$2" "$3"
else
  export PYTHONPATH=$PROF_TEST_SOURCE_DIR/bindings/python
  while IFS='|' read -r version python; do run_under "$version" "$python"; done < <("$(dirname "$0")/pythons.sh")
fi
[ $count -gt 0 ] || { echo "skip: no Python from 3.9 on with ctypes"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
