# A program that hides all its own symbols still shares the level with the library.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -fvisibility=hidden -I"$PREFIX/include" -o app "$EMBED/app.c" -L"$LIBDIR" -lprof
run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
