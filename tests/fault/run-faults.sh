#!/usr/bin/env bash
# run-faults.sh [NAME...]: builds the library with one deliberate fault at a time (src/base/fault.h)
# and runs the test that must find it. The test must fail with the fault and pass without it.
# NAME: only these faults. Without names: the first of each row, or with PROF_LONG=1 all.
# Prints a line for each fault, with the row of docs/explanation/reliability.md that the test stands
# for. The last line counts. Sources without the fault are not compiled: the objects of build/dev
# and build/tsan serve.
set -uo pipefail
cd "$(dirname "$0")/../.."
CC=${CC:-gcc}
wanted=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PROF_TEST_HANG_SECONDS=${PROF_TEST_HANG_SECONDS:-120} # a fault may be caught by its hanging
passed=0 failed=0 skipped=0
sound_last= row_last=
flags=(-std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Iinclude -Isrc -Itests)
libraries=(-lcmocka -lpthread -lm -ldl)

# compile FOLDER SOURCE... -- FLAGS...: an object for each source. Two at a time.
compile() {
  local folder=$1 sources=()
  shift
  while [ "$1" != -- ]; do sources+=("$1"); shift; done
  shift
  [ ${#sources[@]} -gt 0 ] || { echo "no file of src has this fault" >&2; return 1; }
  printf '%s\n' "${sources[@]}" |
    xargs -P 2 -I{} sh -c '"$@" -c "$0" -o "'"$folder"'/$(echo "$0" | tr / -).o"' {} \
    "$CC" "${flags[@]}" -w "$@" 2>"$folder.errors" || { cat "$folder.errors" >&2; return 1; }
}

# sound_objects FLAGS...: the folders where CMake keeps the library's objects that have these flags.
# Where two have an object of one file, the first's is the right one.
# It is a build that is there already, or nearly.
sound_objects() {
  case "$*" in
    '') tools/build.sh dev prof_objects >&2 && echo build/dev/CMakeFiles/prof_objects.dir ;;
    -fsanitize=thread) tools/build.sh tsan prof_objects >&2 &&
      echo build/tsan/CMakeFiles/prof_objects.dir ;;
    -DPROF_FAKE_CLOCK=1)
      tools/build.sh dev prof_fake_clock >&2 &&
        echo build/dev/tests/CMakeFiles/prof_fake_clock.dir/__ build/dev/CMakeFiles/prof_objects.dir
      ;;
    *) echo "no build has the flags $*" >&2 && return 1 ;;
  esac
}

# take_sound FOLDER FLAGS...: the library's objects into FOLDER, under the names that compile gives
# them. The files that CMake compiles in another way (with zlib, with SQLite, Python's) are compiled
# here.
take_sound() {
  local folder=$1 from place source missing=()
  shift
  from=$(sound_objects "$@") || return 1
  for source in src/*/*.c src/core/*/*.c; do
    case "$source" in src/sink/gzip.c | src/op/database.c) missing+=("$source") && continue ;; esac
    for place in $from; do
      cp "$place/$source.o" "$folder/$(echo "$source" | tr / -).o" 2>/dev/null && continue 2
    done
    missing+=("$source")
  done
  [ ${#missing[@]} -lt 30 ] || { echo "$from lacks ${#missing[@]} objects" >&2; return 1; }
  compile "$folder" "${missing[@]}" -- "$@"
}

# library FAULT FLAGS...: a folder with the library's archive. With a fault, only those files are
# compiled again that know of it.
library() {
  local fault=$1 sound folder
  shift
  sound=$work/sound$(printf '%s' "$*" | tr -c 'a-z0-9' -)
  if [ ! -e "$sound.done" ]; then
    mkdir "$sound"
    take_sound "$sound" "$@" || return 1
    ar rc "$sound/libprof.a" "$sound"/*.o && touch "$sound.done"
  fi
  [ "$fault" = NONE ] && { echo "$sound"; return; }
  folder=$sound-$fault
  if [ ! -e "$folder" ]; then
    mkdir "$folder"
    cp "$sound"/*.o "$sound/libprof.a" "$folder"
    # shellcheck disable=SC2046
    compile "$folder" $(grep -lw "PROF_I_FAULT($fault)" src/*/*.c src/core/*/*.c) -- "$@" \
      "-DPROF_FAULT=PROF_I_FAULT_$fault" ||
      return 1
    ar rc "$folder/libprof.a" "$folder"/*.o
  fi
  echo "$folder"
}

# build FAULT TEST FLAGS...: a folder with the test, what its plugins are, and the command prof for
# what asks it. Prints the folder.
build() {
  local fault=$1 test=$2 folder built plugin
  shift 2
  folder=$(library "$fault" "$@") || return 1
  built=$folder/$(basename "$test" .c)
  [ -e "$built" ] && { echo "$built"; return; }
  mkdir "$built"
  local vendor=()
  case "$test" in */device/*) vendor=("$(dirname "$test")"/emulated/*.c) ;; esac
  "$CC" "${flags[@]}" -w "$@" "$test" "${vendor[@]}" "$folder/libprof.a" -o "$built/test" \
    "${libraries[@]}" ||
    return 1
  for plugin in "$(dirname "$test")"/plugins/*.c; do
    [ -e "$plugin" ] || continue
    [ -e "$built/libprof.so" ] || "$CC" -shared -Wl,-z,nodelete -Wl,-Bsymbolic-functions \
      "$folder"/*.o -o "$built/libprof.so" -lpthread -lm ||
      return 1
    "$CC" "${flags[@]}" -fvisibility=default -w -shared "$plugin" "$built/libprof.so" \
      -Wl,-rpath,"$built" -o "$built/$(basename "$plugin" .c).so" -ldl ||
      return 1
  done
  if [ "$(basename "$test")" = test_text.c ]; then
    "$CC" "${flags[@]}" -Isrc -w tools/prof/*.c tools/import/*.c tools/run/*.c "$folder/libprof.a" \
      -o "$built/prof" -lpthread -lm || return 1
  fi
  echo "$built"
}

# run FOLDER ENVIRONMENT FILTER HANG: it hangs after HANG seconds. Its exit status goes to
# FOLDER/status, what it says to FOLDER/log. ThreadSanitizer wants its addresses where they always
# are.
run() {
  local folder=$1 environment=$2 filter=$3 hang=$4 wrapper=()
  case "$folder" in
    *sanitize-thread*)
      setarch "$(uname -m)" -R true 2>/dev/null && wrapper=(setarch "$(uname -m)" -R)
      ;;
  esac
  # shellcheck disable=SC2086
  env PROF_TEST_PLUGIN_DIR="$folder" PROF_TEST_BUILD_DIR="$folder" $environment \
    PROF_TEST_HANG_SECONDS="$hang" \
    timeout $((4 * hang)) "${wrapper[@]}" "$folder/test" ${filter:+"$filter"} \
    >"$folder/log" 2>&1 </dev/null
  echo $? >"$folder/status"
}

# said LOG: the line that says what went wrong.
said() {
  local cause='^ERROR: |killed after|WARNING: |after [0-9]+ instr|signal at'
  cause+='|^[a-z_]+ [0-9]+, E[A-Z]+: |ERROR   \] --- [^[]'
  grep -m1 -E "$cause" "$1" || grep -m1 -E 'Failure!' "$1" ||
    echo "it died: $(tail -n 1 "$1")"
}

# fault ROW NAME TEST FILTER ENVIRONMENT [FLAG...]: the tests of the file whose names fit the filter
# ('' for all) pass without the fault, and fail with it. Both at once: there are two processors.
# What is sound needs to pass only once, for faults in a row that have all else alike.
fault() {
  local row=$1 name=$2 test=$3 filter=$4 environment=$5 begun=$SECONDS
  local sound faulty sound_status faulty_status
  shift 5
  case "$wanted" in
    "  ")
      [ "${PROF_LONG:-0}" = 1 ] || [ "$row" != "$row_last" ] || return
      row_last=$row
      ;;
    *" $name "*) ;;
    *) return ;;
  esac
  if ! sound=$(build NONE "$test" "$@") || ! faulty=$(build "$name" "$test" "$@"); then
    echo "not built: $row $name"
    failed=$((failed + 1))
    return
  fi
  [ "$sound_last" = "$sound $environment $filter" ] || run "$sound" "$environment" "$filter" 300 &
  # What waits for what a fault keeps away need not wait long.
  run "$faulty" "$environment" "$filter" 20
  wait
  sound_last="$sound $environment $filter"
  sound_status=$(cat "$sound/status") faulty_status=$(cat "$faulty/status")
  if [ "$sound_status" -eq 77 ]; then
    echo "skip: $row $name: $(sed -n 's/^skip: //p' "$sound/log")"
    skipped=$((skipped + 1))
  elif [ "$sound_status" -eq 0 ] && [ "$faulty_status" -ne 0 ]; then
    printf 'caught: %-4s %-14s by %s (%d s): %s\n' "$row" "$name" "$(basename "$test" .c)" \
      $((SECONDS - begun)) \
      "$(said "$faulty/log" | cut -c1-150)"
    passed=$((passed + 1))
  else
    printf 'NOT caught: %-4s %-14s by %s %s (without the fault: status %d, with it: %d)\n' "$row" \
      "$name" "$test" "$filter" "$sound_status" "$faulty_status"
    [ "$sound_status" -eq 0 ] || tail -15 "$sound/log"
    failed=$((failed + 1))
  fi
}

fault R1 PRIVATE_MAP tests/stress/test_kill.c '' PROF_KILL_RUNS=40
fault R1 OPEN_ELSEWHERE tests/stress/test_kill.c '' PROF_KILL_RUNS=40
fault R1 LATE_COMMIT tests/fault/test_single_step.c 'a_plain_scope*' ''
fault R1 EARLY_CLEAR tests/fault/test_single_step.c 'a_plain_scope*' ''
fault R1 UNMARKED_COPY tests/fault/test_single_step.c 'calls_in*' ''
fault R1 EARLY_MOVE tests/fault/test_single_step.c 'calls_in*' ''
fault R1 GENERATION tests/fault/test_single_step.c 'a_ring*' ''
fault R1 GENERATION tests/fault/test_generation.c '' ''
fault R1 HALF_READ tests/fault/test_single_step.c 'start_after*' ''
fault R1 RELAXED tests/fault/test_commit.c '' '' -fsanitize=thread
fault R2 OPEN_ELSEWHERE tests/stress/test_deaths.c 'deaths_while_recording' PROF_DEATHS=2
fault R3 DROP_COUNT tests/stress/test_exact.c 'keep_*' PROF_EXACT_ATTEMPTS=4000000
fault R4 OVER_CAP tests/stress/test_cap.c 'the_cap_holds_in_a_file' PROF_CAP_SECONDS=4
fault R4 HOT_CALL tests/stress/test_cap.c 'the_hot_path*' ''
fault R4 MALLOC tests/stress/test_cap.c 'no_scope*' ''
fault R5 LEAK tests/failing/test_every_call.c '' PROF_FAILING_ONLY=fstatfs
fault R5 WRITE_IGNORED tests/failing/test_every_call.c '' PROF_FAILING_ONLY=write
fault R6 LEFT_UNUSED tests/stress/test_many.c '' PROF_THREADS=2000
fault R6 NEVER_FREE tests/stress/test_many.c '' PROF_THREADS=2000
fault R7 NO_WIPE tests/stress/test_forks.c 'a_child_that_came*' ''
fault R7 NOT_KEPT tests/api/test_get_large.c 'a_childs_trace*' ''
fault R8 NO_GUARD tests/stress/test_exact.c 'captures_may*' ''
fault R8 NOBODY_READS tests/api/test_get_large.c 'clears_beside*' ''
fault R8 NEVER_BACK tests/api/test_get_large.c 'room_comes_back*' ''
fault R8 LET_GO tests/api/test_get_large.c 'what_is_read_stays_when_the_capture_is_replaced' ''
fault R8 NO_LOCK tests/stress/test_meddle.c '' PROF_MEDDLE_SECONDS=2 -fsanitize=thread
fault R9 LOST tests/fault/test_signal_step.c 'a_plain_scope_survives*' PROF_LONG=1
fault R9 LEAVE_AT_ONCE tests/fault/test_signal_step.c 'a_ring_that_goes_round*' PROF_LONG=1
fault R9 SKIPPED_STAYS tests/stress/test_jumps.c 'jumps_out*' PROF_JUMPS_SECONDS=1
fault R9 DEPTH tests/stress/test_jumps.c 'fibres_with_blocks*' PROF_JUMPS_SECONDS=4
fault R10 RAW_CONTROL tests/hostile/test_text.c '' ''
fault R10 RAW_SEPARATOR tests/hostile/test_text.c '' ''
fault R10 RAW_LESS_THAN tests/hostile/test_text.c '' ''
fault R11 NO_BOUND tests/hostile/test_flips.c '' ''
fault R11 NO_END tests/hostile/test_truncation.c '' ''
fault R12 ONE_SEGMENT tests/clock/test_jumps.c 'a_*' '' -DPROF_FAKE_CLOCK=1
fault R13 BORROWED_KEYS tests/stress/test_reload.c '' ''
fault R14 GENERATION_0 tests/stress/test_soak.c '' PROF_SOAK_SCOPES=40000000
fault R14 NARROW_COUNT tests/stress/test_soak.c '' PROF_SOAK_SCOPES=40000000
fault R17 NO_FSTAT tests/failing/test_descriptors.c '' ''
fault R18 NOT_EXCLUSIVE tests/unit/test_buffer_place.c '' ''
fault R18 NOBODY_ELSE tests/failing/test_places.c '' ''
fault M1 PLAIN_SUM tests/fault/test_memory_step.c 'a_pair_survives*' ''
fault M1 PLAIN_PEAK tests/fault/test_memory_step.c 'a_pair_survives*' ''
fault M1 LATE_PEAK tests/fault/test_memory_step.c 'a_pair_is*' ''
fault M1 LATE_WORDS tests/fault/test_memory_step.c 'a_pair_is*' ''
fault M1 LATE_CLOCK tests/fault/test_memory_step.c 'a_pair_survives*' ''
fault M1 UNSCRUBBED tests/unit/test_buffer_chunk.c 'no_word*' ''
fault M3 ASKED_ONCE tests/api/test_memory_begin.c 'a_start_while*' ''
fault M3 NO_ROUND tests/stress/test_memory_reset.c 'peaks_are_right_while_they*' \
  PROF_RESET_SECONDS=2
fault M3 OLD_EPOCH tests/fault/test_memory_step.c 'a_reset*' ''
fault D1 SURE tests/unit/test_device_clock.c '' ''
fault D1 BEFORE_LAUNCH tests/device/test_records.c \
  what_seems_to_begin_before_its_launch_is_moved_and_counted ''
fault D2 KEPT_PAIR tests/device/test_scopes.c events_are_used_again ''
fault D3 NOT_COUNTED tests/device/test_scopes.c what_is_not_past_at_the_stop_is_counted ''
fault D3 PARENTS_DEVICE tests/device/test_scopes.c a_forked_child_has_no_device ''
fault D4 NOBODYS_KERNEL tests/device/test_records.c \
  a_kernel_belongs_to_the_innermost_scope_that_launched_it ''
fault P1 NOT_ALONE tests/unit/test_analysis_only_children.c 'rows_are*' ''
fault P1 LOSES_SELF tests/unit/test_analysis_only_children.c 'rows_are*' ''
fault P1 STEP_HOLDS tests/unit/test_analysis_only_children.c 'rows_are*' ''
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
