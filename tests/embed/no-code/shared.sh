# PROF_LEVEL and PROF_OUTPUT record a program that only has scopes; without them it leaves nothing.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -I"$PREFIX/include" -o app "$HERE/app.c" -L"$LIBDIR" -lprof
export LD_LIBRARY_PATH=$LIBDIR
mkdir quiet && (cd quiet && ../app) ||
  fail "the program does not run without the variables: status $?"
[ -z "$(ls quiet)" ] || fail "without the variables it leaves $(ls quiet)"
PROF_LEVEL=1 PROF_OUTPUT=trace.json ./app ||
  fail "the program does not run with the variables: status $?"
expect_scopes trace.json work
[ "$(ls -d trace* *.prof 2>/dev/null)" = trace.json ] || fail "it leaves more than the trace: $(ls)"
