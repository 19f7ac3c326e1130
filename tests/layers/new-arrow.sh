#!/usr/bin/env bash
# usage: new-arrow.sh OBJECT...
# check.py fails on an arrow up.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir -p "$room/new.dir/src/base"
echo 'int prof_start_with(const void *options); int prof_new(void) { return prof_start_with(0); }' |
  "${CC:-cc}" -xc -c -o "$room/new.dir/src/base/compose.c.o" -
if out=$(python3 "$here/check.py" "$@" "$room/new.dir/src/base/compose.c.o"); then
  echo "check.py allows a new arrow"; exit 1
fi
grep -q \
  '^src/base/compose.c (base) uses src/core/session/.* (core/session), .*prof_start_with$' \
  <<<"$out" ||
  { echo "$out"; exit 1; }
