# PROF_MEMORY=1 without the library before it: a program's own pools are recorded, its scopes are
# not.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -I"$PREFIX/include" "$HERE/pools.c" -o shared -L"$LIBDIR" -Wl,-rpath,"$LIBDIR" \
  -lprof
quietly "$CC" -O1 -I"$PREFIX/include" "$HERE/pools.c" -o static "$LIBDIR/libprof.a" -pthread \
  $(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --static --libs-only-l prof | sed 's/-lprof//')
for kind in shared static; do
  PROF_MEMORY=1 PROF_OUTPUT=$kind.prof ./$kind || fail "$kind: the status is $?"
  look $kind.prof
  same "$kind: allocs, frees, peak, asked for, end" \
    "$allocs $frees $peak_used $peak_requested $end_used" "2 1 1536 1500 512"
  PROF_MEMORY=1 PROF_OUTPUT=$kind.json ./$kind || fail "$kind: the status is $?"
  expect_scopes $kind.json
  PROF_LEVEL=1 PROF_MEMORY=1 PROF_OUTPUT=$kind.json ./$kind ||
    fail "$kind, with scopes: the status is $?"
  expect_scopes $kind.json work
  mkdir $kind.quiet
  (cd $kind.quiet && PROF_MEMORY=0 PROF_OUTPUT=out.json ../$kind && [ -z "$(ls)" ]) ||
    fail "$kind: with PROF_MEMORY=0 it leaves something"
done
