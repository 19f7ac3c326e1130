# A copy that is older than the one that comes second, or of another minor version, is refused, and
# both are named.
. "$(dirname "$0")/../harness.sh"
. "$HERE/parts.bash"

# next_version WORD: the copy of prof in next/ has one more in that part of its version; versions is
# then "this next".
next_version() {
  rm -rf next
  mkdir next
  cp -r "$SOURCE/CMakeLists.txt" "$SOURCE/cmake" "$SOURCE/include" "$SOURCE/src" \
    "$SOURCE/inject" next/
  local now
  now=$(sed -n "s/^#define PROF_VERSION_$1 //p" next/include/prof/version.h)
  sed -i "s/^#define PROF_VERSION_$1 .*/#define PROF_VERSION_$1 $((now + 1))/" \
    next/include/prof/version.h
}

# refused FIRST SECOND: the second one's sources come after the first one's, and the configuration
# fails and says why.
refused() {
  rm -rf build
  ! cmake -S "$HERE" -B build -G Ninja -DPART_ONE=add -DPART_TWO=add -DPROF_one="$1" \
    -DPROF_two="$2" >out 2>&1 ||
    fail "$1, then $2: both went in"
  tr -s '\n ' ' ' <out |
    grep "prof: $2 is version .*, but .* is in this project already" >/dev/null ||
    fail "not the reason: $(cat out)"
}

next_version PATCH
refused "$SOURCE" "$WORK/next"
cmake -S "$HERE" -B fine -G Ninja -DPART_ONE=add -DPART_TWO=add -DPROF_one="$WORK/next" \
  -DPROF_two="$SOURCE" >out 2>&1 ||
  fail "the newer first is refused: $(cat out)"
next_version MINOR
refused "$SOURCE" "$WORK/next"
refused "$WORK/next" "$SOURCE"
