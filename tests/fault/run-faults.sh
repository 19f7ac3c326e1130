#!/usr/bin/env bash
# The tests are tested: builds the library with one deliberate fault at a time (src/core, PROF_FAULT_...), runs the test that must see it,
# and wants it to fail; and to pass without the fault. One line each; the last line counts.
# run-faults.sh [NAME...]: only these faults.
set -uo pipefail
cd "$(dirname "$0")/../.."
CC=${CC:-gcc}
wanted=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# library FLAGS...: the archive of src built with these flags; built once for each set of flags. Prints its path.
library() {
  local name objects=() source
  name=$work/lib$(printf '%s' "$*" | cksum | tr -d ' ')
  if [ ! -e "$name.a" ]; then
    mkdir "$name"
    printf '%s\n' src/*/*.c | xargs -P 2 -I{} sh -c '"$@" -c "$0" -o "'"$name"'/$(echo "$0" | tr / -).o"' {} \
      "$CC" -std=gnu11 -O2 -g -Iinclude -Isrc "$@" 2>"$name.errors" || { cat "$name.errors" >&2; return 1; }
    ar rc "$name.a" "$name"/*.o
  fi
  echo "$name.a"
}

# build NAME TEST FLAGS...: the test, with the library, into $work/NAME.
build() {
  local name=$1 test=$2 archive
  shift 2
  archive=$(library "$@") || return 1
  "$CC" -std=gnu11 -O2 -g "$@" -Iinclude -Isrc -Itests "$test" "$archive" -o "$work/$name" -lcmocka -lpthread -lm
}

# run NAME ARGUMENT...: its exit status; what it says goes to $work/NAME.log. ThreadSanitizer wants its addresses where they always are.
run() {
  local name=$1 wrapper=()
  shift
  [ "$sanitized" = 1 ] && setarch "$(uname -m)" -R true 2>/dev/null && wrapper=(setarch "$(uname -m)" -R)
  PROF_EXACT_ATTEMPTS=4000000 timeout 120 "${wrapper[@]}" "$work/$name" "$@" >"$work/$name.log" 2>&1
}

# fault NAME TEST FILTER FLAGS...: the tests of the file whose names fit the filter ('' for all) pass without the fault, and fail with it.
fault() {
  local name=$1 test=$2 filter=$3 sound faulty sanitized=0 begun=$SECONDS
  shift 3
  case "$wanted" in "  " | *" $name "*) ;; *) return ;; esac
  case " $* " in *" -fsanitize=thread "*) sanitized=1 ;; esac
  if ! build sound "$test" "$@" || ! build faulty "$test" "$@" "-DPROF_FAULT_$name"; then
    echo "not built: $name"
    failed=$((failed + 1))
    return
  fi
  run sound ${filter:+"$filter"}
  sound=$?
  if [ $sound -eq 77 ]; then
    echo "skip: $name: $(sed -n 's/^skip: //p' "$work/sound.log")"
    skipped=$((skipped + 1))
    return
  fi
  run faulty ${filter:+"$filter"}
  faulty=$?
  if [ $sound -eq 0 ] && [ $faulty -ne 0 ]; then
    printf 'caught: %-12s by %s (%d s): %s\n' "$name" "$(basename "$test" .c)" $((SECONDS - begun)) \
      "$(grep -m1 -E 'ERROR|WARNING|after [0-9]+ instr|signal at|Failure' "$work/faulty.log" | cut -c1-150)"
    passed=$((passed + 1))
  else
    printf 'NOT caught: %-12s by %s %s (without the fault: status %d, with it: %d)\n' "$name" "$test" "$filter" $sound $faulty
    [ $sound -eq 0 ] || tail -15 "$work/sound.log"
    failed=$((failed + 1))
  fi
}

fault DROP_COUNT tests/stress/test_exact.c 'keep_*'
fault LOST tests/fault/test_signal_step.c 'a_plain_scope_survives*'
fault LEAVE_AT_ONCE tests/fault/test_signal_step.c 'a_ring_that_goes_round*'
fault NO_WIPE tests/stress/test_forks.c 'a_child_that_came*'
fault LATE_COMMIT tests/fault/test_single_step.c 'a_plain_scope*'
fault EARLY_CLEAR tests/fault/test_single_step.c 'a_plain_scope*'
fault GENERATION tests/fault/test_single_step.c 'a_ring*'
fault GENERATION tests/fault/test_generation.c ''
fault ONE_SEGMENT tests/clock/test_jumps.c 'a_*' -DPROF_FAKE_CLOCK=1
fault RELAXED tests/fault/test_commit.c '' -fsanitize=thread
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
