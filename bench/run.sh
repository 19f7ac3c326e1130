#!/usr/bin/env bash
# usage: bench/run.sh [--strict] [BUILD]
#
#   BUILD:           Where CMake built prof_bench; build/release by default.
#   BENCH_QUICK=1:   About one minute, instead of about 4 on 2 cores.
#   BENCH_DIR:       Where capture files go while it measures, a disk with 4 GiB free. BUILD by
#                    default.
#   BENCH_PYTHON:    The Python to run; python3 by default.
#
# Runs every benchmark. Prints each promise on a line: what | measured | bound | held, NOT or not
# measured. Writes all of it to bench/results/<date>-<commit>.md with machine, kernel and compiler.
#
# A bound that is not held does not make it fail, unless --strict: shared machines are too noisy to
# turn a build red. Read the column, and repeat on a quiet machine before believing a NOT. What
# fails to run at all does make it fail.
set -uo pipefail
cd "$(dirname "$0")/.."

strict=no
if [ "${1:-}" = --strict ]; then
  strict=yes
  shift
fi
build=${1:-build/release}
programs=$build/bench
[ -d "$programs" ] || { echo "bench/run.sh: $programs is missing; type: make bench" >&2; exit 2; }
export BENCH_DIR=${BENCH_DIR:-$build}

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
git --no-optional-locks diff --quiet HEAD -- src inject include bench 2>/dev/null ||
  commit_note=" with local changes"
mkdir -p bench/results
results=bench/results/$(date +%F)-$commit.md
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
failures=0

# run NAME COMMAND...: what it prints is shown and kept.
run() {
  local name=$1
  shift
  echo "== $name" >>"$lines"
  "$@" </dev/null 2>&1 | tee -a "$lines"
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then
    echo "bench/run.sh: $name failed" | tee -a "$lines" >&2
    failures=$((failures + 1))
  fi
}

# The order: what is promised first. Any other program of bench/ comes behind, without arguments.
first="scope scope_cxx threads start stream"
others=$(for source in bench/*.c bench/*.cpp; do basename "${source%.*}"; done | sort)
for name in $first $others; do
  case " ${done_already:-} " in *" $name "*) continue ;; esac
  done_already="${done_already:-} $name"
  arguments=()
  case $name in
    start) arguments=("$build/libprof.so" "$programs/libempty.so") ;;
    threads) arguments=("$(nproc)") ;;
    preload) arguments=("$build/libprof_memory.so") ;;
    opencl_layer) arguments=("$build/libprof_opencl.so") ;;
  esac
  if [ -x "$programs/$name" ]; then
    run "$name" "$programs/$name" "${arguments[@]}"
    [ "$name" = scope ] && run site_text bench/site_text.sh
    [ "$name" = preload ] && run preload_python bench/preload_python.sh "$build/libprof_memory.so"
  else
    run "$name" echo "skip: $programs/$name was not built"
  fi
done
run lttng bench/lttng/run.sh "$programs/rival"
# BENCH_PYTHON: one that has torch shows torch.profiler beside the package.
run python env "PYTHONPATH=bindings/python" "PROF_LIBRARY=$build/libprof.so" \
  "${BENCH_PYTHON:-python3}" bench/python/cost.py
# Where make test-torch has brought torch, it stands beside.
beside=.venv-torch/bin/python
[ -x $beside ] || beside=${BENCH_PYTHON:-python3}
for name in table export events; do
  run "python_$name" env "PYTHONPATH=bindings/python" "PROF_LIBRARY=$build/libprof.so" "$beside" \
    "bench/python/$name.py"
done
if [ -x .venv-torch/bin/python ]; then
  run torch env "PYTHONPATH=bindings/python" "PROF_LIBRARY=$build/libprof.so" \
    .venv-torch/bin/python bench/python/torch_cost.py
else
  run torch echo "skip: .venv-torch is missing; type: make test-torch"
fi
run python_functions bench/python/functions.sh "$build"
if [ -x "$programs/agreement" ]; then
  run agreement "$programs/agreement"
else
  run agreement echo "skip: $programs/agreement was not built" \
    "(Debian: libbenchmark-dev, libopenblas-dev, libcjson-dev)"
fi

# ---- the sum ----
value() { sed -n "s/^$1[[:space:]]*:[[:space:]]*//p" /proc/cpuinfo | head -n 1; }
processor=$(value 'model name')
memory_gib=$(awk '/MemTotal/ { printf "%d", $2 / 1048576 + 0.5 }' /proc/meminfo)
grep -q '^flags.* hypervisor' /proc/cpuinfo && virtual=", a virtual machine"
{
  echo "# Measured $(date +%F), commit $commit${commit_note:-}"
  echo
  echo "- machine: ${processor:-$(uname -m)}, $(nproc) cores, $memory_gib GiB${virtual:-};" \
    "load at the end: $(cut -d ' ' -f 1-3 /proc/loadavg)"
  echo "- kernel: $(uname -sr); clock source:" \
    "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null)"
  echo "- compiler: $(grep -m 1 ' cores, Linux ' "$lines" |
    sed -n '1s/.*, \([a-z]* *[0-9].*\)$/\1/p')"
  echo "- made by: ${BENCH_QUICK:+BENCH_QUICK=$BENCH_QUICK }bench/run.sh;" \
    "medians of alternating rounds, in brackets the 10 and 90 % points;" \
    "x is the ratio to the floor of the same run"
  awk '
    /^== / { name = substr($0, 4); printf "\n## %s\n\n", name; in_table = 0; next }
    / \| .* \| .* \| / {
      if (!in_table) print "| what | measured | bound | |\n|---|---|---|---|"
      in_table = 1
      gsub(/ +\|/, " |"); sub(/ +$/, "")
      print "| " $0 " |"
      next
    }
    { if (in_table) print ""; in_table = 0; sub(/^ +/, ""); print $0 "  " }' "$lines"
} >"$results"

held=$(grep -c '| held$' "$lines")
not=$(grep -c '| NOT$' "$lines")
unmeasured=$(grep -c '| not measured$' "$lines")
echo
echo "$held held, $not NOT, $unmeasured not measured, $failures failed to run," \
  "$(grep -c '^skip: ' "$lines") skipped; written to $results"
grep -E '\| (NOT|not measured)$' "$lines"
[ "$failures" -eq 0 ] && { [ $strict = no ] || [ "$not" -eq 0 ]; }
