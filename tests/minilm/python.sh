#!/usr/bin/env bash
# examples/minilm/minilm.py with --device cuda and hip, on the emulated libraries: the same pairs as
# the host's, the device's columns and its memory in Python's table. No device is behind it.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH=$root/bindings/python PROF_LIBRARY=$build/libprof.so \
  MINILM_LIBRARY=$build/examples/libminilm.so
failed=0

# usage: embed DEVICE; what it says goes to $work/DEVICE
embed() {
  python3 "$root/examples/minilm/minilm.py" --device "$1" --level 1 --out "$work/trace.json" \
    >"$work/$1" 2>"$work/err"
}
pairs() { grep -A1 '^  0\.[0-9]* ' "$work/$1"; }

if ! embed host; then
  grep -q 'no model' "$work/err" && { echo "skip: $(head -1 "$work/err")"; exit 77; }
  cat "$work/err"
  exit 1
fi
export LD_LIBRARY_PATH=$build/tests/device/vendors
peaks="The pool's peaks: \(.*\) MiB used, \(.*\) MiB allocated"
peaks+=". By its own account: \1 and \2 MiB"
for name in cuda hip; do
  column=${name^^}
  embed "$name" && ! [ -s "$work/err" ] && cmp -s <(pairs host) <(pairs "$name") &&
    grep -q "Self $column %" "$work/$name" &&
    grep -q "^$column Mem is what was taken" "$work/$name" &&
    [ -n "$(pairs "$name")" ] &&
    sed -n "s/^$peaks/ok: minilm.py --device $name: \1 MiB used/p" "$work/$name" | grep . ||
    { echo "failed: minilm.py --device $name"; cat "$work/err" "$work/$name"; failed=1; }
done
exit $failed
