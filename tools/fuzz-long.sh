#!/usr/bin/env bash
# usage: tools/fuzz-long.sh RUNS
#
# Fuzzes the reader for RUNS runs, in two jobs of half of them each. A crash is a failure. So is an
# input that takes a second, or one that needs more than 512 MiB, the sanitizers included.
# The build is not led by comparisons, and inputs are chosen evenly. This is several times as fast
# as make fuzz, which finds the first inputs.
# Progress goes to build/fuzz/long-JOB.log, failing inputs to build/fuzz/found.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

runs=$1 begun=$SECONDS status=0
if ! command -v clang >/dev/null; then
  echo "skip: clang is missing"
  exit 77
fi
tools/build.sh fuzz-long || exit 1
mkdir -p build/fuzz/corpus/fuzz_trace build/fuzz/found
jobs=()
for job in 1 2; do
  build/fuzz-long/tests/fuzz/fuzz_trace -runs=$(((runs + 1) / 2)) -seed="$job$RANDOM" \
    -entropic=0 -timeout=1 -rss_limit_mb=512 -max_len=4096 -reload=0 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/fuzz_trace- \
    build/fuzz/corpus/fuzz_trace tests/fuzz/corpus/fuzz_trace >"build/fuzz/long-$job.log" 2>&1 &
  jobs+=($!)
done
trap 'kill "${jobs[@]}" 2>/dev/null' EXIT
while kill -0 "${jobs[@]}" 2>/dev/null; do
  sleep 5
  tail -qn 1 build/fuzz/long-?.log | grep -oE '^#[0-9]+' | tr '\n' ' ' &&
    echo "runs in $((SECONDS - begun)) s"
done
for job in 1 2; do
  wait "${jobs[$((job - 1))]}" || { status=1; tail -n 30 "build/fuzz/long-$job.log"; }
  grep -E '^stat::(number_of_executed_units|average_exec_per_sec|slowest_unit|peak_rss)' \
    "build/fuzz/long-$job.log"
done
exit $status
