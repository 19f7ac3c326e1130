# One compiler call builds the library: no CMake, no generated file, no build-time script.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -std=c11 -I"$SOURCE/include" -fPIC -shared -o libprof.so \
  "$SOURCE"/src/*/*.c "$SOURCE"/src/core/*/*.c -lpthread
quietly "$CC" -I"$SOURCE/include" -o app "$EMBED/app.c" -L. -lprof
run_app env LD_LIBRARY_PATH=. ./app
