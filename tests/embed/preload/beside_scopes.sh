# One copy of prof in the process: scopes and memory are in one trace, PROF_LEVEL says whether
# scopes are. Without PROF_MEMORY nothing happens.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin -I"$PREFIX/include" "$HERE/beside_scopes.c" -o beside -L"$LIBDIR" \
  -Wl,-rpath,"$LIBDIR" -lprof
PROF_LEVEL=1 recorded both.json ./beside || fail "both: the status is $?"
expect_scopes both.json work
recorded memory.json ./beside || fail "memory alone: the status is $?"
expect_scopes memory.json
PROF_LEVEL=1 recorded both.prof ./beside || fail "the status is $?"
look both.prof 1000003
same "pieces of the program" "$live_1000003" 1

mkdir quiet
(cd quiet && LD_PRELOAD=$LIBDIR/libprof_memory.so PROF_OUTPUT=out.json ../beside) ||
  fail "without PROF_MEMORY: the status is $?"
[ -z "$(ls quiet)" ] || fail "without PROF_MEMORY it leaves $(ls quiet)"
PROF_MEMORY=yes LD_PRELOAD=$LIBDIR/libprof_memory.so ./beside 2>said || true
grep "PROF_MEMORY='yes' is not a number from 0 to 1" said >/dev/null ||
  fail "a bad PROF_MEMORY: it says '$(cat said)'"

# What the dynamic linker does not look into is left alone.
if "$CC" -static -O1 -fno-builtin "$HERE/ends.c" -o static -pthread 2>/dev/null; then
  recorded static.prof ./static && [ ! -e static.prof ] ||
    fail "a static program: status $?, $(ls static*)"
fi
! readelf -d "$LIBDIR/libprof_memory.so" | grep -E 'R(UN)?PATH' | grep -v '\[\$ORIGIN\]' ||
  fail "it looks for libprof.so elsewhere than beside it"
readelf -d "$LIBDIR/libprof_memory.so" | grep 'NEEDED.*\[libprof\.so' >/dev/null ||
  fail "it has a copy of prof of its own"
[ "$(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --variable=memory_preload prof)" \
  -ef "$LIBDIR/libprof_memory.so" ] ||
  fail "pkg-config says that it is elsewhere"
