# subject.sh: sourced by the scripts of this folder, which put prof into programs that others wrote.
# It brings their sources, builds prof, and has the steps that all of them take. Nothing foreign
# stays in the tree: it goes to .cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
. tools/cache.bash

name=$(basename "$0" .sh)
cache=$PWD/.cache/long/$name
work=$PWD/build/long/$name
CC=${CC:-cc}
failed=0
unset PROF_LEVEL PROF_OUTPUT PROF_MEMORY

skip() { printf 'skip: %s\n' "$*"; exit 77; }
fail() { printf 'failed: %s\n' "$*" >&2; exit 1; }

# unpack PACKAGE...: of Debian, into $cache/debian, without installing them. Fails where they cannot
# be had.
unpack() {
  local package
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return
  [ -e "$cache/debian/complete" ] && return
  rm -rf "$cache/debian"
  mkdir -p "$cache/debian"
  (cd "$cache/debian" && "$OLDPWD"/tools/again.sh apt-get -qq download "$@") >/dev/null 2>&1 ||
    return
  for package in "$cache"/debian/*.deb; do dpkg-deb -x "$package" "$cache/debian" || return; done
  touch "$cache/debian/complete"
}

# download URL SHA256 FILE: nothing is left where the bytes are others.
download() {
  [ -e "$3" ] && return
  mkdir -p "$(dirname "$3")"
  curl -fsSL --max-time 300 -o "$3.new" "$1" 2>/dev/null &&
    echo "$2  $3.new" | sha256sum --check --quiet >/dev/null 2>&1 && mv "$3.new" "$3"
}

# check FOLDER LEVEL TEXT [WORD...]: check.py, and a line.
check() {
  local folder=$1 level=$2 text=$3 status=0
  shift 3
  python3 tests/long/check.py build/dev/prof "$folder" "$level" "$@" >"$folder/check" 2>&1 ||
    status=1
  if [ $status -eq 0 ]; then
    printf 'ok      %s\n' "$text"
  else
    printf 'FAILED  %s\n' "$text"
    failed=$((failed + 1))
  fi
  cat "$folder/check"
}

# same_result FOLDER FOLDER: the workload came to the same.
same_result() {
  local one two
  one=$(sed -n 's/^"result": //p' "$1/own.json") two=$(sed -n 's/^"result": //p' "$2/own.json")
  [ -n "$one" ] && [ "$one" = "$two" ] && return
  printf 'FAILED  the result is %s with prof, %s without\n' "$two" "$one"
  failed=$((failed + 1))
}

# fresh FOLDER
fresh() { rm -rf "$1" && mkdir -p "$1"; }

# compile_host SOURCE: with $flags and $library, lists both, to $work/host.
compile_host() {
  # shellcheck disable=SC2086
  "$CC" -std=gnu11 -O2 -g -Wall -Wextra -Iinclude $flags "$1" tests/long/book.c $library \
    -Lbuild/dev -Wl,-rpath,"$PWD/build/dev" -lprof -lm -ldl -pthread -o "$work/host" ||
    fail "the host does not compile"
}

# overhead TEXT ONE TWO: the ratio of the times of two folders' runs, each the least of seven. To be
# read, not judged.
#   run_again FOLDER: the script's own, runs it once more.
overhead() {
  local one=() two=() i
  for i in 1 2 3 4 5 6 7; do
    run_again "$2" && one+=("$(sed -n 's/.*"ns": \([0-9]*\)}$/\1/p' "$2/own.json")")
    run_again "$3" && two+=("$(sed -n 's/.*"ns": \([0-9]*\)}$/\1/p' "$3/own.json")")
  done
  python3 -c 'import sys
half = len(sys.argv) // 2
one, two = (min(map(int, some)) / 1e6 for some in (sys.argv[2:half + 1], sys.argv[half + 1:]))
print(f"        overhead, {sys.argv[1]}: {two / one:.2f}x ({one:.1f} ms, {two:.1f} ms)")' \
    "$1" "${one[@]}" "${two[@]}"
}

conclude() {
  [ "$failed" -eq 0 ] || fail "$failed checks"
  echo "all counts agree"
}

tools/build.sh dev prof_product >/dev/null || fail "prof does not build"
