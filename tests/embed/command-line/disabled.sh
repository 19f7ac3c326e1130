# One object made with PROF_DISABLE, one without, in one program: only the second records, and the
# first names no symbol of prof.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -DPROF_DISABLE -I"$PREFIX/include" -c -o disabled.o "$HERE/disabled.c"
! nm -u disabled.o | grep -w 'prof_[a-z0-9_]*' ||
  fail "the object made with PROF_DISABLE needs prof"
quietly "$CC" -O2 -I"$PREFIX/include" -o app "$HERE/disabled-main.c" disabled.o -L"$LIBDIR" -lprof
SCOPES=loud run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
