#!/usr/bin/env bash
# usage: tools/run-tests.sh GROUP
#
# Runs one group of checks.
#   test:       The quick tests of the build dev (tests/tiers.cmake lists them).
#   more:       The tests of the build dev that are not quick.
#   stress:     The fault and stress tests and the longer failing ones of the build dev.
#   faults:     Builds with a deliberate fault, each of which a test must catch; one for each row.
#   aarch64:    Cross-built, its machine code checked, and run under qemu-user.
#   asan:       The C tests under AddressSanitizer and UndefinedBehaviorSanitizer.
#   tsan:       The C tests under ThreadSanitizer.
#   valgrind:   The C tests that fit under valgrind's memcheck. Names the others, with the reason.
#   lint:       clang-tidy without its analyzer, cppcheck, ruff and mypy.
#   wheel:      The Python wheel: built, installed into clean environments, tested there.
#   torch:      The package beside the real torch.profiler, if the disk has room: a part.
#   fuzz:       Every fuzz target, FUZZ_SECONDS together.
#   viewers:    Traces in the engines of the real viewers.
#   groups:     Each test of the build dev is in a group of .ci/run, or in make test-long.
#   ci:         All of these but test and valgrind. lint, builds and downloads run beside the other
#               groups, at the lowest priority: lint's seconds are no measure then.
#   demo:       Runs make demo.
#   report:     Only the table of the groups that ran since build/report was removed.
#
# Prints for each group what passed, failed and was skipped, why, and how long it took. At the end
# it prints the failures by name, with their messages, and the sums alone on a line. Fails if
# anything failed. A group's log is in build/report.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tools/cache.bash

report=build/report
jobs=${JOBS:-2}
# Many tests wait, for a device or a moment, and leave a processor idle.
test_jobs=$((jobs > 1 ? jobs + 2 : 1))
fuzz_seconds=${FUZZ_SECONDS:-60}
ran=()
mkdir -p $report

# Reads a log: of ctest (Testing/Temporary/LastTest.log), or of a command whose last counts are
# "N passed, N failed". Prints "passed failed skipped", then lines:
#   "skipped WHY":   One for each skip.
#   "failed NAME":   One for each failure.
#   "said TEXT":     After an entry's failures: the last lines that say how a check failed. If no
#                    line does, the last lines of its output. An input in base64 is printed whole.
# A ctest entry counts as the cases that it lists itself (cmocka, pytest, "N passed, N failed"),
# else as one. Only ctest's own output (terminal) says which entries were skipped as a whole.
count='
function number_before(word) {
  return match($0, "[0-9]+ " word) ? substr($0, RSTART, RLENGTH) + 0 : 0
}
function say(kind, text) {
  lines[++n] = kind " " entry (entry != "" && text != "" ? ": " : "") text
}
function keep(text) { kept[++k % 12] = text }
function close_said(   i) {
  if (k == 0) for (i = l > 6 ? l - 5 : 1; i <= l; i++) keep(last[i % 6])
  for (i = k > 12 ? k - 11 : 1; i <= k; i++) lines[++n] = "said " substr(kept[i % 12], 1, 240)
  for (i = 1; i <= inputs; i++) lines[++n] = "said " input[i]
}
function failing(name) { if (!seen[entry, name]++) case_of[++cases] = name }
function close_entry(   i) {
  if (entry == "" && s < reasons) s = reasons
  if (entry in is_skipped) { p = 0; if (!s) s = 1 }
  else if (status == "failed" && !f) f = 1
  else if (status == "passed" && !p && !f && !s) { p = 1; s = reasons }
  for (i = 1; i <= s; i++) say("skipped", i <= reasons ? why[i] : "no reason given")
  for (i = 1; i <= cases; i++) say("failed", case_of[i])
  if (f && !cases && entry != "") say("failed", "")
  if (f || cases) close_said()
  passed += p; failed += f; skipped += s
  entry = status = ""; p = f = s = reasons = cases = k = l = inputs = is_input = told = 0
}
BEGIN {
  while (terminal != "" && (getline line < terminal) > 0)
    if (line ~ /Test +#[0-9]+: .*\*\*\*Skipped/) {
      sub(/^.*#[0-9]+: /, "", line); sub(/ .*/, "", line); is_skipped[line]
    }
}
/^[0-9]+\/[0-9]+ Testing: / { close_entry(); entry = $NF; status = "failed" }
/^to have .* again: / { input[++inputs] = $0; is_input = 1; next } # and what follows, in base64
is_input && /^[A-Za-z0-9+\/=]+$/ { if (inputs < 200) input[++inputs] = $0; next }
{ is_input = 0 }
/^\[  ERROR   \] --- / { told = 3; sub(/^.* --- /, "") }
/^E  +[^ ]|^[A-Za-z.]*(Error|Exception): |^==[0-9]+== ?ERROR|^SUMMARY: / ||
/: runtime error: |: warning: |: error: |[Aa]ssertion.*failed/ { if (!told) told = 1 }
told > 0 { told--; keep($0) }
NF && !/^(-+|<end of output>|Test time = .*|Test Failed\..*|"[^"]*" (start|end|time elapsed).*)$/ {
  last[++l % 6] = $0
}
/^Test Passed\.$/ { status = "passed" }
/^(\[ *[A-Z]* *\] )?-*skip: / { sub(/^.*skip: /, ""); why[++reasons] = $0; next }
/^SKIPPED \[[0-9]+\] / { sub(/^SKIPPED \[[0-9]+\] /, ""); why[++reasons] = $0; next }
/^\[  PASSED  \] [0-9]+ test/ { p += $4 }
/^\[  SKIPPED \] [0-9]+ test/ { s += $4 }
/^\[  FAILED  \] .*[0-9]+ test\(s\)/ { f += number_before("test"); next }
/^\[  FAILED  \] [^ :]+$/ { failing($4); next }
/^FAILED [^ (]+/ { failing($2) }
/^(FAIL|ERROR|FAILED|failed): / { sub(/^[A-Za-z]+: /, ""); failing($0) }
/^=* ?[0-9]+ (passed|failed|skipped)(,| in |$)/ {
  p += number_before("passed"); f += number_before("failed"); s += number_before("skipped")
}
END {
  close_entry()
  print passed + 0, failed + 0, skipped + 0
  for (i = 1; i <= n; i++) print lines[i]
}'

# finish GROUP STATUS START [TERMINAL]: counts build/report/GROUP.log, keeps the row, says it.
finish() {
  local group=$1 status=$2 seconds=$((SECONDS - $3))
  awk -v terminal="${4:-}" "$count" "$report/$group.log" >"$report/$group.count"
  read -r passed failed skipped <"$report/$group.count"
  if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
  if [ "$status" -eq 0 ] && [ $((passed + failed + skipped)) -eq 0 ]; then passed=1; fi
  ran+=("$group")
  echo "$group $passed $failed $skipped $seconds" >>$report/groups
  printf '== %s: %d passed, %d failed, %d skipped in %d s\n' \
    "$group" "$passed" "$failed" "$skipped" "$seconds"
  [ "$failed" -eq 0 ]
}

# command_group GROUP COMMAND...: a group that is one command.
command_group() {
  local group=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$group"
  "$@" </dev/null 2>&1 | tee "$report/$group.log"
  finish "$group" "${PIPESTATUS[0]}" "$start"
}

# prepare: what the quick tests need beside the build, while C compiles: the Python packages, those
# of PROF_SETUP's groups too, and the model. Without the model (no network) the tests that need it
# skip, and say so. Tests write no bytecode: without it each process compiles prof's package again.
prepare() {
  # shellcheck disable=SC2086 # a list
  tools/setup.sh --python build example tests ${PROF_SETUP:-} || return
  .venv/bin/python -m compileall -q "$PWD/bindings/python/prof" || return
  fetch_model
}
fetch_model() { PATH=$PWD/.venv/bin:$PATH examples/minilm/fetch-model.sh >/dev/null || true; }
preparation=
begin_preparation() {
  prepare >$report/preparation.said 2>&1 &
  preparation=$!
}
# Waits for it, if it was begun, and prints what it said.
end_preparation() {
  local status=0
  [ -n "$preparation" ] || return 0
  wait "$preparation" || status=$?
  preparation=
  cat $report/preparation.said
  return $status
}

# build PRESET TARGET...: for a group that waits for it. This build may be under way ahead, at the
# lowest priority, which gets next to nothing beside other programs. Then that one is stopped, and
# this one goes on from there. ninja and cmake leave no half file when they are stopped. An
# interrupted run may have left a number that another program has by now.
build() {
  local preset process
  if read -r preset process && [ "$preset" = "$1" ] && [ "/proc/$process/cwd" -ef . ]; then
    # shellcheck disable=SC2046 # a list: ninja, or what configures
    kill -TERM $(cat "/proc/$process/task/$process/children")
  fi 2>/dev/null <$report/ahead.build
  tools/build.sh "$@"
}

# ctest_group GROUP PRESET LABELS TIERS [WRAPPER...]: builds PRESET, then runs the tests that have
# one of LABELS (a|b|c) and belong to one of TIERS.
ctest_group() {
  local group=$1 preset=$2 labels=$3 tiers=$4 start=$SECONDS status targets=()
  shift 4
  # The target all of dev has the quick tests alone.
  if [ "$preset" = dev ] && [ "$tiers" != quick ]; then targets=(all prof_later_tests); fi
  printf '\n== %s\n' "$group"
  if ! build "$preset" "${targets[@]}" 2>&1 | tee "$report/$group.log"; then
    finish "$group" 1 "$start"
    return 1
  fi
  if ! end_preparation; then
    finish "$group" 1 "$start"
    return 1
  fi
  rm -f "build/$preset/Testing/Temporary/LastTest.log"
  "$@" ctest --test-dir "build/$preset" -L "^($labels)$" -L "^($tiers)$" -j "$test_jobs" \
    --output-on-failure --no-tests=error </dev/null 2>&1 |
    tee "$report/$group.terminal"
  status=${PIPESTATUS[0]}
  cp "build/$preset/Testing/Temporary/LastTest.log" "$report/$group.log" || : >"$report/$group.log"
  finish "$group" "$status" "$start" "$report/$group.terminal"
}

# gcc 12's ThreadSanitizer does not start if the kernel randomises more address bits than it knows.
without_randomisation() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

sanitizer() {
  local wrapper=()
  [ "$1" = tsan ] && wrapper=(without_randomisation)
  ctest_group "$1" "$1" '.*' 'quick|ci' "${wrapper[@]}"
}

# Prints what one target says of the input that failed: its report's summary, and the input itself.
# Often this output is all that is left to read.
say_found() {
  local name=$1 output=$2 input
  echo "failed: $name: $(grep -m 1 '^SUMMARY:' "$output" || echo 'no summary: see its output')"
  for input in build/fuzz/found/"$name"-*; do
    [ -s "$input" ] && printf 'to have %s again: base64 -d | gunzip of\n%s\n' \
      "$input" "$(gzip -9nc "$input" | base64)"
  done
}

# Each target gets an equal share of the time. tests/fuzz/corpus/TARGET is the corpus in the
# repository. New inputs go to build/fuzz/corpus, an input that fails to build/fuzz/found.
fuzz_targets() {
  local targets source name kept passed=0 failed=0 share output
  build fuzz prof_fuzz_targets || return 1
  shopt -s nullglob
  targets=()
  for source in tests/fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
  if [ ${#targets[@]} -eq 0 ]; then
    echo "skip: tests/fuzz has no targets"
    echo "0 passed, 0 failed, 1 skipped"
    return 0
  fi
  share=$((fuzz_seconds / ${#targets[@]}))
  for name in "${targets[@]}"; do
    mkdir -p "build/fuzz/corpus/$name" build/fuzz/found
    kept=() output=$report/$name.output
    [ -d "tests/fuzz/corpus/$name" ] && kept=("tests/fuzz/corpus/$name")
    if "build/fuzz/tests/fuzz/$name" -max_total_time=$share -timeout=10 -rss_limit_mb=4096 \
         -print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/found/$name-" \
         "build/fuzz/corpus/$name" "${kept[@]}" 2>&1 | tee "$output"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      say_found "$name" "$output"
    fi
  done
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]
}

fault_builds() {
  if [ ! -e tests/fault/run-faults.sh ]; then
    echo "skip: tests/fault/run-faults.sh is missing"
    echo "0 passed, 0 failed, 1 skipped"
    return 0
  fi
  bash tests/fault/run-faults.sh
}

# print_report [GROUP...]: the table of these groups, or of all that build/report knows.
print_report() {
  local total_passed=0 total_failed=0 total_skipped=0 rows
  # of a group that was run twice, the later row
  rows=$(awk -v wanted=" $* " '!($1 in row) { group[++n] = $1 }
    { row[$1] = $0 }
    END {
      for (i = 1; i <= n; i++)
        if (wanted == "  " || index(wanted, " " group[i] " ")) print row[group[i]]
    }' $report/groups)
  printf '\n%-12s %7s %7s %8s %7s\n' group passed failed skipped seconds
  while read -r group passed failed skipped seconds; do
    printf '%-12s %7d %7d %8d %7d\n' "$group" "$passed" "$failed" "$skipped" "$seconds"
    total_passed=$((total_passed + passed)) total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
  done <<<"$rows"
  for group in "$@"; do
    grep -q "^$group " <<<"$rows" && continue
    echo "failed: $group: it has ended without a result"
    total_failed=$((total_failed + 1))
  done
  while read -r group _; do
    sed -n "s/^skipped /skipped: $group: /p" "$report/$group.count"
  done <<<"$rows"
  while read -r group _ failed _; do
    sed -n "s/^failed /failed: $group: /p; s/^said /  | /p" "$report/$group.count"
    if [ "$failed" -ne 0 ] && ! grep -q '^failed ' "$report/$group.count"; then
      echo "failed: $group: see $report/$group.log"
    fi
  done <<<"$rows"
  printf '%d passed, %d failed, %d skipped\n' $total_passed $total_failed $total_skipped
  [ $total_failed -eq 0 ] && [ $total_passed -gt 0 ]
}

# Lists the tests of build/dev that neither .ci/run nor make test-long runs. The functions that run
# groups are replaced by functions that list tests. Groups of one command and of sanitizers have no
# tests in that build.
check_groups() {
  local all listed=$report/groups.listed lost group
  tools/build.sh dev >/dev/null || return 1
  tools/test-long.sh --list >$listed || return 1
  (
    ctest_group() { list_tests "$2" -L "^($3)$" -L "^($4)$"; }
    command_group() { :; }
    sanitizer() { :; }
    begin_preparation() { :; }
    # shellcheck disable=SC2048,SC2086 # lists
    for group in test $ci_alone $ci_ahead $ci_lane $ci_beside; do run_group "$group"; done
  ) >>$listed
  all=$(list_tests dev)
  if [ -z "$all" ]; then
    echo "failed: ctest lists no test of build/dev"
    echo "0 passed, 1 failed"
    return 1
  fi
  lost=$(grep -vxFf $listed <<<"$all")
  [ -z "$lost" ] || sed 's/^/failed: no group runs the test /' <<<"$lost"
  echo "$(grep -cxFf $listed <<<"$all") passed, $(grep -c . <<<"$lost") failed"
  [ -z "$lost" ]
}

# list_tests PRESET [OPTION...]: the names of the tests that ctest would run with these options.
list_tests() {
  ctest --test-dir "build/$1" -N "${@:2}" 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p'
}

plain='unit|api|clock|steps|device|failing|hostile|minilm|embed|docs|python|run|layers'
# The groups of ci. Those of ci_alone run one after the other. Behind them run two lanes at once,
# ci_lane and ci_beside. Of these, faults uses the objects of tsan. Beside all, at the lowest
# priority, run ci_builds and ci_ahead.
ci_alone='groups more stress asan tsan'
ci_builds='asan: tsan: fuzz:prof_fuzz_targets' # PRESET:TARGET
ci_ahead='lint'
ci_lane='wheel aarch64 viewers'
ci_beside='faults fuzz torch'
run_group() {
  case $1 in
    test)
      begin_preparation
      ctest_group test dev "$plain" quick
      ;;
    more) ctest_group more dev "$plain" ci ;;
    stress) ctest_group stress dev 'fault|stress|failing_long' 'quick|ci' ;;
    faults) command_group faults fault_builds ;;
    aarch64) command_group aarch64 bash tests/aarch64/run-aarch64.sh ;;
    asan | tsan) sanitizer "$1" ;;
    valgrind) command_group valgrind tools/valgrind.sh ;;
    lint) command_group lint tools/lint.sh ;;
    wheel) command_group wheel tests/python/check-wheel.sh ;;
    torch) command_group torch tests/python/beside-torch.sh ;;
    fuzz) command_group fuzz fuzz_targets ;;
    viewers) ctest_group viewers dev viewers 'quick|ci' ;;
    groups) command_group groups check_groups ;;
    demo) command_group demo make demo ;;
    *)
      sed -n '2,/^set/{/^#/p}' "$0"
      exit 2
      ;;
  esac
}

# What viewers and torch would wait for. What cannot be fetched they name themselves.
fetch_ahead() {
  tests/viewers/fetch-engines.sh
  tests/viewers/fetch-readers.sh
  tests/python/beside-torch.sh --install
  touch $report/fetched
}

# build_ahead PRESET [TARGET]: a build that build() can stop.
build_ahead() {
  tools/build.sh "$@" &
  echo "$1 $!" >$report/ahead.build
  wait $!
  rm $report/ahead.build
}

# run_ahead: what no test waits for, while the groups that run alone leave a processor idle. It has
# the lowest priority, so that it takes no time from their tests. What comes from the network comes
# beside the builds. tools/build.sh has a lock: one build of a preset is under way at a time.
run_ahead() {
  local target fetcher
  renice -n 19 "$BASHPID" >/dev/null
  fetch_ahead >/dev/null 2>&1 &
  fetcher=$!
  # shellcheck disable=SC2086 # none or one
  for target in $ci_builds; do build_ahead "${target%%:*}" ${target#*:}; done >/dev/null 2>&1
  for group in $ci_ahead; do run_group "$group"; done
  wait $fetcher
}

# run_lane AHEAD GROUP...: these groups, one after the other. Those that need what is fetched wait
# until it is there, or the process AHEAD has ended without it.
run_lane() {
  local ahead=$1 group
  shift
  for group in "$@"; do
    case $group in
      torch | viewers)
        while [ ! -e $report/fetched ] && kill -0 "$ahead" 2>/dev/null; do sleep 1; done
        ;;
    esac
    run_group "$group"
  done
}

# run_ci: all groups but test and valgrind. What a background lane says comes when it is through.
# A row of an earlier run must not stand for a group that ends without a row.
run_ci() {
  local said=$report/ahead.said beside_said=$report/beside.said group ahead beside
  touch $report/groups
  rm -f $report/fetched $report/ahead.build
  for group in $ci_alone $ci_ahead $ci_lane $ci_beside; do
    sed -i "/^$group /d" $report/groups
  done
  run_ahead >"$said" 2>&1 &
  ahead=$!
  for group in $ci_alone; do run_group "$group"; done
  # shellcheck disable=SC2086 # lists
  run_lane $ahead $ci_beside >"$beside_said" 2>&1 &
  beside=$!
  # shellcheck disable=SC2086 # lists
  run_lane $ahead $ci_lane
  wait $beside
  cat "$beside_said"
  wait $ahead
  cat "$said"
  # shellcheck disable=SC2086 # lists
  print_report $ci_alone $ci_ahead $ci_lane $ci_beside
}

case ${1:-} in
  report) print_report ;;
  ci) run_ci ;;
  *)
    run_group "${1:-}"
    print_report "${ran[@]}"
    ;;
esac
