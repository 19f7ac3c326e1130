#!/usr/bin/env bash
# usage: tests/long/lua.sh
#
# Lua 5.4 or 5.5 with prof in it, against Lua's own instruments.
#   Calls:       By name, as the debug hook and the script count them.
#   Memory:      As the allocator and LUA_GCCOUNT have it.
#   Errors:      Those that leave blocks by longjmp().
#   Coroutines:  They nest, overlap, fail and are abandoned.
#   Kills:       Several interpreters at once, and kill -9 in the middle.
# lua/host.c is the program, lua/workload.lua what it runs, check.py what compares.
#
# The sources are the first of these.
#   LUA_SOURCES=FOLDER:  With lua.h, or src/lua.h. A release, or a checkout of lua/lua.
#   liblua5.4-dev:       Installed, or downloaded by apt-get and unpacked.
#   Lua 5.4.7:           The release, by https.
# shellcheck source-path=SCRIPTDIR source=subject.sh
. "$(dirname "$0")/subject.sh"

# from_sources FOLDER: the library is compiled here.
from_sources() {
  local folder=$1 file
  [ -e "$folder/lua.h" ] || folder=$1/src
  [ -e "$folder/lua.h" ] || return
  fresh "$work/objects"
  for file in "$folder"/*.c; do
    case ${file##*/} in lua.c | luac.c | onelua.c | ltests.c) continue ;; esac
    "$CC" -std=gnu11 -O2 -w -DLUA_USE_POSIX -c "$file" \
      -o "$work/objects/$(basename "$file" .c).o" || return
  done
  flags="-I$folder" library=$(echo "$work"/objects/*.o)
}

from_package() {
  local root=$1 include
  include=$root/usr/include/lua5.4 library=$(echo "$root"/usr/lib/*/liblua5.4.a)
  flags="-I$include $(printf -- '-I%s ' "$root"/usr/include/*-linux-gnu)"
  [ -e "$include/lua.h" ] && [ -e "$library" ]
}

from_release() {
  local archive=$cache/lua-5.4.7.tar.gz
  download https://www.lua.org/ftp/lua-5.4.7.tar.gz \
    9fbf5e28ef86c69858f6d3d34eccc32e911c1a28b4120ff3e84aaa70cfbf1e30 "$archive" || return
  tar -xzf "$archive" -C "$cache" && from_sources "$cache/lua-5.4.7"
}

fresh "$work"
if [ -n "${LUA_SOURCES:-}" ]; then
  from_sources "$LUA_SOURCES" || fail "LUA_SOURCES=$LUA_SOURCES: no lua.h, or it does not compile"
else
  from_package "" || { unpack liblua5.4-dev && from_package "$cache/debian"; } || from_release ||
    skip "no LUA_SOURCES, no liblua5.4-dev, and neither the package nor the release can be had"
fi
compile_host tests/long/lua/host.c

# run HOW COROUTINES THREADS: into the folder of that name.
run() {
  folder=$work/$1-$2-$3
  fresh "$folder"
  "$work/host" tests/long/lua/workload.lua "$folder" "$1" "$2" "$3" 2>"$folder/errors" && return
  printf 'FAILED  host %s %s %s\n' "$1" "$2" "$3"
  cat "$folder/errors"
  failed=$((failed + 1))
}

for threads in 1 4; do
  run counts nest $threads
  without=$folder
  for how in bare 0 1 2; do
    run $how nest $threads
    same_result "$without" "$folder"
    [ $how = bare ] || [ $how = 0 ] ||
      check "$folder" $how "level $how, $threads interpreters, coroutines nest"
  done
  run 2 cross $threads
  same_result "$without" "$folder"
  check "$folder" 2 "level 2, $threads interpreters, coroutines overlap"
done
sed -n 's/^"instruments": {\(.*\)},/        own instruments: \1/p' "$work/2-nest-1/own.json"

python3 tests/long/kill.py build/dev/prof "$work/kill" "${PROF_SUBJECT_KILLS:-5}" \
  "$work/host" tests/long/lua/workload.lua "$work/kill" 2 nest 2 || failed=$((failed + 1))

# shellcheck disable=SC2317 # overhead() calls it
run_again() {
  local how=${1##*/}
  "$work/host" tests/long/lua/workload.lua "$1" "${how%%-*}" nest 1 2>/dev/null
}
for how in 0 1 2; do
  overhead "level $how over the hooks alone" "$work/counts-nest-1" "$work/$how-nest-1"
done
conclude
