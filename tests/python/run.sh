#!/usr/bin/env bash
# run.sh TEST.py: runs it under every Python from 3.9 on that this machine has, with the package where it stands and the library in PROF_LIBRARY. A line each; the last one counts.
set -uo pipefail
test=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH=$source/bindings/python PYTHONDONTWRITEBYTECODE=1 PROF_TEST_SOURCE_DIR=$source
passed=0 failed=0 skipped=0
declare -A seen

for python in python3 python3.{9,10,11,12,13,14} "${HOME:-/}"/.pyenv/versions/3.*/bin/python3; do
  command -v "$python" >/dev/null || continue
  version=$("$python" -c 'import ctypes, sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) else "")' 2>/dev/null) || continue
  if [ -z "$version" ] || [ -n "${seen[$version]:-}" ]; then continue; fi
  seen[$version]=1
  log=$("$python" "$test" -v 2>&1)
  status=$?
  ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' <<<"$log")
  skips=$(sed -n 's/.*skipped=\([0-9]*\).*/\1/p' <<<"$log")
  bad=$(grep -cE '^(FAIL|ERROR): ' <<<"$log")
  sed -n "s/^\(test_[a-z0-9_]*\) .* skipped '\(.*\)'$/skip: Python $version: \1: \2/p" <<<"$log"
  [ "$status" -eq 0 ] || { [ "$bad" -gt 0 ] || bad=1; printf '%s\n' "$log"; }
  echo "Python $version: $(basename "$test"): ${ran:-0} tests, $bad failed, ${skips:-0} skipped"
  passed=$((passed + (${ran:-0} > 0 ? ${ran:-0} - bad - ${skips:-0} : 0))) failed=$((failed + bad)) skipped=$((skipped + ${skips:-0}))
done
[ ${#seen[@]} -gt 0 ] || { echo "skip: no Python from 3.9 on with ctypes"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
