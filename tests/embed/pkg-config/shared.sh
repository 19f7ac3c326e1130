# cc app.c $(pkg-config --cflags --libs prof) links the shared library, and nothing that only that
# needs.
. "$(dirname "$0")/../harness.sh"

export PKG_CONFIG_PATH=$LIBDIR/pkgconfig
version=$(sed -n 's/^#define PROF_VERSION_STRING "\(.*\)"$/\1/p' "$SOURCE/include/prof/version.h")
[ "$(pkg-config --modversion prof)" = "$version" ] ||
  fail "pkg-config says version $(pkg-config --modversion prof), the header $version"
! pkg-config --libs prof | grep -- -lz >/dev/null ||
  fail "a shared link asks for zlib: $(pkg-config --libs prof)"
quietly $CC -o app "$EMBED/app.c" $(pkg-config --cflags --libs prof)
links_shared ./app || fail "the program does not load libprof"
run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
