#!/usr/bin/env bash
# usage: new-arrow.sh OBJECT...
# check.py fails on an arrow up, also to a symbol that src/lib defines for other folders.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir -p "$room/new.dir/src/base"

# refuses CODE USED SYMBOL: src/base/text.c of that code uses SYMBOL of module USED.
refuses() {
  local out object=$room/new.dir/src/base/text.c.o
  "${CC:-cc}" -xc -c -o "$object" - <<<"$1"
  if out=$(python3 "$here/check.py" "${objects[@]}" "$object"); then
    echo "check.py allows a new arrow to $3"
    exit 1
  fi
  grep -q "^src/base/text.c (base) uses src/$2/.* ($2), .*$3\$" <<<"$out" ||
    { echo "$out"; exit 1; }
}

objects=("$@")
refuses 'int prof_start_with(const void *options);
int prof_new(void) { return prof_start_with(0); }' core/session prof_start_with
refuses 'extern const void *const prof_i_observers[];
const void *prof_new(void) { return prof_i_observers[0]; }' lib prof_i_observers
