# Sourced by every test of this folder: a strict shell, the paths, an empty folder to work in, and
# the checks.
#   SOURCE, BUILD   prof's sources and the build under test       PREFIX   an installation of it
#   HERE            the test's own folder                         EMBED    this folder
set -euo pipefail

SOURCE=$PROF_TEST_SOURCE_DIR
BUILD=$PROF_TEST_BUILD_DIR
EMBED=$SOURCE/tests/embed
HERE=$(cd "$(dirname "$0")" && pwd)
PREFIX=$BUILD/tests/embed/prefix
CC=${CC:-cc}
CXX=${CXX:-c++}
# What the preset dev compiles with. A project that adds prof's sources in place then finds all of
# their objects in ccache.
AS_DEV=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g"
        -DPROF_WERROR=ON)
unset PROF_LEVEL PROF_OUTPUT LD_LIBRARY_PATH PKG_CONFIG_PATH CFLAGS CXXFLAGS LDFLAGS DESTDIR

LIBDIR=$PREFIX/$(sed -n 's/^CMAKE_INSTALL_LIBDIR:PATH=//p' "$BUILD/CMakeCache.txt")
WORK=$BUILD/tests/embed/room/$(basename "$HERE")-$(basename "$0" .sh)
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

fail() { printf 'failed: %s\n' "$*" >&2; exit 1; }
skip() { printf 'skip: %s\n' "$*"; exit 77; }

# quietly COMMAND...: its output, the first 50 lines, only when it fails.
quietly() {
  "$@" >"$WORK/log" 2>&1 && return
  printf 'failed: %s\n' "$*" >&2
  head -n 50 "$WORK/log" >&2
  exit 1
}

# expect_scopes FILE NAME...: FILE is strict JSON, its ended scopes are exactly these, in any order.
expect_scopes() {
  python3 - "$@" <<'PYTHON'
import json, sys

def refuse(word):
    raise ValueError("not JSON: " + word)

path, wanted = sys.argv[1], sorted(sys.argv[2:])
with open(path, encoding="utf-8") as file:
    trace = json.load(file, parse_constant=refuse)
found = sorted(event["name"] for event in trace["traceEvents"] if event["ph"] == "X")
if found != wanted:
    sys.exit(f"failed: {path} has the scopes {found}, expected {wanted}")
PYTHON
}

# run_app COMMAND...: runs it with a new file as its last argument, and expects the one scope of
# app.c in that.
run_app() {
  rm -f trace.json
  "$@" trace.json || fail "$* trace.json: status $?"
  expect_scopes trace.json ${SCOPES:-work}
}

# configure_and_build FOLDER CMAKE-OPTION...: a CMake project in this test's work folder, built in
# build/.
configure_and_build() {
  local folder=$1
  shift
  rm -rf build
  quietly cmake -S "$folder" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$CC" \
    -DEMBED_DIR="$EMBED" "$@"
  quietly cmake --build build
}

# links_shared PROGRAM: does it load libprof at run time? (Never grep -q after a pipe: it leaves
# early, and pipefail then takes the broken pipe for a failure.)
links_shared() { readelf -d "$1" | grep 'NEEDED.*\[libprof\.so' >/dev/null; }
