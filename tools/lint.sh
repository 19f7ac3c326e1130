#!/usr/bin/env bash
# usage: tools/lint.sh [FILE...]
# Prints what is found, then how many files and checks are clean. Fails when one is not.
#
# C and C++: clang-tidy over what build/dev compiles, by .clang-tidy (tests by tests/.clang-tidy);
# cppcheck over all but the tests; clang-format. Python: ruff, mypy --strict over the package, as
# bindings/python/pyproject.toml says. Text: tools/style_check.py.
# FILE...: clang-tidy and the text of these files alone.
# PROF_LONG=1 adds clang-tidy's analyzer, over the tests too: half an hour on 2 cores.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

database=build/dev/compile_commands.json
folders='src inject tools/prof tools/import tools/run examples' checks=-clang-analyzer-*
if [ "${PROF_LONG:-0}" = 1 ]; then
  checks=''
  folders+=' tests/unit tests/api tests/fault tests/stress tests/failing tests/hostile tests/device'
fi
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

for tool in clang-tidy cppcheck; do
  command -v $tool >/dev/null && continue
  echo "skip: $tool is missing"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
done
tools/build.sh dev prof_product >/dev/null || exit

# Files that this configuration does not compile (the example without BLAS) are named and skipped.
if [ $# -gt 0 ]; then
  printf '%s\n' "$@" | grep -E '\.(c|cpp)$'
else
  find $folders -name '*.c' -o -name '*.cpp' | sort
fi >"$lists/all"
while read -r file; do
  if grep -qF "\"file\": \"$PWD/$file\"" $database; then
    echo "$file"
  else
    echo "not compiled here, skipped: $file" >&2
  fi
done <"$lists/all" >"$lists/compiled"

# One process a file: from the second file on, clang-tidy 14 does not know va_start() any more.
look_at() {
  local found
  if found=$(clang-tidy --quiet ${checks:+--checks="$checks"} -p build/dev "$1" 2>&1); then
    echo "$1" >>"$2/clean"
    return
  fi
  grep -vE '^[0-9]+ warnings? (generated|treated as errors?)|^Suppressed|^Use -header-filter' \
    <<<"$found"
}
export -f look_at
export checks
touch "$lists/clean"
xargs -P "${JOBS:-2}" -I{} bash -c 'look_at "$1" "$2"' _ {} "$lists" <"$lists/compiled"
clean=$(wc -l <"$lists/clean") all=$(wc -l <"$lists/compiled")
echo "clang-tidy: $clean of $all files are clean"

status=0
if [ $# -eq 0 ]; then
  cppcheck -j "${JOBS:-2}" --quiet --error-exitcode=1 --enable=warning,performance,portability \
    --std=c11 --std=c++17 --library=posix --library=gnu -Iinclude -Isrc \
    -D__x86_64__=1 -D__linux__=1 -D__GNUC__=12 \
    --suppressions-list=tools/cppcheck-suppressions.txt \
    --template='{file}:{line}: {severity}: {message} [{id}]' src inject tools/prof tools/import \
    tools/run examples || status=1
  [ $status -eq 0 ] && echo "cppcheck: clean"
fi

# check NAME COMMAND...
check() {
  local name=$1 found
  shift
  all=$((all + 1))
  if found=$("$@" 2>&1); then
    echo "$name: clean"
    clean=$((clean + 1))
  else
    printf '%s\n' "$found"
  fi
}

# Layout of C and C++, by .clang-format: the first lines that are not as it has them.
check_c_format() {
  local found
  found=$(git ls-files '*.c' '*.h' '*.cpp' '*.cu' | xargs .venv/bin/clang-format --dry-run 2>&1 |
    grep -A2 'warning:' | head -30)
  [ -z "$found" ] || { printf '%s\n' "$found"; return 1; }
}

if [ $# -eq 0 ]; then
  all=$((all + 1)) clean=$((clean + 1 - status))
  python=(bindings/python tests examples tools bench)
  check ruff .venv/bin/ruff check --config bindings/python/pyproject.toml \
    --output-format concise "${python[@]}"
  check "ruff format" .venv/bin/ruff format --config bindings/python/pyproject.toml \
    --check --diff "${python[@]}"
  check clang-format check_c_format
  mypy=(.venv/bin/mypy --config-file bindings/python/pyproject.toml)
  check mypy "${mypy[@]}" bindings/python/prof
  check "mypy of a user's program" env MYPYPATH=bindings/python "${mypy[@]}" \
    tests/python/typed_use.py
fi
check style .venv/bin/python tools/style_check.py "$@"
echo "$clean passed, $((all - clean)) failed"
[ "$clean" -eq "$all" ]
