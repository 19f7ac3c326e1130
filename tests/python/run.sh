#!/usr/bin/env bash
# run.sh TEST.py: runs it under every Python that pythons.sh names, with the package where it stands
# and the library in PROF_LIBRARY. A line each; the last one counts. run.sh TEST.py VERSION PYTHON:
# under this one alone, with the package that it finds.
set -uo pipefail
test=$1 here=$(cd "$(dirname "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1 PROF_TEST_SOURCE_DIR
PROF_TEST_SOURCE_DIR=$(cd "$here/../.." && pwd)
passed=0 failed=0 skipped=0 count=0

run_under() {
  local version=$1 python=$2 log
  log=$("$python" "$here/runner.py" "$test" 2>&1 </dev/null)
  if [[ $(tail -n 1 <<<"$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    set -- "${BASH_REMATCH[@]:1}"
  else
    set -- 0 1 0 # it died
  fi
  sed -n "s/^skip: /skip: Python $version: /p" <<<"$log"
  [ "$2" -eq 0 ] || sed '$d' <<<"$log"
  echo "Python $version: $(basename "$test"): $1 passed, $2 failed, $3 skipped"
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)) count=$((count + 1))
}

if [ $# -eq 3 ]; then
  run_under "$2" "$3"
else
  export PYTHONPATH=$PROF_TEST_SOURCE_DIR/bindings/python
  while IFS='|' read -r version python; do
    run_under "$version" "$python"
  done < <("$here/pythons.sh")
fi
[ $count -gt 0 ] || { echo "skip: no Python from 3.9 on with ctypes"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
