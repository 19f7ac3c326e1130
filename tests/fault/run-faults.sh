#!/usr/bin/env bash
# The tests are tested: builds the library with one deliberate fault at a time (src/core, PROF_FAULT_...), runs the test that must see it,
# and wants it to fail; and to pass without the fault. One line each; the last line counts.
set -uo pipefail
cd "$(dirname "$0")/../.."
CC=${CC:-gcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# build NAME TEST FLAGS...: libprof and the test into $work/NAME.
build() {
  local name=$1 test=$2
  shift 2
  "$CC" -std=gnu11 -O2 -g "$@" -Iinclude -Isrc -Itests src/*/*.c "$test" -o "$work/$name" -lcmocka -lpthread -lm 2>"$work/$name.errors" ||
    { cat "$work/$name.errors"; return 1; }
}

# fault NAME TEST FLAGS...: the test passes without the fault and fails with it.
fault() {
  local name=$1 test=$2 run=()
  shift 2
  case " $* " in *" -fsanitize=thread "*) setarch "$(uname -m)" -R true 2>/dev/null && run=(setarch "$(uname -m)" -R) ;; esac
  if ! build sound "$test" "$@" || ! build faulty "$test" "$@" "-DPROF_FAULT_$name"; then
    echo "not built: $name"
    failed=$((failed + 1))
    return
  fi
  PROF_EXACT_SCOPES=4000000 timeout 280 "${run[@]}" "$work/sound" >"$work/sound.log" 2>&1
  local sound=$?
  if [ $sound -eq 77 ]; then
    echo "skip: $name: $(sed -n 's/^skip: //p' "$work/sound.log")"
    return
  fi
  PROF_EXACT_SCOPES=4000000 timeout 280 "${run[@]}" "$work/faulty" >"$work/faulty.log" 2>&1
  local faulty=$?
  if [ $sound -eq 0 ] && [ $faulty -ne 0 ]; then
    printf 'caught: %-12s by %s\n' "$name" "$test"
    passed=$((passed + 1))
  else
    printf 'NOT caught: %-12s by %s (without the fault: status %d, with it: %d)\n' "$name" "$test" $sound $faulty
    [ $sound -eq 0 ] || tail -15 "$work/sound.log"
    failed=$((failed + 1))
  fi
}

fault DROP_COUNT tests/stress/test_exact.c
fault LOST tests/stress/test_exact.c
fault GENERATION tests/fault/test_generation.c
fault RELAXED tests/fault/test_commit.c -fsanitize=thread
fault LATE_COMMIT tests/fault/test_single_step.c
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
