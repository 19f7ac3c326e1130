#!/usr/bin/env bash
# usage: tests/long/sqlite.sh
#
# SQLite with prof in it, by its public hooks, against SQLite's own instruments.
#   Statements:  As sqlite3_stmt_status() counts their runs.
#   Memory:      To the byte as sqlite3_status() has it.
#   Pages:       As sqlite3_db_status() has them.
#   Workload:    Statements in turns on one connection, errors, rollbacks, triggers, four
#                connections at once, kill -9 in the middle.
# sqlite/host.c is the program and its workload, check.py what compares.
#
# The sources are the first of these.
#   SQLITE_SOURCES=FOLDER:  With sqlite3.c and sqlite3.h, an amalgamation.
#   libsqlite3-dev:         Installed, or downloaded by apt-get and unpacked.
#   SQLite 3.46.1:          The amalgamation, by https.
# shellcheck source-path=SCRIPTDIR source=subject.sh
. "$(dirname "$0")/subject.sh"

from_sources() {
  [ -e "$1/sqlite3.c" ] && [ -e "$1/sqlite3.h" ] || return
  "$CC" -O2 -w -DSQLITE_THREADSAFE=1 -c "$1/sqlite3.c" -o "$work/sqlite3.o" || return
  flags=-I$1 library=$work/sqlite3.o
}

from_package() {
  flags="-I$1/usr/include" library=$(echo "$1"/usr/lib/*/libsqlite3.a)
  [ -e "$1/usr/include/sqlite3.h" ] && [ -e "$library" ]
}

from_release() {
  local archive=$cache/sqlite-amalgamation-3460100.zip
  download https://www.sqlite.org/2024/sqlite-amalgamation-3460100.zip \
    77823cb110929c2bcb0f5d48e4833b5c59a8a6e40cdea3936b99e199dbbe5784 "$archive" || return
  python3 -m zipfile -e "$archive" "$cache" && from_sources "$cache/sqlite-amalgamation-3460100"
}

fresh "$work"
if [ -n "${SQLITE_SOURCES:-}" ]; then
  from_sources "$SQLITE_SOURCES" ||
    fail "SQLITE_SOURCES=$SQLITE_SOURCES: no sqlite3.c, or it does not compile"
else
  from_package "" || { unpack libsqlite3-dev && from_package "$cache/debian"; } || from_release ||
    skip "no SQLITE_SOURCES, no libsqlite3-dev, and neither the package nor the release can be had"
fi
compile_host tests/long/sqlite/host.c

# run HOW JOURNAL THREADS: into the folder of that name.
run() {
  folder=$work/$1-$2-$3
  fresh "$folder"
  "$work/host" "$folder" "$1" "$2" "$3" 2>"$folder/errors" && return
  printf 'FAILED  host %s %s %s\n' "$1" "$2" "$3"
  cat "$folder/errors"
  failed=$((failed + 1))
}

for threads in 1 4; do
  for journal in delete wal; do
    run counts $journal $threads
    without=$folder
    for how in bare 0 1 2; do
      run $how $journal $threads
      same_result "$without" "$folder"
      [ $how = bare ] || [ $how = 0 ] ||
        check "$folder" $how "level $how, $threads connections, journal_mode $journal"
    done
  done
done
sed -n 's/^"instruments": {\(.*\)},/        own instruments: \1/p' "$work/2-delete-4/own.json"

python3 tests/long/kill.py build/dev/prof "$work/kill" "${PROF_SUBJECT_KILLS:-5}" \
  "$work/host" "$work/kill" 2 delete 3 || failed=$((failed + 1))

# shellcheck disable=SC2317 # overhead() calls it
run_again() {
  local how=${1##*/}
  rm -f "$1"/data-* && "$work/host" "$1" "${how%%-*}" delete 1 2>/dev/null
}
for how in 0 1 2; do
  overhead "level $how over the hooks alone" "$work/counts-delete-1" "$work/$how-delete-1"
done
conclude
