# The same from a static link, where the object with the constructor must come in though the program
# calls no function.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -I"$PREFIX/include" -o app "$HERE/app.c" "$LIBDIR/libprof.a" -pthread \
  $(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --static --libs-only-l prof | sed 's/-lprof//')
! links_shared ./app || fail "this is not a static link"
PROF_LEVEL=1 PROF_OUTPUT=trace.json ./app || fail "the program does not run: status $?"
[ -e trace.json ] || fail "no trace: the constructor is not in the program"
expect_scopes trace.json work
