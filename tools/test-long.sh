#!/usr/bin/env bash
# usage: tools/test-long.sh [ROW...]
#        tools/test-long.sh --list
#
# Runs what takes long: each row of docs/explanation/reliability.md at full length, and all of
# what make test-ci runs a part of. Without ROW: all rows.
# Prints one line for each row: what it is, whether it passed, and how long it took. Prints a line
# of progress every half minute. Logs are in build/report/long. Fails if a row failed.
# --list: prints the tests of ctest that the rows of labels run in the build dev, and runs nothing.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tools/cache.bash

logs=build/report/long
wanted=" $* "
failed=0
mkdir -p $logs
[ "${1:-}" = --list ] || tools/build.sh dev all prof_later_tests || exit

# row NAME TEXT COMMAND...
row() {
  local name=$1 text=$2 start=$SECONDS status child
  shift 2
  if [ "$wanted" = " --list " ]; then
    case "$*" in *"bash -c of dev "*) env PROF_LIST=1 "$@" || failed=1 ;; esac
    return
  fi
  case "$wanted" in "  " | *" $name "*) ;; *) return ;; esac
  env PROF_LONG=1 "$@" >"$logs/$name.log" 2>&1 </dev/null &
  child=$!
  while kill -0 $child 2>/dev/null; do
    sleep 1
    if [ $(((SECONDS - start) % 30)) -eq 29 ]; then
      printf '   %s: %d s, %s\n' "$name" $((SECONDS - start)) \
        "$(tail -n 1 "$logs/$name.log" | cut -c1-100)"
    fi
  done
  wait $child
  status=$?
  if [ $status -eq 0 ]; then
    printf 'ok   %-4s %-75s %6d s\n' "$name" "$text" $((SECONDS - start))
  elif [ $status -eq 77 ]; then
    printf 'skip %-4s %-75s %s\n' "$name" "$text" \
      "$(sed -n 's/^skip: //p' "$logs/$name.log" | head -1)"
  else
    printf 'FAIL %-4s %-75s %6d s: see %s\n' "$name" "$text" $((SECONDS - start)) \
      "$logs/$name.log"
    failed=$((failed + 1))
  fi
}

stress=build/dev/tests/stress failing=build/dev/tests/failing hostile=build/dev/tests/hostile
row R1 'kill -9 at random instants, 1000 times' env PROF_KILL_RUNS=1000 $stress/kill
row R2 'seven other ways to die in five situations, 200 times each' \
  env PROF_DEATHS=200 $stress/deaths
row R3 'recorded + lost = attempted: 1e9 in keep and ring, 5e8 or as the disk has room in streams' \
  env PROF_EXACT_ATTEMPTS=5000000000 $stress/exact
row R3x 'ten million scopes through each export' env PROF_EXPORTS=10000000 $stress/exports
row R4 'the cap at full rate with 64 threads, 10 min; the hot path asks for nothing' \
  env PROF_CAP_SECONDS=600 $stress/cap
row R5 'every call of libc and the kernel failing at every n' \
  env PROF_TEST_PLUGIN_DIR=$failing $failing/every_call
row R5b 'the same from then on; with a helper thread' \
  env PROF_TEST_PLUGIN_DIR=$failing $failing/every_call the-rest
row R5c 'every call interrupted by a 10 kHz timer' $failing/interrupted
row R6 'a million threads, ten scopes each' env PROF_THREADS=1000000 $stress/many
row R7 'ten thousand processes out of eight threads that record' env PROF_FORKS=10000 $stress/forks
row R8 'anything asked from sixteen threads at once, 60 s' env PROF_MEDDLE_SECONDS=60 $stress/meddle
row R9 'longjmp, exit, cancel, fibers under a 10 kHz handler, 60 s' \
  env PROF_JUMPS_SECONDS=60 $stress/jumps
row R1x 'each instruction walked: what stands there if the process dies' \
  build/dev/tests/fault/single_step
row R9x 'a signal at every instruction' build/dev/tests/fault/signal_step
row R10 'texts that mean harm, in every place, read back' \
  env PROF_TEST_BUILD_DIR=build/dev $hostile/text
row R12 'scripted clocks: jumps, other processors, wraps, coarse and broken ones' \
  ctest --test-dir build/dev -L '^clock$' --output-on-failure --no-tests=error
row R13 'an instrumented library loaded and unloaded 10 000 times; two profilers' \
  env PROF_RELOADS=10000 PROF_TEST_PLUGIN_DIR=$stress $stress/reload
row R14 '1e10 scopes through a ring: cost, counts, memory, what is read' \
  env PROF_SOAK_SCOPES=10000000000 $stress/soak
row R15x 'each instruction of an end: what adds up if the process dies' \
  env PROF_LEDGER_EVERY=17 build/dev/tests/fault/ledger_step
row R15 'the ledger against a model: 300 random programs' env PROF_ORACLE_SEEDS=300 $stress/oracle
row R17 'a host that closes every descriptor and takes the numbers' $failing/descriptors
row R18 'one pid or output for several processes; poor file systems' $failing/places
row C1 'operators, live readers, baselines: what CI does in part' \
  ctest --test-dir build/dev -R \
    '^(unit.op_judge|unit.live_snapshot|api.memory_begin|api.op_file)$' --output-on-failure \
    --no-tests=error
row C2 'each compiler; the headers and libraries of each release of a vendor' \
  ctest --test-dir build/dev --output-on-failure --no-tests=error -R \
    "^(api.compare-objects|device.cuda-headers|device.cupti-walk|device.hip-headers|\
minilm.compilers)$"
row M1 'memory: kill -9 at random instants, 1000 times' env PROF_KILL_RUNS=1000 $stress/memory_kill
row M1x 'memory: each instruction walked and interrupted' build/dev/tests/fault/memory_step
row M2 'memory: every call failing at every n' \
  env PROF_TEST_PLUGIN_DIR=$failing $failing/memory_calls
row M3 'memory: reset and clear under load, 60 s each' \
  env PROF_RESET_SECONDS=60 $stress/memory_reset
row R11 'every truncation of a capture of 1 MiB' $hostile/truncation
row R11b 'every byte and bit of a small one turned over' $hostile/flips
row R11f 'the reader fuzzed, 5e7 runs' tools/fuzz-long.sh 50000000
row T1 'public traces against an independent computation, and there and back' \
  env PROF_LIBRARY=build/dev/libprof.so .venv/bin/python tests/long/public_traces.py
# What CI does a part of.
# of PRESET LABELS TIERS [WRAPPER...]: builds PRESET and runs the tests that have one of LABELS and
# belong to one of TIERS.
of() {
  local preset=$1 labels=$2 tiers=$3
  shift 3
  if [ -n "${PROF_LIST:-}" ]; then
    ctest --test-dir "build/$preset" -N -L "^($labels)$" -L "^($tiers)$" 2>/dev/null |
      sed -n 's/^ *Test *#[0-9]*: //p'
    return
  fi
  tools/build.sh "$preset" all prof_later_tests &&
    "$@" ctest --test-dir "build/$preset" -L "^($labels)$" -L "^($tiers)$" -j "${JOBS:-2}" \
      --output-on-failure --no-tests=error
}
export -f of
row B1 'ways to build and to link: every linker, C library and project' \
  bash -c "of dev embed 'ci|long'"
row B2 'for aarch64 with all flags; all C tests that run under qemu, and Python' \
  bash tests/aarch64/run-aarch64.sh
row P1 'the Python package under every Python here' \
  env PROF_TEST_PYTHONS=all bash -c "of dev python 'quick|ci|long'"
row P2 'the wheel under every Python here' tests/python/check-wheel.sh
row P3 'the Python package beside the real torch, all tests' tests/python/beside-torch.sh
row P4 "PyTorch's own tests of its profiler, with prof in its place" tests/python/pytorch_own.sh
row T2 'Lua with prof in it: its own counts, bytes and errors, four at once, kill -9' \
  tests/long/lua.sh
row T3 'SQLite with prof in it: its own counts, bytes and pages, four at once, kill -9' \
  tests/long/sqlite.sh
row F1 'every deliberate fault is caught' bash tests/fault/run-faults.sh
row S1 'AddressSanitizer: what CI leaves out' bash -c "of asan 'hostile|stress' long"
row S2 'ThreadSanitizer: what CI leaves out' \
  bash -c "of tsan 'unit|api|stress' long setarch $(uname -m) -R"
row S3 'valgrind over the C tests that fit' tools/valgrind.sh
row L1 "clang-tidy's analyzer over everything" tools/lint.sh
[ $failed -eq 0 ]
