# A version that this one does not serve is refused by name.
. "$(dirname "$0")/../harness.sh"

mkdir project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
find_package(prof 99.0 CONFIG REQUIRED)
CMAKE
! cmake -S project -B build -G Ninja -DCMAKE_PREFIX_PATH="$PREFIX" >out 2>&1 ||
  fail "prof 99.0 was found"
grep -q 'requested version "99.0"' out || fail "the message does not name the version: $(cat out)"
