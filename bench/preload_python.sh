#!/usr/bin/env bash
# usage: bench/preload_python.sh LIBPROF_MEMORY
#
# Runs PYTHONMALLOC=malloc python3 on a script that does little but allocate: alone, with the
# library preloaded, and under heaptrack, in turns. Without heaptrack it leaves that out.
# Then runs a shorter script. Its capture is small enough to be written at exit, as a capture and as
# a trace, within the two seconds that an exit may take. Prints the medians, as bench/frame.h does.
set -euo pipefail
library=$(realpath "${1:?usage: bench/preload_python.sh LIBPROF_MEMORY}")
script=$(cd "$(dirname "$0")" && pwd)/preload_python.py
[ -e "$library" ] || { echo "skip: no $library"; exit 0; }
# A wrapper would be measured, too.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))') ||
  { echo "skip: python3 is missing"; exit 0; }
rounds=7 long=16 short=4 # 4: 53 MiB of capture; beyond 64 exit renames it, and writes no .json
[ "${BENCH_QUICK:-0}" = 0 ] || rounds=3
directory=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/prof-bench-XXXXXX")
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
command -v heaptrack >/dev/null && has_heaptrack=yes || has_heaptrack=no

# one NAME COMMAND...: its milliseconds go to NAME. The status is looked at: a failed run must not
# look fast.
one() {
  local name=$1 begun ended
  shift
  begun=$(date +%s%N)
  "$@" >log 2>&1 || { cat log >&2; echo "$name failed" >&2; exit 1; }
  ended=$(date +%s%N)
  echo $(((ended - begun) / 100000)) >>"ms.$name"
  rm -f ./*.prof ./*.json ./heaptrack.*
}
# recorded NAME TURNS OUTPUT
recorded() {
  one "$1" env LD_PRELOAD="$library" PROF_MEMORY=1 PROF_OUTPUT="$3" "$python" "$script" "$2"
}

for _ in $(seq $rounds); do
  one long "$python" "$script" $long
  recorded capture $long python.prof
  [ $has_heaptrack = no ] || one heaptrack heaptrack -o heaptrack "$python" "$script" $long
  one short "$python" "$script" $short
  recorded short_capture $short python.prof
  recorded short_trace $short python.json
done

# of POINT NAME: of its tenths of milliseconds
of() {
  sort -n "ms.$2" |
    awk -v p="$1" '{ v[NR] = $1 } END { print v[int((NR - 1) * p / 100 + 0.5) + 1] }'
}
# row NAME ALONE WHAT BOUND VERDICT: ALONE is the same script without
row() {
  printf '%-56s | %-60s | %-11s | %s\n' "$3" \
    "$(awk -v a="$(of 50 "$1")" -v l="$(of 10 "$1")" -v h="$(of 90 "$1")" -v n="$(of 50 "$2")" \
    'BEGIN { printf "%.1f ms (%.1f-%.1f), %.2fx", a / 10, l / 10, h / 10, a / n }')" "$4" "$5"
}
holds() { [ "$1" -le "$2" ] && echo held || echo NOT; }
bounded() { row "$1" "$2" "$3" "2.50x" "$(holds $((2 * $(of 50 "$1"))) $((5 * $(of 50 "$2"))))"; }
echo "preload_python: $("$python" -V 2>&1), $rounds rounds, in turns"
row long long "PYTHONMALLOC=malloc python3, alone" - shown
bounded capture long "preloaded: python3, a capture that stays as it is"
if [ $has_heaptrack = yes ]; then
  row heaptrack long "rival $(heaptrack --version 2>/dev/null | head -n 1 || echo heaptrack)" - \
    shown
  ours=$(of 50 capture) theirs=$(of 50 heaptrack)
  printf '%-56s | %-60s | %-11s | %s\n' "preloaded: python3, against heaptrack" \
    "$(awk -v a="$ours" -v h="$theirs" 'BEGIN { printf "%.2fx of its time", a / h }')" \
    "1.00x" "$(holds "$ours" "$theirs")"
else
  echo "skip: heaptrack is missing (Debian: heaptrack)"
fi
row short short "PYTHONMALLOC=malloc python3, short, alone" - shown
bounded short_capture short "preloaded: short, .prof written at exit"
row short_trace short "preloaded: short, .json written at exit" - shown
