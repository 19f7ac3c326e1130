# two_parts HOW HOW [CMAKE-OPTION...]: both parts are in one program, linked with one prof; both
# scopes are in its trace, and nothing was said at configuration.
two_parts() {
  rm -rf build second
  mkdir second # another copy of the sources, as a second subproject has it
  cp -r "$SOURCE/CMakeLists.txt" "$SOURCE/cmake" "$SOURCE/include" "$SOURCE/src" \
    "$SOURCE/inject" second/
  configure_and_build "$HERE" -DPART_ONE="$1" -DPART_TWO="$2" -DPROF_one="$SOURCE" \
    -DPROF_two="$WORK/second" \
    -DCMAKE_PREFIX_PATH="$PREFIX" "${AS_DEV[@]}" "${@:3}"
  rm -f trace.json
  PROF_LEVEL=1 PROF_OUTPUT=trace.json build/app || fail "$1 and $2: status $?"
  expect_scopes trace.json one two
  [ "$(ldd build/app | grep -c libprof)" = 1 ] ||
    fail "$1 and $2: more than one libprof: $(ldd build/app)"
}
