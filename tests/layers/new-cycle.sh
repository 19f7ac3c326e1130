#!/usr/bin/env bash
# usage: new-cycle.sh OBJECT...
# cycles.py fails where five files of a folder use each other, and names them. It allows four.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir -p "$room/new.dir/src/base"

# ring COUNT: objects of so many files of src/base. Each uses the next, and the last the first.
ring() {
  made=()
  local i next
  for ((i = 0; i < $1; i++)); do
    next=prof_ring$(((i + 1) % $1))
    made+=("$room/new.dir/src/base/ring$i.c.o")
    "${CC:-cc}" -xc -c -o "${made[i]}" - \
      <<<"int $next(void); int prof_ring$i(void) { return $next(); }"
  done
}

ring 4
python3 "$here/cycles.py" "$@" "${made[@]}"

ring 5
if out=$(python3 "$here/cycles.py" "$@" "${made[@]}"); then
  echo "cycles.py allows a cycle of five files"
  exit 1
fi
if ! grep -q '^src/base: 5 files use each other' <<<"$out" ||
  ! grep -q '^  src/base/ring4.c uses src/base/ring0.c: prof_ring0$' <<<"$out"; then
  echo "$out"
  exit 1
fi
